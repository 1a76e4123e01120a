//! Bench: an adapter over a real engine, with a spy between OS and driver and another between node
//! and engine.
//!
//! The spies see what passes, and let a test act at exact places: inside a DDI, before an interrupt
//! reaches the OS, before a slice starts, before its end is told. They add nothing and hold nothing
//! back by themselves. What a test waits for is an event here, never a time.
#![allow(dead_code, unused_imports, reason = "each test file uses a part")]

mod adapter;
mod engine_spy;
mod faulted;
mod fences;
pub(crate) mod monitored;
mod recovering;
mod transfers;
mod waiter;

#[allow(clippy::duplicate_mod, reason = "a test may use left_out and bench")]
#[path = "../left_out.rs"]
mod left_out;
#[allow(clippy::duplicate_mod, reason = "a test may use engines and bench")]
#[path = "../memory.rs"]
pub(crate) mod memory;
#[allow(clippy::duplicate_mod, reason = "a test may use engines and bench")]
#[path = "../model_asked_for.rs"]
mod model_asked_for;
#[path = "../until.rs"]
mod waiting;

pub(crate) use adapter::{
    Bench, complete, monitored_value, native, on_benches_of, on_benches_with, on_every_bench,
    on_monitored_benches, on_monitored_benches_with, on_stalling_benches, until_completed,
};
pub(crate) use engine_spy::{Closed, EngineSpy, Mapped};
pub(crate) use faulted::fault;
pub(crate) use fences::{each, fences, monitored_values, nobody_waits, signal};
pub(crate) use model_asked_for::model_is_asked_for;
pub(crate) use native_fence::conform::spy::{
    Call, DdiSpy, Failing, MadeDoorbell, Moment, Passed, Published, RawLog, TdrCall,
};
pub(crate) use recovering::{
    FOR_EVER, hang, hang_until_aborted, on_patient_benches, on_recovering_benches,
    on_recovering_benches_without_stalls, soon, stall,
};
pub(crate) use transfers::{fill, finish, large, short, words};
pub(crate) use waiter::Waiter;
pub(crate) use waiting::{Ended, LONG, is_sleeping, try_until, until, until_sleeping};
