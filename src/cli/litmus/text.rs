//! Text: what a run gave, for people: a table, then what follows of it.

use super::super::paint::{BOLD, GREEN, RED, painted};
use super::found::Found;
use crate::litmus::{Asked, Conclusion, Delays, Distribution, Row, Shape, Verdict};
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
        if !shape.loom_twins().is_empty() {
            let _ = writeln!(
                text,
                "    seen under loom by {}",
                shape.loom_twins().join(", ")
            );
        }
    }
    text
}

/// All of it.
pub(super) fn text(found: &Found, colour: bool) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "{}", painted(&found.device.line(), BOLD, colour));
    let _ = writeln!(text, "{}; seed {}", found.machine.line(), found.seed);
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
        Verdict::NeverMattered { .. } if verdict.costs_nothing() => {
            "never seen to matter, costs nothing".into()
        }
        Verdict::NeverMattered {
            costs_ns: Some(ns),
            costs_share: Some(share),
        } => format!(
            "never seen to matter, costs {ns:.1} ns ({:.0} %)",
            share * 100.0
        ),
        Verdict::NeverMattered { .. } => "never seen to matter".into(),
        Verdict::Timed => "timed".into(),
        Verdict::NotMet => "not met".into(),
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
    let error = delays
        .max_error_ns
        .map_or_else(String::new, |ns| format!(", one way to within {ns} ns"));
    format!(
        "time to see a store in {} memory{error}\n{}{}{}",
        row.memory,
        of("a running shader sees the CPU's", delays.to_gpu),
        of("the CPU sees a running shader's", delays.to_cpu),
        of("there and back", delays.round_trip),
    )
}

/// What was left out, of what.
fn left_out(said: &Conclusion, row: &Row) -> String {
    let Row {
        shape,
        parties,
        memory,
        outcomes,
        ..
    } = row;
    let seen = match outcomes.forbidden {
        0 => format!("{} runs", outcomes.runs),
        forbidden => format!("{forbidden} of {} runs", outcomes.runs),
    };
    format!(
        "{} ({shape}, {parties}, {memory} memory; {seen})",
        said.order
    )
}

/// What follows, in plain words.
fn sentences(found: &Found, colour: bool) -> String {
    let mut text = String::new();
    let pairs = || found.conclusions.iter().zip(&found.rows);
    let mut about = |head: &str,
                     takes: &dyn Fn(&Conclusion) -> bool,
                     say: &dyn Fn(&Conclusion, &Row) -> String| {
        let lines: Vec<_> = pairs()
            .filter(|(said, _)| takes(said))
            .map(|(said, row)| say(said, row))
            .collect();
        if !lines.is_empty() {
            let _ = writeln!(text, "{head}");
            for line in lines {
                let _ = writeln!(text, "    {line}");
            }
        }
    };
    let whole = |_: &Conclusion, row: &Row| left_out_of_nothing(row);
    if found.has_failures() {
        let head = painted("Relied on, and seen to fail:", RED, colour);
        about(&head, &|said| said.verdict == Verdict::Fails, &whole);
    }
    about(
        "Fails, and nothing relies on it here, since running shaders do not see what the CPU stores in that memory:",
        &|said| said.verdict == Verdict::NotReliedOn,
        &whole,
    );
    about(
        "This device needs what was left out here, and the forbidden outcome was seen:",
        &|said| said.verdict == Verdict::Needed,
        &left_out,
    );
    about(
        "Never seen to matter here, and what it costs cannot be told from nothing:",
        &|said| said.verdict.costs_nothing(),
        &left_out,
    );
    about(
        "Never seen to matter here, and it costs something:",
        &|said| {
            matches!(said.verdict, Verdict::NeverMattered { .. }) && !said.verdict.costs_nothing()
        },
        &|said, row| format!("{}: {}", left_out(said, row), words(&said.verdict)),
    );
    about(
        "Not answered, since the parties never were at it at the same time:",
        &|said| said.verdict == Verdict::NotMet,
        &|_, row| {
            let Row {
                shape,
                parties,
                memory,
                ordering,
                ..
            } = row;
            format!("{shape}, {parties}, {memory} memory, {ordering}")
        },
    );
    let mut twins: Vec<_> = found
        .conclusions
        .iter()
        .filter(|said| !said.loom_twins.is_empty())
        .map(|said| format!("    {}: {}\n", said.shape, said.loom_twins.join(", ")))
        .collect();
    twins.dedup();
    if !twins.is_empty() {
        let _ = writeln!(
            text,
            "Not to see an outcome is no promise. These twins of scripts/loom show it on any machine:"
        );
        text.extend(twins);
    }
    let held = pairs()
        .filter(|(said, _)| said.verdict == Verdict::Holds)
        .count();
    if !found.has_failures() && held > 0 {
        let held = "All that is relied on, and could be asked, held.";
        let _ = writeln!(text, "{}", painted(held, GREEN, colour));
    }
    text
}

fn left_out_of_nothing(row: &Row) -> String {
    let Row {
        shape,
        parties,
        memory,
        ordering,
        outcomes,
        ..
    } = row;
    let (forbidden, runs) = (outcomes.forbidden, outcomes.runs);
    format!(
        "{shape}, {parties}, {memory} memory, {ordering}: {forbidden} of {runs} runs: {}",
        shape.forbidden()
    )
}
