//! A test that cannot fail proves nothing. A mutant is a source edit that breaks one promise; the
//! tests that it names must notice.
//!
//! `scripts/mutants` starts this program. Mutants are made in a copy of the tree, one at a time, or most of them in one build:
//! built, tested, judged. First the copy passes the same tests unmutated.
//!
//! Twins are mutants that lack an ordering; they are found under loom, which runs their tests in
//! every order that it can find (`--loom`, `scripts/loom`).
//!
//! Mutants that are implementations broken in a known way go under the conformance suite as well (`--conform`): `broken`.
//!
//! What stands in bodies of functions can be tried in one build for all (`--together`): `together`.
//!
//! `mutant` reads the lists, `check` holds them to their form, `choice` picks, `tree` copies into a folder that `lock` keeps,
//! `trial` builds and judges, `verdicts` keeps what came of it, `child` runs programs with a limit.

#![forbid(unsafe_code)]

mod broken;
mod check;
mod child;
mod choice;
mod lock;
mod mutant;
mod test_index;
mod together;
mod tree;
mod trial;
mod verdicts;

use anyhow::{Context, bail, ensure};
use choice::Choice;
use lock::Lock;
use mutant::{Harness, Mutant};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use test_index::TestIndex;
use together::Together;
use trial::{Row, Workshop};
use verdicts::Verdicts;

const HELP: &str = "\
Breaks native-fence on purpose and looks whether its tests notice.

Usage: scripts/mutants [options]

