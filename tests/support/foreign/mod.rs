//! A foreign driver: an implementation of the DDIs that is made outside of the crate, as somebody who writes a driver
//! of his own puts it under the conformance suite. It is made of what the crate shows, and of no more.
//!
//! Behind it is the crate's own driver over model engines, which schedules and resets. Its own is what stands between
//! that and the OS: how it numbers nodes, queues and contexts
//! (`numbers`), on which thread it tells of fences and in which order (`news`), how far apart it has values lie (`driver`). No
//! rule says anything of these; a check that asks for one of them asks too much.

mod driver;
mod fault;
mod news;
mod numbers;
mod subject;
mod tdr;

pub(crate) use driver::ForeignDriver;
pub(crate) use fault::{Fault, ODD_STRIDE};
pub(crate) use subject::ForeignSubject;
