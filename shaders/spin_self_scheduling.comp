// A kernel of tests that schedules itself: as spin_together.comp, and the engine's step behind it.

#version 460
#extension GL_GOOGLE_include_directive : require

layout(local_size_x = 1) in;

#include "include/self_scheduling.glsl"

layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer Parameters {
    uint64_t until;
    uint64_t ended;
    uint64_t passes;
};

void nf_kernel(NfJob job) {
    Parameters given = Parameters(job.parameters);
    Word until = Word(given.until);
    for (uint64_t pass = 0ul; pass < given.passes; ++pass) {
        if (atomicLoad(until.value, gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsAcquire) != 0ul) {
            break;
        }
    }
    atomicAdd(Word(given.ended).value, 1ul);
}
