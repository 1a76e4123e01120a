// Log entry against index: the entry is written, then the index that names it (LG-02 to LG-05).
//
// Party 0 is an engine and logs by its own function; party 1 is the CPU, which takes the index and then the entry.
// Forbidden: an entry that the index names and that is not what was logged.
//
//! variant: no_release NO_RELEASE

#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#extension GL_EXT_shader_atomic_int64 : require
#extension GL_KHR_memory_scope_semantics : require
#pragma use_vulkan_memory_model

#include "abi/word.glsl"
#include "abi/log_buffer.glsl"
#include "litmus/left_out.glsl"
#include "engine/log.glsl"
#include "litmus/parties.glsl"

const uint64_t LOG_BYTES = 4096ul;
const uint ENTRIES = 84u;

void main() {
    begin_party();
    uint64_t log = push.first + uint64_t(l_lane) * LOG_BYTES;
    uint64_t index = 0ul;
    uint i = 0u;
    for (uint pass = 0u; pass < MOST_PASSES && i < l_iterations; ++pass) {
        uint64_t other = partner();
        if (has_gone(other)) {
            break;
        }
        if (begins(other, i)) {
            uint64_t value = l_generation << 32 | uint64_t(i);
            index = log_entry(log, index, ENTRIES, value, value & 0xfffffffful | LOG_SIGNAL_EXECUTED << 32, value);
            done_with(i, 1ul);
        }
    }
    end_party(i);
}
