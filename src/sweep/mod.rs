//! Sweep: what comes of each call that fails.
//!
//! A [`Planned`] fault is one Vulkan call at one use with one error, a device that is lost at a call, or the k-th mapping,
//! thread or new file descriptor, that one also from a [`Chapter`] on. A process plays ([`play()`]) one of them: it goes
//! through a short story of everything there is (`story`) while another adapter works beside it, and says what it was told
//! and what it left behind. What a fault that strikes once has refused is tried again, and the story goes on. [`judge()`] is pure: an error that names the call, waiters that have all ended, another adapter
//! that goes on, and nothing left behind are well; a fault that nobody was told of is not.
//!
//! Nothing here starts a process: who sweeps does, and the second process of the story (`peer`) is started by who plays it.
#![forbid(unsafe_code)]

mod fault;
mod holdings;
mod judge;
mod kept;
mod limit;
#[cfg(test)]
mod model_adapter;
mod peer;
mod plan;
mod play;
mod step;
mod story;
mod strike;
mod waiters;

pub use fault::{Planned, Unknown};
pub use holdings::Holdings;
pub use judge::{Outcome, judge, judge_by};
pub use peer::{StartPeer, serve_peer};
pub use plan::{Part, all_parts, is_certain, parts, parts_of};
pub use play::{Hook, Played, Told, play};
pub use story::Chapter;
