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
// Registering finds by NF_LIBRARY that a kernel includes this file (src/gpu/kernel_spirv.rs).

#ifndef NF_NATIVE_FENCE
#define NF_NATIVE_FENCE

#extension GL_EXT_buffer_reference : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#extension GL_EXT_shader_atomic_int64 : require
#extension GL_KHR_memory_scope_semantics : require
#pragma use_vulkan_memory_model

#include "abi/dispatch.glsl"

// The version of the layouts that the library knows, under a number that says whose constant it is.
layout(constant_id = 28262) const uint NF_LIBRARY = 1u;

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

#endif
