// Primitive: a shape of one colour, and how much of a pixel it covers.
//
// Mirrors `src/viewer/primitive.rs`, field for field. Lengths are in pixels; pixel (x, y) is the square from there to
// (x + 1, y + 1).

const uint FILL = 0;
const uint BORDER = 1;
const uint LINE = 2;
const uint TRIANGLE = 3;
const uint GLYPH = 4;
const uint HATCH = 5;

struct Primitive {
    uint kind;
    // Red in the lowest byte, then green, blue and opacity.
    uint colour;
    vec2 a;
    vec2 b;
    vec2 c;
};

// Of the square at `here`, how much lies within the rectangle from `a` to `b`.
float of_rectangle(vec2 here, vec2 a, vec2 b) {
    vec2 within = clamp(min(here + 1.0, b) - max(here, a), 0.0, 1.0);
    return within.x * within.y;
}

float of_border(vec2 here, vec2 a, vec2 b, float width) {
    return of_rectangle(here, a, b) - of_rectangle(here, a + width, max(b - width, a + width));
}

// A line with round ends; one thinner than a pixel is as much paler.
float of_line(vec2 here, vec2 a, vec2 b, float width) {
    vec2 along = b - a;
    vec2 to = here + 0.5 - a;
    float share = clamp(dot(to, along) / max(dot(along, along), 1e-6), 0.0, 1.0);
    float away = length(to - share * along);
    return clamp(0.5 * width + 0.5 - away, 0.0, min(width, 1.0));
}

// How far the middle lies to the inner side of an edge of a triangle whose turn is `turn`.
float inside(vec2 middle, vec2 from, vec2 to, float turn) {
    vec2 along = to - from;
    vec2 at = middle - from;
    return turn * (along.x * at.y - along.y * at.x) / max(length(along), 1e-6);
}

// Without what sharp corners would reach beyond the corners.
float of_triangle(vec2 here, vec2 a, vec2 b, vec2 c) {
    float area = (b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x);
    float turn = area < 0.0 ? -1.0 : 1.0;
    vec2 middle = here + 0.5;
    float nearest = min(min(inside(middle, a, b, turn), inside(middle, b, c, turn)), inside(middle, c, a, turn));
    float around = of_rectangle(here, min(min(a, b), c) - 0.5, max(max(a, b), c) + 0.5);
    return around * clamp(nearest + 0.5, 0.0, 1.0);
}

// Stripes from the lower left to the upper right, `width` of each `period` pixels.
float of_hatch(vec2 here, vec2 a, vec2 b, float period, float width) {
    float at = mod(here.x + here.y, max(period, 1.0));
    return at < width ? of_rectangle(here, a, b) : 0.0;
}
