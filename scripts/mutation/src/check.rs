//! What must hold of the lists of mutants before any of them is tried.

use crate::mutant::{Change, Harness, Mutant};
use crate::test_index::{Program, TestIndex, is_named_after_rule};
use std::collections::BTreeSet;
use std::path::Path;

/// Complaints, a line each; none where all holds.
pub(crate) fn complaints(root: &Path, mutants: &[Mutant], index: &TestIndex) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut ids = BTreeSet::new();
    for mutant in mutants {
        let mut complain =
            |what: String| complaints.push(format!("{}: {}: {what}", mutant.listed_in, mutant.id));
        if !ids.insert(mutant.id.as_str()) {
            complain("the id is used twice".into());
        }
        if !is_kebab(&mutant.id) {
            complain("the id is not in kebab-case".into());
        }
        if mutant.rules().next().is_none() && mutant.tests().any(is_named_after_rule) {
            complain("names no rule, and its test does".into());
        }
        for rule in mutant.rules().filter(|rule| !is_rule(rule)) {
            complain(format!("`{rule}` is no rule's id, such as NF-05"));
        }
        if mutant.tests().next().is_none() {
            complain("names no test".into());
        }
        for test in mutant.tests().filter(|test| index.programs(test).is_none()) {
            complain(format!("there is no test function {test}"));
        }
        for test in mutant.tests() {
            let programs = index.programs(test);
            let of_loom = programs.is_some_and(|of| of.iter().any(Program::is_of_loom));
            if of_loom != (mutant.harness == Harness::Loom) {
                complain(format!("{test} runs by another harness"));
            }
        }
        if mutant.why.trim().is_empty() {
            complain("does not say why".into());
        }
        mutant
            .changes()
            .filter_map(|change| change_complaint(root, &change))
            .for_each(complain);
    }
    let named: BTreeSet<&str> = mutants.iter().flat_map(Mutant::tests).collect();
    complaints.extend(
        index
            .rule_tests()
            .filter(|(test, _)| !named.contains(test))
            .map(|(test, file)| format!("{file}: no mutant names {test}")),
    );
    complaints
}

fn change_complaint(root: &Path, change: &Change) -> Option<String> {
    if !change.file.starts_with("src/") && !change.file.starts_with("shaders/") {
        return Some(format!("{} is not under src/ or shaders/", change.file));
    }
    if change.find == change.replace {
        return Some("find and replace are the same".into());
    }
    let Ok(text) = std::fs::read_to_string(root.join(&change.file)) else {
        return Some(format!("{} cannot be read", change.file));
    };
    match text.matches(&change.find).count() {
        1 => None,
        times => Some(format!(
            "find stands {times} times in {}, not once",
            change.file
        )),
    }
}

fn is_kebab(id: &str) -> bool {
    let is_word = |word: &str| {
        !word.is_empty()
            && word
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
    };
    id.split('-').all(is_word)
}

fn is_rule(rule: &str) -> bool {
    matches!(rule.as_bytes(), [a, b, b'-', c, d]
        if a.is_ascii_uppercase() && b.is_ascii_uppercase() && c.is_ascii_digit() && d.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_held_to_its_form() {
        let root = tempfile::tempdir().unwrap();
        for folder in ["src", "tests/mutants"] {
            std::fs::create_dir_all(root.path().join(folder)).unwrap();
        }
        let write = |file: &str, text: &str| std::fs::write(root.path().join(file), text).unwrap();
        write("src/lib.rs", "fn one() -> u32 { 1 + 1 - 1 }");
        write(
            "tests/log.rs",
            "#[test]\nfn lg_01_a() {}\n#[test]\nfn lg_02_b() {}\n",
        );
        let mutant = |id: &str, find: &str, test: &str| {
            format!(
                "[[mutant]]\nid = '{id}'\nrule = 'LG-01'\ntest = '{test}'\n\
                 file = 'src/lib.rs'\nfind = '{find}'\nreplace = 'x'\nwhy = 'w'\n"
            )
        };
        write("tests/mutants/a.toml", &mutant("good", "+ 1", "lg_01_a"));
        let also = "also = [{ file = 'src/gone.rs', find = '1', replace = '2' }]\n";
        let list = [mutant("good", "1", "lg_01_a"), mutant("Bad", "u32", "gone")].concat()
            + also
            + &mutant("twin", "+ 1", "lg_01_a")
            + "harness = 'loom'";
        write("tests/mutants/log.toml", &list);

        let mutants = crate::mutant::load(root.path()).unwrap();
        let index = TestIndex::read(root.path()).unwrap();
        assert_eq!(
            complaints(root.path(), &mutants, &index),
            [
                "tests/mutants/log.toml: good: the id is used twice",
                "tests/mutants/log.toml: good: find stands 3 times in src/lib.rs, not once",
                "tests/mutants/log.toml: Bad: the id is not in kebab-case",
                "tests/mutants/log.toml: Bad: there is no test function gone",
                "tests/mutants/log.toml: Bad: src/gone.rs cannot be read",
                "tests/mutants/log.toml: twin: lg_01_a runs by another harness",
                "tests/log.rs: no mutant names lg_02_b",
            ]
        );
    }
}
