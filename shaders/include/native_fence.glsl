// The shader library of native-fence: what a kernel includes that finds its job itself.
//
//     #extension GL_GOOGLE_include_directive : require
//     layout(local_size_x = 64) in;
//     #include "include/native_fence.glsl"
//
//     layout(buffer_reference, scalar) readonly buffer Parameters { … };
//
//     void main() {
//         NfJob job = nf_job();
//         Parameters given = Parameters(job.parameters);
//         uvec3 at = nf_global_invocation(job);
//         …
//     }
//
// An engine runs the workgroups of several packets of such a kernel as one dispatch, so gl_WorkGroupID,
// gl_NumWorkGroups and gl_GlobalInvocationID say nothing of the packet: nf_job() does. The kernel declares no push
// constant of its own; the library's is the address of what the engine has of the kernel.
//
// Fences. A kernel names a fence by the handle of its process, in a word of its parameters (Parameters::fence) or
// wherever else it has one, and the process's table says what it may do:
//
//     NfFence fence = nf_fence(job, given.fence);
//     if (nf_wait(fence, 7ul, 1000u) == NF_DONE) {
//         …
//         nf_signal(job, fence, 8ul);
//     }
//
// A function that has nothing to give back tells a result: NF_DONE, or why nothing was done. No handle, whatever its
// bits, stops the queue or the engine. Every invocation may call each of them, in any control flow, as often as it likes.
//
//     uint64_t nf_current_value(fence)           the value now
//     uint     nf_wait(fence, value, passes)     NF_DONE once it is at least `value`; NF_NOT_REACHED
//     uint     nf_signal(job, fence, value)      stores it: NF_DONE, NF_NO_ROOM
//     each of the two                            NF_NO_FENCE, NF_CLOSED, NF_DENIED
//
// What is stored plainly before a signal and loaded plainly after a wait or a look is ordered by them where the
// blocks' members are `nonprivate` (before `buffer` the word does nothing). Between invocations of one device the Vulkan memory model promises that. Between devices,
// and between a kernel that runs and the CPU, it is practice on coherent memory; the end of the packet's slice, with its
// barrier to the host, is the backstop.
//
// Registering finds by NF_LIBRARY that a kernel includes this file (src/gpu/kernel_spirv.rs). Constants 2041 to 2043 are the
// library's, since glslang 12 takes none from 2047 on.

#ifndef NF_NATIVE_FENCE
#define NF_NATIVE_FENCE

#extension GL_EXT_buffer_reference : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#extension GL_EXT_shader_atomic_int64 : require
#extension GL_EXT_shader_realtime_clock : require
#extension GL_KHR_memory_scope_semantics : require
#pragma use_vulkan_memory_model

#include "abi/word.glsl"
#include "abi/dispatch.glsl"
#include "abi/fault.glsl"
#include "abi/handle_entry.glsl"
#include "abi/hw_queue.glsl"
#include "abi/kernel_result.glsl"
#include "include/handle.glsl"
#include "include/ticks.glsl"

// The version of the layouts that the library knows.
layout(constant_id = 2041) const uint NF_LIBRARY = 1u;

layout(push_constant, scalar) uniform NfPush {
    uint64_t kernel_va; // DispatchRecord, and the list of its jobs
} nf_push;

// The packet that a workgroup is of.
struct NfJob {
    uint64_t parameters;  // address of the packet's parameters
    uvec3 workgroups;     // of the packet, as gl_NumWorkGroups
    uvec3 workgroup;      // which of them this is, as gl_WorkGroupID
    uint64_t va;          // the library's own
};

KernelJob nf_kernel_job(uint number) {
    return KernelJob(nf_push.kernel_va + KERNEL_JOBS + uint64_t(number) * KERNEL_JOB_BYTES);
}

// The packet of this workgroup. Every invocation may ask, in any control flow; all of a workgroup find the same.
//
// What it reads the engine wrote before the barrier behind which this dispatch stands, and nobody writes while it
// runs: plain loads see it.
NfJob nf_job() {
    uint ordinal = (gl_WorkGroupID.z * gl_NumWorkGroups.y + gl_WorkGroupID.y) * gl_NumWorkGroups.x
                + gl_WorkGroupID.x;
    // The jobs of the list follow each other. Those of equal size, which are most, are found at once.
    uint jobs = DispatchRecord(nf_push.kernel_va).jobs * NF_LIBRARY;
    uint low = 0u;
    uint high = jobs;
    uint number = jobs <= 1u ? 0u : uint(uint64_t(ordinal) * uint64_t(jobs) / uint64_t(gl_NumWorkGroups.x));
    while (low + 1u < high) {
        KernelJob guess = nf_kernel_job(number);
        if (ordinal < guess.first) {
            high = number;
        } else if (ordinal >= guess.end) {
            low = number + 1u;
        } else {
            break;
        }
        number = (low + high) / 2u;
    }
    KernelJob of = nf_kernel_job(number);
    DispatchJob job = DispatchJob(of.job_va);
    uint own = ordinal - of.first;
    NfJob found;
    found.va = of.job_va;
    found.parameters = of.job_va + DISPATCH_JOB_PARAMETERS;
    found.workgroups = uvec3(job.x, job.y, job.z);
    // One that runs by itself may have more workgroups than can be counted in 32 bits.
    found.workgroup = of.end == ~0u ? gl_WorkGroupID
                                    : uvec3(own % job.x, own / job.x % job.y, own / job.x / job.y);
    return found;
}

