//! Window: a timeline that is looked at while it happens, in a window of the desktop (feature `window`).
//!
//! Each frame is a chain of native fences and timelines. A hardware queue draws the picture ([`Canvas`](crate::viewer::Canvas))
//! and signals the frames' fence; a bridge carries that to a timeline of the window's own Vulkan device, whose submission
//! copies the picture to an image of the swapchain and raises another timeline; a bridge carries that back to a fence, for
//! which the hardware queue waits before it draws over the picture.
//!
//! What is shown is a [`Source`]: a trace that was recorded, or one that goes on. What a user does with mouse and keys becomes a
//! change of the view in [`Steering`], which knows nothing of windows.
#![forbid(unsafe_code)]

mod app;
mod keys;
mod live;
mod screen;
mod source;
mod steering;

pub use app::{WindowError, WindowOptions, show};
pub use live::Live;
pub use source::{Recorded, Source};
pub use steering::{Command, Steering};
