//! A trial: the copy is put right, one mutant is made, and its tests run. First the tree passes them as it is.

use crate::child::Ended;
use crate::mutant::{Harness, Mutant};
use crate::workshop::{BUILD_LIMIT, Workshop, tail};
use anyhow::ensure;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;
use std::time::{Duration, Instant};

/// A test that takes longer hangs; nextest's profile `mutants` is quicker to find that.
pub(crate) const TEST_LIMIT: Duration = Duration::from_secs(270);
/// For all tests together on the tree as it is.
const FIRST_LIMIT: Duration = Duration::from_secs(600);
/// For a scenario of a twin under loom, which is to be found.
const LOOM_LIMIT: Duration = Duration::from_secs(480);
/// For all scenarios, which are to be explored to their end.
const FIRST_LOOM_LIMIT: Duration = Duration::from_secs(1800);
/// What a scenario that was explored says of itself.
const EXPLORED: &str = " executions of at most ";
/// What nextest ends with when no test matched.
const NEXTEST_NO_TESTS: i32 = 4;

/// What came of one test under one mutant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Verdict {
    Killed,
    /// Killed by the time limit.
    Hung,
    Survived,
    /// It does not build, so no test has shown anything.
    Invalid,
    /// The test does not pass without the mutant either.
    Unproved,
}

impl Verdict {
    pub(crate) fn is_good(self) -> bool {
        match self {
            Self::Killed | Self::Hung => true,
            Self::Survived | Self::Invalid | Self::Unproved => false,
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Killed => "killed",
            Self::Hung => "killed (hung)",
            Self::Survived => "SURVIVED",
            Self::Invalid => "INVALID",
            Self::Unproved => "UNPROVED",
        })
    }
}

/// One line of the matrix.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) test: String,
    pub(crate) verdict: Verdict,
    pub(crate) took: Duration,
}

impl Row {
    /// What `judge` finds of a test, which takes so long beside what was `before` it.
    pub(crate) fn of(
        test: &str,
        before: Duration,
        judge: impl FnOnce() -> anyhow::Result<Verdict>,
    ) -> anyhow::Result<Self> {
        let start = Instant::now();
        Ok(Self {
            verdict: judge()?,
            test: test.to_owned(),
            took: before + start.elapsed(),
        })
    }
}

impl Workshop<'_> {
    /// Proves that the tree passes these scenarios for loom as it is, and says what they explored.
    pub(crate) fn prove_scenarios(&self, scenarios: &BTreeSet<&str>) -> anyhow::Result<()> {
        let log = self.fresh_log("unmutated-loom")?;
        let programs = self.programs(scenarios.iter().copied());
        let build = self.loom(&programs, &["--no-run"]);
        let builds = self.run(build, BUILD_LIMIT, &log)?.succeeded();
        let says = |what: &str| format!("{what}:\n{}", tail(&log));
        ensure!(builds, says("the tree does not build under loom as it is"));
        let mut explore = self.loom(&programs, &["--", "--nocapture", "--exact"]);
        explore.args(scenarios);
        let passes = self.run(explore, FIRST_LOOM_LIMIT, &log)?.succeeded();
        ensure!(passes, says("the tree does not pass under loom as it is"));
        let text = std::fs::read_to_string(&log)?;
        for line in text.lines().filter(|line| line.contains(EXPLORED)) {
            println!("{line}");
        }
        Ok(())
    }

    /// Proves that the tree passes these tests as it is, and gives those that it does not: a test that fails beside the
    /// others is asked again by itself, for its time limit is one of a quiet machine.
    pub(crate) fn prove_unmutated<'t>(
        &self,
        tests: &BTreeSet<&'t str>,
    ) -> anyhow::Result<BTreeSet<&'t str>> {
        let log = self.fresh_log("unmutated")?;
        let programs = self.programs(tests.iter().copied());
        ensure!(
            self.build(&programs, &log)?.succeeded(),
            "the tree does not build as it is:\n{}",
            tail(&log)
        );
        let mut fail = BTreeSet::new();
        if self.test(tests, &programs, FIRST_LIMIT, &log)?.succeeded() {
            return Ok(fail);
        }
        for &test in tests {
            let programs = self.programs([test]);
            let ended = self.test(&BTreeSet::from([test]), &programs, TEST_LIMIT, &log)?;
            if !ended.succeeded() {
                fail.insert(test);
            }
        }
        Ok(fail)
    }

    /// Makes the mutant and runs each of its tests by itself, but for those that fail without it.
    pub(crate) fn try_mutant(
        &self,
        mutant: &Mutant,
        fail: &BTreeSet<&str>,
    ) -> anyhow::Result<Vec<Row>> {
        let log = self.make(mutant)?;
        let start = Instant::now();
        let builds = match mutant.harness {
            Harness::Suite => {
                self.builds_shaders_of(mutant, &log)?
                    && self
                        .build(&self.programs(mutant.tests()), &log)?
                        .succeeded()
            }
            Harness::Loom => {
                let build = self.loom(&self.programs(mutant.tests()), &["--no-run"]);
                self.run(build, BUILD_LIMIT, &log)?.succeeded()
            }
        };
        let mut took = start.elapsed();
        let mut rows = Vec::new();
        for test in mutant.tests() {
            // The build is counted to the first test.
            rows.push(Row::of(test, std::mem::take(&mut took), || {
                if !builds {
                    Ok(Verdict::Invalid)
                } else if fail.contains(test) {
                    Ok(Verdict::Unproved)
                } else {
                    self.judge(mutant.harness, test, &log)
                }
            })?);
        }
        Ok(rows)
    }

    /// Runs a test of what was built.
    fn judge(&self, harness: Harness, test: &str, log: &Path) -> anyhow::Result<Verdict> {
        let programs = self.programs([test]);
        match harness {
            Harness::Suite => {
                let one = BTreeSet::from([test]);
                Ok(self.verdict(self.test(&one, &programs, TEST_LIMIT, log)?))
            }
            Harness::Loom => {
                let mut explore = self.loom(&programs, &["--", "--exact", test]);
                explore.env("NFENCE_LOOM_TWIN", "1");
                Ok(match self.run(explore, LOOM_LIMIT, log)? {
                    // What is not found in time is not found.
                    Ended::TimeLimit => Verdict::Survived,
                    ended @ Ended::By(_) => self.verdict(ended),
                })
            }
        }
    }

    pub(crate) fn verdict(&self, ended: Ended) -> Verdict {
        if self.has_nextest && ended.code() == Some(NEXTEST_NO_TESTS) {
            Verdict::Invalid
        } else if ended.succeeded() {
            Verdict::Survived
        } else if ended == Ended::TimeLimit {
            Verdict::Hung
        } else {
            Verdict::Killed
        }
    }
}
