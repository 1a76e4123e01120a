//! Litmus: the questions of memory order that this design stands on, asked of a device.
//!
//! Two parties, of which each does a few loads and stores, and an outcome that must not be: published and not there, both
//! looked and neither saw, half a word. Parties are a running shader and the CPU, two workgroups, two queues, two
//! devices. They do it again and again, in other places of memory and at other moments, and outcomes are counted.
//!
//! Each question is asked as the shipped engine orders it, by the engine's own functions (`shaders/abi/word.glsl`,
//! `shaders/engine/`), and with orderings left out. The first must never show the forbidden outcome. What the others show
//! says which orderings this device needs; one that shows nothing is not shown to be safe, and a loom scenario's twin
//! tells what it would be like ([`Shape::loom_twins`]).
//!
//! Who does not find its partner at work leaves (a driver may run two workgroups one after another), and what was not
//! done together is counted as not met, never as passed.
#![forbid(unsafe_code)]

mod areas;
mod bench;
mod cost;
mod cpu_log;
mod cpu_party;
mod dispatch;
mod group;
mod outcome;
mod plan;
mod question;
mod row;
mod setup;
mod verdict;
mod visibility;

pub use bench::{Asked, Bench, Pace};
pub use outcome::Outcomes;
pub use plan::{Memory, Parties, Shape};
pub use question::Order;
pub use row::{Delays, Distribution, Row};
pub use verdict::{Conclusion, Verdict, conclusions, verdict};
