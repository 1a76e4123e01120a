// The viewer's kernel: each invocation makes one pixel, of the primitives of its tile, one over the other.
//
// It reads primitives, lists and the atlas, and stores pixels; all indices are bounded by the parameters' counts.

#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#include "viewer/primitive.glsl"

// A tile is TILE by TILE pixels, of four workgroups.
const uint TILE = 16;

layout(local_size_x = 16, local_size_y = 4) in;

layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer Primitives {
    Primitive primitive[];
};

layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer Words {
    uint word[];
};

layout(buffer_reference, scalar, buffer_reference_align = 8) writeonly buffer Pixels {
    uint pixel[];
};

layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer Parameters {
    uint64_t primitives;
    // Of each tile, where its list begins; and where that of the last one ends.
    uint64_t starts;
    // Indices of primitives.
    uint64_t lists;
    // Glyphs, one after the other, row by row, a byte a pixel.
    uint64_t atlas;
    uint64_t pixels;
    uint64_t primitive_count;
    uint64_t start_count;
    uint64_t list_count;
    uint64_t glyph_count;
    uint64_t glyph_width;
    uint64_t glyph_height;
    uint64_t width;
    uint64_t height;
    // The first row of pixels of this dispatch.
    uint64_t top;
    uint64_t background;
    // More primitives than that no tile has.
    uint64_t most_of_tile;
};

// The address of the parameters is the one argument of every kernel.
layout(push_constant, scalar) uniform Push {
    uint64_t parameters;
} push;

Parameters given = Parameters(push.parameters);

float of_glyph(vec2 here, vec2 a, uint number) {
    ivec2 at = ivec2(floor(here - a));
    ivec2 size = ivec2(int(given.glyph_width), int(given.glyph_height));
    if (any(lessThan(at, ivec2(0))) || any(greaterThanEqual(at, size)) || number >= uint(given.glyph_count)) {
        return 0.0;
    }
    uint place = (number * uint(size.y) + uint(at.y)) * uint(size.x) + uint(at.x);
    uint four = Words(given.atlas).word[place / 4];
    return float((four >> (8 * (place % 4))) & 255) / 255.0;
}

float coverage(Primitive it, vec2 here) {
    switch (it.kind) {
        case FILL: return of_rectangle(here, it.a, it.b);
        case BORDER: return of_border(here, it.a, it.b, it.c.x);
        case LINE: return of_line(here, it.a, it.b, it.c.x);
        case TRIANGLE: return of_triangle(here, it.a, it.b, it.c);
        case GLYPH: return of_glyph(here, it.a, uint(it.c.x));
        case HATCH: return of_hatch(here, it.a, it.b, it.c.x, it.c.y);
        default: return 0.0;
    }
}

void main() {
    uvec2 at = gl_GlobalInvocationID.xy + uvec2(0, uint(given.top));
    uint width = uint(given.width);
    if (at.x >= width || at.y >= uint(given.height)) {
        return;
    }
    uint across = (width + TILE - 1) / TILE;
    uint tile = at.y / TILE * across + at.x / TILE;
    uint begin = 0;
    uint end = 0;
    if (tile + 1 < uint(given.start_count)) {
        begin = Words(given.starts).word[tile];
        end = min(Words(given.starts).word[tile + 1], uint(given.list_count));
        end = min(end, begin + uint(given.most_of_tile));
    }
    vec2 here = vec2(at);
    vec3 colour = unpackUnorm4x8(uint(given.background)).rgb;
    for (uint next = begin; next < end; next++) {
        uint index = Words(given.lists).word[next];
        if (index < uint(given.primitive_count)) {
            Primitive it = Primitives(given.primitives).primitive[index];
            vec4 over = unpackUnorm4x8(it.colour);
            colour = mix(colour, over.rgb, over.a * coverage(it, here));
        }
    }
    Pixels(given.pixels).pixel[at.y * width + at.x] = packUnorm4x8(vec4(colour, 1.0));
}
