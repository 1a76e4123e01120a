// Adoption in a workgroup as wide as the engine's: the leading lane adopts while a lane of another subgroup signals.
//
// Store buffering within an engine: lane 0 stores the shadow and looks at CurrentValue; a lane stores CurrentValue and
// looks at the shadow. What orders them is that all lanes meet, between adoption and execution and after it (decisions.md 2:
// adopt | execute | adopt). Forbidden: neither sees the other. A run has its adoptions before the signals, which the first
// meeting orders, or behind them, in the next iteration, which the second does. Without that one both are at it at the same
// time.
//
//! variant: one_meeting ONE_MEETING
//! variant: no_second NO_SECOND_MEETING

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

// Lanes of a subgroup, of which the workgroup has several.
layout(constant_id = 5) const uint SUBGROUP_LANES = 1u;

void tell(uint party, uint n, uint64_t seen) {
    l_sink += seen;
    if (!ALONE) {
        PUT(Word(push.results[party] + uint64_t(n) * 8ul).value,
            l_generation << 32 | (seen == l_generation ? SAW_NEW : SAW_OLD));
    }
}

// The run, read once: to look it up between two accesses takes longer than these.
uint l_seed;
uint l_most_delay;
uint64_t l_cell_mask;
uint64_t l_steps[2];
uint64_t l_offsets[2];

void read_run() {
    Setup setup = Setup(push.setup);
    l_seed = uint(PEEK(setup.seed));
    l_most_delay = uint(PEEK(setup.most_delay));
    l_cell_mask = PEEK(setup.cell_mask);
    l_steps[0] = PEEK(setup.first_step);
    l_steps[1] = PEEK(setup.second_step);
    l_offsets[0] = PEEK(setup.first_offset);
    l_offsets[1] = PEEK(setup.second_offset);
}

uint64_t place(uint array, uint n) {
    return ((uint64_t(n) * l_steps[array] + l_offsets[array]) & l_cell_mask) * LINE_BYTES;
}

uint64_t shadow_of(uint n) {
    return push.first + place(0u, n);
}

uint64_t current_value_of(uint n) {
    return push.second + place(1u, n);
}

// Now one comes first and now the other.
void delay(uint party, uint n) {
    uint passes = mixed_by(l_seed, n * 2u + party) & l_most_delay;
    for (uint pass = 0u; pass < passes; ++pass) {
        l_sink += PEEK(Setup(push.setup).seed);
    }
}

// Whether this run's adoptions come behind the signals: where one meeting is left out, what that one would order.
bool adopts_late() {
#if defined(ONE_MEETING)
    return false;
#elif defined(NO_SECOND_MEETING)
    return true;
#else
    return (l_seed & 1u) == 1u;
#endif
}

// A lane of another subgroup than the leading one; none where there is one alone.
uint signaller_of(uint n) {
    uint others = max(gl_WorkGroupSize.x, SUBGROUP_LANES + 1u) - SUBGROUP_LANES;
    return SUBGROUP_LANES + mixed_by(l_seed, n) % others;
}

void main() {
    begin_party();
    read_run();
    // All lanes, which of PLAYERS is one: they have one line.
    uint iterations = min(uint(PEEK(Setup(push.setup).iterations)), MOST_PASSES - 1u);
    uint late = adopts_late() ? 1u : 0u;
    for (uint i = 0u; i < iterations + late; ++i) {
        if (gl_LocalInvocationIndex == 0u && i >= late) {
            uint n = instance(i - late);
            delay(0u, n);
            PUT(Word(shadow_of(n)).value, l_generation);
            tell(0u, n, OBSERVE(Word(current_value_of(n)).value));
        }
#ifndef ONE_MEETING
        meet();
#endif
        if (i < iterations && gl_LocalInvocationIndex == signaller_of(instance(i))) {
            uint n = instance(i);
            delay(1u, n);
            PUBLISH(Word(current_value_of(n)).value, l_generation);
            order_log_before_comparison();
            tell(1u, n, PEEK(Word(shadow_of(n)).value));
        }
#ifndef NO_SECOND_MEETING
        meet();
#endif
    }
    // What a lane has read is used.
    if (l_sink == ~0ul) {
        PUT(Word(l_mine + SINK).value, l_sink);
    }
}
