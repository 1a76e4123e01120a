// A kernel of the example `image_pipeline`: how much the levels change at each pixel, after Sobel.

#version 460
#extension GL_GOOGLE_include_directive : require
#include "examples/image.glsl"

void main() {
    int across = at(1, -1) + 2 * at(1, 0) + at(1, 1) - at(-1, -1) - 2 * at(-1, 0) - at(-1, 1);
    int down = at(-1, 1) + 2 * at(0, 1) + at(1, 1) - at(-1, -1) - 2 * at(0, -1) - at(1, -1);
    put(min(abs(across) + abs(down), 255));
}
