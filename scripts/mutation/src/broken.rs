//! Broken implementations: mutants under the conformance suite.
//!
//! `tests/broken.toml` lists implementations that are wrong in one known way each, and by which mutant each is made. The
//! program has the mutant, alone or beside the others (`together`), and `nfence conform` asks it the rules, those of its
//! mutant's families first: the first that it breaks has found it. A whole matrix has all that it breaks, which takes a
//! while: each wait that a mutant never ends has its own time-out.
//!
//! A rule that the list of mutants does not name may have been broken by chance. It is asked once more of the program
//! without a mutant and of the one with it, and has found something only if it holds there and is broken here again.

use crate::mutant::Mutant;
use crate::together::{Together, Variable};
use crate::trial::{Workshop, tail};
use anyhow::{Context, ensure};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// For the suite, in which whatever is awaited has its own limit.
const LIMIT: Duration = Duration::from_secs(1200);

/// Where they are listed.
const LIST: &str = "tests/broken.toml";

/// Which engine the suite asks.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Engine {
    /// The quick one, for what both have in common.
    #[default]
    Model,
    /// For what is wrong in a shader, or needs a Vulkan device.
    Shader,
}

impl Engine {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Shader => "shader",
        }
    }
}

/// One `[[broken]]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Broken {
    /// What is wrong with it.
    pub(crate) says: String,
    /// The mutant that makes it so.
    pub(crate) mutant: String,
    #[serde(default)]
    pub(crate) engine: Engine,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    broken: Vec<Broken>,
}

/// All of them, with their mutants.
pub(crate) fn load<'m>(
    root: &Path,
    mutants: &'m [Mutant],
) -> anyhow::Result<Vec<(Broken, &'m Mutant)>> {
    let text = std::fs::read_to_string(root.join(LIST)).context(LIST)?;
    let list: List = toml::from_str(&text).context(LIST)?;
    let with_mutant = |broken: Broken| {
        let mutant = mutants.iter().find(|mutant| mutant.id == broken.mutant);
        let mutant =
            mutant.with_context(|| format!("{LIST}: there is no mutant `{}`", broken.mutant))?;
        Ok((broken, mutant))
    };
    list.broken.into_iter().map(with_mutant).collect()
}

/// What `nfence conform --json` says of a rule.
#[derive(Debug, Deserialize)]
struct Check {
    rule: String,
    verdict: String,
}

#[derive(Debug, Deserialize)]
struct Findings {
    checks: Vec<Check>,
}

/// What the suite found.
enum Found {
    /// These rules do not hold; none where it was not found.
    Rules(Vec<String>),
    /// The suite came to no end.
    Hung,
    /// The program does not build.
    Invalid,
}

/// Which program is asked.
#[derive(Clone, Copy)]
enum Asked<'c> {
    /// The one that was built last.
    Built,
    /// The same of the woven tree, made one of them by this.
    Woven(&'c Variable),
    /// The one of the woven tree that was proved, which is none of them.
    Unmutated,
}

/// How the suite is asked.
#[derive(Clone, Copy)]
struct Asking<'c> {
    engine: Engine,
    /// Every rule, though one is found broken.
    is_whole: bool,
    program: Asked<'c>,
}

