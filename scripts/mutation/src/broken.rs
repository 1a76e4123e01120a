//! Broken implementations: mutants under the conformance suite.
//!
//! `tests/broken.toml` lists implementations that are wrong in one known way each, and by which mutant each is made. The
//! program is built with the mutant, and `nfence conform` asks it the rules, those of its mutant's families first: the
//! first that it breaks has found it. A whole matrix has all that it breaks, which takes a while: each wait that a mutant
//! never ends has its own time-out.

use crate::mutant::Mutant;
use crate::trial::{Workshop, tail};
use anyhow::{Context, ensure};
use serde::Deserialize;
use std::fmt::Write;
use std::path::Path;
use std::time::Instant;

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
struct Asked {
    rule: String,
    verdict: String,
}

#[derive(Debug, Deserialize)]
struct Findings {
    checks: Vec<Asked>,
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

/// Puts each under the suite, prints the matrix, and writes it as Markdown to `matrix` if there is one.
pub(crate) fn try_all(
    workshop: &Workshop<'_>,
    chosen: &[(Broken, &Mutant)],
    is_whole: bool,
    matrix: Option<&Path>,
) -> anyhow::Result<bool> {
    workshop.copy_original()?;
    let start = Instant::now();
    let mut engines: Vec<_> = chosen.iter().map(|(broken, _)| broken.engine).collect();
    engines.dedup();
    let log = workshop.fresh_log("unmutated-conform")?;
    ensure!(
        workshop.build_program(&log)?.succeeded(),
        "the tree does not build as it is:\n{}",
        tail(&log)
    );
    for engine in [Engine::Model, Engine::Shader] {
        if !engines.contains(&engine) {
            continue;
        }
        match conform(workshop, engine, "unmutated-conform", &[], true)? {
            Found::Rules(broken) if broken.is_empty() => {}
            Found::Rules(broken) => anyhow::bail!(
                "the tree as it is does not keep {} on the {}",
                broken.join(" "),
                engine.name()
            ),
            Found::Hung | Found::Invalid => {
                anyhow::bail!(
                    "the suite does not end on the tree as it is; see {}",
                    log.display()
                )
            }
        }
    }
    println!(
        "the tree as it is keeps all rules that are asked ({:.0} s)\n",
        start.elapsed().as_secs_f64()
    );
    let mut table = String::from(
        "| broken implementation | mutant | engine | rules that find it |\n|---|---|---|---|\n",
    );
    let mut bad = 0;
    for (broken, mutant) in chosen {
        let began = Instant::now();
        workshop.restore()?;
        mutant.apply(&workshop.tree())?;
        let log = workshop.fresh_log(&mutant.id)?;
        let builds = (!mutant.is_of_shader() || workshop.build_shaders(&log)?.succeeded())
            && workshop.build_program(&log)?.succeeded();
        let found = if builds {
            find(workshop, broken.engine, mutant, is_whole)?
        } else {
            Found::Invalid
        };
        let rules = match &found {
            Found::Rules(rules) if rules.is_empty() => "NOT FOUND".to_owned(),
            Found::Rules(rules) => rules.join(" "),
            Found::Hung => "NO RULE: the suite came to no end".to_owned(),
            Found::Invalid => "INVALID: it does not build".to_owned(),
        };
        bad += usize::from(matches!(&found, Found::Rules(rules) if rules.is_empty()));
        bad += usize::from(matches!(found, Found::Invalid | Found::Hung));
        println!(
            "{:<55} {:<45} {:<6} {:>4.0} s  {rules}",
            broken.says,
            mutant.id,
            broken.engine.name(),
            began.elapsed().as_secs_f64()
        );
        let _ = writeln!(
            table,
            "| {} | `{}` | {} | {rules} |",
            broken.says,
            mutant.id,
            broken.engine.name()
        );
    }
    workshop.restore()?;
    if let Some(matrix) = matrix {
        std::fs::write(matrix, table).with_context(|| matrix.display().to_string())?;
    }
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

/// Asks the rules of the mutant's families, and where these find nothing, or all shall be known, every rule.
fn find(
    workshop: &Workshop<'_>,
    engine: Engine,
    mutant: &Mutant,
    is_whole: bool,
) -> anyhow::Result<Found> {
    if !is_whole {
        let families = mutant.rules().filter_map(|rule| rule.split('-').next());
        let families: Vec<_> = families.collect();
        let found = conform(workshop, engine, &mutant.id, &families, false)?;
        if !matches!(&found, Found::Rules(rules) if rules.is_empty()) {
            return Ok(found);
        }
    }
    conform(workshop, engine, &mutant.id, &[], is_whole)
}

/// Runs the suite of the program that was built.
fn conform(
    workshop: &Workshop<'_>,
    engine: Engine,
    id: &str,
    families: &[&str],
    is_whole: bool,
) -> anyhow::Result<Found> {
    let json = workshop.log(id).with_extension("json");
    let log = workshop.log(id);
    let _ = std::fs::remove_file(&json);
    let ended = workshop.conform(engine.name(), families, is_whole, &json, &log)?;
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
