// The kernel of the workload `work` that schedules itself: the same passes, and the engine's step behind them.

#version 460
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 8) in;

#include "include/self_scheduling.glsl"
#include "work/passes.glsl"

void nf_kernel(NfJob job) {
    take_passes(job.parameters, nf_global_invocation(job).x);
}
