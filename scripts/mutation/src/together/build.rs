//! Build: the woven tree is compiled once, and its test programs are run without asking cargo.

use super::Variable;
use crate::child::Ended;
use crate::test_index::{Program, filter_of};
use crate::workshop::{BUILD_LIMIT, Workshop, tail};
use anyhow::{bail, ensure};
use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

impl Workshop<'_> {
    /// Has the compiler look at these targets, `--lib` or `--all-targets`; gives what it says, as JSON.
    pub(crate) fn check(&self, targets: &str, log: &Path) -> anyhow::Result<(Ended, String)> {
        let said = log.with_extension("json");
        std::fs::write(&said, "")?;
        let arguments = [
            "check",
            "--locked",
            "--quiet",
            targets,
            "--message-format",
            "json",
        ];
        let cargo = self.cargo(&arguments, &self.folder.join("build"));
        let ended = self.run(cargo, BUILD_LIMIT, &said)?;
        Ok((ended, std::fs::read_to_string(&said)?))
    }

    /// These test programs, and what nextest has to know to run them without asking cargo.
    ///
    /// # Errors
    /// They do not build, or not in time.
    pub(crate) fn build_once(
        &self,
        programs: &BTreeSet<Program>,
        log: &Path,
    ) -> anyhow::Result<()> {
        ensure!(self.has_nextest, "this needs cargo-nextest");
        match self.build(programs, log)? {
            Ended::By(status) if status.success() => {}
            Ended::By(_) => bail!("the woven tree does not build:\n{}", tail(log)),
            Ended::TimeLimit => bail!(
                "the woven tree is not built in {} s; what is built is kept, so try again",
                BUILD_LIMIT.as_secs()
            ),
        }
        let asked = [
            (
                &["metadata", "--format-version", "1", "--locked"][..],
                &BTreeSet::from([Program::Unknown]),
                self.packages(),
            ),
            (
                &[
                    "nextest",
                    "list",
                    "--locked",
                    "--cargo-quiet",
                    "--list-type",
                    "binaries-only",
                    "--message-format",
                    "json",
                ],
                programs,
                self.binaries(),
            ),
        ];
        for (arguments, of, file) in asked {
            let output = self
                .tests_of(arguments, of)
                .stderr(File::options().append(true).open(log)?)
                .output()?;
            ensure!(
                output.status.success(),
                "cargo {} failed",
                arguments.join(" ")
            );
            std::fs::write(file, output.stdout)?;
        }
        Ok(())
    }

    fn packages(&self) -> PathBuf {
        self.folder.join("packages.json")
    }

    fn binaries(&self) -> PathBuf {
        self.folder.join("binaries.json")
    }

    /// Runs one test of what [`Workshop::build_once`] has built, with a variable of the environment.
    pub(crate) fn test_built(
        &self,
        test: &str,
        chosen: Option<&Variable>,
        limit: Duration,
        log: &Path,
    ) -> anyhow::Result<Ended> {
        let of = self.programs([test]);
        let programs: Vec<_> = of.iter().filter_map(Program::filter).collect();
        let mut filter = filter_of(test);
        if programs.len() == of.len() {
            filter = format!("({}) & {filter}", programs.join(" | "));
        }
        let arguments = ["nextest", "run", "--profile", "mutants"];
        let mut nextest = self.cargo(&arguments, &self.folder.join("build"));
        nextest.arg("--binaries-metadata").arg(self.binaries());
        nextest.arg("--cargo-metadata").arg(self.packages());
        nextest.args(["--filterset", &filter]);
        if let Some((name, value)) = chosen {
            nextest.env(name, value);
        }
        self.run(nextest, limit, log)
    }
}
