//! Camera of an example: frames of a picture, and what the CPU makes of them.

use std::error::Error;
use std::io::Cursor;

pub(crate) const WIDTH: usize = 320;
pub(crate) const HEIGHT: usize = 200;
/// The picture of README.
const PICTURE: &[u8] = include_bytes!("../../benches/results/pictures/timeline.png");
/// Pixels from a frame to the next, across and down.
const MOVES: (usize, usize) = (60, 25);

/// So many frames, as grey levels: a window that moves over the picture.
pub(crate) fn pictures(frames: u64) -> Result<Vec<Vec<u32>>, Box<dyn Error>> {
    let mut decoder = png::Decoder::new(Cursor::new(PICTURE));
    decoder.set_transformations(png::Transformations::normalize_to_color8());
    let mut reader = decoder.read_info()?;
    let mut bytes = vec![
        0;
        reader
            .output_buffer_size()
            .ok_or("the picture is too large")?
    ];
    let info = reader.next_frame(&mut bytes)?;
    let (width, height) = (info.width as usize, info.height as usize);
    let samples = info.color_type.samples();
    let colours = samples.min(3);
    let grey = |x: usize, y: usize| {
        let pixel = &bytes[y % height * info.line_size + x % width * samples..][..colours];
        pixel.iter().map(|sample| u32::from(*sample)).sum::<u32>() / colours as u32
    };
    let frame = |frame: usize| {
        let pixels = 0..WIDTH * HEIGHT;
        pixels.map(move |at| (frame * MOVES.0 + at % WIDTH, frame * MOVES.1 + at / WIDTH))
    };
    let frames = (0..frames as usize).map(|number| frame(number).map(|(x, y)| grey(x, y)));
    Ok(frames.map(Iterator::collect).collect())
}

/// What the three kernels make of an image, by the CPU.
pub(crate) fn expected(image: &[u32]) -> Vec<u32> {
    let blurred = filtered(image, |at| {
        let corners = at(-1, -1) + at(1, -1) + at(-1, 1) + at(1, 1);
        let sides = at(0, -1) + at(-1, 0) + at(1, 0) + at(0, 1);
        (corners + 2 * sides + 4 * at(0, 0) + 8) / 16
    });
    let edged = filtered(&blurred, |at| {
        let across = at(1, -1) + 2 * at(1, 0) + at(1, 1) - at(-1, -1) - 2 * at(-1, 0) - at(-1, 1);
        let down = at(-1, 1) + 2 * at(0, 1) + at(1, 1) - at(-1, -1) - 2 * at(0, -1) - at(1, -1);
        (across.abs() + down.abs()).min(255)
    });
    filtered(&edged, |at| (255 - at(0, 0)) * (255 - at(0, 0)) / 255)
}

/// Makes each pixel of those around it; beyond an edge lies what lies at it.
fn filtered(image: &[u32], level: impl Fn(&dyn Fn(isize, isize) -> i32) -> i32) -> Vec<u32> {
    let pixel = |here: usize| {
        let at = |x: isize, y: isize| {
            let x = (here % WIDTH).saturating_add_signed(x).min(WIDTH - 1);
            let y = (here / WIDTH).saturating_add_signed(y).min(HEIGHT - 1);
            image[y * WIDTH + x].cast_signed()
        };
        level(&at).cast_unsigned()
    };
    (0..image.len()).map(pixel).collect()
}
