// The kernel of the workload `work` with the shader library: the same passes, of as many packets at a time as are ready.

#version 460
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 8) in;

#include "include/native_fence.glsl"
#include "work/passes.glsl"

void main() {
    NfJob job = nf_job();
    take_passes(job.parameters, nf_global_invocation(job).x);
}
