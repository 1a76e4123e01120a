// A kernel of tests that schedules itself: each invocation counts itself and takes so many passes, or as many as there are
// before a word is not 0. What its packet's queue signals comes behind it, by its epilogue.

#version 460
#extension GL_GOOGLE_include_directive : require

layout(local_size_x = 1) in;

#include "include/self_scheduling.glsl"

layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer Parameters {
    uint64_t until;
    uint64_t began; // counts them
    uint64_t passes;
    uint64_t fence; // as spin_signal.comp, which signals it
    uint64_t value;
};

void nf_kernel(NfJob job) {
    Parameters given = Parameters(job.parameters);
    atomicAdd(Word(given.began).value, 1ul);
    Word until = Word(given.until);
    bool found = false;
    for (uint64_t pass = 0ul; pass < given.passes && !found; ++pass) {
        found = OBSERVE_ALWAYS(until.value) != 0ul;
    }
}
