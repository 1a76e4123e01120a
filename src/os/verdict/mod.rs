//! Verdicts: why a queue makes no progress (TD-15).
//!
//! A wait is never a hang. A queue that stands at one is told apart by who can still reach the value:
//! somebody, then it is Waiting, however long; nobody but queues that wait for each other in a circle, then it
//! is Deadlocked; nobody at all, then it is Orphaned. A value that was reached and of which nobody was told is
//! a LostNotification. A queue that has work and stands at no wait is Hung where its engine answers nothing.
//!
//! What fails a wait is certain: no live process has the fence open with the right to signal, here, on another
//! adapter or in another operating system; what is open on an adapter that has gone is no live one's. A handle for
//! the CPU is such a right, also that of a process whose queue waits
//! in the circle: its threads are no part of it (choice). So certain circles go through fences that queues
//! alone signal, which carry their progress, and what is orphaned waits for one of these or for a fence that
//! nobody may signal. A circle of signals that are queued behind waits, of fences that somebody could signal
//! as well, is a suspicion: it is told, and the verdict stays Waiting. Each adapter looks at its own queues, so of a
//! circle through several adapters' there is not even a suspicion: each handle of its fences may signal (choice). A
//! closed handle makes no verdict of its own: a queue that waits by it faults, and one that waits by another has that one, and with it the right.
//!
//! The graph of waits (`graph`) is data, and the verdict (`judge`) a function of it. The operating system
//! collects the graph and acts (`collect`, `act`) when something has happened that can make one certain: an
//! engine parks at such a wait, a queue in kernel mode comes to stand at one with nothing in flight, a queue is
//! stopped or destroyed, a device is lost, a wait has expired; and when somebody asks. Nothing here has a timer (HQ-09). Hung is told to who asks alone, for whom the driver
//! asks the engine: what becomes of it is the watch's (`tdr`).
#![forbid(unsafe_code)]

mod act;
mod collect;
mod graph;
mod judge;
mod signallers;

pub(super) use act::Verdicts;
pub(super) use collect::HeldAt;
pub use graph::{Cycle, CycleLink};
pub use judge::{QueueVerdict, Verdict};
pub use signallers::Signallers;
