//! Primitive: a shape of one colour, as the drawing kernel takes it.
//!
//! Mirrors `shaders/viewer/primitive.glsl`, field for field. Lengths are in pixels; pixel (x, y) is the square from there
//! to (x + 1, y + 1).

use bytemuck::{Pod, Zeroable};

/// Which shape, by its number in the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Kind {
    /// What lies from `a` to `b`, by how much of each pixel does.
    Fill = 0,
    /// Its rim, `c.x` wide and within it.
    Border = 1,
    /// From `a` to `b`, `c.x` wide.
    Line = 2,
    /// With the corners `a`, `b` and `c`.
    Triangle = 3,
    /// Number `c.x` of the atlas, from `a` to `b`.
    Glyph = 4,
    /// Stripes from `a` to `b`: of each `c.x` pixels `c.y`.
    Hatch = 5,
}

/// Red, green, blue and opacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(transparent)]
pub struct Colour(pub [u8; 4]);

impl Colour {
    /// An opaque one, written as 0xRRGGBB.
    #[must_use]
    pub const fn rgb(rgb: u32) -> Self {
        let [_, red, green, blue] = rgb.to_be_bytes();
        Self([red, green, blue, 255])
    }

    /// Red and blue in each other's place.
    pub(super) const fn blue_first(self) -> Self {
        let Self([red, green, blue, opacity]) = self;
        Self([blue, green, red, opacity])
    }

    /// The same, with another opacity.
    #[must_use]
    pub const fn with_opacity(self, opacity: u8) -> Self {
        let [red, green, blue, _] = self.0;
        Self([red, green, blue, opacity])
    }

    /// Between this one and `other`: this one at 0, the other at 255.
    #[must_use]
    pub fn mixed(self, other: Self, share: u8) -> Self {
        let (of, share) = (255 - u16::from(share), u16::from(share));
        let mix = |at: usize| {
            ((u16::from(self.0[at]) * of + u16::from(other.0[at]) * share + 127) / 255) as u8
        };
        Self([mix(0), mix(1), mix(2), mix(3)])
    }
}

/// See the file's head.
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct Primitive {
    /// A [`Kind`].
    pub kind: u32,
    /// Its colour.
    pub colour: Colour,
    /// A point.
    pub a: [f32; 2],
    /// A point.
    pub b: [f32; 2],
    /// A point, or numbers.
    pub c: [f32; 2],
}

const _: () = assert!(size_of::<Primitive>() == 32);

/// A rectangle: left, top, right and bottom.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rectangle {
    /// Where it begins.
    pub left: f32,
    /// Where it begins, from above.
    pub top: f32,
    /// Where it ends.
    pub right: f32,
    /// Where it ends, from above.
    pub bottom: f32,
}

impl Rectangle {
    /// Whether a point is in it.
    #[must_use]
    pub fn holds(&self, [x, y]: [f32; 2]) -> bool {
        self.left <= x && x < self.right && self.top <= y && y < self.bottom
    }

    /// What of it lies in another one.
    #[must_use]
    pub fn within(&self, other: &Self) -> Self {
        Self {
            left: self.left.max(other.left),
            top: self.top.max(other.top),
            right: self.right.min(other.right),
            bottom: self.bottom.min(other.bottom),
        }
    }

    /// Whether nothing is in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.left >= self.right || self.top >= self.bottom
    }
}

impl Primitive {
    /// A filled rectangle.
    #[must_use]
    pub fn fill(at: Rectangle, colour: Colour) -> Self {
        Self::of(Kind::Fill, at, colour, [0.0; 2])
    }

    /// A rectangle's rim.
    #[must_use]
    pub fn border(at: Rectangle, width: f32, colour: Colour) -> Self {
        Self::of(Kind::Border, at, colour, [width, 0.0])
    }

    /// Stripes in a rectangle.
    #[must_use]
    pub fn hatch(at: Rectangle, period: f32, width: f32, colour: Colour) -> Self {
        Self::of(Kind::Hatch, at, colour, [period, width])
    }

    /// A line with round ends.
    #[must_use]
    pub fn line(from: [f32; 2], to: [f32; 2], width: f32, colour: Colour) -> Self {
        Self {
            kind: Kind::Line as u32,
            colour,
            a: from,
            b: to,
            c: [width, 0.0],
        }
    }

    /// A filled triangle.
    #[must_use]
    pub fn triangle([a, b, c]: [[f32; 2]; 3], colour: Colour) -> Self {
        Self {
            kind: Kind::Triangle as u32,
            colour,
            a,
            b,
            c,
        }
    }

    /// A glyph of the atlas, with its left upper corner on a whole pixel.
    #[must_use]
    pub fn glyph(number: u16, at: Rectangle, colour: Colour) -> Self {
        Self::of(Kind::Glyph, at, colour, [f32::from(number), 0.0])
    }

    fn of(kind: Kind, at: Rectangle, colour: Colour, c: [f32; 2]) -> Self {
        Self {
            kind: kind as u32,
            colour,
            a: [at.left, at.top],
            b: [at.right, at.bottom],
            c,
        }
    }

    /// All that it covers lies in there.
    #[must_use]
    pub fn bounds(&self) -> Rectangle {
        let around = |points: &[[f32; 2]], more: f32| Rectangle {
            left: points.iter().map(|p| p[0]).fold(f32::MAX, f32::min) - more,
            top: points.iter().map(|p| p[1]).fold(f32::MAX, f32::min) - more,
            right: points.iter().map(|p| p[0]).fold(f32::MIN, f32::max) + more,
            bottom: points.iter().map(|p| p[1]).fold(f32::MIN, f32::max) + more,
        };
        if self.kind == Kind::Line as u32 {
            // A pixel's middle may lie half a pixel away from its edge, and half a pixel from the line's.
            around(&[self.a, self.b], 0.5 * self.c[0] + 1.0)
        } else if self.kind == Kind::Triangle as u32 {
            around(&[self.a, self.b, self.c], 1.0)
        } else {
            around(&[self.a, self.b], 0.0)
        }
    }
}
