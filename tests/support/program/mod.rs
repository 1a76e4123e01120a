//! Random programs of packets ([`native_fence::soak::program`]) on a bench: the rings are written here by hand, so
//! that there are packets in them which no library writes.
#![allow(dead_code, reason = "each test file uses a part")]

mod allocations;
mod outcome;
mod play;

pub(crate) use outcome::{Outcome, difference};
pub(crate) use play::Stage;
