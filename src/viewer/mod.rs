//! Viewer: draws a trace as a timeline, in GPUView's manner, with native fences.
//!
//! A [`Scene`] is a [`Trace`](crate::trace::Trace) put in order for looking at it: an [`Index`] that is made once, and what
//! stands where ([`Lanes`]). A [`View`] says which part of it is looked at, how large, and where the cursor is. The scene's
//! [`Picture`] of a view is a list of primitives; a [`Canvas`] has a kernel draw it on a hardware queue, and signals a fence
//! with the frame's number.
//!
//! What a picture costs depends on what is seen in it: what is narrower than a column of pixels is merged, and found without a
//! look at each event.
//!
//! ```no_run
//! use native_fence::Adapter;
//! use native_fence::viewer::{Canvas, Scale, Scene, View, write_png};
//! # use native_fence::trace::Trace;
//!
//! # fn show(trace: &Trace) -> Result<(), Box<dyn std::error::Error>> {
//! let scene = Scene::new(trace);
//! let view = View::new(scene.span(), (1280, 720), Scale::One);
//! let mut canvas = Canvas::new(&Adapter::open_best()?.create_device())?;
//! let frame = canvas.draw(&scene.picture(&view), None)?;
//! let pixels = canvas.download(frame, (1280, 720))?;
//! write_png(std::fs::File::create("trace.png")?, (1280, 720), &pixels)?;
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

mod canvas;
mod details;
mod extremes;
pub mod font;
mod index;
pub mod lanes;
mod pen;
mod png;
mod primitive;
mod rows;
#[cfg(test)]
mod sample;
mod scene;
mod stack;
pub mod theme;
mod tiles;
mod time_text;
pub mod view;

pub use self::png::write_png;
pub use canvas::{Canvas, CanvasError, Picture};
pub use index::{Index, MOST_ROWS};
pub use lanes::{Lane, LaneKind, Lanes};
pub use primitive::{Colour, Kind, Primitive, Rectangle};
pub use scene::Scene;
pub use tiles::{MOST_OF_TILE, TILE, Tiles, TilesError};
pub use time_text::exact;
pub use view::{GUTTER, MOST_PIXELS, Scale, View};
