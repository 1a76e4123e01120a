//! The table of the peers' cases, `tests/ports/cases.toml`: that it is whole, that what it names is there, and that
//! `tests/ports/README.md` says the same. `NFENCE_WRITE_PORTS=1 cargo nextest run --test ports` writes that.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

// Named by its path: beside a folder of the file's own name.
#[path = "support/rust_source.rs"]
mod rust_source;

use rust_source::source;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// How many cases each suite has.
const SUITES: [(&str, usize); 6] = [
    ("syncobj_timeline", 121),
    ("syncobj_wait", 69),
    ("syncobj_eventfd", 10),
    ("d3d12_sync", 20),
    ("vulkan_timeline_semaphore", 28),
    ("drm_sched", 27),
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    suite: Vec<Suite>,
    cases: Vec<Cases>,
}

/// Where cases come from, and what stands for what here.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Suite {
    name: String,
    of: String,
    file: String,
    cases: usize,
    what: String,
}

/// Cases of which the same became.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Cases {
    suite: String,
    names: Vec<String>,
    verdict: Verdict,
    test: Option<String>,
    reason: Option<String>,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
enum Verdict {
    Ported,
    NotApplicable,
    Covered,
}

impl Verdict {
    fn name(self) -> &'static str {
        match self {
            Self::Ported => "ported",
            Self::NotApplicable => "not applicable",
            Self::Covered => "covered",
        }
    }
}

fn tests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn table() -> Table {
    let path = tests().join("ports/cases.toml");
    toml::from_str(&read(&path)).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A test function: its file, and that file's text.
struct Test {
    file: String,
    text: String,
}

/// All test functions of `tests/*.rs`, by their names.
fn test_functions() -> BTreeMap<String, Test> {
    let mut functions = BTreeMap::new();
    for entry in tests().read_dir().unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "rs") {
            continue;
        }
        let file = path.file_name().unwrap().to_str().unwrap().to_owned();
        let text = read(&path);
        for name in tests_in(&source(&file, &text).code) {
            let (file, text) = (file.clone(), text.clone());
            functions.insert(name, Test { file, text });
        }
    }
    functions
}

/// Names of the functions that follow `#[test]`.
fn tests_in(code: &str) -> Vec<String> {
    let after = code.split("#[test]").skip(1);
    let name = |after: &str| {
        let (_, rest) = after.split_once("fn ")?;
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_')?;
        Some(rest[..end].to_owned())
    };
    after.filter_map(name).collect()
}

/// A case's name as a function's name has it.
fn as_in_a_name(case: &str) -> String {
    let words = case.split(|c: char| !c.is_alphanumeric());
    let words: Vec<_> = words.filter(|word| !word.is_empty()).collect();
    words.join("_").to_lowercase()
}

/// Complaints, a line each; none where all holds.
fn complaints(table: &Table, functions: &BTreeMap<String, Test>) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut seen: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for cases in &table.cases {
        let suite = cases.suite.as_str();
        let of = format!("{suite}: {}", cases.names.join(", "));
        let mut complain = |what: &str| complaints.push(format!("{of}: {what}"));
        if !table.suite.iter().any(|known| known.name == suite) {
            complain("of no suite");
        }
        for name in &cases.names {
            if !seen.entry(suite).or_default().insert(name) {
                complain(&format!("{name} stands here twice"));
            }
        }
        if cases.names.is_empty() {
            complain("names nothing");
        }
        if cases
            .reason
            .as_ref()
            .is_some_and(|reason| reason.trim().is_empty())
        {
            complain("an empty reason");
        }
        match cases.verdict {
            Verdict::Ported | Verdict::Covered if cases.test.is_none() => complain("no test"),
            Verdict::NotApplicable if cases.reason.is_none() => complain("no reason"),
            Verdict::Ported | Verdict::Covered | Verdict::NotApplicable => {}
        }
        let Some(test) = &cases.test else {
            continue;
        };
        let Some(found) = functions.get(test) else {
            complain(&format!("there is no test function {test} in tests/*.rs"));
            continue;
        };
        if cases.verdict != Verdict::Ported {
            continue;
        }
        for name in &cases.names {
            // By its own name, or as a row of what the test goes through.
            let row = name.split_once('/').map_or(name.as_str(), |(_, row)| row);
            let is_row = found.text.contains(&format!("\"{row}\""));
            if !test.contains(&as_in_a_name(name)) && !is_row {
                complain(&format!("neither {test} nor {} names {name}", found.file));
            }
        }
    }
    for (suite, expected) in SUITES {
        let said = table.suite.iter().find(|known| known.name == suite);
        let said = said.map_or(0, |known| known.cases);
        let is = seen.get(suite).map_or(0, BTreeSet::len);
        if (said, is) != (expected, expected) {
            complaints.push(format!(
                "{suite}: {is} cases, {said} said, {expected} expected"
            ));
        }
    }
    if table.suite.len() != SUITES.len() {
        complaints.push("a suite that nobody counts".into());
    }
    complaints
}

