// What an invocation of the workload `work` does: so many passes over a word of its own. No load or store of it is atomic
// or orders anything, so what a link of a chain finds there tells whether the one before was waited for; `nonprivate`, as
// the last one's is read by the CPU behind a signal of an epilogue (include/self_scheduling.glsl).

layout(buffer_reference, scalar, buffer_reference_align = 8) buffer Words {
    nonprivate uint64_t word[];
};

layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer Parameters {
    uint64_t words;
    uint64_t passes;
    uint64_t factor;
};

// Enough of them that a driver which ends loops ends none of these.
#define STEP x = x * factor + 1ul;
#define STEPS_8 STEP STEP STEP STEP STEP STEP STEP STEP
#define STEPS_128 \
    STEPS_8 STEPS_8 STEPS_8 STEPS_8 STEPS_8 STEPS_8 STEPS_8 STEPS_8 \
    STEPS_8 STEPS_8 STEPS_8 STEPS_8 STEPS_8 STEPS_8 STEPS_8 STEPS_8

void take_passes(uint64_t parameters, uint at) {
    Parameters given = Parameters(parameters);
    Words words = Words(given.words);
    uint64_t x = words.word[at];
    uint passes = uint(given.passes);
    // A factor that the compiler knows would make one step of many.
    uint64_t factor = given.factor;
    for (uint pass = 0u; pass < passes; ++pass) {
        STEPS_128
    }
    words.word[at] = x;
}
