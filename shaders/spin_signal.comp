// A kernel of tests with the shader library: each invocation looks its fence up, takes so many passes, or as many as
// there are before a word is not 0, and then, if it has found that, signals the fence.

#version 460
#extension GL_GOOGLE_include_directive : require

layout(local_size_x = 1) in;

#include "include/native_fence.glsl"

layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer Parameters {
    uint64_t until;
    uint64_t began;  // counts them
    uint64_t passes;
    uint64_t fence;
    uint64_t value;
};

void main() {
    NfJob job = nf_job();
    Parameters given = Parameters(job.parameters);
    NfFence fence = nf_fence(job, given.fence);
    atomicAdd(Word(given.began).value, 1ul);
    Word until = Word(given.until);
    bool found = false;
    for (uint64_t pass = 0ul; pass < given.passes && !found; ++pass) {
        found = OBSERVE(until.value) != 0ul;
    }
    if (found) {
        nf_signal(job, fence, given.value);
    }
}
