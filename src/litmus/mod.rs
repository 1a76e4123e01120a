//! Litmus: the questions of memory order that this design stands on, asked of a device.
//!
//! Two parties, of which each does a few loads and stores, and an outcome that must not be: published and not there, both
//! looked and neither saw, half a word, ended and not there. Parties are a running shader and the CPU, two workgroups,
//! two queues, two devices. They do it again and again, in other places of memory and at other moments, and outcomes are counted.
//!
//! Each question is asked in the order of the shipped engine, with its words and, of adoption and logs, its functions
//! (`shaders/abi/word.glsl`, `shaders/engine/`), and with orderings left out. The first must never show the forbidden
//! outcome. What the others show says which orderings this device needs, where the first held; one that shows nothing is
//! not shown to be safe, and a loom scenario's twin tells what it would be like ([`Shape::loom_twins`]).
//!
//! On a CPU device of x86-64 a kernel that schedules itself has an epilogue whose words are atomic and have no order
//! (`shaders/engine/epilogue.glsl`). There message passing without the shader's release and acquire is relied on too
//! ([`Row::required`]).
//!
//! Adoption is asked of a workgroup as wide as the engine's. Where that is one subgroup, whose lanes go in step, it is not
//! asked.
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
mod looks;
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
