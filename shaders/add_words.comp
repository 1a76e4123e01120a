// A kernel of the workload `work` and of tests: adds a number to words, one an invocation.
//
// Its only push constant is the address of its parameters, as that of every kernel (src/abi/dispatch.rs). It loads and
// stores plainly: what orders it is the engine's barriers alone.

#version 460
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require

layout(local_size_x = 64) in;

layout(buffer_reference, scalar, buffer_reference_align = 8) buffer Words {
    uint64_t word[];
};

layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer Parameters {
    uint64_t from;
    uint64_t to;
    uint64_t words;
    uint64_t number;
};

layout(push_constant, scalar) uniform Push {
    uint64_t parameters;
} push;

void main() {
    Parameters given = Parameters(push.parameters);
    uint at = gl_GlobalInvocationID.x;
    if (uint64_t(at) < given.words) {
        Words(given.to).word[at] = Words(given.from).word[at] + given.number;
    }
}
