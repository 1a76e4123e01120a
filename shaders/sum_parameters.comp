// A kernel of tests: adds up all words of as many parameters as a packet can have, and stores the sum.
//
// Its only push constant is the address of its parameters, as that of every kernel (src/abi/dispatch.rs).

#version 460
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require

layout(local_size_x = 1) in;

layout(buffer_reference, scalar, buffer_reference_align = 8) buffer Word {
    uint64_t word;
};

layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer Parameters {
    uint64_t to;
    uint64_t given[31];
};

layout(push_constant, scalar) uniform Push {
    uint64_t parameters;
} push;

void main() {
    Parameters parameters = Parameters(push.parameters);
    uint64_t sum = 0ul;
    for (uint at = 0; at < 31; ++at) {
        sum += parameters.given[at];
    }
    Word(parameters.to).word = sum;
}
