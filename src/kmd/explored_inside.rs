//! Explored inside: the calls of a driver, and one of them alone, as loom explores them.
//!
//! Its code is that of drivers, over what loom stops at. In a driver it stops there not: every call goes through it, and
//! that would be most of what there is to explore.

#[path = "inside.rs"]
mod inside;

use crate::sync as guards;
use inside::Inside;
use std::time::Duration;

/// Who is inside, without the driver.
#[derive(Debug, Default)]
pub struct ExploredInside(Inside);

impl ExploredInside {
    /// Makes a call.
    pub fn call<T>(&self, call: impl FnOnce() -> T) -> T {
        let _entered = self.0.enter();
        call()
    }

    /// Makes one while nobody else is inside, however long that takes.
    ///
    /// # Panics
    /// Never: under loom no time passes.
    pub fn alone<T>(&self, call: impl FnOnce() -> T) -> T {
        match self.0.alone(Duration::ZERO, || {}, call) {
            Ok(done) => done,
            Err(still) => unreachable!("{still:?}"),
        }
    }
}
