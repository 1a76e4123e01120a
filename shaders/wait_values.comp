// A kernel of tests: each invocation waits for the value of a fence of a list, and then copies the word behind it.

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
    uint64_t value;
    uint64_t passes;
    uint64_t began;  // what the first invocation stores before it waits
    uint64_t from;
    uint64_t to;
    uint64_t results;
};

void main() {
    NfJob job = nf_job();
    Parameters given = Parameters(job.parameters);
    uint at = nf_global_invocation(job).x;
    if (uint64_t(at) < given.count) {
        NfFence fence = nf_fence(job, Words(given.fences).word[at]);
        if (at == 0u) {
            PUBLISH(Word(given.began).value, 1ul);
        }
        uint result = nf_wait(fence, given.value, uint(given.passes));
        Words(given.to).word[at] = Words(given.from).word[at];
        Words(given.results).word[at] = uint64_t(result);
    }
}