#[test]
fn each_case_of_the_peers_is_accounted_for() {
    let complaints = complaints(&table(), &test_functions());
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

/// The checks, by tables that break each of them.
#[test]
fn a_table_that_is_wrong_is_found() {
    let text = read(&tests().join("ports/cases.toml"));
    let functions = test_functions();
    let broken = |find: &str, replace: &str| {
        assert_eq!(text.matches(find).count(), 1, "{find}");
        let table = toml::from_str(&text.replace(find, replace)).unwrap();
        complaints(&table, &functions).join("\n")
    };
    let case = "names = [\"drm_sched_priorities\"]";
    let found = broken(case, "names = [\"drm_sched_basic_submit\"]");
    assert!(
        found.contains("twice") && found.contains("26 cases"),
        "{found}"
    );
    let found = broken(case, "names = [\"drm_sched_parities\"]");
    assert!(found.contains("names drm_sched_parities"), "{found}");
    let test = "test = \"drm_sched_priorities\"";
    let found = broken(test, "test = \"drm_sched_parities\"");
    assert!(found.contains("no test function"), "{found}");
    let found = broken(test, "");
    assert!(found.contains("no test"), "{found}");
    let reason = "reason = \"memory is bound when it is made, and no queue binds it\"";
    assert!(broken(reason, "reason = \" \"").contains("an empty reason"));
    assert!(broken(reason, "").contains("no reason"));
    let found = tests_in("#[test]\nfn a() {} fn b() {} #[test]\n#[ignore]\nfn c() {}");
    assert_eq!(found, ["a", "c"]);
}

/// What stands in `tests/ports/README.md`.
fn readme(table: &Table, functions: &BTreeMap<String, Test>) -> String {
    let mut text = String::from(
        "# What the peers test\n\n\
         Cases of public test suites about fences, and what became of each here: written anew from what it asserts (ported, \
         with the test), asserted before (covered, with the test), or not applicable, with the reason and, where one does, a \
         test of what holds here in its place. Made of `cases.toml` by `NFENCE_WRITE_PORTS=1 cargo nextest run --test \
         ports`.\n\n\
         | suite | of | cases | ported | covered | not applicable |\n|---|---|---|---|---|---|\n",
    );
    let of = |suite: &'_ Suite| {
        let name = suite.name.clone();
        table.cases.iter().filter(move |cases| cases.suite == name)
    };
    for suite in &table.suite {
        let count = |verdict| -> usize {
            let cases = of(suite).filter(|cases| cases.verdict == verdict);
            cases.map(|cases| cases.names.len()).sum()
        };
        let Suite {
            name, of, cases, ..
        } = suite;
        let counts = [Verdict::Ported, Verdict::Covered, Verdict::NotApplicable].map(count);
        let [ported, covered, not] = counts;
        let row = format!("| {name} | {of} | {cases} | {ported} | {covered} | {not} |");
        writeln!(text, "{row}").unwrap();
    }
    for suite in &table.suite {
        let Suite {
            name,
            of: by,
            file,
            what,
            ..
        } = suite;
        write!(text, "\n## {name}\n\n{by}, `{file}`. {what}\n").unwrap();
        text.push_str("\n| case | verdict | test, reason |\n|---|---|---|\n");
        let rows = of(suite).flat_map(|cases| cases.names.iter().map(move |name| (name, cases)));
        let rows: BTreeMap<_, _> = rows.collect();
        for (name, cases) in rows {
            let test = cases.test.iter().map(|test| {
                let file = functions.get(test).map_or("", |test| &test.file);
                format!("`{test}` ([{file}](../{file}))")
            });
            let says: Vec<_> = test.chain(cases.reason.clone()).collect();
            let verdict = cases.verdict.name();
            writeln!(text, "| `{name}` | {verdict} | {} |", says.join(": ")).unwrap();
        }
    }
    text
}

#[test]
fn the_readable_table_says_the_same() {
    let path = tests().join("ports/README.md");
    let text = readme(&table(), &test_functions());
    if std::env::var_os("NFENCE_WRITE_PORTS").is_some() {
        fs::write(&path, &text).unwrap();
    }
    let is_same = fs::read_to_string(&path).is_ok_and(|found| found == text);
    assert!(
        is_same,
        "{} is not what cases.toml says: NFENCE_WRITE_PORTS=1 cargo nextest run --test ports",
        path.display()
    );
}
