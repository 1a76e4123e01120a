//! A rasteriser by the book, in twice the precision: what the viewer's kernel must make of primitives.

use native_fence::viewer::{Kind, Picture, Primitive, Scale, font};

type Point = [f64; 2];

/// Red, green, blue of each pixel, row by row.
pub(crate) fn drawn(picture: &Picture) -> Vec<[u8; 3]> {
    let (width, height) = picture.size;
    let atlas = Atlas::new(picture.scale);
    let mut pixels = Vec::new();
    for y in 0..height {
        for x in 0..width {
            let mut colour = [0, 1, 2].map(|part| f64::from(picture.background.0[part]));
            for primitive in &picture.primitives {
                let opacity = f64::from(primitive.colour.0[3]) / 255.0;
                let share = opacity * coverage(primitive, [x.into(), y.into()], &atlas);
                for (part, level) in colour.iter_mut().enumerate() {
                    *level += (f64::from(primitive.colour.0[part]) - *level) * share;
                }
            }
            #[allow(clippy::cast_sign_loss, reason = "levels")]
            pixels.push(colour.map(|level| level.round() as u8));
        }
    }
    pixels
}

struct Atlas {
    levels: Vec<u8>,
    width: usize,
    height: usize,
}

impl Atlas {
    fn new(scale: Scale) -> Self {
        let (width, height) = font::cell(scale);
        let levels = font::atlas(scale);
        Self {
            levels,
            width,
            height,
        }
    }

    fn level(&self, number: usize, x: f64, y: f64) -> f64 {
        #[allow(clippy::cast_precision_loss, reason = "some pixels")]
        let (width, height) = (self.width as f64, self.height as f64);
        if x < 0.0 || y < 0.0 || x >= width || y >= height || number >= font::GLYPHS.into() {
            return 0.0;
        }
        #[allow(clippy::cast_sign_loss, reason = "not negative")]
        let (x, y) = (x as usize, y as usize);
        f64::from(self.levels[(number * self.height + y) * self.width + x]) / 255.0
    }
}

fn coverage(it: &Primitive, here: Point, atlas: &Atlas) -> f64 {
    let [a, b, c] = [it.a, it.b, it.c].map(|point| point.map(f64::from));
    let middle = here.map(|at| at + 0.5);
    let is = |kind: Kind| it.kind == kind as u32;
    if is(Kind::Fill) {
        overlap(here, a, b)
    } else if is(Kind::Border) {
        let [wide, _] = c;
        let inner = [b[0] - wide, b[1] - wide];
        overlap(here, a, b) - overlap(here, [a[0] + wide, a[1] + wide], inner)
    } else if is(Kind::Line) {
        let away = distance_to_segment(middle, a, b);
        (c[0] / 2.0 + 0.5 - away).clamp(0.0, c[0].min(1.0))
    } else if is(Kind::Triangle) {
        let edges = [(a, b), (b, c), (c, a)];
        let turn = cross(a, b, c).signum();
        let depths = edges.map(|(from, to)| turn * cross(from, to, middle) / distance(from, to));
        let inside = (depths.into_iter().fold(f64::MAX, f64::min) + 0.5).clamp(0.0, 1.0);
        // Sharp corners reach no farther than half a pixel beyond the corners.
        let corner = |pick: fn(f64, f64) -> f64, more: f64| {
            [0, 1].map(|axis| pick(pick(a[axis], b[axis]), c[axis]) + more)
        };
        inside * overlap(here, corner(f64::min, -0.5), corner(f64::max, 0.5))
    } else if is(Kind::Glyph) {
        #[allow(clippy::cast_sign_loss, reason = "a glyph's number")]
        let number = c[0] as usize;
        atlas.level(number, here[0] - a[0], here[1] - a[1])
    } else if is(Kind::Hatch) {
        let is_striped = (here[0] + here[1]).rem_euclid(c[0]) < c[1];
        f64::from(u8::from(is_striped)) * overlap(here, a, b)
    } else {
        0.0
    }
}

fn overlap([x, y]: Point, a: Point, b: Point) -> f64 {
    let along = |at: f64, from: f64, to: f64| ((at + 1.0).min(to) - at.max(from)).max(0.0);
    along(x, a[0], b[0]) * along(y, a[1], b[1])
}

/// Twice the area of a triangle, below zero for one that turns the other way.
fn cross(a: Point, b: Point, c: Point) -> f64 {
    (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
}

fn distance(a: Point, b: Point) -> f64 {
    (b[0] - a[0]).hypot(b[1] - a[1])
}

fn distance_to_segment(at: Point, a: Point, b: Point) -> f64 {
    let length = distance(a, b);
    if length < 1e-9 {
        return distance(at, a);
    }
    let along = ((at[0] - a[0]) * (b[0] - a[0]) + (at[1] - a[1]) * (b[1] - a[1])) / length;
    let along = along.clamp(0.0, length) / length;
    distance(
        at,
        [a[0] + along * (b[0] - a[0]), a[1] + along * (b[1] - a[1])],
    )
}
