// A kernel of tests that schedules itself: as add_words_together.comp, and the engine's step behind it. Some workgroups
// have nothing to do, and return.

#version 460
#extension GL_GOOGLE_include_directive : require

layout(local_size_x = 8) in;

#include "include/self_scheduling.glsl"

layout(buffer_reference, scalar, buffer_reference_align = 8) buffer Words {
    nonprivate uint64_t word[];
};

layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer Parameters {
    uint64_t from;
    uint64_t to;
    uint64_t words;
    uint64_t number;
};

void nf_kernel(NfJob job) {
    Parameters given = Parameters(job.parameters);
    uint workgroup = (job.workgroup.z * job.workgroups.y + job.workgroup.y) * job.workgroups.x + job.workgroup.x;
    uint at = workgroup * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
    if (uint64_t(at) >= given.words) {
        return;
    }
    Words(given.to).word[at] = Words(given.from).word[at] + given.number;
}
