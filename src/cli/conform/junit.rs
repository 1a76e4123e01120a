//! JUnit: what a run gave, in the form that CI systems read.

use super::findings::Findings;
use crate::conform::Verdict;
use anyhow::Context;
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

/// A suite a family of rules, a case a rule.
pub(super) fn report(findings: &Findings) -> anyhow::Result<String> {
    let mut report = Report::new("nfence conform");
    let mut suites: Vec<TestSuite> = Vec::new();
    for found in &findings.checks {
        let family = found.rule.split('-').next().unwrap_or(found.rule);
        let mut status = match &found.verdict {
            Verdict::Holds => TestCaseStatus::success(),
            Verdict::Broken(_) => TestCaseStatus::non_success(NonSuccessKind::Failure),
            Verdict::Skipped(_) => TestCaseStatus::skipped(),
        };
        if let Verdict::Broken(why) | Verdict::Skipped(why) = &found.verdict {
            status.set_message(why.as_str());
        }
        let mut case = TestCase::new(format!("{} {}", found.rule, found.title), status);
        case.set_classname(format!("conform.{family}"));
        case.set_time(found.took);
        for why in &found.left_out {
            case.add_property(("a part was not asked", why.as_str()));
        }
        if suites
            .last()
            .is_none_or(|suite| suite.name.as_str() != family)
        {
            let mut suite = TestSuite::new(family);
            suite.add_property(("subject", findings.subject.as_str()));
            suites.push(suite);
        }
        if let Some(suite) = suites.last_mut() {
            suite.add_test_case(case);
        }
    }
    report.add_test_suites(suites);
    let mut text = report
        .to_string()
        .context("the JUnit report cannot be written")?;
    text.push('\n');
    Ok(text)
}
