//! PNG: a picture as a file.

use std::io::{self, Write};

/// Writes pixels, row by row, red in the lowest byte.
///
/// # Errors
/// Those of `to`.
pub fn write_png(to: impl Write, (width, height): (u32, u32), pixels: &[u32]) -> io::Result<()> {
    let mut encoder = ::png::Encoder::new(to, width, height);
    encoder.set_color(::png::ColorType::Rgba);
    encoder.set_depth(::png::BitDepth::Eight);
    let mut writer = encoder.write_header()?;
    let bytes: Vec<u8> = pixels
        .iter()
        .flat_map(|pixel| pixel.to_le_bytes())
        .collect();
    writer.write_image_data(&bytes)?;
    Ok(writer.finish()?)
}
