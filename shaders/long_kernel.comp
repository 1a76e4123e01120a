// A kernel as a program's own is: many workgroups that take their time, and heed nobody.
//
// For fault injection: put before a slice, it keeps the engine's queue for as long as its workgroups
// take, and there is no word that ends it earlier. It tells how many workgroups are done.

#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference_uvec2 : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_KHR_memory_scope_semantics : require
#pragma use_vulkan_memory_model

layout(local_size_x = 8, local_size_y = 1, local_size_z = 1) in;

layout(buffer_reference, scalar, buffer_reference_align = 8) buffer Done {
    uint workgroups;
};

layout(push_constant, scalar) uniform Push {
    uvec2 done;
    uint passes; // of each invocation
    uint most;   // more workgroups than are ever done
} push;

void main() {
    Done done = Done(push.done);
    uint seen = 0u;
    // Each pass looks at the word, which no compiler leaves out.
    for (uint pass = 0u; pass < push.passes; ++pass) {
        seen = max(seen, atomicLoad(done.workgroups, gl_ScopeDevice, 0, gl_SemanticsRelaxed));
    }
    if (gl_LocalInvocationIndex == 0u && seen <= push.most) {
        atomicAdd(done.workgroups, 1u, gl_ScopeDevice, gl_StorageSemanticsBuffer,
                  gl_SemanticsRelease);
    }
}