/// Puts each under the suite, prints the matrix, and writes it as Markdown to `matrix` if there is one.
///
/// Those that can be stand in one build (`together`); the others, and those that the suite does not find there, have one
/// each.
pub(crate) fn try_all(
    workshop: &Workshop<'_>,
    chosen: &[(Broken, &Mutant)],
    is_whole: bool,
    matrix: Option<&Path>,
) -> anyhow::Result<bool> {
    workshop.copy_original()?;
    let start = Instant::now();
    let mutants: Vec<_> = chosen.iter().map(|(_, mutant)| *mutant).collect();
    let (together, _) = Together::weave(workshop, &mutants, "--lib")?;
    prove_whole(workshop, chosen)?;
    println!(
        "the woven tree, with none of them chosen, keeps all rules that are asked ({:.0} s)\n",
        start.elapsed().as_secs_f64()
    );
    let mut rows = BTreeMap::new();
    let mut alone = Vec::new();
    for (at, (broken, mutant)) in chosen.iter().enumerate() {
        let began = Instant::now();
        let log = workshop.fresh_log(&mutant.id)?;
        let Some(variable) = together.variable(workshop, mutant, &log)? else {
            alone.push(at);
            continue;
        };
        let asking = Asking {
            engine: broken.engine,
            is_whole,
            program: Asked::Woven(&variable),
        };
        let found = find(workshop, asking, mutant)?;
        found.print((broken, mutant), began);
        if found.is_good() {
            rows.insert(at, found);
        } else {
            println!("    in the build of all; it is asked again in one of its own");
            alone.push(at);
        }
    }
    println!("{} have a build each", alone.len());
    for at in alone {
        let (broken, mutant) = &chosen[at];
        let began = Instant::now();
        workshop.restore()?;
        mutant.apply(&workshop.tree())?;
        let log = workshop.fresh_log(&mutant.id)?;
        let builds = (!mutant.is_of_shader() || workshop.build_shaders(&log)?.succeeded())
            && workshop.build_program(&log)?.succeeded();
        let asking = Asking {
            engine: broken.engine,
            is_whole,
            program: Asked::Built,
        };
        let found = if builds {
            find(workshop, asking, mutant)?
        } else {
            Found::Invalid
        };
        found.print((broken, mutant), began);
        rows.insert(at, found);
    }
    workshop.restore()?;
    if let Some(matrix) = matrix {
        std::fs::write(matrix, table(chosen, &rows))
            .with_context(|| matrix.display().to_string())?;
    }
    let bad = rows.values().filter(|found| !found.is_good()).count();
    println!(
        "\n{} broken implementations in {:.0} s: {}",
        chosen.len(),
        start.elapsed().as_secs_f64(),
        if bad == 0 {
            "all found".to_owned()
        } else {
            format!("{bad} are NOT found")
        }
    );
    Ok(bad == 0)
}

/// Where the program of the woven tree stays.
fn unmutated(workshop: &Workshop<'_>) -> PathBuf {
    workshop.folder.join("nfence-unmutated")
}

/// Builds the program, and proves that it keeps every rule on the engines that will be asked.
fn prove_whole(workshop: &Workshop<'_>, chosen: &[(Broken, &Mutant)]) -> anyhow::Result<()> {
    let log = workshop.fresh_log("unmutated-conform")?;
    ensure!(
        workshop.build_program(&log)?.succeeded(),
        "the woven tree does not build:\n{}",
        tail(&log)
    );
    // Those that have a build each overwrite it.
    std::fs::copy(workshop.program().get_program(), unmutated(workshop))?;
    for engine in [Engine::Model, Engine::Shader] {
        if !chosen.iter().any(|(broken, _)| broken.engine == engine) {
            continue;
        }
        let asking = Asking {
            engine,
            is_whole: true,
            program: Asked::Unmutated,
        };
        match conform(workshop, asking, "unmutated-conform", &[])? {
            Found::Rules(broken) if broken.is_empty() => {}
            Found::Rules(broken) => anyhow::bail!(
                "the woven tree, with none of them chosen, does not keep {} on the {}",
                broken.join(" "),
                engine.name()
            ),
            Found::Hung | Found::Invalid => {
                anyhow::bail!(
                    "the suite does not end on the woven tree; see {}",
                    log.display()
                )
            }
        }
    }
    Ok(())
}

fn table(chosen: &[(Broken, &Mutant)], rows: &BTreeMap<usize, Found>) -> String {
    let mut table = String::from(
        "| broken implementation | mutant | engine | rules that find it |\n|---|---|---|---|\n",
    );
    for (at, (broken, mutant)) in chosen.iter().enumerate() {
        let _ = writeln!(
            table,
            "| {} | `{}` | {} | {} |",
            broken.says,
            mutant.id,
            broken.engine.name(),
            rows[&at]
        );
    }
    table
}

impl Found {
    fn is_good(&self) -> bool {
        matches!(self, Self::Rules(rules) if !rules.is_empty())
    }

    fn print(&self, (broken, mutant): (&Broken, &Mutant), began: Instant) {
        println!(
            "{:<55} {:<45} {:<6} {:>4.0} s  {self}",
            broken.says,
            mutant.id,
            broken.engine.name(),
            began.elapsed().as_secs_f64()
        );
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rules(rules) if rules.is_empty() => f.write_str("NOT FOUND"),
            Self::Rules(rules) => f.write_str(&rules.join(" ")),
            Self::Hung => f.write_str("NO RULE: the suite came to no end"),
            Self::Invalid => f.write_str("INVALID: it does not build"),
        }
    }
}

