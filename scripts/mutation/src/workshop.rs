//! Workshop: the copy of the tree in which mutants are made, and how it is built and its tests are run.

use crate::child::{Ended, Runner};
use crate::lock::Lock;
use crate::mutant::Mutant;
use crate::test_index::{Program, TestIndex, filter_of};
use crate::tree;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Builds that take longer are given up; the first one builds every dependency.
pub(crate) const BUILD_LIMIT: Duration = Duration::from_secs(900);
/// Of a log, printed where something is not as it should be.
const TAIL_LINES: usize = 25;
/// And so many characters of each.
const LINE_LENGTH: usize = 300;

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

/// The copy, and what is needed to build and test it. It is one run's at a time.
#[derive(Debug)]
pub(crate) struct Workshop<'a> {
    root: &'a Path,
    /// The target folder of the tree itself: the shader compiler is built there already.
    target: &'a Path,
    /// `target/mutants`.
    pub(crate) folder: PathBuf,
    pub(crate) index: &'a TestIndex,
    runner: Runner,
    pub(crate) has_nextest: bool,
    _lock: Lock,
}

impl<'a> Workshop<'a> {
    /// For the tree in `root`, in its folder `target`. Takes over Ctrl-C.
    ///
    /// # Errors
    /// Another run works there.
    pub(crate) fn open(
        root: &'a Path,
        target: &'a Path,
        index: &'a TestIndex,
    ) -> anyhow::Result<Self> {
        let folder = target.join("mutants");
        Ok(Self {
            root,
            target,
            _lock: Lock::take(&folder)?,
            folder,
            index,
            runner: Runner::new()?,
            has_nextest: has_nextest(root),
        })
    }
}

fn has_nextest(root: &Path) -> bool {
    Command::new("cargo")
        .args(["nextest", "--version"])
        .current_dir(root)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
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

    pub(crate) fn fresh_log(&self, id: &str) -> anyhow::Result<PathBuf> {
        let log = self.log(id);
        std::fs::write(&log, "")?;
        Ok(log)
    }

    /// Makes the copy the tree with this mutant in it; gives the log of what is built and tested then.
    pub(crate) fn make(&self, mutant: &Mutant) -> anyhow::Result<PathBuf> {
        self.restore()?;
        mutant.apply(&self.tree())?;
        self.fresh_log(&mutant.id)
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
    pub(crate) fn loom(&self, programs: &BTreeSet<Program>, arguments: &[&str]) -> Command {
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

    /// Whether the shaders of the copy build, where the mutant that it is changes any.
    pub(crate) fn builds_shaders_of(&self, mutant: &Mutant, log: &Path) -> anyhow::Result<bool> {
        Ok(!mutant.is_of_shader() || self.build_shaders_in(&self.tree(), log)?.succeeded())
    }

    /// The shaders of a copy.
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

    /// Runs these tests of what [`Workshop::build`] has built.
    pub(crate) fn test(
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
        let exactly: Vec<_> = tests.iter().map(|test| filter_of(test)).collect();
        let filter = exactly.join(" | ");
        cargo.args(["--filterset", &filter]);
        self.runner.run(&mut cargo, limit, log)
    }
}
