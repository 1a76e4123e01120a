//! Findings: what a run gave, as it is written as JSON.

use super::super::Ending;
use crate::conform::{Check, Ran, Verdict};
use crate::report::{DeviceDescription, Machine};
use serde::Serialize;
use std::time::Duration;

/// A rule, and whether it holds.
#[derive(Debug, Serialize)]
pub(super) struct Found {
    pub(super) rule: &'static str,
    pub(super) title: &'static str,
    #[serde(flatten)]
    pub(super) verdict: Verdict,
    pub(super) took_ms: f64,
    /// It was skipped since the driver failed to reset its adapter.
    pub(super) reset_failed: bool,
    /// Parts of it that were left out, though the rest was asked: why.
    pub(super) left_out: Vec<String>,
    #[serde(skip)]
    pub(super) took: Duration,
}

/// See the file's head.
#[derive(Debug, Serialize)]
pub(super) struct Findings {
    schema: u32,
    /// What was asked.
    pub(super) subject: String,
    /// The Vulkan device, if it is one.
    pub(super) device: Option<DeviceDescription>,
    pub(super) machine: Machine,
    /// Checks that there were to ask.
    pub(super) of: usize,
    pub(super) interrupted: bool,
    pub(super) checks: Vec<Found>,
}

impl Findings {
    pub(super) fn new(subject: String, device: Option<DeviceDescription>, of: usize) -> Self {
        Self {
            schema: 1,
            subject,
            device,
            machine: Machine::this(),
            of,
            interrupted: false,
            checks: Vec::with_capacity(of),
        }
    }

    /// Notes what came of a check.
    pub(super) fn note(&mut self, check: &Check, ran: Ran) -> &Found {
        self.checks.push(Found {
            rule: check.rule,
            title: check.title,
            verdict: ran.verdict,
            took_ms: ran.took.as_secs_f64() * 1e3,
            reset_failed: ran.reset_failed,
            left_out: ran.left_out,
            took: ran.took,
        });
        &self.checks[self.checks.len() - 1]
    }

    /// How many verdicts are such.
    pub(super) fn count(&self, is: impl Fn(&Verdict) -> bool) -> usize {
        self.checks
            .iter()
            .filter(|found| is(&found.verdict))
            .count()
    }

    /// How many hold, and were not asked in every part.
    pub(super) fn in_part(&self) -> usize {
        self.checks
            .iter()
            .filter(|found| found.verdict == Verdict::Holds && !found.left_out.is_empty())
            .count()
    }

    /// How many were skipped since the driver failed to reset its adapter.
    pub(super) fn failed_resets(&self) -> usize {
        self.checks
            .iter()
            .filter(|found| found.reset_failed)
            .count()
    }

    /// How the program ends: a broken rule counts though the run was interrupted, and a skipped one does not, unless there
    /// is nothing else: that says nothing of an implementation.
    pub(super) fn ending(&self) -> Ending {
        if self.count(|verdict| matches!(verdict, Verdict::Broken(_))) > 0 {
            Ending::NotWell
        } else if self.interrupted {
            Ending::Interrupted
        } else if self.count(|verdict| *verdict == Verdict::Holds) == 0 {
            Ending::NotWell
        } else {
            Ending::Well
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conform;

    fn ending_of(verdicts: &[Verdict], interrupted: bool) -> Ending {
        let mut findings = Findings::new("a driver".into(), None, verdicts.len());
        findings.interrupted = interrupted;
        for (check, verdict) in conform::checks().into_iter().zip(verdicts) {
            let ran = Ran {
                verdict: verdict.clone(),
                took: Duration::ZERO,
                reset_failed: false,
                left_out: Vec::new(),
            };
            findings.note(check, ran);
        }
        findings.ending()
    }

    /// Kills `a-broken-rule-is-well` and `a-run-that-skips-everything-is-well`.
    #[test]
    fn a_broken_rule_is_what_a_run_ends_with() {
        let (holds, broken, skipped) = (
            Verdict::Holds,
            Verdict::Broken("it does not".into()),
            Verdict::Skipped("it cannot".into()),
        );
        let alone = std::slice::from_ref(&skipped);
        assert_eq!(ending_of(alone, false), Ending::NotWell);
        assert_eq!(ending_of(alone, true), Ending::Interrupted);
        assert_eq!(ending_of(&[holds.clone(), skipped], false), Ending::Well);
        assert_eq!(
            ending_of(std::slice::from_ref(&holds), true),
            Ending::Interrupted
        );
        let found = [broken, holds];
        assert_eq!(ending_of(&found, false), Ending::NotWell);
        assert_eq!(ending_of(&found, true), Ending::NotWell);
    }
}
