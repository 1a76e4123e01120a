//! Conform: the rules that native fences keep, asked of an implementation while it runs.
//!
//! Each rule is a [`Check`] with the rule's id: a story told through the public API to an adapter over the
//! implementation's [`Ddi`](crate::kmd::Ddi), in which it is seen from outside (values in memory, what waiters return,
//! what the driver is asked and what it says) whether the rule holds. What a check does not find where it runs, such as
//! a second engine, it names, and is skipped.
//!
//! A [`Subject`] is what is asked: [`ModelSubject`] and [`DeviceSubject`] are this crate's engines under its own
//! driver, and another implementation is put under the suite by a `Subject` that gives its `Ddi`:
//!
//! ```no_run
//! use native_fence::conform::{self, Subject, Unfit, Wanted};
//! use native_fence::kmd::Ddi;
//! use std::sync::Arc;
//!
//! # fn my_driver(_: &Wanted) -> Arc<dyn Ddi> { unimplemented!() }
//! #[derive(Debug)]
//! struct Mine;
//!
//! impl Subject for Mine {
//!     fn name(&self) -> String {
//!         "my driver".into()
//!     }
//!
//!     fn driver(&self, wanted: &Wanted) -> anyhow::Result<Arc<dyn Ddi>> {
//!         if wanted.nodes.get() > 1 {
//!             return Err(Unfit("it has one node".into()).into());
//!         }
//!         Ok(my_driver(wanted))
//!     }
//! }
//!
//! let subject: Arc<dyn Subject> = Arc::new(Mine);
//! for check in conform::checks() {
//!     println!("{} {}: {:?}", check.rule, check.title, conform::run(check, &subject).verdict);
//! }
//! ```
#![forbid(unsafe_code)]

mod bench;
mod check;
mod checks;
mod device;
mod ground;
mod listener;
mod model;
mod raw_fence;
mod run;
mod seen;
pub mod spy;
mod subject;
mod until;
mod waiter;

pub use bench::Bench;
pub use check::Check;
pub use checks::checks;
pub use device::DeviceSubject;
pub use ground::Ground;
pub use model::ModelSubject;
pub use run::{Ran, Verdict, run};
pub use subject::{Form, Subject, Unfit, Wanted};
pub use until::{LONG, is_sleeping, until, until_sleeping};
pub use waiter::Waiter;
