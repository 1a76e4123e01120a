//! Together: whether two parties that answer each other ran at the same time.
//!
//! Nothing promises that two dispatches run at once, or a dispatch beside a thread. Where one of
//! them had no core the other looked in vain, and what was measured is the scheduler of the machine
//! and not its memory. Such a batch is done again, and how many there were is said.

use crate::workload::{Params, Sample, TooBusy};
use std::time::{Duration, Instant};

/// How long a runner tries in vain, over all its batches, before it gives up.
const PATIENCE: Duration = Duration::from_secs(3);

/// Between two attempts: a scheduler that put both parties on one core, or whatever else has the
/// other one, needs time and not another attempt.
const PAUSE: Duration = Duration::from_millis(1);

/// The attempts at all batches of a runner.
#[derive(Debug)]
pub(super) struct Together {
    patience: Duration,
    met: u64,
    missed: u64,
}

impl Together {
    pub(super) fn new() -> Self {
        Self {
            patience: PATIENCE,
            met: 0,
            missed: 0,
        }
    }

    /// Attempts a batch until the parties ran at the same time; `attempt` gives `None` where they
    /// did not.
    ///
    /// # Errors
    /// [`TooBusy`] when there is no patience left, or an attempt's own error.
    pub(super) fn batch(
        &mut self,
        mut attempt: impl FnMut() -> anyhow::Result<Option<Sample>>,
    ) -> anyhow::Result<Sample> {
        let mut pauses = 0;
        loop {
            let start = Instant::now();
            if let Some(sample) = attempt()? {
                self.met += 1;
                return Ok(Sample {
                    pauses: sample.pauses + pauses,
                    ..sample
                });
            }
            self.missed += 1;
            std::thread::sleep(PAUSE);
            pauses += 1;
            self.patience = self.patience.saturating_sub(start.elapsed());
            if self.patience.is_zero() {
                return Err(TooBusy.into());
            }
        }
    }

    /// The share of attempts in which they did not, for the report.
    pub(super) fn tell(&self, params: &mut Params) {
        #[allow(clippy::cast_precision_loss, reason = "far below 2^52")]
        let share = self.missed as f64 / ((self.missed + self.met) as f64).max(1.0);
        let share = (share * 1e4).round() / 1e4;
        params.insert("not_co_scheduled".into(), share.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_attempted_again_and_the_share_is_told() {
        let mut together = Together::new();
        let outcomes = [None, Some(Sample::default()), None, None];
        let mut attempts = outcomes.into_iter().cycle();
        for missed in [1, 3] {
            let sample = together.batch(|| Ok(attempts.next().flatten())).unwrap();
            assert_eq!(sample.pauses, missed);
        }
        let mut params = Params::new();
        together.tell(&mut params);
        assert_eq!(params["not_co_scheduled"], 0.6667);
    }

    #[test]
    fn parties_that_never_meet_are_an_error() {
        let mut together = Together::new();
        together.patience = Duration::from_millis(3);
        let ended = together.batch(|| Ok(None)).unwrap_err();
        assert!(ended.is::<TooBusy>(), "{ended}");
        assert!(together.missed > 0);
    }
}
