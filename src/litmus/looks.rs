//! Looks: how often the CPU looks for what a running dispatch has done, before it gives up.

use std::hint::spin_loop;
use std::time::{Duration, Instant};

/// Longer than any run that goes well.
const PATIENCE: Duration = Duration::from_millis(500);
/// Looks between two at whether the dispatch has ended, which is a call of the driver.
const LOOKS: u32 = 512;

/// Whether it is worth while to look again.
pub(super) struct Looks<'a> {
    has_ended: &'a dyn Fn() -> bool,
    deadline: Instant,
    taken: u32,
}

impl<'a> Looks<'a> {
    /// From now on; `has_ended` says whether the dispatch has.
    pub(super) fn new(has_ended: &'a dyn Fn() -> bool) -> Self {
        Self {
            has_ended,
            deadline: Instant::now() + PATIENCE,
            taken: 0,
        }
    }

    /// False once the dispatch has ended or time is up. A caller looks once more then.
    pub(super) fn again(&mut self) -> bool {
        self.taken += 1;
        spin_loop();
        !self.taken.is_multiple_of(LOOKS)
            || !((self.has_ended)() || Instant::now() >= self.deadline)
    }
}
