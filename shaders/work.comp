// The kernel of the workload `work`: each invocation takes so many passes over a word of its own.
//
// Its only push constant is the address of its parameters, as that of every kernel (src/abi/dispatch.rs). It loads and
// stores plainly, so what a link of a chain finds there tells whether the one before was waited for.

#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require

layout(local_size_x = 32) in;

layout(buffer_reference, scalar, buffer_reference_align = 8) buffer Words {
    uint64_t word[];
};

layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer Parameters {
    uint64_t words;
    uint64_t passes;
    uint64_t factor;
};

layout(push_constant, scalar) uniform Push {
    uint64_t parameters;
} push;

void main() {
    Parameters given = Parameters(push.parameters);
    Words words = Words(given.words);
    uint at = gl_GlobalInvocationID.x;
    uint64_t x = words.word[at];
    uint passes = uint(given.passes);
    // A factor that the compiler knows would make one step of many.
    uint64_t factor = given.factor;
    for (uint pass = 0u; pass < passes; ++pass) {
        x = x * factor + 1ul;
        x = x * factor + 1ul;
        x = x * factor + 1ul;
        x = x * factor + 1ul;
        x = x * factor + 1ul;
        x = x * factor + 1ul;
        x = x * factor + 1ul;
        x = x * factor + 1ul;
    }
    words.word[at] = x;
}
