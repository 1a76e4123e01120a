// A kernel of tests: each invocation stores a word and then signals a fence of a list, several times.

#version 460
#extension GL_GOOGLE_include_directive : require

layout(local_size_x = 8) in;

#include "include/native_fence.glsl"

layout(buffer_reference, scalar, buffer_reference_align = 8) buffer Words {
    nonprivate uint64_t word[];
};

layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer Parameters {
    uint64_t fences; // handles
    uint64_t count;
    uint64_t value;  // the first of the values
    uint64_t times;
    uint64_t to;
    uint64_t results; // of the last time
};

void main() {
    NfJob job = nf_job();
    Parameters given = Parameters(job.parameters);
    uint at = nf_global_invocation(job).x;
    if (uint64_t(at) < given.count) {
        NfFence fence = nf_fence(job, Words(given.fences).word[at]);
        uint result = NF_DONE;
        for (uint i = 0u; i < uint(given.times); ++i) {
            Words(given.to).word[at] = given.value + uint64_t(i);
            result = nf_signal(job, fence, given.value + uint64_t(i));
        }
        Words(given.results).word[at] = uint64_t(result);
    }
}
