// Tearing: a word of 64 bits is stored while another party reads it.
//
// Party 0 stores words whose halves are the same, one after another; party 1 reads them. Forbidden: a word whose halves
// differ. Words that parties share are stored and read by atomics, which are never torn. A plain store and load of 64
// bits is not promised to be one access; two of 32 bits are two.
//
//! variant: plain PLAIN
//! variant: halves HALVES

#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#extension GL_EXT_shader_atomic_int64 : require
#extension GL_KHR_memory_scope_semantics : require
#pragma use_vulkan_memory_model

#include "abi/word.glsl"
#include "litmus/parties.glsl"

layout(buffer_reference, scalar, buffer_reference_align = 8) buffer PlainWord {
    volatile nonprivate uint64_t value;
};

layout(buffer_reference, scalar, buffer_reference_align = 8) buffer HalfWords {
    uint low;
    uint high;
};

void store_word(uint64_t at, uint number) {
#if defined(HALVES)
    PUT(HalfWords(at).low, number);
    PUT(HalfWords(at).high, number);
#elif defined(PLAIN)
    PlainWord(at).value = uint64_t(number) << 32 | uint64_t(number);
#else
    PUT(Word(at).value, uint64_t(number) << 32 | uint64_t(number));
#endif
}

uint64_t read_word(uint64_t at) {
#if defined(HALVES)
    uint low = PEEK(HalfWords(at).low);
    return uint64_t(PEEK(HalfWords(at).high)) << 32 | uint64_t(low);
#elif defined(PLAIN)
    return PlainWord(at).value;
#else
    return PEEK(Word(at).value);
#endif
}

// One word a lane, which is 0 at first, and whose stores nobody waits for: those that nobody saw are no runs.
void main() {
    begin_party();
    uint64_t at = push.first + uint64_t(l_lane) * LINE_BYTES;
    uint i = 0u;
    if (l_role == 0u) {
        for (uint pass = 0u; pass < MOST_PASSES && i < l_iterations; ++pass) {
            bool goes = i != 0u || ALONE || is_there(partner());
            if (goes) {
                ++i;
                store_word(at, i);
            }
        }
        if (!ALONE && gl_LocalInvocationIndex < PLAYERS) {
            PUT(Word(l_mine + DONE).value, l_generation << 32 | GONE);
        }
    } else {
        uint64_t last = 0ul;
        uint64_t seen = 0ul;
        uint64_t torn = 0ul;
        for (uint pass = 0u; pass < MOST_PASSES && l_iterations != 0u && i < (ALONE ? l_iterations : MOST_PASSES); ++pass) {
            uint64_t word = read_word(at);
            ++i;
            bool is_new = word != last;
            seen += is_new ? 1ul : 0ul;
            torn += is_new && uint(word) != uint(word >> 32) ? 1ul : 0ul;
            last = word;
            if (!ALONE && (pass & 63u) == 63u && has_gone(partner())) {
                break;
            }
        }
        if (gl_LocalInvocationIndex < PLAYERS) {
            PUT(Word(l_mine + COUNTS).value, l_generation << 32 | seen);
            PUT(Word(l_mine + COUNTS + 8ul).value, torn);
            PUT(Word(l_mine + DONE).value, l_generation << 32 | GONE);
        }
    }
}
