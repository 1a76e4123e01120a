//! Trial: how much takes how long on a device, found by trying more and more.

use crate::gpu::{Injection, LongKernel};
use std::time::{Duration, Instant};

/// What is tried takes so long at least: more than a submission costs, and less than any TdrDelay.
const LONG_ENOUGH: Duration = Duration::from_millis(10);
/// How often it is tried again when it took so long.
const AGAIN: u32 = 2;
/// So much took so long.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trial {
    amount: u64,
    time: Duration,
}

impl Trial {
    /// Tries more and more, to `most`, until it takes long enough. The first one may compile something, and
    /// does not count.
    pub(crate) fn find(
        least: u64,
        most: u64,
        mut try_it: impl FnMut(u64) -> anyhow::Result<Duration>,
    ) -> anyhow::Result<Self> {
        try_it(least)?;
        let mut amount = least;
        loop {
            let mut time = try_it(amount)?;
            // A busy machine makes something short seem long: the least of some counts.
            for _ in 0..AGAIN {
                if time >= LONG_ENOUGH {
                    time = time.min(try_it(amount)?);
                }
            }
            if time >= LONG_ENOUGH || amount == most {
                return Ok(Self { amount, time });
            }
            amount = (2 * amount).min(most);
        }
    }

    /// What takes `time`, which is longer.
    pub(crate) fn amount_of(self, time: Duration) -> u64 {
        let factor = time.as_secs_f64() / self.time.as_secs_f64();
        #[allow(
            clippy::cast_precision_loss,
            clippy::cast_sign_loss,
            reason = "an estimate of what is positive"
        )]
        let amount = (self.amount as f64 * factor.max(1.0)) as u64;
        amount
    }

    /// A kernel that takes `time`, by what shorter ones take; what is tried is as short as that it hangs
    /// nothing.
    pub(crate) fn kernel(
        time: Duration,
        mut try_it: impl FnMut(LongKernel) -> anyhow::Result<Duration>,
    ) -> anyhow::Result<LongKernel> {
        let (least, most) = (LongKernel::WORKGROUPS, LongKernel::MOST_OF_LEAST);
        let trial = Self::find(least, most, |passes| try_it(LongKernel::of_passes(passes)))?;
        Ok(LongKernel::of_passes(trial.amount_of(time)))
    }
}

/// What a submission on a node takes behind a kernel; `run` submits one, and waits for it.
pub(crate) fn time_behind(
    injection: &Injection,
    node_ordinal: u32,
    kernel: LongKernel,
    mut run: impl FnMut() -> anyhow::Result<()>,
) -> anyhow::Result<Duration> {
    let done = || injection.workgroups_done(node_ordinal);
    let last = done() + u64::from(kernel.workgroups);
    injection.before_next_slice(node_ordinal, kernel);
    let mut longest = Duration::ZERO;
    // A slice in flight takes what is submitted: the kernel is before the next one.
    while done() < last {
        let begin = Instant::now();
        run()?;
        longest = longest.max(begin.elapsed());
    }
    Ok(longest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_trial_does_not_count() {
        let mut tried = Vec::new();
        let trial = Trial::find(4, 100, |amount| {
            tried.push(amount);
            Ok(match tried.len() {
                1 => Duration::from_secs(1),
                _ => Duration::from_millis(amount / 2),
            })
        });
        let trial = trial.unwrap();
        assert_eq!(tried, [4, 4, 8, 16, 32, 32, 32]);
        assert_eq!(
            (trial.amount, trial.amount_of(Duration::from_secs(16))),
            (32, 32_000)
        );
        assert_eq!(trial.amount_of(Duration::ZERO), 32, "it never shrinks");
        let most = Trial::find(4, 10, |_| Ok(Duration::ZERO)).unwrap();
        assert_eq!(most.amount, 10);
    }
}
