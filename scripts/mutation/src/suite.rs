//! Suite: what `nfence conform` finds of a program.
//!
//! It is asked its mutant's own rules first, then those of their families: the first that it breaks has found it. Asked
//! whole, all that it breaks is found, which takes a while: each wait that a mutant never ends has its own time-out.
//!
//! A rule that the list of mutants does not name may have been broken by chance. It is asked once more of the program
//! without a mutant and of the one with it, and has found something only if it holds there and is broken here again.

use crate::broken::Engine;
use crate::mutant::Mutant;
use crate::together::Variable;
use crate::workshop::Workshop;
use anyhow::ensure;
use serde::Deserialize;
use std::fmt;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// Whatever is awaited has its own limit.
const LIMIT: Duration = Duration::from_secs(1200);

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
pub(crate) enum Found {
    /// These rules do not hold; none where it was not found.
    Rules(Vec<String>),
    /// The suite came to no end.
    Hung,
    /// The program does not build.
    Invalid,
}

/// Which program is asked.
#[derive(Clone, Copy)]
pub(crate) enum Asked<'c> {
    /// The one that was built last.
    Built,
    /// The same of the woven tree, made one of them by this.
    Woven(&'c Variable),
    /// The one of the woven tree that was proved, which is none of them.
    Unmutated,
}

/// How the suite is asked.
#[derive(Clone, Copy)]
pub(crate) struct Asking<'c> {
    pub(crate) engine: Engine,
    /// Every rule, though one is found broken.
    pub(crate) is_whole: bool,
    pub(crate) program: Asked<'c>,
}

impl Found {
    pub(crate) fn is_good(&self) -> bool {
        matches!(self, Self::Rules(rules) if !rules.is_empty())
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

/// Where the program of the woven tree stays.
pub(crate) fn unmutated(workshop: &Workshop<'_>) -> PathBuf {
    workshop.folder.join("nfence-unmutated")
}

/// Asks the mutant's own rules, then those of their families, and where these find nothing, or all shall be known, every
/// rule.
pub(crate) fn find(
    workshop: &Workshop<'_>,
    asking: Asking<'_>,
    mutant: &Mutant,
) -> anyhow::Result<Found> {
    if !asking.is_whole {
        let own: Vec<_> = mutant.rules().collect();
        let families = mutant.rules().filter_map(|rule| rule.split('-').next());
        for asked in [own, families.collect()] {
            let found = find_by(workshop, asking, mutant, &asked)?;
            if !matches!(&found, Found::Rules(rules) if rules.is_empty()) {
                return Ok(found);
            }
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
pub(crate) fn conform(
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
