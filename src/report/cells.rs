//! Cells: a row of the table, in words.

use super::Row;
use super::quantity::{count, rate, speed, time};
use crate::workload::{Mechanism, Scenario};

/// Heads of the columns.
pub(super) const HEADER: [&str; 9] = [
    "mechanism",
    "median",
    "p99",
    "rate",
    "vs timeline",
    "CPU/op",
    "notified/k",
    "wake-ups/k",
    "submits/k",
];

/// What the columns are of.
pub(super) const LEGEND: &str = "Times are of one operation: percentiles over batches; in CPU wait, CPU signal, the \
     fans, reset and scale (where one comes at a time) over single operations.\nCPU of all threads. /k: for 1,000 \
     operations; of idle one is a second.";

/// The mechanism, and in which way it is used.
pub(super) fn name(row: &Row) -> String {
    match row.variant() {
        Some(variant) => format!("{}, {variant}", row.mechanism),
        None => row.mechanism.to_string(),
    }
}

/// The row of a group that the others are held against.
pub(super) fn baseline<'a>(group: &[&'a Row]) -> Option<&'a Row> {
    group
        .iter()
        .copied()
        .find(|row| row.mechanism == Mechanism::TimelineSemaphore && row.stands())
}

/// Of [`HEADER`].
pub(super) fn cells(row: &Row, timeline: Option<&Row>) -> [String; HEADER.len()] {
    let against = match timeline {
        // A second takes a second.
        _ if row.scenario == Scenario::Idle => "–".into(),
        // Local memory that is system memory shows nothing that the row above does not.
        _ if row.same_memory => "same memory".into(),
        Some(timeline) if std::ptr::eq(timeline, row) => "baseline".into(),
        Some(timeline) => speed(timeline.p50_ns / row.p50_ns),
        None => "–".into(),
    };
    [
        name(row),
        time(row.p50_ns),
        time(row.p99_ns),
        rate(row.ops_per_s),
        against,
        time(row.cpu_s_per_kop * 1e6),
        count(row.notifications_per_kop),
        count(row.wakeups_per_kop),
        count(Some(row.submits_per_kop)),
    ]
}
