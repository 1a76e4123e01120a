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
        Verdict::NeverMattered { .. } if verdict.costs_nothing() => {
            "never seen to matter, costs nothing".into()
        }
        Verdict::NeverMattered { .. } => format!("never seen to matter, costs {}", cost(verdict)),
        Verdict::Timed => "timed".into(),
        Verdict::NotMet => "not met".into(),
    }
}

/// What it costs to have what never mattered.
fn cost(verdict: &Verdict) -> String {
    match verdict {
        Verdict::NeverMattered {
            costs_ns: Some(ns),
            costs_share: Some(share),
        } => format!("{} ({:.0} %)", time(*ns), share * 100.0),
        _ => "what was not measured".into(),
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
        "time to see a store, {}, {} memory\n{one_way}{}",
        row.parties,
        row.memory,
        of("there and back", delays.round_trip),
    )
}

/// Something that follows, and of which rows it does.
struct Paragraph<'a> {
    head: String,
    takes: &'a dyn Fn(&Conclusion) -> bool,
    /// What is said of a row beside where it is.
    says: &'a dyn Fn(&Conclusion, &Row) -> String,
}

/// What follows, in plain words.
fn sentences(found: &Found, colour: bool) -> String {
    let seen = |_: &Conclusion, row: &Row| {
        let (forbidden, runs) = (row.outcomes.forbidden, row.outcomes.runs);
        format!("{forbidden} of {runs}")
    };
    let is = |verdict: Verdict| move |said: &Conclusion| said.verdict == verdict;
    let never = |said: &Conclusion| matches!(said.verdict, Verdict::NeverMattered { .. });
    let paragraphs = [
        Paragraph {
            head: painted("Relied on, and seen to fail:", RED, colour),
            takes: &is(Verdict::Fails),
            says: &seen,
        },
        Paragraph {
            head: "Fails, and nothing relies on it: running shaders do not see what the CPU stores in that memory:".into(),
            takes: &is(Verdict::NotReliedOn),
            says: &seen,
        },
        Paragraph {
            head: "Needed on this device: without it the forbidden outcome was seen:".into(),
            takes: &is(Verdict::Needed),
            says: &seen,
        },
        Paragraph {
            head: "Never seen to matter, and to have it costs nothing:".into(),
            takes: &|said| said.verdict.costs_nothing(),
            says: &|_, row| format!("{} runs", row.outcomes.runs),
        },
        Paragraph {
            head: "Never seen to matter, and to have it costs something:".into(),
            takes: &|said| never(said) && !said.verdict.costs_nothing(),
            says: &|said, _| cost(&said.verdict),
        },
        Paragraph {
            head: "Not answered, since the parties were never at it at the same time:".into(),
            takes: &is(Verdict::NotMet),
            says: &|_, row| format!("{} tries", row.outcomes.batches),
        },
    ];
    let mut text = String::new();
    for paragraph in &paragraphs {
        for line in lines(found, paragraph) {
            let _ = writeln!(text, "{line}");
        }
    }
    for line in twins(found) {
        let _ = writeln!(text, "{line}");
    }
    let held = found.conclusions.iter().any(is(Verdict::Holds));
    if !found.has_failures() && held {
        let held = "All that is relied on, and could be asked, held.";
        let _ = writeln!(text, "{}", painted(held, GREEN, colour));
    }
    text
}

/// A paragraph: a line for each ordering of a shape, with all parties of which it is so.
fn lines(found: &Found, paragraph: &Paragraph<'_>) -> Vec<String> {
    let mut by_ordering: Vec<(String, Vec<String>)> = Vec::new();
    for (said, row) in found.conclusions.iter().zip(&found.rows) {
        if !(paragraph.takes)(said) {
            continue;
        }
        let what = if row.order.is_required() {
            row.ordering
        } else {
            row.order.left_out()
        };
        let what = format!("{}, {what}", row.shape);
        let place = format!(
            "{}, {} ({})",
            row.parties,
            row.memory,
            (paragraph.says)(said, row)
        );
        match by_ordering.iter_mut().find(|(known, _)| *known == what) {
            Some((_, places)) => places.push(place),
            None => by_ordering.push((what, vec![place])),
        }
    }
    if by_ordering.is_empty() {
        return Vec::new();
    }
    let lines = by_ordering
        .into_iter()
        .map(|(what, places)| format!("    {what}: {}", places.join("; ")));
    std::iter::once(paragraph.head.clone())
        .chain(lines)
        .collect()
}

/// Where outcomes are seen that this device never showed.
fn twins(found: &Found) -> Vec<String> {
    let mut lines = Vec::new();
    for said in &found.conclusions {
        let line = format!("    {}: {}", said.shape, said.loom_twins.join(", "));
        if !said.loom_twins.is_empty() && !lines.contains(&line) {
            lines.push(line);
        }
    }
    if !lines.is_empty() {
        let head = "Not to see an outcome promises nothing. Twins of scripts/loom that lack such an ordering, and fail:";
        lines.insert(0, head.into());
    }
    lines
}