// Which invocation of the packet this is, as gl_GlobalInvocationID.
uvec3 nf_global_invocation(NfJob job) {
    return job.workgroup * gl_WorkGroupSize + gl_LocalInvocationID;
}

// A fence that a kernel has looked up. Valid while the kernel runs.
struct NfFence {
    uint result;      // NF_DONE, NF_NO_FENCE or NF_CLOSED
    uint handle;      // the library's own, as the rest
    uint access;
    uint64_t value_va;
    uint64_t entry_va;
};

// The fence of a handle of the packet's process; the high half of the word is 0. Costs four dependent loads: who uses a
// fence more than once keeps what it found.
NfFence nf_fence(NfJob job, uint64_t word) {
    uint64_t directory_va = PEEK(QueueDescriptor(DispatchJob(job.va).descriptor_va).handle_directory_va);
    NfFence fence;
    fence.handle = uint(word);
    NamedObject named = look_up_in(directory_va, fence.handle);
    uint fault = handle_fault(fence.handle >> HANDLE_SLOT_BITS, named.meta, 0u);
    fence.result = (word >> 32) != 0ul ? NF_NO_FENCE : fault;
    fence.access = uint(named.meta >> 32);
    fence.value_va = named.va;
    fence.entry_va = named.detail;
    return fence;
}

// CurrentValue, and all that was stored before it was is visible afterwards; 0 of what is no fence. Also of a fence that
// may not be waited for, and of one that is AlwaysSignaled the last good value.
uint64_t nf_current_value(NfFence fence) {
    uint64_t value = 0ul;
    if (fence.result == NF_DONE) {
        value = OBSERVE_ALWAYS(Word(fence.value_va).value);
        make_visible();
    }
    return value;
}

// Waits until CurrentValue is at least `value`, in at most so many looks at it, which are passes of a loop: NF_DONE, and
// all that was stored before it was is visible afterwards; or NF_NOT_REACHED. At least one look where passes is not 0. A
// fence that is AlwaysSignaled passes at once.
//
// It is for values that the CPU or another engine stores while the kernel runs. Queues of the same engine make no step
// meanwhile, and Vulkan does not promise that other invocations of the kernel do; a packet that has to wait for those
// has a WAIT before it. The looks are made without a pause and keep the device busy. Some CPU drivers end all loops of
// an invocation after 65,535 passes: that is NF_NOT_REACHED. It is not logged: the log of waits has the queue's packets.
uint nf_wait(NfFence fence, uint64_t value, uint passes) {
    if (fence.result != NF_DONE) {
        return fence.result;
    }
    if ((fence.access & ACCESS_NO_WAIT) != 0u) {
        return NF_DENIED;
    }
    bool reached = (fence.access & ACCESS_ALWAYS_SIGNALED) != 0u;
    for (uint i = 0u; i < passes && !reached; ++i) {
        reached = OBSERVE_ALWAYS(Word(fence.value_va).value) >= value;
    }
    make_visible();
    return reached ? NF_DONE : NF_NOT_REACHED;
}

// Stores CurrentValue: queues that wait for it go on, on other engines at once and on this one when the kernel has
// ended. Then, still before the queue's next packet, the signal is logged with the time of the store, and CPU waiters
// that it satisfies are notified: only the fences that have such waiters (NF-05). A fence that is AlwaysSignaled is left
// alone and logged.
//
// What this invocation stored before is available to who finds the value; for what others of the workgroup stored, they
// meet first, in a barrier that makes it available. Invocations that signal one fence are ordered by the kernel, or the
// last store wins, and one below the value that it finds is counted (NF-06, NF-21).
//
// A packet can make 256 signals (MOST_KERNEL_SIGNALS), of all its invocations: each further one is NF_NO_ROOM, and
// nothing is stored.
uint nf_signal(NfJob job, NfFence fence, uint64_t value) {
    if (fence.result != NF_DONE) {
        return fence.result;
    }
    if ((fence.access & ACCESS_NO_SIGNAL) != 0u) {
        return NF_DENIED;
    }
    DispatchJob of = DispatchJob(job.va);
    uint64_t place = ADD(of.signals, 1ul);
    if (place >= MOST_KERNEL_SIGNALS) {
        return NF_NO_ROOM;
    }
    // Before the store: a wait that it releases ends no earlier (LG-10).
    uint64_t ticks = ticks_after(of.ticks, of.clock_bits == 32u);
    bool stores = (fence.access & ACCESS_ALWAYS_SIGNALED) == 0u;
    bool is_backward = false;
    if (stores) {
        make_available();
        is_backward = PEEK(Word(fence.value_va).value) > value;
        PUBLISH_ALWAYS(Word(fence.value_va).value, value);
    }
    // For the engine, which does the rest (engine/kernel_signal.glsl).
    KernelSignal signal = KernelSignal(job.va + DISPATCH_JOB_SIGNALS + place * KERNEL_SIGNAL_BYTES);
    PUT(signal.fence_entry_va, stores ? fence.entry_va : 0ul);
    PUT(signal.value, value);
    PUT(signal.handle_and_marks, uint64_t(fence.handle) | (is_backward ? 1ul << 32 : 0ul)
                                     | (uint64_t(fence.access >> ACCESS_DOORBELL_SHIFT) << 48));
    PUT(signal.ticks, ticks);
    return NF_DONE;
}

#endif
