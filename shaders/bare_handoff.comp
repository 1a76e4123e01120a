// The bare control of a hand-off: what two words and nothing else cost on this device.
//
// Two invocations of one subgroup pass a value to and fro: each waits for its own word and answers
// in the other's. No queue, no packet, no log, no handle. What a native fence takes above this is
// the price of being a fence.
//
// The two are of one dispatch, or of two (ROLE), of which the CPU may play one.
//
// One bounded loop without an inner one: both invocations may run in lockstep, where a spin of one
// would never let the other answer; and a driver may end long loops.
//
//! variant: narrow NARROW
//! variant: timed TIMED

#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference_uvec2 : require
#ifndef NARROW
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#extension GL_EXT_shader_atomic_int64 : require
#endif
#ifdef TIMED
#extension GL_EXT_shader_realtime_clock : require
#endif
#extension GL_KHR_memory_scope_semantics : require
#pragma use_vulkan_memory_model

// A whole subgroup, of which two invocations take part: lavapipe lets the lanes that a smaller
// workgroup leaves empty run the loop to its bound.
layout(local_size_x_id = 0, local_size_y = 1, local_size_z = 1) in;
// Hand-offs of one dispatch, an even number: half of them by each invocation.
layout(constant_id = 1) const uint HANDOFFS = 256u;
// Passes of the loop, after which an unanswered invocation gives up.
layout(constant_id = 2) const uint MOST_PASSES = 20000u;
// Which of the two this dispatch is.
const uint BOTH = 2u;
layout(constant_id = 3) const uint ROLE = BOTH;
// Passes before the other's first word, where it is not of this dispatch: with those that follow
// still below what lavapipe 22 gives an invocation.
layout(constant_id = 4) const uint FIRST_PASSES = 40000u;
// Looks in a row, where the other is not of this dispatch, after which it is taken for not running.
layout(constant_id = 5) const uint MOST_SILENCE = 1u;

#include "bare/word.glsl"

layout(push_constant) uniform Push {
    uvec2 words; // four lines: the invocations' words, then how often each was answered; with TIMED then the times
} push;

// TIMED: of each turn the device's clock when it was got, and when it was passed on; of as many bits as the clock has.
#ifdef TIMED
const uint TIMES = 4u * LINE_WORDS;
#define GOT(turn) words.at[TIMES + 2u * (turn)] = clockRealtimeEXT();
#define PASSED(turn) words.at[TIMES + 2u * (turn) + 1u] = clockRealtimeEXT();
#else
#define GOT(turn)
#define PASSED(turn)
#endif

#define LOOK_AGAIN                      \
    if (seen == base) {                 \
        seen = OBSERVE(words.at[mine]); \
    }

void main() {
    Words words = Words(push.words);
    uint lane = gl_LocalInvocationIndex;
    uint me = ROLE == BOTH ? lane : ROLE;
    bool plays = lane < (ROLE == BOTH ? 2u : 1u);
    uint mine = me * LINE_WORDS;
    uint other = (1u - me) * LINE_WORDS;
    uint rounds = HANDOFFS / 2u;
    // Only the second invocation changes this word, and not before the first has begun.
    WORD_T base = OBSERVE(words.at[0]);
    uint answered = plays ? 0u : rounds;
    // The first invocation begins, and has one answer to wait for when the last round is over.
    if (plays && me == 0u) {
        GOT(0u)
        PUBLISH(words.at[other], base + WORD_T(1u));
        PASSED(0u)
    }
    uint silent = 0u;
    if (ROLE != BOTH) {
        // Until the other has begun: eight looks a pass, since passes are few.
        WORD_T seen = base;
        for (uint pass = 0u; pass < FIRST_PASSES && silent < MOST_SILENCE && plays && seen == base;
             pass++) {
            seen = OBSERVE(words.at[mine]);
            LOOK_AGAIN LOOK_AGAIN LOOK_AGAIN LOOK_AGAIN LOOK_AGAIN LOOK_AGAIN LOOK_AGAIN
            silent += 8u;
        }
        silent = seen == base ? MOST_SILENCE : 0u;
    }
    for (uint pass = 0u; pass < MOST_PASSES && answered < rounds && silent < MOST_SILENCE; pass++) {
        WORD_T expected = base + WORD_T(answered + 1u);
        if (ROLE != BOTH) {
            silent++;
        }
        if (OBSERVE(words.at[mine]) >= expected) {
            // The first invocation has the turns of even numbers, of which the one that begins is none of an answer.
            GOT(2u * answered + 2u - me)
            answered++;
            silent = 0u;
            WORD_T next = me == 0u ? expected + WORD_T(1u) : expected;
            if (me == 1u || answered < rounds) {
                PUBLISH(words.at[other], next);
            }
            PASSED(2u * answered - me)
        }
    }
    if (plays) {
        PUBLISH(words.at[(2u + me) * LINE_WORDS], WORD_T(answered));
    }
}
