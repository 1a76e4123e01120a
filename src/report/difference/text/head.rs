//! Head: what is compared with what, and what is not the same of both.

use crate::report::Style;
use crate::report::difference::{Difference, Origin};
use std::fmt::Write;

pub(super) fn head(difference: &Difference, style: Style) -> String {
    let mut text = String::new();
    let (a, b) = (&difference.a, &difference.b);
    let is_same = difference.facts.is_empty();
    for (letter, origin) in [("A", a), ("B", b)] {
        let measured_at = origin.measured_at.as_ref();
        let measured_at = measured_at.map(|at| format!(", measured at {at}"));
        let name = style.bold(&format!("{letter}: {}", origin.file));
        let _ = writeln!(text, "{name}{}", measured_at.unwrap_or_default());
        if !is_same {
            text += &described(origin, style);
        }
    }
    if is_same {
        let _ = writeln!(text, "Both:");
        text += &described(a, style);
    } else {
        let _ = writeln!(text, "{}", style.red("Not the same in A and B:"));
        for fact in &difference.facts {
            let _ = writeln!(text, "  {}: {} in A, {} in B", fact.of, fact.a, fact.b);
        }
        let line = "Ratios are of these as well as of the programs.";
        let _ = writeln!(text, "{}", style.red(line));
    }
    for (letter, origin) in [("A", a), ("B", b)] {
        if origin.interrupted {
            let _ = writeln!(
                text,
                "{letter} was interrupted: its figures are of what was measured until then."
            );
        }
    }
    text
}

fn described(origin: &Origin, style: Style) -> String {
    let (device, machine) = (origin.device.line(), origin.machine.line());
    let line = format!("  nfence {}, {device}\n  {machine}", origin.version);
    format!("{}\n", style.faint(&line))
}
