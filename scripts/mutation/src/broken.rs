//! Broken implementations: mutants under the conformance suite.
//!
//! `tests/broken.toml` lists implementations that are wrong in one known way each, and by which mutant each is made. The
//! program has the mutant, alone or beside the others (`together`), and what `suite` finds of it is a line of the matrix.

use crate::mutant::Mutant;
use crate::suite::{Asked, Asking, Found, conform, find, unmutated};
use crate::together::Together;
use crate::workshop::{Workshop, tail};
use anyhow::{Context, ensure};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
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
        "the woven tree, with none of them chosen, keeps the rules that they name ({:.0} s)\n",
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
        print_row((broken, mutant), &found, began);
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
        let log = workshop.make(mutant)?;
        let builds =
            workshop.builds_shaders_of(mutant, &log)? && workshop.build_program(&log)?.succeeded();
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
        print_row((broken, mutant), &found, began);
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

/// Builds the program, and proves that it keeps the rules that the mutants name, on the engines that will be asked. Of any
/// other rule it is asked when a mutant is found by that (`suite`).
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
        let of_engine = chosen.iter().filter(|(broken, _)| broken.engine == engine);
        let rules: BTreeSet<_> = of_engine.flat_map(|(_, mutant)| mutant.rules()).collect();
        let rules: Vec<_> = rules.into_iter().collect();
        if rules.is_empty() {
            continue;
        }
        let asking = Asking {
            engine,
            is_whole: true,
            program: Asked::Unmutated,
        };
        match conform(workshop, asking, "unmutated-conform", &rules)? {
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

fn print_row((broken, mutant): (&Broken, &Mutant), found: &Found, began: Instant) {
    println!(
        "{:<55} {:<45} {:<6} {:>4.0} s  {found}",
        broken.says,
        mutant.id,
        broken.engine.name(),
        began.elapsed().as_secs_f64()
    );
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

/// What must hold of the list, a line each.
pub(crate) fn complaints(root: &Path, mutants: &[Mutant]) -> Vec<String> {
    match load(root, mutants) {
        Ok(_) => Vec::new(),
        Err(error) => vec![format!("{error:#}")],
    }
}
