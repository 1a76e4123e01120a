// A condition that a program records into a command buffer of its own: indirect counts stay as they are where a fence
// has come to a value, and become zero where it has not. That destroys them: whoever executes the command buffer again
// stores the counts anew before (host, or a copy and a barrier to this shader).
//
// It does not wait. It looks once, when the commands before it are done, so the work that it decides on runs or is
// passed over in this submission. What was stored before the value was published is visible to that work: the observing
// load here, and the barrier that stands after this dispatch.

#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#extension GL_EXT_shader_atomic_int64 : require
#extension GL_KHR_memory_scope_semantics : require
#pragma use_vulkan_memory_model

#include "abi/word.glsl"

layout(local_size_x = 1) in;

// VkDispatchIndirectCommand.
layout(buffer_reference, scalar, buffer_reference_align = 4) buffer Counts {
    uint x;
    uint y;
    uint z;
};

layout(push_constant, scalar) uniform Push {
    uint64_t current_value_va;
    uint64_t value;
    uint64_t counts_va;
} push;

void main() {
    if (OBSERVE(Word(push.current_value_va).value) < push.value) {
        Counts counts = Counts(push.counts_va);
        counts.x = 0u;
        counts.y = 0u;
        counts.z = 0u;
        make_available();
    } else {
        make_visible();
    }
}
