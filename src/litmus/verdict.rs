//! Verdict: what counts say, and what follows of all of them for the barriers of a device.

use super::{Memory, Order, Parties, Row, Shape};
use serde::Serialize;

/// Less than this is no cost that a measurement tells from nothing, in nanoseconds.
const NOTHING_NS: f64 = 1.0;
/// Nor is less than this share.
const NOTHING_SHARE: f64 = 0.03;

/// What a row says.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "verdict", rename_all = "kebab-case")]
pub enum Verdict {
    /// As shipped, and never seen to fail.
    Holds,
    /// As shipped, and seen to fail: the device does not keep what is relied on, or this program is wrong.
    Fails,
    /// As shipped, and seen to fail, in memory in which nothing relies on it.
    NotReliedOn,
    /// Left out, and seen to fail.
    Needed,
    /// Left out, and never seen to fail. Keeping it costs so much an instance more; a negative number is noise.
    NeverMattered {
        /// Nanoseconds; none where it was not measured.
        costs_ns: Option<f64>,
        /// Of what it takes without.
        costs_share: Option<f64>,
    },
    /// A time was taken.
    Timed,
    /// The parties never were at it at the same time.
    NotMet,
}

impl Verdict {
    /// Whether what is shipped costs nothing that can be told, where it never mattered.
    #[must_use]
    pub fn costs_nothing(&self) -> bool {
        match self {
            Self::NeverMattered {
                costs_ns: Some(ns),
                costs_share: Some(share),
            } => *ns < NOTHING_NS || *share < NOTHING_SHARE,
            _ => false,
        }
    }
}

/// Of a row, beside the one of its group that is as shipped.
#[must_use]
pub fn verdict(row: &Row, shipped: Option<&Row>) -> Verdict {
    let (runs, forbidden) = (row.outcomes.runs, row.outcomes.forbidden);
    if runs == 0 {
        return Verdict::NotMet;
    }
    if row.shape == Shape::Visibility {
        return Verdict::Timed;
    }
    match (row.order.is_required(), forbidden > 0) {
        (true, false) => Verdict::Holds,
        (true, true) if row.relied_on => Verdict::Fails,
        (true, true) => Verdict::NotReliedOn,
        (false, true) => Verdict::Needed,
        (false, false) => {
            let with = shipped.and_then(|row| row.ns_per_iteration);
            let costs_ns = with
                .zip(row.ns_per_iteration)
                .map(|(with, without)| with - without);
            let costs_share = costs_ns
                .zip(row.ns_per_iteration)
                .filter(|(_, without)| *without > 0.0)
                .map(|(more, without)| more / without);
            Verdict::NeverMattered {
                costs_ns,
                costs_share,
            }
        }
    }
}

/// What follows for one ordering of the design.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Conclusion {
    /// What was asked.
    pub shape: Shape,
    /// Between whom.
    pub parties: Parties,
    /// Where the words lay.
    pub memory: Memory,
    /// What was left out.
    pub order: Order,
    /// What came of it.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// Where the outcome is seen that this device never showed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub loom_twins: Vec<&'static str>,
}

/// Of all rows: one for each ordering that was left out, and for each that failed as shipped.
#[must_use]
pub fn conclusions(rows: &[Row]) -> Vec<Conclusion> {
    let shipped_of = |row: &Row| {
        rows.iter().find(|other| {
            other.order.is_required()
                && (other.shape, other.parties, other.memory)
                    == (row.shape, row.parties, row.memory)
        })
    };
    let conclude = |row: &Row| {
        let verdict = verdict(row, shipped_of(row));
        let twins = match verdict {
            Verdict::NeverMattered { .. } | Verdict::NotMet if !row.order.is_required() => {
                row.shape.loom_twins().to_vec()
            }
            _ => Vec::new(),
        };
        Conclusion {
            shape: row.shape,
            parties: row.parties,
            memory: row.memory,
            order: row.order,
            verdict,
            loom_twins: twins,
        }
    };
    rows.iter().map(conclude).collect()
}