Tries every mutant of tests/mutants.toml and tests/mutants/*.toml that the options leave, in a copy
of the tree in target/mutants. Exit code 1 where one survives or is not valid.

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
const JOBS: usize = 4;

#[derive(Debug, Default)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "what the command line has switched, one a name"
)]
struct Options {
    root: PathBuf,
    target: PathBuf,
    choice: Choice,
    seed: Option<u64>,
    conform: bool,
    together: bool,
    builds: bool,
    resume: bool,
    jobs: Option<usize>,
    whole: bool,
    matrix: Option<PathBuf>,
    list: bool,
    check: bool,
    help: bool,
}

fn main() -> ExitCode {
    let options = match parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(error) => {
            eprintln!("scripts/mutants: {error:#}; see --help");
            return ExitCode::from(2);
        }
    };
    if options.help {
        println!("{HELP}");
        return ExitCode::SUCCESS;
    }
    match run(&options) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("scripts/mutants: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn parse(arguments: impl Iterator<Item = String>) -> anyhow::Result<Options> {
    let mut options = Options::default();
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

/// Whether all is well.
fn run(options: &Options) -> anyhow::Result<bool> {
    let root = &options.root;
    let mutants = mutant::load(root)?;
    let index = TestIndex::read(root)?;
    if options.list {
        list(
            &options
                .choice
                .of(&mutants, options.seed.unwrap_or_default())?,
        );
        return Ok(true);
    }
    let mut complaints = check::complaints(root, &mutants, &index);
    complaints.extend(broken::complaints(root, &mutants));
    for complaint in &complaints {
        eprintln!("{complaint}");
    }
    if options.check || !complaints.is_empty() {
        println!(
            "{} mutants, {} tests named after rules, {} complaints",
            mutants.len(),
            index.rule_tests().count(),
            complaints.len()
        );
        return Ok(complaints.is_empty());
    }
    let seed = match options.seed {
        Some(seed) => seed,
        None => SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs(),
    };
    if options.conform {
        return conform(options, &index, &mutants, seed);
    }
    let chosen = options.choice.of(&mutants, seed)?;
    if options.choice.random.is_some() {
        println!(
            "{} of {} mutants, --seed {seed}",
            chosen.len(),
            mutants.len()
        );
    }
    try_all(options, &index, &chosen)
}

/// Puts the broken implementations whose mutants are chosen, or all, under the conformance suite.
fn conform(
    options: &Options,
    index: &TestIndex,
    mutants: &[Mutant],
    seed: u64,
) -> anyhow::Result<bool> {
    let choice = &options.choice;
    let mut chosen = broken::load(&options.root, mutants)?;
    for id in &choice.ids {
        let is_listed = chosen.iter().any(|(_, mutant)| &mutant.id == id);
        anyhow::ensure!(is_listed, "no broken implementation is made by `{id}`");
    }
    let is_of = |mutant: &Mutant| {
        let mut rules = mutant.rules();
        choice.names_none()
            || choice.ids.contains(&mutant.id)
            || rules.any(|rule| choice.rules.iter().any(|wanted| wanted == rule))
    };
    chosen.retain(|(_, mutant)| is_of(mutant));
    anyhow::ensure!(!chosen.is_empty(), "no broken implementation is chosen");
    if let Some(count) = choice.random {
        let all = chosen.len();
        choice::leave(&mut chosen, count, seed);
        println!(
            "{} of {all} broken implementations, --seed {seed}",
            chosen.len()
        );
    }
    let folder = options.target.join("mutants");
    let _lock = Lock::take(&folder)?;
    let workshop = workshop(options, folder, index)?;
    let matrix = options.matrix.as_deref();
    broken::try_all(&workshop, &chosen, options.whole, matrix)
}

fn workshop<'a>(
    options: &'a Options,
    folder: PathBuf,
    index: &'a TestIndex,
) -> anyhow::Result<Workshop<'a>> {
    Ok(Workshop {
        root: &options.root,
        target: &options.target,
        folder,
        index,
        runner: child::Runner::new()?,
        has_nextest: has_nextest(&options.root),
    })
}

fn list(mutants: &[&Mutant]) {
    for mutant in mutants {
        let rules: Vec<_> = mutant.rules().collect();
        println!("{:<45} {:<12} {}", mutant.id, rules.join(" "), mutant.why);
    }
}

fn try_all(options: &Options, index: &TestIndex, chosen: &[&Mutant]) -> anyhow::Result<bool> {
    if chosen.is_empty() {
        println!("no mutant was chosen");
        return Ok(true);
    }
    let folder = options.target.join("mutants");
    let _lock = Lock::take(&folder)?;
    let workshop = workshop(options, folder, index)?;
    let start = Instant::now();
    workshop.copy_original()?;
    if options.builds {
        let woven = Together::weave(&workshop, chosen, "--lib");
        workshop.restore()?;
        for mutant in chosen.iter().filter(|mutant| !mutant.also.is_empty()) {
            println!("{} changes several places, and is not looked at", mutant.id);
        }
        return Ok(woven?.1.is_empty());
    }
    let driver = std::env::var("VK_DRIVER_FILES").unwrap_or_default();
    let mut verdicts = Verdicts::open(&workshop.folder, &workshop.original(), &driver)?;
    let mut alone = chosen.to_vec();
    if options.resume {
        alone.retain(|mutant| !verdicts.is_killed(mutant));
        println!(
            "{} of {} were seen killed before",
            chosen.len() - alone.len(),
            chosen.len()
        );
    }
    let mut bad = 0;
    let mut judged = |mutant: &Mutant, rows: Vec<Row>| {
        bad += print_rows(&workshop, mutant, &rows);
        verdicts.keep(&mutant.id, rows)
    };
    if options.together && !alone.is_empty() {
        let together = Together::build(&workshop, &alone)?;
        print_head();
        let jobs = options.jobs.unwrap_or(JOBS);
        let tried = together::jobs::try_all(&together, &workshop, &alone, jobs, &mut judged);
        workshop.restore()?;
        alone = tried?;
        println!("\n{} mutants are tried alone", alone.len());
    }
    if !alone.is_empty() {
        try_alone(&workshop, &alone, options.choice.names_none(), judged)?;
    }
    if let Some(matrix) = &options.matrix {
        std::fs::write(matrix, verdicts.matrix(chosen))
            .with_context(|| matrix.display().to_string())?;
    }
    println!(
        "\n{} mutants in {:.0} s: {}",
        chosen.len(),
        start.elapsed().as_secs_f64(),
        if bad == 0 {
            "all killed".to_owned()
        } else {
            format!("{bad} lines are NOT good")
        }
    );
    Ok(bad == 0)
}

/// Tries each in a build of its own, after the tests of all have passed without them, and gives its rows to `judged`.
fn try_alone(
    workshop: &Workshop<'_>,
    mutants: &[&Mutant],
    names_none: bool,
    mut judged: impl FnMut(&Mutant, Vec<Row>) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let start = Instant::now();
    let of_harness = |harness| {
        let mutants = mutants.iter().filter(move |m| m.harness == harness);
        mutants.flat_map(|m| m.tests()).collect::<BTreeSet<_>>()
    };
    let (tests, scenarios) = (of_harness(Harness::Suite), of_harness(Harness::Loom));
    let fail = if tests.is_empty() {
        BTreeSet::new()
    } else {
        workshop.prove_unmutated(&tests)?
    };
    let scenarios = if names_none && !scenarios.is_empty() {
        // Those too that no twin names.
        workshop.index.scenarios()
    } else {
        scenarios
    };
    if !scenarios.is_empty() {
        workshop.prove_scenarios(&scenarios)?;
    }
    println!(
        "the tree as it is passes the {} tests ({:.1} s)\n",
        tests.len() - fail.len() + scenarios.len(),
        start.elapsed().as_secs_f64()
    );
    for test in &fail {
        println!("it does NOT pass {test}, which proves nothing of its mutants");
    }
    print_head();
    for mutant in mutants {
        let tried = workshop.try_mutant(mutant, &fail);
        // An interrupted one leaves the copy as if it had never been.
        if tried.is_err() {
            workshop.restore()?;
        }
        judged(mutant, tried?)?;
    }
    workshop.restore()
}

fn print_head() {
    println!(
        "{:<45} {:<12} {:<13} {:>7}  test",
        "mutant", "rule", "verdict", "seconds"
    );
}

/// Gives how many are not good.
fn print_rows(workshop: &Workshop<'_>, mutant: &Mutant, rows: &[Row]) -> usize {
    let mut bad = 0;
    for row in rows {
        print_row(mutant, row);
        if !row.verdict.is_good() {
            bad += 1;
            println!(
                "    {}; see {}",
                mutant.why,
                workshop.log(&mutant.id).display()
            );
        }
    }
    bad
}

fn print_row(mutant: &Mutant, row: &Row) {
    let rules: Vec<_> = mutant.rules().collect();
    println!(
        "{:<45} {:<12} {:<13} {:>7.1}  {}",
        mutant.id,
        rules.join(" "),
        row.verdict,
        row.took.as_secs_f64(),
        row.test
    );
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
