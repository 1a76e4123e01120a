//! Runner: one scenario done by one mechanism, a batch at a time.

use serde_json::Value;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// What tells the rows of a scenario and a mechanism apart, and how big a batch is.
pub type Params = BTreeMap<String, Value>;

/// What one batch took.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// The measured part, from its first operation to its last.
    pub wall: Duration,
    /// Each operation by itself, where that can be measured; else empty.
    pub latencies: Vec<Duration>,
    /// How often the measuring thread slept of its own accord, which is nobody's wake-up.
    pub pauses: u64,
}

impl Sample {
    /// A batch that was measured as a whole.
    #[must_use]
    pub fn whole(wall: Duration) -> Self {
        Self {
            wall,
            ..Self::default()
        }
    }

    /// Does operations one after another and measures each, without a gap between them.
    ///
    /// # Errors
    /// The first error of an operation.
    pub fn of_each(
        operations: u64,
        mut operation: impl FnMut(u64) -> anyhow::Result<()>,
    ) -> anyhow::Result<Self> {
        let mut latencies = Vec::with_capacity(operations as usize);
        let start = Instant::now();
        let mut before = start;
        for number in 0..operations {
            operation(number)?;
            let now = Instant::now();
            latencies.push(now - before);
            before = now;
        }
        Ok(Self {
            wall: before - start,
            latencies,
            pauses: 0,
        })
    }
}

/// What a runner's mechanism counted since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Calls of `vkQueueSubmit`.
    pub submits: u64,
    /// Fences named in interrupts, and interrupts that name none; `None` where the mechanism has no such thing that can be
    /// counted.
    pub notifications: Option<u64>,
}

/// A batch needs two parties that run at the same time, and the machine had no two cores for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "its two parties did not run at the same time for seconds: the machine has no two cores to spare"
)]
pub struct TooBusy;

/// The device does not offer what the mechanism needs to engines as this scenario has them: no failure.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NotOffered(pub String);

/// One scenario done by one mechanism.
pub trait Runner {
    /// What a batch is and what is measured of it: one sentence.
    fn work(&self) -> &str;

    /// Sizes and forms, for the report.
    fn params(&self) -> Params;

    /// Operations of a batch.
    fn ops_per_batch(&self) -> u64;

    /// What belongs to a batch and is not measured.
    ///
    /// # Errors
    /// Something could not be made ready.
    fn prepare(&mut self) -> anyhow::Result<()> {
        Ok(())
    }

    /// Does a batch.
    ///
    /// # Errors
    /// The batch did not end as it should; the runner is not used again. After [`TooBusy`], and no
    /// other, what it measured before counts.
    fn batch(&mut self) -> anyhow::Result<Sample>;

    /// Counters of the mechanism.
    fn counts(&self) -> Counts;
}
