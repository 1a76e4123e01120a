//! A trial: the copy is put right, one mutant is made, and its tests run.

use crate::child::{Ended, Runner};
use crate::mutant::{Harness, Mutant};
use crate::test_index::{Program, TestIndex};
use crate::tree;
use anyhow::ensure;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Builds that take longer are given up; the first one builds every dependency.
pub(crate) const BUILD_LIMIT: Duration = Duration::from_secs(900);
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
/// Of a log, printed where something is not as it should be.
const TAIL_LINES: usize = 25;
/// And so many characters of each.
const LINE_LENGTH: usize = 300;
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

/// The last lines of a log, which say most.
pub(crate) fn tail(log: &Path) -> String {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<_> = text.lines().collect();
    let last = &lines[lines.len().saturating_sub(TAIL_LINES)..];
    let last: Vec<_> = last.iter().map(|line| shortened(line)).collect();
    format!("{}\n({})", last.join("\n"), log.display())
}

/// A linker's command is one line of all its object files, and what it says of them comes after it.
fn shortened(line: &str) -> String {
    match line.char_indices().nth(LINE_LENGTH) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line.to_owned(),
    }
}

/// The copy, and what is needed to build and test it.
#[derive(Debug)]
pub(crate) struct Workshop<'a> {
    pub(crate) root: &'a Path,
    /// The target folder of the tree itself: the shader compiler is built there already.
    pub(crate) target: &'a Path,
    /// `target/mutants`.
    pub(crate) folder: PathBuf,
    pub(crate) index: &'a TestIndex,
    pub(crate) runner: Runner,
    pub(crate) has_nextest: bool,
}

