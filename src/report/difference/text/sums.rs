//! Sums: how many rows came to what.

use super::{percent, rows};
use crate::report::Style;
use crate::report::difference::{Difference, RowDifference, RowVerdict};
use crate::report::table::wrapped;
use std::fmt::Write;

/// One line each, without those that no row came to.
pub(super) fn sums(difference: &Difference, style: Style) -> String {
    let of = |verdict| difference.count(verdict);
    let judged = difference.judged();
    let mut text = String::new();
    let (slower, faster) = (of(RowVerdict::Slower), of(RowVerdict::Faster));
    let all = capital(&rows(difference.rows.len()));
    let line = match judged {
        0 => format!("{all} of the same work; none has batches enough to say anything."),
        _ => format!(
            "{all} of the same work; of the {judged} with batches enough to say, B is slower in {slower} and faster \
             in {faster}."
        ),
    };
    let line = match (judged, slower, faster) {
        (0, ..) | (_, 0, 0) => line,
        (_, 0, _) => style.green(&line),
        _ => style.red(&line),
    };
    let _ = writeln!(text, "{line}");
    let least = percent(difference.least);
    for (number, what) in [
        (
            of(RowVerdict::WithinNoise),
            String::from("within the noise"),
        ),
        (
            of(RowVerdict::LessThanLeast),
            format!("a difference beyond the noise that is less than {least}"),
        ),
    ] {
        if number > 0 {
            let _ = writeln!(text, "{}: {what}.", capital(&rows(number)));
        }
    }
    let few = of(RowVerdict::TooFewBatches);
    if few > 0 {
        let line = format!(
            "{}: too few batches to say, or batches so alike that they count as few; measure with more (--batches).",
            capital(&rows(few))
        );
        let _ = writeln!(text, "{}", wrapped(&line, ""));
        let is_apart =
            |row: &&RowDifference| row.verdict == RowVerdict::TooFewBatches && row.batches_apart;
        let apart = difference.rows.iter().filter(is_apart).count();
        if apart > 0 {
            let line = format!(
                "In {apart} of these every batch of B is slower than every one of A, or every one faster: measure \
                 these first (--all shows them)."
            );
            let _ = writeln!(text, "{}", wrapped(&line, "  "));
        }
    }
    let other_length = difference
        .rows
        .iter()
        .filter(|row| (row.longer - 1.0).abs() > f64::EPSILON)
        .count();
    if other_length > 0 {
        let line = format!(
            "{}: kernels that were made of other length in B (passes), as each run finds anew; the intervals are \
             wider by that.",
            capital(&rows(other_length))
        );
        let _ = writeln!(text, "{}", wrapped(&line, ""));
    }
    text
}

fn capital(text: &str) -> String {
    text.replacen("no row", "No row", 1)
}
