// What the kernels of the example `image_pipeline` are given: an image to load, one to store, and their size.

#extension GL_EXT_buffer_reference : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require

layout(local_size_x = 16, local_size_y = 4) in;

// One level of grey a pixel, 0 to 255, row by row.
layout(buffer_reference, scalar, buffer_reference_align = 8) buffer Image {
    uint pixel[];
};

layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer Parameters {
    uint64_t from;
    uint64_t to;
    uint64_t width;
    uint64_t height;
};

// The address of the parameters is the one argument of every kernel.
layout(push_constant, scalar) uniform Push {
    uint64_t parameters;
} push;

Parameters given = Parameters(push.parameters);
ivec2 size = ivec2(int(given.width), int(given.height));
ivec2 here = ivec2(gl_GlobalInvocationID.xy);

// Of the image to load. Beyond an edge lies what lies at it.
int at(int x, int y) {
    ivec2 place = clamp(here + ivec2(x, y), ivec2(0), size - 1);
    return int(Image(given.from).pixel[place.y * size.x + place.x]);
}

// To the image to store, of an invocation that has a pixel.
void put(int level) {
    if (here.x < size.x && here.y < size.y) {
        Image(given.to).pixel[here.y * size.x + here.x] = uint(level);
    }
}
