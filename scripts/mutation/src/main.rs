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
//! `options` reads the command line, `mutant` the lists, `test_index` where the tests are; `check` holds the lists to their
//! form, `choice` picks. `tree` copies into the folder of the `workshop`, which `lock` keeps and which builds and tests;
//! `trial` judges a mutant by its tests, `suite` by the rules; `verdicts` keeps what came of it. `child` runs programs with
//! a limit, `mutex` is what several threads take by turns.

#![forbid(unsafe_code)]

mod broken;
mod check;
mod child;
mod choice;
mod lock;
mod mutant;
mod mutex;
mod options;
mod suite;
mod test_index;
mod together;
mod tree;
mod trial;
mod verdicts;
mod workshop;

use anyhow::Context;
use mutant::{Harness, Mutant};
use options::{HELP, JOBS, Options};
use std::collections::BTreeSet;
use std::process::ExitCode;
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use test_index::TestIndex;
use together::Together;
use trial::Row;
use verdicts::Verdicts;
use workshop::Workshop;

fn main() -> ExitCode {
    let options = match Options::parse(std::env::args().skip(1)) {
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
        choice.names_none() || choice.ids.contains(&mutant.id) || choice.names_rule_of(mutant)
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
    let workshop = Workshop::open(&options.root, &options.target, index)?;
    let matrix = options.matrix.as_deref();
    broken::try_all(&workshop, &chosen, options.whole, matrix)
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
    let workshop = Workshop::open(&options.root, &options.target, index)?;
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
