//! Font: Noto Sans Mono as bitmaps, 16 pixels high at scale 1 and 32 at scale 2, and the atlas that the kernel reads.

use super::view::Scale;
use noto_sans_mono_bitmap::{FontWeight, RasterHeight, get_raster, get_raster_width};

/// What there is beside the printable characters of ASCII.
const MORE: [char; 6] = ['≥', 'µ', '·', '×', '…', '→'];
/// In place of what there is not.
const MISSING: char = '?';
const FIRST: char = ' ';
const LAST: char = '~';
const ASCII: u16 = LAST as u16 - FIRST as u16 + 1;

/// How heavy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// Most text.
    Regular,
    /// Names.
    Bold,
}

/// Glyphs of a weight.
const OF_WEIGHT: u16 = ASCII + MORE.len() as u16;
/// Glyphs of an atlas.
pub const GLYPHS: u16 = 2 * OF_WEIGHT;

/// Where a character stands in the atlas.
#[must_use]
pub fn glyph(character: char, weight: Weight) -> u16 {
    let more = || MORE.iter().position(|other| *other == character);
    let place = match character {
        FIRST..=LAST => character as u16 - FIRST as u16,
        _ => more().map_or(MISSING as u16 - FIRST as u16, |at| ASCII + at as u16),
    };
    match weight {
        Weight::Regular => place,
        Weight::Bold => OF_WEIGHT + place,
    }
}

/// Width and height of each glyph, in pixels.
#[must_use]
pub fn cell(scale: Scale) -> (usize, usize) {
    let height = raster_height(scale);
    (get_raster_width(FontWeight::Regular, height), height.val())
}

/// All glyphs, one after the other, row by row, a byte a pixel: 0 is nothing, 255 all of it.
#[must_use]
pub fn atlas(scale: Scale) -> Vec<u8> {
    let mut atlas = Vec::new();
    for weight in [FontWeight::Regular, FontWeight::Bold] {
        for character in (FIRST..=LAST).chain(MORE) {
            atlas.extend(bitmap(character, weight, scale));
        }
    }
    // The kernel reads it by words of four, and it is stored by words of eight.
    atlas.resize(atlas.len().next_multiple_of(8), 0);
    atlas
}

fn raster_height(scale: Scale) -> RasterHeight {
    match scale {
        Scale::One => RasterHeight::Size16,
        Scale::Two => RasterHeight::Size32,
    }
}

fn bitmap(character: char, weight: FontWeight, scale: Scale) -> Vec<u8> {
    let (width, height) = cell(scale);
    let raw = |character| {
        let raster = get_raster(character, weight, raster_height(scale));
        raster.map(|raster| raster.pixels().to_vec())
    };
    // Up by so many sixteenths of the height.
    let raised = |character: char, by: usize| {
        let mut pixels = raw(character).unwrap_or_else(|| vec![0; width * height]);
        pixels.rotate_left(by * height / 16 * width);
        pixels
    };
    let over = |one: Vec<u8>, other: &[u8]| -> Vec<u8> {
        let pairs = one.iter().zip(other);
        pairs.map(|(one, other)| *one.max(other)).collect()
    };
    match character {
        // The font's crate has no mathematical signs: made of those that it has.
        '≥' => over(raised('>', 1), &raised('_', 2)),
        '→' => over(raised('-', 0), &raised('>', 0)),
        '…' => {
            let dot = raw('.').unwrap_or_default();
            let moved = |by: isize| -> Vec<u8> {
                let at = |place: usize| {
                    let x = (place % width).checked_add_signed(-by);
                    x.filter(|x| *x < width)
                        .map_or(0, |x| dot[place / width * width + x])
                };
                (0..width * height).map(at).collect()
            };
            let third = width.div_ceil(3).cast_signed();
            over(over(moved(-third), &moved(third)), &dot)
        }
        _ => raw(character).unwrap_or_else(|| vec![0; width * height]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_character_has_a_glyph_of_its_own_at_both_scales() {
        for scale in [Scale::One, Scale::Two] {
            let (width, height) = cell(scale);
            let atlas = atlas(scale);
            assert!(atlas.len() >= usize::from(GLYPHS) * width * height);
            let of = |character| {
                let from = usize::from(glyph(character, Weight::Regular)) * width * height;
                &atlas[from..from + width * height]
            };
            let mut seen: Vec<&[u8]> = Vec::new();
            for character in (FIRST..=LAST).chain(MORE) {
                let bitmap = of(character);
                assert!(!seen.contains(&bitmap), "{character:?} looks as another");
                assert!(
                    character == ' ' || bitmap.iter().any(|level| *level > 128),
                    "{character:?}"
                );
                seen.push(bitmap);
            }
            assert_eq!(of('字'), of('?'));
        }
    }
}
