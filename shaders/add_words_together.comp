// A kernel of tests with the shader library: as add_words.comp, of as many packets at a time as are ready. Workgroups
// count through x, then y, then z.

#version 460
#extension GL_GOOGLE_include_directive : require

layout(local_size_x = 64) in;

#include "include/native_fence.glsl"

layout(buffer_reference, scalar, buffer_reference_align = 8) buffer Words {
    uint64_t word[];
};

layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer Parameters {
    uint64_t from;
    uint64_t to;
    uint64_t words;
    uint64_t number;
};

void main() {
    NfJob job = nf_job();
    Parameters given = Parameters(job.parameters);
    uint workgroup = (job.workgroup.z * job.workgroups.y + job.workgroup.y) * job.workgroups.x + job.workgroup.x;
    uint at = workgroup * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
    if (uint64_t(at) < given.words) {
        Words(given.to).word[at] = Words(given.from).word[at] + given.number;
    }
}
