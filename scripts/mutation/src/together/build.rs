//! Build: the woven tree is compiled once, and its test programs are run without asking cargo.

use crate::child::Ended;
use crate::test_index::Program;
use crate::trial::{BUILD_LIMIT, Workshop};
use anyhow::ensure;
use std::collections::BTreeSet;
use std::ffi::OsString;
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

    /// All test programs, and what nextest has to know to run them without asking cargo.
    pub(crate) fn build_all(&self, log: &Path) -> anyhow::Result<Ended> {
        ensure!(self.has_nextest, "this needs cargo-nextest");
        let built = self.build(&BTreeSet::from([Program::Unknown]), log)?;
        let asked = [
            (
                &["metadata", "--format-version", "1", "--locked"][..],
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
                self.binaries(),
            ),
        ];
        for (arguments, file) in asked {
            let output = self
                .tests_of(arguments, &BTreeSet::from([Program::Unknown]))
                .stderr(File::options().append(true).open(log)?)
                .output()?;
            ensure!(
                output.status.success(),
                "cargo {} failed",
                arguments.join(" ")
            );
            std::fs::write(file, output.stdout)?;
        }
        Ok(built)
    }

    fn packages(&self) -> PathBuf {
        self.folder.join("packages.json")
    }

    fn binaries(&self) -> PathBuf {
        self.folder.join("binaries.json")
    }

    /// Runs one test of what [`Workshop::build_all`] has built, with a variable of the environment.
    pub(crate) fn test_built(
        &self,
        test: &str,
        chosen: Option<&(&str, OsString)>,
        limit: Duration,
        log: &Path,
    ) -> anyhow::Result<Ended> {
        let of = self.programs([test]);
        let programs: Vec<_> = of.iter().filter_map(Program::filter).collect();
        let mut filter = format!("test(/(^|::){test}$/)");
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
