// A kernel of tests that schedules itself: stores a number, and signals a fence of its parameters.

#version 460
#extension GL_GOOGLE_include_directive : require

layout(local_size_x = 1) in;

#include "include/self_scheduling.glsl"

layout(buffer_reference, scalar, buffer_reference_align = 8) buffer Words {
    nonprivate uint64_t word;
};

layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer Parameters {
    uint64_t to;
    uint64_t fence;
    uint64_t value;
};

void nf_kernel(NfJob job) {
    Parameters given = Parameters(job.parameters);
    Words(given.to).word = given.value;
    nf_signal(job, nf_fence(job, given.fence), given.value);
}
