// The kernel of the workload `work`.
//
// Its only push constant is the address of its parameters, as that of every kernel (src/abi/dispatch.rs).

#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#extension GL_KHR_memory_scope_semantics : require
#pragma use_vulkan_memory_model

layout(local_size_x = 8) in;

layout(push_constant, scalar) uniform Push {
    uint64_t parameters;
} push;

#include "work/passes.glsl"

void main() {
    take_passes(push.parameters, gl_GlobalInvocationID.x);
}
