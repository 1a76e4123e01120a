// The bare control of a copy: what loads and stores of one workgroup cost on this device.
//
// The loop of an engine's COPY (engine/transfer.glsl) and nothing else: no queue, no packet, no
// meeting, no end before its end. What an engine takes above this is the price of being divisible.

#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#extension GL_KHR_memory_scope_semantics : require
#pragma use_vulkan_memory_model

layout(local_size_x_id = 0, local_size_y = 1, local_size_z = 1) in;
// Passes of each invocation: WORDS words each.
layout(constant_id = 1) const uint PASSES = 1u;
const uint WORDS = 8u;

layout(buffer_reference, std430, buffer_reference_align = 8) buffer Data {
    nonprivate uint64_t word;
};

layout(push_constant) uniform Push {
    uint64_t to;
    uint64_t from;
} push;

void main() {
    uint64_t step = uint64_t(gl_WorkGroupSize.x) * 8ul;
    uint64_t first = uint64_t(gl_LocalInvocationID.x) * 8ul;
    uint64_t to = push.to + first;
    uint64_t from = push.from + first;
    for (uint pass = 0u; pass < PASSES; ++pass) {
        uint64_t v0 = Data(from).word;
        uint64_t v1 = Data(from + step).word;
        uint64_t v2 = Data(from + 2ul * step).word;
        uint64_t v3 = Data(from + 3ul * step).word;
        uint64_t v4 = Data(from + 4ul * step).word;
        uint64_t v5 = Data(from + 5ul * step).word;
        uint64_t v6 = Data(from + 6ul * step).word;
        uint64_t v7 = Data(from + 7ul * step).word;
        Data(to).word = v0;
        Data(to + step).word = v1;
        Data(to + 2ul * step).word = v2;
        Data(to + 3ul * step).word = v3;
        Data(to + 4ul * step).word = v4;
        Data(to + 5ul * step).word = v5;
        Data(to + 6ul * step).word = v6;
        Data(to + 7ul * step).word = v7;
        to += WORDS * step;
        from += WORDS * step;
    }
}
