// Message passing: data, then the word that says that it is there.
//
// Party 0 stores data and publishes; party 1 observes, and reads the data. Forbidden: published, and the data is old.
// What hangs on it: every index and value that an engine publishes, and what a signal says is done.
//
//! variant: no_release NO_RELEASE
//! variant: no_acquire NO_ACQUIRE
//! variant: neither NO_RELEASE NO_ACQUIRE

#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#extension GL_EXT_shader_atomic_int64 : require
#extension GL_KHR_memory_scope_semantics : require
#pragma use_vulkan_memory_model

#include "abi/word.glsl"
#include "litmus/left_out.glsl"
#include "litmus/parties.glsl"

void write_messages() {
    uint i = 0u;
    for (uint pass = 0u; pass < MOST_PASSES && i < l_iterations; ++pass) {
        uint64_t other = partner();
        if (has_gone(other)) {
            break;
        }
        if (begins(other, i)) {
            uint n = instance(i);
            PUT(Word(first_of(n)).value, l_generation);
            PUBLISH(Word(second_of(n)).value, l_generation);
            done_with(i, SAW_NEW);
        }
    }
    end_party(i);
}

void read_messages() {
    bool warms = PEEK(Setup(push.setup).warm) != 0ul;
    uint i = 0u;
    uint warmed = 0u;
    for (uint pass = 0u; pass < MOST_PASSES && i < l_iterations; ++pass) {
        uint n = instance(i);
        if (warms && warmed == i) {
            l_sink += PEEK(Word(first_of(n)).value);
            ++warmed;
        }
        uint64_t seen = OBSERVE(Word(second_of(n)).value);
        if (seen == l_generation || ALONE) {
            uint64_t data = PEEK(Word(first_of(n)).value);
            l_sink += data;
            done_with(i, data == l_generation ? SAW_NEW : SAW_OLD);
        } else if ((pass & 63u) == 63u && has_gone(partner())) {
            break;
        }
    }
    end_party(i);
    // Alone nothing else says that it was read.
    if (ALONE && l_sink == ~0ul) {
        PUT(Word(l_mine + SINK).value, l_sink);
    }
}

void main() {
    begin_party();
    if (l_role == 0u) {
        write_messages();
    } else {
        read_messages();
    }
}
