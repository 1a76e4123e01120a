//! Options: what the command line asks for.

use crate::choice::Choice;
use anyhow::{Context, bail, ensure};
use std::path::PathBuf;

/// What `--help` prints.
pub(crate) const HELP: &str = "\
Breaks native-fence on purpose and looks whether its tests notice.

Usage: scripts/mutants [options]

Tries every mutant of tests/mutants/*.toml that the options leave, in a copy of the tree in
target/mutants. Exit code 1 where one survives or is not valid.

Options:
  --id ID...       only these
  --rule RULE...   only those of these rules, such as NF-05
  --loom           only the twins, which run under loom; without it all others
  --conform        the implementations of tests/broken.toml, each under `nfence conform`; most of them in one build
  --whole          with --conform: every rule that finds one, not the first alone
  --matrix FILE    writes how many each rule has and what came of them as Markdown; with --conform, which rules found
                   which
  --together       most of them in one build, in which each is chosen when a test starts: hours for what takes a day
                   else; the others, and what survives this way, one at a time
  --jobs N         with --together: so many trials at once (4, if not said: most of what lasts sleeps)
  --resume         goes on where runs of this very tree were cut short: what they have seen killed is not tried again
  --builds         has the compiler look at those of the library in one build, and tries none: a mutant that does not
                   build any more kills nothing
  --random N       only N of them, by chance, and none that takes minutes
  --seed S         the chance, to have the same ones again
  --list           list them and try none
  --check          hold the lists to their form and build nothing
  -h, --help       print this";

/// How many trials `--together` has at once, if not told.
pub(crate) const JOBS: usize = 4;

#[derive(Debug, Default)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "what the command line has switched, one a name"
)]
pub(crate) struct Options {
    pub(crate) root: PathBuf,
    pub(crate) target: PathBuf,
    pub(crate) choice: Choice,
    pub(crate) seed: Option<u64>,
    pub(crate) conform: bool,
    pub(crate) together: bool,
    pub(crate) builds: bool,
    pub(crate) resume: bool,
    pub(crate) jobs: Option<usize>,
    pub(crate) whole: bool,
    pub(crate) matrix: Option<PathBuf>,
    pub(crate) list: bool,
    pub(crate) check: bool,
    pub(crate) help: bool,
}

impl Options {
    /// # Errors
    /// An argument that there is not, or that goes not with another.
    pub(crate) fn parse(arguments: impl Iterator<Item = String>) -> anyhow::Result<Self> {
        let mut options = Self::default();
        let mut arguments = arguments.peekable();
        while let Some(argument) = arguments.next() {
            let mut value = || {
                let next = arguments.next_if(|next| !next.starts_with("--"));
                next.with_context(|| format!("{argument} needs a value"))
            };
            match argument.as_str() {
                "--root" => options.root = value()?.into(),
                "--target" => options.target = value()?.into(),
                "--random" => options.choice.random = Some(value()?.parse().context("--random")?),
                "--seed" => options.seed = Some(value()?.parse().context("--seed")?),
                "--id" | "--rule" => {
                    let list = if argument == "--id" {
                        &mut options.choice.ids
                    } else {
                        &mut options.choice.rules
                    };
                    list.push(value()?);
                    while let Ok(more) = value() {
                        list.push(more);
                    }
                }
                "--loom" => options.choice.loom = true,
                "--conform" => options.conform = true,
                "--together" => options.together = true,
                "--builds" => options.builds = true,
                "--resume" => options.resume = true,
                "--jobs" => {
                    let jobs: usize = value()?.parse().context("--jobs")?;
                    ensure!(jobs > 0, "--jobs is 1 or more");
                    options.jobs = Some(jobs);
                }
                "--whole" => options.whole = true,
                "--matrix" => options.matrix = Some(value()?.into()),
                "--list" => options.list = true,
                "--check" => options.check = true,
                "-h" | "--help" => options.help = true,
                _ => bail!("unknown argument `{argument}`"),
            }
        }
        let is_other = options.conform || options.builds;
        ensure!(
            !(options.resume && is_other),
            "--resume is of runs that try mutants by their tests"
        );
        ensure!(
            options.matrix.is_none() || !options.builds,
            "--builds has no matrix"
        );
        Ok(options)
    }
}
