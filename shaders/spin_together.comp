// A kernel of tests with the shader library: as spin.comp, of as many packets at a time as are ready.

#version 460
#extension GL_GOOGLE_include_directive : require

layout(local_size_x = 1) in;

#include "include/native_fence.glsl"

layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer Parameters {
    uint64_t until;
    uint64_t ended;
    uint64_t passes;
};

void main() {
    Parameters given = Parameters(nf_job().parameters);
    Word until = Word(given.until);
    for (uint64_t pass = 0ul; pass < given.passes; ++pass) {
        if (atomicLoad(until.value, gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsAcquire) != 0ul) {
            break;
        }
    }
    atomicAdd(Word(given.ended).value, 1ul);
}
