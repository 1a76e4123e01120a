// A kernel of tests: each invocation takes so many passes, or as many as there are before a word is not 0, and then adds
// one to another word.
//
// Its only push constant is the address of its parameters, as that of every kernel (src/abi/dispatch.rs).

#version 460
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#extension GL_EXT_shader_atomic_int64 : require
#extension GL_KHR_memory_scope_semantics : require
#pragma use_vulkan_memory_model

layout(local_size_x = 1) in;

layout(buffer_reference, scalar, buffer_reference_align = 8) buffer Word {
    uint64_t value;
};

layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer Parameters {
    uint64_t until;
    uint64_t ended;
    uint64_t passes;
};

layout(push_constant, scalar) uniform Push {
    uint64_t parameters;
} push;

void main() {
    Parameters given = Parameters(push.parameters);
    Word until = Word(given.until);
    for (uint64_t pass = 0ul; pass < given.passes; ++pass) {
        if (atomicLoad(until.value, gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsAcquire) != 0ul) {
            break;
        }
    }
    atomicAdd(Word(given.ended).value, 1ul);
}
