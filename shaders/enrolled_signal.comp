// A signal that a program records into a command buffer of its own: one store to a fence's CurrentValue.
//
// No queue, no packet, no log, and no comparison with what CPU waiters wait for: the operating system watches the
// submission instead (decisions.md 9). What the program's commands stored before is made available by the barrier that
// stands before this dispatch; the store publishes it to whoever observes the value while the submission goes on.

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

layout(push_constant, scalar) uniform Push {
    uint64_t current_value_va;
    uint64_t value;
} push;

void main() {
    PUBLISH(Word(push.current_value_va).value, push.value);
}
