// The kernel of the example `reduction_tree`: each workgroup adds up a block of words and stores one sum.

#version 460
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require

const uint LANES = 64;
const uint BLOCK = 1024;

layout(local_size_x = LANES) in;

layout(buffer_reference, scalar, buffer_reference_align = 8) buffer Words {
    uint64_t word[];
};

layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer Parameters {
    uint64_t from;
    uint64_t to;
    uint64_t words;
};

// The address of the parameters is the one argument of every kernel.
layout(push_constant, scalar) uniform Push {
    uint64_t parameters;
} push;

shared uint64_t sums[LANES];

void main() {
    Parameters given = Parameters(push.parameters);
    uint lane = gl_LocalInvocationID.x;
    uint end = min((gl_WorkGroupID.x + 1) * BLOCK, uint(given.words));
    uint64_t sum = 0ul;
    for (uint at = gl_WorkGroupID.x * BLOCK + lane; at < end; at += LANES) {
        sum += Words(given.from).word[at];
    }
    sums[lane] = sum;
    for (uint half_way = LANES / 2; half_way > 0; half_way /= 2) {
        barrier();
        if (lane < half_way) {
            sums[lane] += sums[lane + half_way];
        }
    }
    if (lane == 0) {
        Words(given.to).word[gl_WorkGroupID.x] = sums[0];
    }
}
