// Visibility: how long a store takes to be seen.
//
// The CPU stores rising numbers in one word; this shader, which polls it, answers in another. It notes the device's clock
// when it sees a number and when it has answered. The words lie wherever each is asked about.
//
// The words are polled as any that parties share. A plain load may be done once for all passes, by the compiler or by a
// cache that nobody tells (plain): a number that is stored while the shader polls is not seen then before it ends. That
// it polled on it says by a beat, which is no plain store.
//
//! variant: plain PLAIN

#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#extension GL_EXT_shader_atomic_int64 : require
#extension GL_EXT_shader_realtime_clock : require
#extension GL_KHR_memory_scope_semantics : require
#pragma use_vulkan_memory_model

// A whole subgroup, of which one invocation takes part, as in litmus/parties.glsl.
layout(local_size_x_id = 0, local_size_y = 1, local_size_z = 1) in;
layout(constant_id = 1) const uint MOST_PASSES = 20000u;
layout(constant_id = 2) const uint ROUNDS = 128u;

#include "abi/word.glsl"

layout(push_constant) uniform Push {
    uint64_t question;
    uint64_t answer;
    uint64_t times; // two words a round, then the beat
} push;

#ifdef PLAIN
// Neither volatile nor atomic: nothing says that another party stores it.
layout(buffer_reference, scalar, buffer_reference_align = 8) buffer PlainWord {
    uint64_t value;
};

#define LOOK(at) PlainWord(at).value
#else
#define LOOK(at) OBSERVE(Word(at).value)
#endif

void main() {
    bool plays = gl_LocalInvocationIndex == 0u;
    uint answered = plays ? 0u : ROUNDS;
    for (uint pass = 0u; pass < MOST_PASSES && answered < ROUNDS; ++pass) {
        uint64_t asked = LOOK(push.question);
        if (asked > uint64_t(answered)) {
            uint64_t at = push.times + uint64_t(answered) * 16ul;
            PUT(Word(at).value, clockRealtimeEXT());
            PUBLISH(Word(push.answer).value, uint64_t(answered + 1u));
            PUT(Word(at + 8ul).value, clockRealtimeEXT());
            ++answered;
        }
#ifdef PLAIN
        if ((pass & 63u) == 63u) {
            PUT(Word(push.times + uint64_t(ROUNDS) * 16ul).value, uint64_t(pass));
        }
#endif
    }
}
