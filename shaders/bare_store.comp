// The bare control of a signal: what storing values costs on this device.
//
// Each invocation stores rising values to a word of its own. No queue, no packet, no log, nobody
// who might wait.
//
//! variant: narrow NARROW

#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference_uvec2 : require
#ifndef NARROW
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#extension GL_EXT_shader_atomic_int64 : require
#endif
#extension GL_KHR_memory_scope_semantics : require
#pragma use_vulkan_memory_model

layout(local_size_x_id = 0, local_size_y = 1, local_size_z = 1) in;
// Stores of each invocation.
layout(constant_id = 1) const uint STORES = 1u;

#include "bare/word.glsl"

layout(push_constant) uniform Push {
    uvec2 words; // a line each
} push;

void main() {
    Words words = Words(push.words);
    uint mine = gl_GlobalInvocationID.x * LINE_WORDS;
    WORD_T base = words.at[mine];
    for (uint store = 1u; store <= STORES; store++) {
        PUBLISH(words.at[mine], base + WORD_T(store));
    }
}
