// A kernel that schedules itself: the shader library, and the engine's step behind the kernel's last workgroup.
//
//     #version 460
//     #extension GL_GOOGLE_include_directive : require
//     layout(local_size_x = 64) in;
//     #include "include/self_scheduling.glsl"
//
//     layout(buffer_reference, scalar) buffer Words { nonprivate uint64_t word[]; };
//
//     void nf_kernel(NfJob job) {
//         uvec3 at = nf_global_invocation(job);
//         …
//     }
//
// The kernel has nf_kernel in place of main, which is the library's; it may return from it anywhere. All else is as in
// include/native_fence.glsl, which this includes. Where its packets follow each other, in one queue or through fences of
// several queues of an engine, the engine itself need not run between them: on a device on which a dispatch is dear, a
// chain of them takes little more than with barriers in one command buffer.
//
// It costs workgroup memory (some 70 bytes), registers where a compiler keeps those of the epilogue for the whole kernel,
// and two barriers of the workgroup and one atomic of the device a workgroup. A kernel whose packets do not follow each
// other is as well off without. What it stores goes through `nonprivate` members of its blocks (before `buffer` the word does
// nothing): else the memory model lets another engine or the CPU miss it, who learn of a signal behind the packet before
// the dispatch has ended, and so the epilogue, which reads counts and parameters of packets that follow. A kernel that
// stores otherwise is not registered (src/gpu/kernel_stores.rs).
//
// Names of the library begin with nf_, NF_ or Nf; those of the engine's step are in shaders/engine and shaders/abi.

#ifndef NF_SELF_SCHEDULING
#define NF_SELF_SCHEDULING

#extension GL_KHR_shader_subgroup_basic : require

// Whether the epilogue has barriers; the engine says no where its lanes go in step by themselves.
layout(constant_id = 2043) const bool ORDERS = true;
#define NF_HAS_ORDERS

#include "include/native_fence.glsl"

// Registering finds by it that the kernel has an epilogue (src/gpu/kernel_spirv.rs).
layout(constant_id = 2042) const uint NF_EPILOGUE = 1u;
// What the engine's shader has by specialisation.
const bool EPILOGUE = true;
const bool DISPATCHES = true;
const bool DOORBELLS = false;
const bool RESOLVES = true;
const bool VERBOSE = false;
const bool STALLS = false;
const uint ROUNDS = 32u;
const uint PATIENCE = 1u;

#include "abi/packet.glsl"
#include "abi/ring.glsl"
#include "abi/log_buffer.glsl"
#include "abi/interrupt_record.glsl"
#include "abi/fence_entry.glsl"
#include "abi/slice.glsl"
#include "abi/engine_control.glsl"
#include "abi/engine_report.glsl"
#include "engine/lane.glsl"
#include "engine/table.glsl"
#include "engine/clock.glsl"
#include "engine/resolve.glsl"
#include "engine/switch.glsl"
#include "engine/step.glsl"
#include "engine/allocation.glsl"
#include "engine/dispatch_packet.glsl"
#include "engine/epilogue.glsl"

// The kernel.
void nf_kernel(NfJob job);

void main() {
    NfJob job = nf_job();
    nf_kernel(job);
    if (NF_EPILOGUE != 0u) {
        end_workgroup(job.va);
    }
}

#endif
