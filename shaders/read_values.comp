// A kernel of tests: each invocation reads the CurrentValue of a fence of a list.

#version 460
#extension GL_GOOGLE_include_directive : require

layout(local_size_x = 8) in;

#include "include/native_fence.glsl"

layout(buffer_reference, scalar, buffer_reference_align = 8) buffer Words {
    uint64_t word[];
};

layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer Parameters {
    uint64_t fences; // handles
    uint64_t count;
    uint64_t values;
};

void main() {
    NfJob job = nf_job();
    Parameters given = Parameters(job.parameters);
    uint at = nf_global_invocation(job).x;
    if (uint64_t(at) < given.count) {
        Words(given.values).word[at] = nf_current_value(nf_fence(job, Words(given.fences).word[at]));
    }
}
