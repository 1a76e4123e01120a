//! Where a test function lies, so that no other test program is built and run for it.
//!
//! Found by reading the sources: a function whose attributes include `#[test]`, which holds for
//! those inside of `proptest!` too.

use anyhow::Context;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// What `cargo test` must build for a test.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Program {
    /// The unit tests of the library.
    Library,
    /// `tests/NAME.rs` or `tests/NAME/main.rs`.
    File(String),
    /// Unit tests of the program, or a module that several test programs share.
    Unknown,
}

impl Program {
    /// Whether its tests run under loom: `tests/loom.rs` and `tests/loom_*.rs`.
    pub(crate) fn is_of_loom(&self) -> bool {
        match self {
            Self::File(name) => name == "loom" || name.starts_with("loom_"),
            Self::Library | Self::Unknown => false,
        }
    }

    /// Nextest's filter that selects it; `None` for all.
    pub(crate) fn filter(&self) -> Option<String> {
        match self {
            Self::Library => Some("kind(lib)".to_owned()),
            Self::File(name) => Some(format!("binary(={name})")),
            Self::Unknown => None,
        }
    }

    /// Cargo's argument that selects it.
    pub(crate) fn arguments(&self) -> Vec<String> {
        match self {
            Self::Library => vec!["--lib".into()],
            Self::File(name) => vec!["--test".into(), name.clone()],
            Self::Unknown => Vec::new(),
        }
    }
}

/// Nextest's filter that selects a test function, whatever module it is in.
pub(crate) fn filter_of(test: &str) -> String {
    format!("test(/(^|::){test}$/)")
}

/// All test functions.
#[derive(Debug, Default)]
pub(crate) struct TestIndex {
    programs: BTreeMap<String, BTreeSet<Program>>,
    /// Tests in tests/ that are named after a rule, with their files.
    rule_tests: BTreeMap<String, String>,
}

impl TestIndex {
    pub(crate) fn read(root: &Path) -> anyhow::Result<Self> {
        let mut index = Self::default();
        for folder in ["src", "tests"] {
            index.read_folder(root, Path::new(folder))?;
        }
        Ok(index)
    }

    /// The programs that have a test of this name.
    pub(crate) fn programs(&self, test: &str) -> Option<&BTreeSet<Program>> {
        self.programs.get(test)
    }

    /// The tests that run under loom.
    pub(crate) fn scenarios(&self) -> BTreeSet<&str> {
        let of_loom = self
            .programs
            .iter()
            .filter(|(_, of)| of.iter().any(Program::is_of_loom));
        of_loom.map(|(test, _)| test.as_str()).collect()
    }

    /// Tests in tests/ that are named after a rule, with their files.
    pub(crate) fn rule_tests(&self) -> impl Iterator<Item = (&str, &str)> {
        self.rule_tests
            .iter()
            .map(|(test, file)| (test.as_str(), file.as_str()))
    }

    fn read_folder(&mut self, root: &Path, folder: &Path) -> anyhow::Result<()> {
        let full = root.join(folder);
        for entry in full
            .read_dir()
            .with_context(|| full.display().to_string())?
        {
            let entry = entry?;
            let path = folder.join(entry.file_name());
            if entry.file_type()?.is_dir() {
                self.read_folder(root, &path)?;
            } else if path.extension().is_some_and(|e| e == "rs") {
                let text = std::fs::read_to_string(root.join(&path))?;
                self.read_text(&path, &text);
            }
        }
        Ok(())
    }

    fn read_text(&mut self, path: &Path, text: &str) {
        for test in test_functions(text) {
            if path.starts_with("tests") && is_named_after_rule(test) {
                self.rule_tests
                    .insert(test.to_owned(), path.display().to_string());
            }
            self.programs
                .entry(test.to_owned())
                .or_default()
                .insert(program_of(path));
        }
    }
}

fn program_of(path: &Path) -> Program {
    let parts: Vec<_> = path.iter().map(|part| part.to_string_lossy()).collect();
    match parts.iter().map(AsRef::as_ref).collect::<Vec<&str>>()[..] {
        ["src", "main.rs"] => Program::Unknown,
        ["src", ..] => Program::Library,
        ["tests", file] => Program::File(file.trim_end_matches(".rs").to_owned()),
        ["tests", name, "main.rs"] => Program::File(name.to_owned()),
        _ => Program::Unknown,
    }
}

/// Names of the functions that have the attribute `#[test]`.
fn test_functions(text: &str) -> impl Iterator<Item = &str> {
    let mut is_test = false;
    text.lines().filter_map(move |line| {
        let line = line.trim_start();
        if line.starts_with("#[test]") {
            is_test = true;
        }
        let at = line.find("fn ")?;
        let before = line[..at].trim_end();
        let is_item = before.is_empty() || before.starts_with("pub") || before == "#[test]";
        if !is_item || !std::mem::take(&mut is_test) {
            return None;
        }
        line[at + 3..].split(['(', '<']).next()
    })
}

/// Whether it reads `nf_05_…`: two letters, two digits, a sentence.
pub(crate) fn is_named_after_rule(test: &str) -> bool {
    let mut parts = test.splitn(3, '_');
    let area = parts.next().unwrap_or_default();
    let number = parts.next().unwrap_or_default();
    area.len() == 2
        && area.bytes().all(|b| b.is_ascii_lowercase())
        && number.len() == 2
        && number.bytes().all(|b| b.is_ascii_digit())
        && parts.next().is_some_and(|sentence| !sentence.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_functions_are_found_by_their_attribute() {
        let text = "fn helper() {}\n#[test]\n/// Says.\n#[should_panic]\nfn nf_05_says() {}\n\
                    proptest! {\n    #[test]\n    fn holds(x in 0..3u32) {}\n}\n\
                    // the fn of it\n#[test] fn short() {}\nfn other() {}";
        let found: Vec<_> = test_functions(text).collect();
        assert_eq!(found, ["nf_05_says", "holds", "short"]);
    }

    #[test]
    fn rules_are_two_letters_and_two_digits() {
        assert!(is_named_after_rule("nf_05_a_wait_for_zero"));
        for other in ["nf_5_short", "the_05_rule", "nf_05", "nf_05_", "NF_05_a"] {
            assert!(!is_named_after_rule(other), "{other}");
        }
    }

    #[test]
    fn a_path_tells_the_program() {
        assert_eq!(program_of(Path::new("src/os/x.rs")), Program::Library);
        let file = |name: &str| Program::File(name.to_owned());
        assert_eq!(program_of(Path::new("tests/log.rs")), file("log"));
        assert_eq!(program_of(Path::new("tests/log/main.rs")), file("log"));
        assert_eq!(
            program_of(Path::new("tests/support/x.rs")),
            Program::Unknown
        );
    }
}
