//! Soak: random workloads over random topologies, for as long as asked.
//!
//! A round is drawn from a seed and its number: processes, contexts, queues, fences and who opens them, what all of
//! them do, and how the CPU waits. Its outcome depends on no order, so that the rules foretell it ([`Expected`]); the
//! model plays it, the engines that are soaked play it, and what came of it is compared with what is foretold and with
//! each other: values of fences, progress, words of transfers and of what queues take from each other, entries of logs
//! in their order, how each wait of the CPU ended, that fences which nobody waits for ask for no interrupt, that no
//! signal was below the value before, and that the operating system noted nothing. A wait ends well only if it was told
//! of its values, or it is cancelled, and nobody is told of it then. Bursts are foretold by arithmetic, and the model
//! executes a sample of them: a thread that steps through packets would take hours for what an engine does in a minute.
//!
//! Meanwhile fences and queues come and go: fences that the CPU rewinds, and queues that are destroyed at a wait, of which
//! nothing is done or told any more.
//!
//! Where faults are asked for, a process of its own has an engine hang, or is at work when it is lost: it alone is in
//! error then, and everybody else's outcome is the same as without; but who has a fence of its open is told, on whichever
//! adapter, or goes on.
//!
//! A round that differs is shrunk: the least of it that still does is told with the seed.
#![forbid(unsafe_code)]

mod case;
mod draw;
mod heir;
pub(crate) mod lost_work;
mod outcome;
mod play;
pub mod program;
mod random;
mod round;
mod run;
mod shrink;
mod stage;
mod tally;
mod visit;

pub use draw::Scope;
pub use heir::{Heir, HeirOutcome};
pub use outcome::{
    BurstOutcome, Due, Expected, FenceEnd, Logged, Outcome, QueueOutcome, WaitEnd, difference,
};
pub use random::Random;
pub use round::{
    Awaited, Burst, Cancel, ContextPlan, CpuWait, DevicePlan, Disturbance, Fault, FencePlan,
    Ground, How, Joint, ROUNDS_OF_A_GROUND, Round,
};
pub use run::{Failure, Soak, SoakError, Spoil, Target};
pub use shrink::shrink;
pub use stage::{Before, DeviceChoice, Stage};
pub use tally::Tally;
pub use visit::{Lap, Leaving, MOST_LAPS, Visit, VisitOutcome};
