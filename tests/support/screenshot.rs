//! A screenshot, read as any program would.
#![allow(dead_code, reason = "each test file uses a part")]

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use native_fence::viewer::Colour;
use noto_sans_mono_bitmap::{FontWeight, RasterHeight, get_raster, get_raster_width};

/// Levels by which a pixel may differ from what is expected.
const OFF: u8 = 2;

#[derive(Debug)]
pub(crate) struct Screenshot {
    pub(crate) width: usize,
    pub(crate) height: usize,
    pixels: Vec<[u8; 4]>,
}

/// Left, top, right and bottom.
pub(crate) type Area = [usize; 4];

impl Screenshot {
    pub(crate) fn read(path: &Path) -> Self {
        let decoder = png::Decoder::new(BufReader::new(File::open(path).unwrap()));
        let mut reader = decoder.read_info().unwrap();
        let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut bytes).unwrap();
        assert_eq!(info.color_type, png::ColorType::Rgba);
        assert_eq!(info.bit_depth, png::BitDepth::Eight);
        let (pixels, _) = bytes[..info.buffer_size()].as_chunks();
        Self {
            width: info.width as usize,
            height: info.height as usize,
            pixels: pixels.to_vec(),
        }
    }

    /// All of it, row by row.
    pub(crate) fn colours(&self) -> Vec<[u8; 3]> {
        let pixels = self.pixels.iter();
        pixels
            .map(|[red, green, blue, _]| [*red, *green, *blue])
            .collect()
    }

    pub(crate) fn pixel(&self, x: usize, y: usize) -> [u8; 3] {
        let [red, green, blue, _] = self.pixels[y * self.width + x];
        [red, green, blue]
    }

    /// Whether a pixel has a colour.
    pub(crate) fn is(&self, x: usize, y: usize, colour: Colour) -> bool {
        near(self.pixel(x, y), [colour.0[0], colour.0[1], colour.0[2]])
    }

    /// The columns of a row of pixels that have a colour.
    pub(crate) fn columns_of(&self, y: usize, colour: Colour) -> Vec<usize> {
        (0..self.width).filter(|x| self.is(*x, y, colour)).collect()
    }

    /// The columns of a row of pixels that have at least a little more than half of a colour over a light one.
    pub(crate) fn columns_like(&self, y: usize, colour: Colour) -> Vec<usize> {
        let is_like = |x: &usize| {
            let parts = self.pixel(*x, y).into_iter().zip(colour.0);
            parts
                .into_iter()
                .all(|(one, other)| one.abs_diff(other) < 110)
        };
        (0..self.width).filter(is_like).collect()
    }

    /// Where a text stands in an area, in a colour on another, at a scale: the font's bitmaps, pixel for pixel.
    pub(crate) fn find(
        &self,
        text: &str,
        area: Area,
        (colour, behind): (Colour, Colour),
        scale: usize,
    ) -> Option<(usize, usize)> {
        self.find_in(FontWeight::Regular, text, area, (colour, behind), scale)
    }

    /// The same of a heavy text.
    pub(crate) fn find_bold(
        &self,
        text: &str,
        area: Area,
        (colour, behind): (Colour, Colour),
        scale: usize,
    ) -> Option<(usize, usize)> {
        self.find_in(FontWeight::Bold, text, area, (colour, behind), scale)
    }

    fn find_in(
        &self,
        weight: FontWeight,
        text: &str,
        [left, top, right, bottom]: Area,
        (colour, behind): (Colour, Colour),
        scale: usize,
    ) -> Option<(usize, usize)> {
        let height = match scale {
            1 => RasterHeight::Size16,
            _ => RasterHeight::Size32,
        };
        let width = get_raster_width(weight, height);
        let mut expected = Vec::new();
        for (at, character) in text.chars().enumerate() {
            // Those that the font's crate has not are left out.
            let Some(raster) = get_raster(character, weight, height) else {
                continue;
            };
            for (y, row) in raster.rows().enumerate() {
                for (x, level) in row.iter().enumerate() {
                    let pixel = [0, 1, 2].map(|part| {
                        let (one, other) = (behind.0[part], colour.0[part]);
                        let (one, other) = (f64::from(one), f64::from(other));
                        let mixed = one + (other - one) * f64::from(*level) / 255.0;
                        #[allow(clippy::cast_sign_loss, reason = "a level")]
                        let mixed = mixed.round() as u8;
                        mixed
                    });
                    expected.push((at * width + x, y, pixel));
                }
            }
        }
        let all = text.chars().count() * width;
        let places = (top..=bottom.checked_sub(height.val())?)
            .flat_map(|y| (left..=right.saturating_sub(all)).map(move |x| (x, y)));
        let mut places = places.filter(|(x, y)| {
            let mut expected = expected.iter();
            expected.all(|(dx, dy, pixel)| near(self.pixel(x + dx, y + dy), *pixel))
        });
        places.next()
    }
}

fn near(one: [u8; 3], other: [u8; 3]) -> bool {
    let mut pairs = one.into_iter().zip(other);
    pairs.all(|(one, other)| one.abs_diff(other) <= OFF)
}
