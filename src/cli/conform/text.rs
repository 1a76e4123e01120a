//! Text: what a run gives, for people: a line a rule, as it comes.

use super::super::paint::{BOLD, GREEN, RED, painted};
use super::findings::{Findings, Found};
use crate::conform::{Check, Verdict};
use crate::report::time;
use std::fmt::Write;

/// Which rules there are.
pub(super) fn list(checks: &[&Check]) -> String {
    let mut text = String::new();
    for check in checks {
        let _ = writeln!(text, "{}  {}", check.rule, check.title);
    }
    text
}

/// Before the first rule.
pub(super) fn head(findings: &Findings, colour: bool) -> String {
    let mut text = String::new();
    let subject = match &findings.device {
        Some(device) => device.line(),
        None => findings.subject.clone(),
    };
    let _ = writeln!(text, "{}", painted(&subject, BOLD, colour));
    let _ = writeln!(text, "{}\n", findings.machine.line());
    text
}

/// A rule.
pub(super) fn line(found: &Found, colour: bool) -> String {
    let (verdict, why) = match &found.verdict {
        Verdict::Holds => (painted("holds  ", GREEN, colour), None),
        Verdict::Broken(why) => (painted("BROKEN ", RED, colour), Some(why)),
        Verdict::Skipped(why) => ("skipped".to_owned(), Some(why)),
    };
    let mut text = String::new();
    let _ = match found.verdict {
        Verdict::Skipped(_) => writeln!(text, "{}  {verdict}  {}", found.rule, found.title),
        Verdict::Holds | Verdict::Broken(_) => {
            let took = time(found.took.as_secs_f64() * 1e9);
            writeln!(text, "{}  {verdict}  {}  ({took})", found.rule, found.title)
        }
    };
    if let Some(why) = why {
        let _ = writeln!(text, "                {why}");
    }
    for why in &found.left_out {
        let _ = writeln!(text, "                a part was not asked: {why}");
    }
    text
}

/// After the last.
pub(super) fn foot(findings: &Findings, colour: bool) -> String {
    let holds = findings.count(|verdict| *verdict == Verdict::Holds);
    let broken = findings.count(|verdict| matches!(verdict, Verdict::Broken(_)));
    let skipped = findings.count(|verdict| matches!(verdict, Verdict::Skipped(_)));
    let is_broken = format!("{broken} broken");
    let is_broken = match broken {
        0 => is_broken,
        _ => painted(&is_broken, RED, colour),
    };
    let mut text = format!("\n{holds} rules hold");
    let in_part = findings.in_part();
    if in_part > 0 {
        let _ = write!(text, " ({in_part} of them asked in part)");
    }
    let _ = write!(text, ", {is_broken}, {skipped} skipped");
    let failed = findings.failed_resets();
    if failed > 0 {
        let _ = write!(
            text,
            " ({failed} of them since the driver failed to reset its adapter)"
        );
    }
    let left = findings.of - findings.checks.len();
    if left > 0 {
        let _ = write!(text, "; {left} were not asked, since the run was ended");
    }
    if holds + broken == 0 {
        text.push_str(": nothing was found out");
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conform::{self, Ran};
    use std::time::Duration;

    /// Kills `failed-resets-are-counted-in-silence`.
    #[test]
    fn the_last_line_says_how_much_a_driver_that_fails_its_resets_was_not_asked() {
        let mut findings = Findings::new("a driver".into(), None, 3);
        for (check, reset_failed) in conform::checks().into_iter().zip([true, false, true]) {
            let ran = Ran {
                verdict: Verdict::Skipped("it cannot".into()),
                took: Duration::ZERO,
                reset_failed,
                left_out: Vec::new(),
            };
            findings.note(check, ran);
        }
        assert_eq!(
            foot(&findings, false),
            "\n0 rules hold, 0 broken, 3 skipped (2 of them since the driver failed to reset its adapter): nothing was found out\n"
        );
        findings.checks.clear();
        let ran = Ran {
            verdict: Verdict::Holds,
            took: Duration::ZERO,
            reset_failed: false,
            left_out: vec!["nothing hangs".into()],
        };
        let found = findings.note(conform::checks()[0], ran);
        assert!(
            line(found, false).ends_with("\n                a part was not asked: nothing hangs\n")
        );
        findings.of = 1;
        assert_eq!(
            foot(&findings, false),
            "\n1 rules hold (1 of them asked in part), 0 broken, 0 skipped\n"
        );
        findings.checks.clear();
        findings.of = 0;
        assert_eq!(
            foot(&findings, false),
            "\n0 rules hold, 0 broken, 0 skipped: nothing was found out\n"
        );
    }
}
