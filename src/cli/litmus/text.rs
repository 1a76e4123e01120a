//! Text: what a run gave, for people: a table, then what follows of it.

use super::super::paint::{BOLD, painted};
use super::follows::{cost, sentences};
use super::found::Found;
use crate::litmus::{Asked, Delays, Distribution, Row, Shape, Verdict};
use crate::report::time;
use comfy_table::{CellAlignment, Table, presets};
use std::fmt::Write;

const HEADER: [&str; 8] = [
    "shape",
    "parties",
    "memory",
    "ordering",
    "runs",
    "not met",
    "forbidden",
    "ns/iteration",
];

/// Which shapes there are.
pub(super) fn list() -> String {
    let mut text = String::new();
    for shape in Shape::ALL {
        let _ = writeln!(text, "{shape}: forbidden is {}", shape.forbidden());
        let parties: Vec<_> = shape
            .parties()
            .iter()
            .map(|parties| parties.name())
            .collect();
        let _ = writeln!(text, "    between {}", parties.join(", "));
        let orders: Vec<_> = shape
            .orders()
            .iter()
            .map(|order| order.name(shape))
            .collect();
        let _ = writeln!(
            text,
            "    asked as {} (the first as shipped)",
            orders.join("; ")
        );
        for order in shape.orders().iter().filter(|order| !order.is_required()) {
            let seen = match shape.loom_twins(*order) {
                [] => "no twin".into(),
                twins => format!("seen under loom by {}", twins.join(", ")),
            };
            let _ = writeln!(text, "    {}: {seen}", order.name(shape));
        }
    }
    text
}

/// All of it.
pub(super) fn text(found: &Found, colour: bool) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "{}", painted(&found.device.line(), BOLD, colour));
    let _ = writeln!(text, "{}; seed {}", found.machine.line(), found.seed);
    if !found.sees_host_stores_in_system_memory {
        let _ = writeln!(
            text,
            "A running shader does not see what the CPU stores in system memory: nothing has it look there for that."
        );
    }
    let _ = writeln!(text, "\n{}", table(found));
    for row in &found.rows {
        if let Some(delays) = &row.delays {
            let _ = write!(text, "{}", times(row, delays));
        }
    }
    for asked in &found.not_asked {
        if let Asked::Not {
            shape,
            parties,
            memory,
            why,
        } = asked
        {
            let _ = writeln!(
                text,
                "not asked: {shape}, {parties}, {memory} memory: {why}"
            );
        }
    }
    let _ = writeln!(text, "\n{}", painted("What follows", BOLD, colour));
    let _ = write!(text, "{}", sentences(found, colour));
    text
}

fn table(found: &Found) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED);
    table.set_header(HEADER.iter().copied().chain(["verdict"]));
    for (row, conclusion) in found.rows.iter().zip(&found.conclusions) {
        let ns = row
            .ns_per_iteration
            .map_or("–".to_owned(), |ns| format!("{ns:.1}"));
        table.add_row([
            row.shape.to_string(),
            row.parties.to_string(),
            row.memory.to_string(),
            row.ordering.to_owned(),
            row.outcomes.runs.to_string(),
            row.outcomes.not_met.to_string(),
            row.outcomes.forbidden.to_string(),
            ns,
            words(&conclusion.verdict),
        ]);
    }
    for number in 4..8 {
        if let Some(column) = table.column_mut(number) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

fn words(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Holds => "holds".into(),
        Verdict::Fails => "FAILS".into(),
        Verdict::NotReliedOn => "fails, not relied on".into(),
        Verdict::Needed => "needed: seen weak".into(),
        Verdict::FailsWithToo => "fails, with it too".into(),
        Verdict::NotComparable => "not comparable".into(),
        Verdict::NeverMattered { .. } if verdict.costs_nothing() => {
            "never seen to matter, costs nothing".into()
        }
        Verdict::NeverMattered { .. } => format!("never seen to matter, {}", cost(verdict)),
        Verdict::Timed => "timed".into(),
        Verdict::NotMet => "not met".into(),
        Verdict::TooFew => "too few runs".into(),
        Verdict::NeverRaced => "never raced".into(),
    }
}

fn times(row: &Row, delays: &Delays) -> String {
    let of = |what: &str, distribution: Option<Distribution>| {
        #[allow(clippy::cast_precision_loss, reason = "times of a run")]
        distribution.map_or_else(String::new, |of| {
            let [p50, p99, most] = [of.p50_ns, of.p99_ns, of.max_ns].map(|ns| time(ns as f64));
            format!(
                "    {what}: median {p50}, p99 {p99}, longest {most} ({} times)\n",
                of.samples
            )
        })
    };
    #[allow(clippy::cast_precision_loss, reason = "times of a run")]
    let error = time(delays.max_error_ns.unwrap_or(0) as f64);
    let is_told = |of: &Distribution| Some(of.p50_ns) > delays.max_error_ns;
    let one_way = match delays.one_way {
        Some(one_way) if is_told(&one_way) => {
            of(&format!("one way, to within {error}"), Some(one_way))
        }
        Some(_) => format!("    one way: less than can be told, the clocks are known to {error}\n"),
        None => String::new(),
    };
    format!(
        "time to see a store, {}, {}, {} memory\n{one_way}{}",
        row.ordering,
        row.parties,
        row.memory,
        of("there and back", delays.round_trip),
    )
}
