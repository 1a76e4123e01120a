// A kernel of the example `image_pipeline`: makes dark levels brighter, and turns the image into a negative.

#version 460
#extension GL_GOOGLE_include_directive : require
#include "examples/image.glsl"

void main() {
    int dark = 255 - at(0, 0);
    put(dark * dark / 255);
}
