//! Spy: stands between the OS and a driver, writes down what either tells the other, and lets who looks on act at
//! exact places: inside a call, before an interrupt reaches the OS.
//!
//! It adds nothing and holds nothing back by itself. The conformance suite sees through it what a driver is asked and
//! what it says; the tests of this crate use it too.

mod book;
mod ddi_hooks;
mod ddi_record;
mod ddi_spy;
mod raw_log;
mod tdr_spy;

pub use book::{Call, Failing, MadeDoorbell, Moment, Passed, Published, SetLog};
pub use ddi_spy::DdiSpy;
pub use raw_log::RawLog;
pub use tdr_spy::TdrCall;

use super::until::LONG;
