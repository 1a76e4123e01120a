// A kernel of the example `image_pipeline`: each pixel becomes the mean of nine, of which the middle one weighs most.

#version 460
#extension GL_GOOGLE_include_directive : require
#include "examples/image.glsl"

void main() {
    int corners = at(-1, -1) + at(1, -1) + at(-1, 1) + at(1, 1);
    int sides = at(0, -1) + at(-1, 0) + at(1, 0) + at(0, 1);
    put((corners + 2 * sides + 4 * at(0, 0) + 8) / 16);
}
