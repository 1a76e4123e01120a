// A kernel of tests with the shader library: stores how many workgroups the device runs together, its own and those of
// other packets.

#version 460
#extension GL_GOOGLE_include_directive : require

layout(local_size_x = 1) in;

#include "include/native_fence.glsl"

layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer Parameters {
    uint64_t to;
};

layout(buffer_reference, scalar, buffer_reference_align = 8) buffer Count {
    uint64_t workgroups;
};

void main() {
    Count(Parameters(nf_job().parameters).to).workgroups = uint64_t(gl_NumWorkGroups.x);
}
