//! A mutant: a change of the source, at one place or several, that breaks one promise, and the tests that must notice.

use anyhow::{Context, ensure};
use serde::Deserialize;
use std::iter;
use std::path::{Path, PathBuf};

/// How a mutant's tests are built and run.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Harness {
    /// As the suite is.
    #[default]
    Suite,
    /// Under loom: the mutant is a twin that lacks an ordering.
    Loom,
}

/// One `[[mutant]]` of tests/mutants/*.toml.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Mutant {
    pub(crate) id: String,
    /// None for what holds the house together and no rule of the contract.
    #[serde(default)]
    rule: Option<String>,
    #[serde(default)]
    rules: Vec<String>,
    #[serde(default)]
    test: Option<String>,
    #[serde(default)]
    tests: Vec<String>,
    #[serde(default)]
    pub(crate) harness: Harness,
    /// Path from the root of the repository.
    pub(crate) file: String,
    /// What is replaced; stands exactly once in the file.
    pub(crate) find: String,
    pub(crate) replace: String,
    /// What is replaced besides, where a step goes from one place to another. Such a mutant is tried alone.
    #[serde(default)]
    pub(crate) also: Vec<Change>,
    /// What it breaks, in one line.
    pub(crate) why: String,
    /// What looks for it takes so long that chance does not choose it.
    #[serde(default)]
    pub(crate) takes_minutes: bool,
    /// The file that lists it, for messages.
    #[serde(skip)]
    pub(crate) listed_in: String,
}

/// One place that is changed, as the fields of a mutant say.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Change {
    pub(crate) file: String,
    pub(crate) find: String,
    pub(crate) replace: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    #[serde(default)]
    mutant: Vec<Mutant>,
}

impl Mutant {
    pub(crate) fn rules(&self) -> impl Iterator<Item = &str> {
        self.rule.iter().chain(&self.rules).map(String::as_str)
    }

    /// Names of the test functions, each of which must fail.
    pub(crate) fn tests(&self) -> impl Iterator<Item = &str> {
        self.test.iter().chain(&self.tests).map(String::as_str)
    }

    /// All that is changed.
    pub(crate) fn changes(&self) -> impl Iterator<Item = Change> {
        let first = Change {
            file: self.file.clone(),
            find: self.find.clone(),
            replace: self.replace.clone(),
        };
        iter::once(first).chain(self.also.iter().cloned())
    }

    /// Whether the SPIR-V has to be rebuilt for it.
    pub(crate) fn is_of_shader(&self) -> bool {
        self.changes()
            .any(|change| change.file.starts_with("shaders/"))
    }

    /// Edits the files under `tree`.
    pub(crate) fn apply(&self, tree: &Path) -> anyhow::Result<()> {
        self.changes().try_for_each(|change| change.apply(tree))
    }
}

impl Change {
    fn apply(&self, tree: &Path) -> anyhow::Result<()> {
        let path = tree.join(&self.file);
        let text = std::fs::read_to_string(&path).with_context(|| self.file.clone())?;
        // It was looked at before the others of its mutant were made.
        ensure!(
            text.matches(&self.find).count() == 1,
            "{}: find does not stand there once",
            self.file
        );
        std::fs::write(&path, text.replace(&self.find, &self.replace))
            .with_context(|| self.file.clone())
    }
}

/// All mutants, in the order of their files and of their places there.
pub(crate) fn load(root: &Path) -> anyhow::Result<Vec<Mutant>> {
    let mut mutants = Vec::new();
    for file in lists(root)? {
        let path = root.join(&file);
        let name = file.display().to_string();
        let text = std::fs::read_to_string(&path).with_context(|| name.clone())?;
        let list: List = toml::from_str(&text).with_context(|| name.clone())?;
        mutants.extend(list.mutant.into_iter().map(|mut mutant| {
            mutant.listed_in.clone_from(&name);
            mutant
        }));
    }
    Ok(mutants)
}

fn lists(root: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let folder = Path::new("tests/mutants");
    let mut files = Vec::new();
    for entry in root.join(folder).read_dir().context("tests/mutants")? {
        let name = PathBuf::from(entry?.file_name());
        if name
            .extension()
            .is_some_and(|extension| extension == "toml")
        {
            files.push(folder.join(name));
        }
    }
    files.sort();
    Ok(files)
}
