//! The viewer's canvas: what its kernel draws is what a rasteriser by the book does, frame after frame, and fences order it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod left_out;
    pub(crate) mod raster;
}

use native_fence::viewer::{
    Canvas, CanvasError, Colour, MOST_OF_TILE, Picture, Primitive, Rectangle, Scale, TilesError,
    font,
};
use native_fence::{Adapter, Device};
use proptest::prelude::{Strategy, any, prop, prop_oneof};
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use std::time::Duration;
use support::left_out::opened_or_left_out;
use support::raster::drawn;

const LONG: Duration = Duration::from_secs(60);
const WHITE: Colour = Colour::rgb(0xff_ff_ff);

fn device() -> Option<Device> {
    opened_or_left_out(Adapter::open_best()).map(|adapter| adapter.create_device())
}

fn point() -> impl Strategy<Value = [f32; 2]> {
    [-20.0_f32..120.0, -20.0_f32..90.0]
}

fn rectangle() -> impl Strategy<Value = Rectangle> {
    (point(), 0.0_f32..70.0, 0.0_f32..50.0).prop_map(|([left, top], width, height)| Rectangle {
        left,
        top,
        right: left + width,
        bottom: top + height,
    })
}

fn primitive() -> impl Strategy<Value = Primitive> {
    let colour = || any::<[u8; 4]>().prop_map(Colour);
    prop_oneof![
        (rectangle(), colour()).prop_map(|(at, colour)| Primitive::fill(at, colour)),
        (rectangle(), 0.5_f32..6.0, colour())
            .prop_map(|(at, width, colour)| Primitive::border(at, width, colour)),
        // Stripes begin and end between pixels, or which precision one has would tell.
        (rectangle(), 4_u8..12, 0_u8..6, colour()).prop_map(|(at, period, width, colour)| {
            Primitive::hatch(at, period.into(), f32::from(width) + 0.5, colour)
        }),
        (point(), point(), 0.3_f32..7.0, colour())
            .prop_map(|(from, to, width, colour)| Primitive::line(from, to, width, colour)),
        ([point(), point(), point()], colour())
            .prop_filter("a triangle has an area", |([a, b, c], _)| {
                let turn = (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]);
                turn.abs() > 4.0
            })
            .prop_map(|(corners, colour)| Primitive::triangle(corners, colour)),
        (0..font::GLYPHS + 3, -9_i8..110, -9_i8..80, colour()).prop_map(
            |(number, left, top, colour)| {
                let (width, height) = font::cell(Scale::One);
                let (left, top) = (f32::from(left), f32::from(top));
                #[allow(clippy::cast_precision_loss, reason = "some pixels")]
                let at = Rectangle {
                    left,
                    top,
                    right: left + width as f32,
                    bottom: top + height as f32,
                };
                Primitive::glyph(number, at, colour)
            }
        ),
    ]
}

fn pictures(sizes: &[(u32, u32)]) -> Vec<Picture> {
    let mut runner = TestRunner::deterministic();
    let mut draw = |size: &(u32, u32)| {
        let primitives = prop::collection::vec(primitive(), 60).new_tree(&mut runner);
        Picture {
            size: *size,
            scale: Scale::One,
            background: Colour::rgb(0x30_60_90),
            primitives: primitives.unwrap().current(),
        }
    };
    sizes.iter().map(&mut draw).collect()
}

fn compare(pixels: &[u32], picture: &Picture) {
    let expected = drawn(picture);
    assert_eq!(pixels.len(), expected.len());
    for (at, (pixel, expected)) in pixels.iter().zip(expected).enumerate() {
        let [red, green, blue, opacity] = pixel.to_le_bytes();
        let pairs = [red, green, blue].into_iter().zip(expected);
        let differ = pairs.map(|(one, other)| one.abs_diff(other)).max();
        let (x, y) = (at as u32 % picture.size.0, at as u32 / picture.size.0);
        assert!(
            differ <= Some(2) && opacity == 255,
            "({x}, {y}): {red} {green} {blue}, and {expected:?} by the book"
        );
    }
}

