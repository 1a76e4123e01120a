// Adoption in a workgroup: the leading lane adopts while another lane signals.
//
// Store buffering within an engine: lane 0 stores the shadow and looks at CurrentValue; a lane stores CurrentValue and
// looks at the shadow. What orders them is that all lanes meet, between adoption and execution and after it (decisions.md 2:
// adopt | execute | adopt). Forbidden: neither sees the other. With one meeting an iteration both are at it at the
// same time.
//
//! variant: one_meeting ONE_MEETING

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

void tell(uint party, uint n, uint64_t seen) {
    l_sink += seen;
    if (!ALONE) {
        PUT(Word(push.results[party] + uint64_t(n) * 8ul).value,
            l_generation << 32 | (seen == l_generation ? SAW_NEW : SAW_OLD));
    }
}

void main() {
    begin_party();
    // All lanes, which of PLAYERS is one: they have one line.
    uint iterations = min(uint(PEEK(Setup(push.setup).iterations)), MOST_PASSES);
    for (uint i = 0u; i < iterations; ++i) {
        uint n = instance(i);
        uint signaller = 1u + mixed(n) % (gl_WorkGroupSize.x - 1u);
        if (gl_LocalInvocationIndex == 0u) {
            PUT(Word(first_of(n)).value, l_generation);
            tell(0u, n, OBSERVE(Word(second_of(n)).value));
        }
#ifndef ONE_MEETING
        meet();
#endif
        if (gl_LocalInvocationIndex == signaller) {
            PUBLISH(Word(second_of(n)).value, l_generation);
            order_log_before_comparison();
            tell(1u, n, PEEK(Word(first_of(n)).value));
        }
        meet();
    }
    if (ALONE && l_sink == ~0ul) {
        PUT(Word(l_mine + SINK).value, l_sink);
    }
}
