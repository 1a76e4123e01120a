//! Runner: one scenario done by one mechanism, a batch at a time.

use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

/// What tells the rows of a scenario and a mechanism apart, and how big a batch is.
pub type Params = BTreeMap<String, Value>;

/// What one batch took.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// The measured part, from its first operation to its last.
    pub wall: Duration,
    /// Each operation by itself, where that can be measured; else empty.
    pub latencies: Vec<Duration>,
}

/// What a runner's mechanism counted since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Calls of `vkQueueSubmit`.
    pub submits: u64,
    /// Fences named in interrupts; `None` where the mechanism has no such thing that can be
    /// counted.
    pub notifications: Option<u64>,
}

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
    /// The batch did not end as it should; the runner is not used again.
    fn batch(&mut self) -> anyhow::Result<Sample>;

    /// Counters of the mechanism.
    fn counts(&self) -> Counts;
}
