//! Text: the difference, as a person reads it.
//!
//! What was compared with what; a table of what exceeds the noise; how many rows came to what; what else changed and
//! which rows are not beside each other; how it was done and what it cannot know.

mod foot;
mod head;
mod lists;
mod sums;
mod table;

use super::Difference;
use crate::report::Style;
use std::fmt::Write;

/// The whole difference; with `all` also rows in which there is none.
#[must_use]
pub fn difference_text(difference: &Difference, all: bool, style: Style) -> String {
    let mut text = head::head(difference, style);
    let shown = table::shown(difference, all);
    if !shown.is_empty() {
        let _ = writeln!(text, "\n{}", table::table(&shown));
    }
    let _ = write!(text, "\n{}", sums::sums(difference, style));
    text += &lists::counts(difference, all, style);
    text += &lists::idle(difference, all, style);
    text += &lists::unmatched(difference, style);
    let _ = write!(text, "\n{}", foot::foot(difference, style));
    text
}

fn rows(number: usize) -> String {
    match number {
        0 => "no row".into(),
        1 => "1 row".into(),
        number => format!("{number} rows"),
    }
}

fn percent(share: f64) -> String {
    let percent = format!("{:.2}", share * 100.0);
    format!("{} %", percent.trim_end_matches('0').trim_end_matches('.'))
}
