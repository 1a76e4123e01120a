// A kernel of tests: waits for one fence, and signals another with one more than the first has.

#version 460
#extension GL_GOOGLE_include_directive : require

layout(local_size_x = 1) in;

#include "include/native_fence.glsl"

layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer Parameters {
    uint64_t awaited;
    uint64_t signaled;
    uint64_t value;
};

void main() {
    NfJob job = nf_job();
    Parameters given = Parameters(job.parameters);
    NfFence awaited = nf_fence(job, given.awaited);
    if (nf_wait(awaited, given.value, 1u) == NF_DONE) {
        nf_signal(job, nf_fence(job, given.signaled), nf_current_value(awaited) + 1ul);
    }
}
