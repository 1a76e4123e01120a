//! Side: what is compared of one row.

use super::independence::counts_as;
use super::interval::median;
use crate::report::Row;
use serde::Serialize;

/// Of one row.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Side {
    /// Median over batches of the time per operation, in nanoseconds: what is compared.
    pub median_ns: f64,
    /// The row's own, which may be over operations.
    pub p50_ns: f64,
    /// How many batches there are.
    pub batches: usize,
    /// How many independent ones they count as.
    pub counts_as: usize,
    #[serde(skip)]
    sorted: Vec<f64>,
}

impl Side {
    /// Of a row with a batch at least.
    pub(super) fn of(row: &Row) -> Self {
        let mut sorted = row.batches.clone();
        sorted.sort_by(f64::total_cmp);
        Self {
            median_ns: median(&sorted).unwrap_or(row.p50_ns),
            p50_ns: row.p50_ns,
            batches: sorted.len(),
            counts_as: counts_as(&row.batches),
            sorted,
        }
    }

    pub(super) fn sorted(&self) -> &[f64] {
        &self.sorted
    }
}