#[test]
fn the_kernel_draws_what_a_rasteriser_by_the_book_does() {
    let Some(device) = device() else { return };
    let mut canvas = Canvas::new(&device).unwrap();
    // Larger and smaller ones by turns: buffers grow, and what was in them before is not seen.
    for picture in pictures(&[(97, 61), (16, 16), (120, 90), (1, 1), (33, 70), (120, 90)]) {
        let frame = canvas.draw(&picture, None).unwrap();
        let pixels = canvas.download(frame, picture.size).unwrap();
        compare(&pixels, &picture);
    }
}

#[test]
fn text_of_both_scales_is_drawn_on_one_canvas() {
    let Some(device) = device() else { return };
    let mut canvas = Canvas::new(&device).unwrap();
    for scale in [Scale::One, Scale::Two, Scale::One] {
        let (width, height) = font::cell(scale);
        let glyphs = "signal fence 3 = 5".chars().zip(0_u8..);
        let primitives = glyphs.map(|(character, place)| {
            #[allow(clippy::cast_precision_loss, reason = "some pixels")]
            let (width, height) = (width as f32, height as f32);
            let left = f32::from(place) * width;
            let at = Rectangle {
                left,
                top: 3.0,
                right: left + width,
                bottom: 3.0 + height,
            };
            let number = font::glyph(character, font::Weight::Bold);
            Primitive::glyph(number, at, Colour::rgb(0))
        });
        let picture = Picture {
            size: (300, 40),
            scale,
            background: WHITE,
            primitives: primitives.collect(),
        };
        let frame = canvas.draw(&picture, None).unwrap();
        compare(&canvas.download(frame, picture.size).unwrap(), &picture);
    }
}

#[test]
fn a_frame_waits_for_a_fence_and_tells_of_itself_by_another() {
    let Some(device) = device() else { return };
    let mut canvas = Canvas::new(&device).unwrap();
    let shown = device.create_fence(0).unwrap();
    let pictures = pictures(&[(64, 64), (64, 64), (64, 64)]);
    let first = canvas.draw(&pictures[0], None).unwrap();
    let second = canvas.draw(&pictures[1], Some((&shown, 1))).unwrap();
    assert!(second > first);
    canvas.frames().wait(first, LONG).unwrap();
    assert_eq!(canvas.frames().current_value(), first, "it has to wait");

    shown.signal(1).unwrap();
    canvas.frames().wait(second, LONG).unwrap();
    // The two have pixels of their own.
    for (frame, picture) in [(first, &pictures[0]), (second, &pictures[1])] {
        let pixels = canvas.pixels(frame).read_vec(..64 * 64).unwrap();
        compare(&pixels, picture);
    }
    let third = canvas.draw(&pictures[2], None).unwrap();
    compare(&canvas.download(third, (64, 64)).unwrap(), &pictures[2]);
}

#[test]
fn as_many_primitives_as_a_tile_may_have_are_all_drawn_and_more_are_refused() {
    let Some(device) = device() else { return };
    let mut canvas = Canvas::new(&device).unwrap();
    let at = Rectangle {
        left: 2.0,
        top: 3.0,
        right: 9.0,
        bottom: 9.0,
    };
    let mut picture = Picture {
        size: (40, 40),
        scale: Scale::One,
        background: WHITE,
        primitives: vec![Primitive::fill(at, Colour::rgb(0xff_00_00)); MOST_OF_TILE as usize],
    };
    // The last one is on top.
    let last = Primitive::fill(at, Colour::rgb(0x00_80_40));
    *picture.primitives.last_mut().unwrap() = last;
    let frame = canvas.draw(&picture, None).unwrap();
    let pixels = canvas.download(frame, (40, 40)).unwrap();
    assert_eq!(pixels[5 * 40 + 5].to_le_bytes(), [0x00, 0x80, 0x40, 255]);

    picture.primitives.push(last);
    let refused = canvas.draw(&picture, None).unwrap_err();
    let CanvasError::Tiles(TilesError::TooManyOfTile { count, .. }) = refused else {
        panic!("{refused}");
    };
    assert_eq!(count, MOST_OF_TILE + 1);
    // The canvas goes on.
    picture.primitives.truncate(1);
    let frame = canvas.draw(&picture, None).unwrap();
    let pixels = canvas.download(frame, (40, 40)).unwrap();
    assert_eq!(pixels[5 * 40 + 5].to_le_bytes(), [0xff, 0x00, 0x00, 255]);
}