/// Asks the rules of the mutant's families, and where these find nothing, or all shall be known, every rule.
fn find(workshop: &Workshop<'_>, asking: Asking<'_>, mutant: &Mutant) -> anyhow::Result<Found> {
    if !asking.is_whole {
        let families = mutant.rules().filter_map(|rule| rule.split('-').next());
        let families: Vec<_> = families.collect();
        let found = find_by(workshop, asking, mutant, &families)?;
        if !matches!(&found, Found::Rules(rules) if rules.is_empty()) {
            return Ok(found);
        }
    }
    find_by(workshop, asking, mutant, &[])
}

/// The rules among these that the mutant breaks: its own, and others that it breaks again and the program without it
/// does not.
fn find_by(
    workshop: &Workshop<'_>,
    asking: Asking<'_>,
    mutant: &Mutant,
    families: &[&str],
) -> anyhow::Result<Found> {
    let Found::Rules(rules) = conform(workshop, asking, &mutant.id, families)? else {
        return Ok(Found::Hung);
    };
    let is_others = |rule: &&str| mutant.rules().all(|own| own != *rule);
    let others: Vec<_> = rules.iter().map(String::as_str).filter(is_others).collect();
    if others.is_empty() {
        return Ok(Found::Rules(rules));
    }
    let whole = Asking {
        is_whole: true,
        ..asking
    };
    let unmutated = Asking {
        program: Asked::Unmutated,
        ..whole
    };
    let by_chance = match conform(workshop, unmutated, "unmutated-again", &others)? {
        Found::Rules(rules) => rules,
        Found::Hung | Found::Invalid => others.iter().map(|rule| (*rule).to_owned()).collect(),
    };
    // What breaks once in a hundred runs held there, and holds here.
    let twice = match conform(workshop, whole, &mutant.id, &others)? {
        Found::Rules(rules) => rules,
        Found::Hung | Found::Invalid => Vec::new(),
    };
    let is_meant = |rule: &String| {
        let is_own = mutant.rules().any(|own| own == rule);
        is_own || twice.contains(rule) && !by_chance.contains(rule)
    };
    let meant: Vec<_> = rules.into_iter().filter(is_meant).collect();
    if meant.is_empty() && !asking.is_whole {
        // The suite ended at the first, and others come behind it.
        return find_by(workshop, whole, mutant, families);
    }
    Ok(Found::Rules(meant))
}

/// Runs the suite of a program: these rules or families of rules, all where there is none.
fn conform(
    workshop: &Workshop<'_>,
    asking: Asking<'_>,
    id: &str,
    families: &[&str],
) -> anyhow::Result<Found> {
    let json = workshop.log(id).with_extension("json");
    let log = workshop.log(id);
    let _ = std::fs::remove_file(&json);
    let mut program = match asking.program {
        Asked::Built | Asked::Woven(_) => workshop.program(),
        Asked::Unmutated => Command::new(unmutated(workshop)),
    };
    if let Asked::Woven((variable, value)) = asking.program {
        program.env(variable, value);
    }
    program.args(["conform", "--engine", asking.engine.name(), "--json"]);
    program.arg(&json).args(families);
    if !asking.is_whole {
        program.arg("--fail-fast");
    }
    let ended = workshop.run(program, LIMIT, &log)?;
    let Ok(text) = std::fs::read_to_string(&json) else {
        // Killed by the limit, or by what the mutant does.
        return Ok(Found::Hung);
    };
    let findings: Result<Findings, _> = serde_json::from_str(&text);
    let Ok(findings) = findings else {
        return Ok(Found::Hung);
    };
    ensure!(
        ended.code().is_some_and(|code| code < 2),
        "the suite was not run; see {}",
        log.display()
    );
    let broken = findings.checks.into_iter();
    let broken = broken.filter(|asked| asked.verdict == "broken");
    Ok(Found::Rules(broken.map(|asked| asked.rule).collect()))
}

/// What must hold of the list, a line each.
pub(crate) fn complaints(root: &Path, mutants: &[Mutant]) -> Vec<String> {
    match load(root, mutants) {
        Ok(_) => Vec::new(),
        Err(error) => vec![format!("{error:#}")],
    }
}
