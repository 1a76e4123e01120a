//! Follows: what follows of a run, in sentences.

use super::super::paint::{GREEN, RED, painted};
use super::found::Found;
use crate::litmus::{Conclusion, Row, Verdict};
use crate::report::time;
use std::fmt::Write;

/// Something that follows, and of which rows it does.
struct Paragraph<'a> {
    head: String,
    takes: &'a dyn Fn(&Conclusion) -> bool,
    /// What is said of a row beside where it is.
    says: &'a dyn Fn(&Conclusion, &Row) -> String,
}

/// What follows, in plain words.
pub(super) fn sentences(found: &Found, colour: bool) -> String {
    let seen = |_: &Conclusion, row: &Row| {
        let (forbidden, runs) = (row.outcomes.forbidden, row.outcomes.runs);
        format!("{forbidden} of {runs}")
    };
    let runs = |_: &Conclusion, row: &Row| format!("{} runs", row.outcomes.runs);
    let is = |verdict: Verdict| move |said: &Conclusion| said.verdict == verdict;
    let never = |said: &Conclusion| matches!(said.verdict, Verdict::NeverMattered { .. });
    let is_measured = |said: &Conclusion| {
        let costs = match said.verdict {
            Verdict::NeverMattered { costs_ns, .. } => costs_ns,
            _ => None,
        };
        costs.is_some()
    };
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
            head: "Fails without it, and with it too:".into(),
            takes: &is(Verdict::FailsWithToo),
            says: &seen,
        },
        Paragraph {
            head: "Not comparable, since with it all was never met, or failed where this did not:".into(),
            takes: &is(Verdict::NotComparable),
            says: &seen,
        },
        Paragraph {
            head: "Never seen to matter, and to have it costs nothing:".into(),
            takes: &|said| said.verdict.costs_nothing(),
            says: &runs,
        },
        Paragraph {
            head: "Never seen to matter, and to have it costs something:".into(),
            takes: &|said| is_measured(said) && !said.verdict.costs_nothing(),
            says: &|said, _| cost(&said.verdict),
        },
        Paragraph {
            head: "Never seen to matter, and what it costs is not measured:".into(),
            takes: &|said| never(said) && !is_measured(said),
            says: &runs,
        },
        Paragraph {
            head: "Not answered, since the parties were never at it at the same time:".into(),
            takes: &is(Verdict::NotMet),
            says: &|_, row| format!("{} tries", row.outcomes.batches),
        },
        Paragraph {
            head: "Not answered, in too few runs:".into(),
            takes: &is(Verdict::TooFew),
            says: &runs,
        },
        Paragraph {
            head: "Not answered, since one party always came before the other, or both together:".into(),
            takes: &is(Verdict::NeverRaced),
            says: &runs,
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
    if found.interrupted {
        let (asked, questions) = (found.asked, found.questions);
        let _ = writeln!(text, "interrupted: {asked} of {questions} questions asked");
    } else if !found.has_failures() && held {
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
        let what = if row.required {
            row.ordering
        } else {
            row.order.left_out(row.parties)
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
    for (said, row) in found.conclusions.iter().zip(&found.rows) {
        let twins = match said.loom_twins[..] {
            [] => "no twin".into(),
            _ => said.loom_twins.join(", "),
        };
        let left_out = said.order.left_out(said.parties);
        let line = format!("    {}, {left_out}: {twins}", said.shape);
        if said.verdict.is_silent() && !row.required && !lines.contains(&line) {
            lines.push(line);
        }
    }
    if !lines.is_empty() {
        let head = "Not to see an outcome promises nothing. Twins of scripts/loom that lack the ordering, and fail:";
        lines.insert(0, head.into());
    }
    lines
}

/// What it costs to have what never mattered.
pub(super) fn cost(verdict: &Verdict) -> String {
    match verdict {
        Verdict::NeverMattered {
            costs_ns: Some(ns),
            costs_share: Some(share),
        } => format!("costs {} ({:.0} %)", time(*ns), share * 100.0),
        _ => "cost not measured".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::litmus::{Memory, Order, Outcomes, Parties, Shape};

    const MANY: u64 = 1_000_000;

    fn row(order: Order, relied_on: bool, forbidden: u64) -> Row {
        Row {
            shape: Shape::MessagePassing,
            parties: Parties::CpuToGpu,
            memory: Memory::System,
            order,
            ordering: order.name(Shape::MessagePassing),
            required: order.is_required(),
            relied_on,
            outcomes: Outcomes {
                runs: MANY,
                forbidden,
                ..Outcomes::default()
            },
            ns_per_iteration: None,
            delays: None,
        }
    }

    fn said(rows: &[Row], interrupted: bool) -> String {
        let mut found = Found::of_rows(rows.to_vec());
        (found.interrupted, found.asked, found.questions) = (interrupted, 3, 20);
        found.conclude();
        sentences(&found, false)
    }

    /// As on an H100, on which a running shader does not see what the CPU stores in system memory.
    #[test]
    fn where_what_is_shipped_fails_nothing_is_said_to_be_needed() {
        let orders = Shape::MessagePassing.orders().iter();
        let rows: Vec<_> = orders.map(|order| row(*order, false, 7)).collect();
        let said = said(&rows, false);
        assert!(!said.contains("Needed"), "{said}");
        assert!(!said.contains("held"), "{said}");
        let expected = "\
Fails, and nothing relies on it: running shaders do not see what the CPU stores in that memory:
    message-passing, release, acquire: CPU → GPU, system (7 of 1000000)
Fails without it, and with it too:
    message-passing, the writer's release: CPU → GPU, system (7 of 1000000)
";
        assert!(said.starts_with(expected), "{said}");
    }

    /// Kills `litmus-no-twin-is-not-told`. Each ordering has its own twin, or is said to have none.
    #[test]
    fn where_no_twin_lacks_an_ordering_it_is_said() {
        let tearing = Row {
            shape: Shape::Tearing,
            ..row(Order::Plain, true, 0)
        };
        let said = said(&[row(Order::NoRelease, true, 0), tearing], false);
        let expected = "\
    message-passing, the writer's release: loom-published-without-release
    tearing, the GPU's atomic access: no twin
";
        assert!(said.ends_with(expected), "{said}");
    }

    /// Kills `litmus-interrupted-and-all-held`.
    #[test]
    fn who_is_interrupted_has_not_found_that_all_holds() {
        let rows = [row(Order::AsShipped, true, 0)];
        let all_held = "All that is relied on, and could be asked, held.\n";
        assert_eq!(said(&rows, false), all_held);
        let cut = "interrupted: 3 of 20 questions asked\n";
        assert_eq!(said(&rows, true), cut);
    }

    #[test]
    fn what_was_not_measured_costs_neither_nothing_nor_something() {
        let rows = [Order::AsShipped, Order::Neither].map(|order| row(order, true, 0));
        let said = said(&rows, false);
        let head = "Never seen to matter, and what it costs is not measured:\n";
        assert!(said.starts_with(head), "{said}");
    }
}
