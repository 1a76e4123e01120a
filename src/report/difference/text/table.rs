//! Table: the rows, what exceeds the noise first.

use crate::report::difference::{Difference, RowDifference, RowVerdict};
use crate::report::quantity::{figures, time};
use comfy_table::{CellAlignment, Table, presets};

const HEADER: [&str; 6] = [
    "scenario",
    "mechanism",
    "A",
    "B",
    "B / A (interval)",
    "B is",
];

/// Slower ones first, then faster ones, of each the most; the rest in its order.
pub(super) fn shown(difference: &Difference, all: bool) -> Vec<&RowDifference> {
    let rows = difference.rows.iter();
    let (mut shown, rest): (Vec<_>, Vec<_>) = rows.partition(|row| row.verdict.is_difference());
    let place = |row: &RowDifference| match row.verdict {
        RowVerdict::Slower => (0, -row.ratio),
        _ => (1, row.ratio),
    };
    shown.sort_by(|one, other| {
        let (one, other) = (place(one), place(other));
        one.0.cmp(&other.0).then(one.1.total_cmp(&other.1))
    });
    if all {
        shown.extend(rest);
    }
    shown
}

pub(super) fn table(rows: &[&RowDifference]) -> String {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED);
    table.set_header(HEADER);
    for row in rows {
        table.add_row(cells(row));
    }
    for column in table.column_iter_mut().skip(2).take(3) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.trim_fmt()
}

fn cells(row: &RowDifference) -> [String; HEADER.len()] {
    let name = &row.name;
    let under = |first: String, second: &Option<String>| match second {
        Some(second) => format!("{first},\n  {second}"),
        None => first,
    };
    let against = match (row.low, row.high) {
        (Some(low), Some(high)) => {
            format!("{} ({} to {})", ratio(row.ratio), ratio(low), ratio(high))
        }
        _ => ratio(row.ratio),
    };
    [
        under(name.scenario.to_string(), &name.form),
        under(name.mechanism.to_string(), &name.variant),
        time(row.a.median_ns),
        time(row.b.median_ns),
        against,
        row.verdict.to_string(),
    ]
}

/// As many decimals as show a few hundredths more or less.
fn ratio(ratio: f64) -> String {
    match ratio {
        ratio if ratio >= 9.995 => figures(ratio),
        ratio if ratio >= 0.1 => format!("{ratio:.3}"),
        ratio if ratio >= 0.001 => format!("{ratio:.5}"),
        ratio => format!("{ratio:.2e}"),
    }
}