impl Workshop<'_> {
    pub(crate) fn tree(&self) -> PathBuf {
        self.folder.join("tree")
    }

    /// Where a mutant's builds and tests say what they say.
    pub(crate) fn log(&self, id: &str) -> PathBuf {
        self.folder.join("logs").join(format!("{id}.log"))
    }

    /// The tree as it was when the run began: it may be edited meanwhile.
    pub(crate) fn original(&self) -> PathBuf {
        self.folder.join("original")
    }

    /// Makes the copy the tree again, whatever was done to it.
    pub(crate) fn restore(&self) -> anyhow::Result<()> {
        tree::copy_all(&self.original(), &self.tree())
    }

    /// Makes the copy, once for the whole run.
    pub(crate) fn copy_original(&self) -> anyhow::Result<()> {
        std::fs::create_dir_all(self.folder.join("logs"))?;
        tree::copy_tracked(self.root, &self.original())?;
        self.restore()
    }

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
        self.restore()?;
        mutant.apply(&self.tree())?;
        let log = self.fresh_log(&mutant.id)?;
        let start = Instant::now();
        let builds = match mutant.harness {
            Harness::Suite => {
                (!mutant.is_of_shader() || self.build_shaders(&log)?.succeeded())
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

    pub(crate) fn fresh_log(&self, id: &str) -> anyhow::Result<PathBuf> {
        let log = self.log(id);
        std::fs::write(&log, "")?;
        Ok(log)
    }

    pub(crate) fn programs<'t>(
        &self,
        tests: impl IntoIterator<Item = &'t str>,
    ) -> BTreeSet<Program> {
        let of = |test| self.index.programs(test).into_iter().flatten().cloned();
        tests.into_iter().flat_map(of).collect()
    }

    pub(crate) fn cargo(&self, arguments: &[&str], target: &Path) -> Command {
        let mut cargo = Command::new("cargo");
        cargo
            .args(arguments)
            .current_dir(self.tree())
            .env("CARGO_TARGET_DIR", target)
            .env("CARGO_INCREMENTAL", "1")
            // Links faster; where a panic came from is not asked.
            .env("CARGO_PROFILE_DEV_DEBUG", "0")
            .env("CARGO_TERM_COLOR", "never")
            // A mutant's warnings are nobody's.
            .env_remove("RUSTFLAGS")
            // What kills it may be at any step of a walk (tests/support/walk.rs).
            .env_remove("NFENCE_WALK");
        cargo
    }

    /// The scenarios for loom: optimised, since they run thousands of times, and in a folder of
    /// their own, since all crates are built for loom.
    fn loom(&self, programs: &BTreeSet<Program>, arguments: &[&str]) -> Command {
        let test = ["test", "--release", "--locked", "--quiet"];
        let mut cargo = self.cargo(&test, &self.folder.join("loom"));
        cargo
            .args(programs.iter().flat_map(Program::arguments))
            .args(arguments)
            .env("RUSTFLAGS", "--cfg loom")
            .env("RUST_BACKTRACE", "0")
            .env("CARGO_PROFILE_RELEASE_DEBUG", "0")
            .env("CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS", "true");
        cargo
    }

    pub(crate) fn run(
        &self,
        mut command: Command,
        limit: Duration,
        log: &Path,
    ) -> anyhow::Result<Ended> {
        self.runner.run(&mut command, limit, log)
    }

    pub(crate) fn build_shaders(&self, log: &Path) -> anyhow::Result<Ended> {
        self.build_shaders_in(&self.tree(), log)
    }

    /// The same of another copy.
    pub(crate) fn build_shaders_in(&self, tree: &Path, log: &Path) -> anyhow::Result<Ended> {
        // The tree's own program, told of the copy. Built in the copy into the same folder, cargo
        // would take it for the tree's from then on.
        let mut rebuild = Command::new(self.target.join("debug/nfence-shaders"));
        rebuild
            .current_dir(tree)
            .env("CARGO_MANIFEST_DIR", tree.join("scripts/shaders"));
        self.runner.run(&mut rebuild, BUILD_LIMIT, log)
    }

    /// The program `nfence`, as the tests have it.
    pub(crate) fn build_program(&self, log: &Path) -> anyhow::Result<Ended> {
        let arguments = ["build", "--locked", "--quiet", "--bin", "nfence"];
        let mut cargo = self.cargo(&arguments, &self.folder.join("build"));
        self.runner.run(&mut cargo, BUILD_LIMIT, log)
    }

    /// What was built of it.
    pub(crate) fn program(&self) -> Command {
        Command::new(self.folder.join("build/debug/nfence"))
    }

    pub(crate) fn tests_of(&self, arguments: &[&str], programs: &BTreeSet<Program>) -> Command {
        let mut cargo = self.cargo(arguments, &self.folder.join("build"));
        if !programs.contains(&Program::Unknown) {
            cargo.args(programs.iter().flat_map(Program::arguments));
        }
        cargo
    }

    pub(crate) fn build(&self, programs: &BTreeSet<Program>, log: &Path) -> anyhow::Result<Ended> {
        let arguments = if self.has_nextest {
            &["nextest", "run", "--locked", "--no-run", "--cargo-quiet"][..]
        } else {
            &["test", "--locked", "--no-run", "--quiet"]
        };
        self.runner
            .run(&mut self.tests_of(arguments, programs), BUILD_LIMIT, log)
    }

    fn test(
        &self,
        tests: &BTreeSet<&str>,
        programs: &BTreeSet<Program>,
        limit: Duration,
        log: &Path,
    ) -> anyhow::Result<Ended> {
        if !self.has_nextest {
            let mut cargo = self.tests_of(&["test", "--locked", "--quiet"], programs);
            cargo.arg("--").args(tests);
            return self.runner.run(&mut cargo, limit, log);
        }
        let arguments = ["nextest", "run", "--locked", "--profile", "mutants"];
        let mut cargo = self.tests_of(&arguments, programs);
        let exactly = tests.iter().map(|test| format!("test(/(^|::){test}$/)"));
        let filter = exactly.collect::<Vec<_>>().join(" | ");
        cargo.args(["--filterset", &filter]);
        self.runner.run(&mut cargo, limit, log)
    }
}
