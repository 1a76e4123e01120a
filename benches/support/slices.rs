//! Slices that engines begin while something is waited for.
//!
//! They are counted when the CPU has seen the end of it: where that had no core for a while, slices are among them
//! that began behind it.

use native_fence::Adapter;
use std::collections::BTreeMap;

/// See the file's head: how often it was so many.
#[derive(Default)]
pub(crate) struct Slices(BTreeMap<u64, u64>);

impl Slices {
    /// Of the adapter's engines until now.
    pub(crate) fn begun(adapter: &Adapter) -> u64 {
        adapter.node_counters().slices
    }

    /// It was done, and these were begun meanwhile.
    pub(crate) fn note(&mut self, slices: u64) {
        *self.0.entry(slices).or_default() += 1;
    }

    /// Says how many, and of what, if it was done.
    #[allow(
        clippy::cast_precision_loss,
        reason = "slices of a bench are far below 2^52"
    )]
    pub(crate) fn say(&self, what: &str) {
        let times: u64 = self.0.values().sum();
        let Some((most, _)) = self.0.last_key_value() else {
            return;
        };
        let sum: u64 = self.0.iter().map(|(slices, times)| slices * times).sum();
        let mean = sum as f64 / times as f64;
        let mut seen = 0;
        let mut within = self.0.iter().filter_map(|(slices, of)| {
            seen += of;
            (1000 * seen >= 999 * times).then_some(slices)
        });
        let nearly_all = within.next().unwrap_or(most);
        eprintln!(
            "{what}: {mean:.2} slices, at most {nearly_all} in 999 of 1,000 cases, at most {most} in all \
             {times}"
        );
    }
}
