//! Every word that two parties share is explored by loom, or it is said why not: `tests/words.toml`, held against the
//! layouts of `src/abi`, the atomics of the rooms that have protocols, and the scenarios of `tests/loom*.rs`.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod rust_source;
}

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use support::rust_source::Source;

/// Rooms each of whose atomics is in the table. `umd` and `beside` have none yet.
const ROOMS: &[&str] = &["beside", "gpu", "kmd", "os", "trace", "umd", "vulkan"];

/// An entry of the table.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    /// A layout.
    of: Option<String>,
    /// From the root of the tree.
    file: Option<String>,
    names: Vec<String>,
    #[serde(default)]
    explored: Vec<String>,
    none: Option<String>,
}

/// The table.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    words: Vec<Entry>,
    beside: Vec<Entry>,
    atomics: Vec<Entry>,
}

impl Table {
    fn read() -> Self {
        let text = std::fs::read_to_string(tests().join("words.toml")).unwrap();
        toml::from_str(&text).unwrap()
    }

    fn entries(&self) -> impl Iterator<Item = &Entry> {
        let all = [&self.words, &self.beside, &self.atomics];
        all.into_iter().flatten()
    }
}

fn tests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")
}

/// The names of entries, each with what it is of; it is there once.
fn names<'e>(
    entries: &'e [Entry],
    of: impl Fn(&'e Entry) -> Option<&'e String>,
) -> BTreeSet<(String, String)> {
    let mut seen = BTreeSet::new();
    for entry in entries {
        let of = of(entry).map_or("", String::as_str);
        for name in &entry.names {
            assert!(
                seen.insert((of.to_owned(), name.clone())),
                "{of} {name} is there twice"
            );
        }
    }
    seen
}

fn source(path: &str) -> Option<Source> {
    let mut sources = Source::all().into_iter();
    sources.find(|source| Some(source.path.as_str()) == path.strip_prefix("src/"))
}

/// The words that `offsets!` declares, each with its layout.
fn declared() -> BTreeSet<(String, String)> {
    let sources = Source::all().into_iter();
    let mut found = BTreeSet::new();
    for source in sources.filter(|source| source.room() == Some("abi")) {
        for block in source.code.split("\noffsets!(").skip(1) {
            let (head, body) = block.split_once('{').unwrap();
            let layout = head.split(',').next().unwrap().trim();
            let body = body.split('}').next().unwrap();
            let words = body.split(',').filter_map(|word| word.split_once('='));
            found.extend(words.map(|(word, _)| (layout.to_owned(), word.trim().to_owned())));
        }
    }
    found
}

fn is_atomic(kind: &str) -> bool {
    let kind = kind.strip_prefix("Arc<").unwrap_or(kind);
    let kind = kind.strip_prefix("plain::").unwrap_or(kind);
    kind.starts_with("Atomic") && !kind.split(" = ").next().unwrap_or(kind).contains("::")
}

/// The name of a field or a static that is an atomic, of one line of code; of a struct whose one field has no name, that
/// of the struct.
fn atomic_of(line: &str) -> Option<&str> {
    if let Some((name, kind)) = line
        .split_once("struct ")
        .and_then(|(_, rest)| rest.split_once('('))
    {
        let kind = kind
            .rsplit_once(") ")
            .filter(|(before, _)| before.starts_with("pub("))
            .map_or(kind, |(_, kind)| kind);
        let kind = kind.strip_prefix("pub ").unwrap_or(kind);
        return is_atomic(kind).then_some(name);
    }
    let (name, kind) = line.split_once(": ")?;
    let is_declared = kind.ends_with(',') || kind.contains(" = ");
    let name = name.split_whitespace().last()?;
    (is_declared && is_atomic(kind)).then_some(name)
}

/// The atomics of the rooms, each with its file.
fn atomics() -> BTreeSet<(String, String)> {
    let mut found = BTreeSet::new();
    for source in Source::all() {
        let has_protocols = source.room().is_some_and(|room| ROOMS.contains(&room));
        let is_explorers = source.path.contains("/explored_") || source.path.contains("_tests");
        if has_protocols && !is_explorers {
            let names = source.code.lines().filter_map(atomic_of);
            found.extend(names.map(|name| (format!("src/{}", source.path), name.to_owned())));
        }
    }
    found
}

#[test]
fn every_word_of_a_layout_is_in_the_table() {
    let (declared, table) = (declared(), Table::read());
    assert!(
        declared.contains(&("EngineControl".into(), "MAILBOX_WRITE".into())),
        "the layouts are read"
    );
    let named = names(&table.words, |entry| entry.of.as_ref());
    let missing: Vec<_> = declared.difference(&named).collect();
    assert!(missing.is_empty(), "not in tests/words.toml: {missing:?}");
    let unknown: Vec<_> = named.difference(&declared).collect();
    assert!(unknown.is_empty(), "no layout has {unknown:?}");
}

#[test]
fn words_beside_the_layouts_are_there() {
    let table = Table::read();
    let sources = Source::all();
    let abi: Vec<_> = sources
        .iter()
        .filter(|source| source.room() == Some("abi"))
        .collect();
    for (of, name) in names(&table.beside, |entry| entry.of.as_ref()) {
        let declares = |source: &&&Source| {
            let head = format!("impl {of} {{");
            let parts: Vec<&str> = match of.as_str() {
                "" => vec![source.code.as_str()],
                _ => source.code.split(&head).skip(1).collect(),
            };
            let says = [
                format!("pub const {name}: u64"),
                format!("pub const fn {name}("),
            ];
            parts.iter().any(|part| {
                let body = part.split("\n}").next().unwrap_or_default();
                let whole = if of.is_empty() { *part } else { body };
                says.iter().any(|say| whole.contains(say))
            })
        };
        assert!(
            abi.iter().find(declares).is_some(),
            "src/abi has no {of}::{name}"
        );
    }
}

#[test]
fn every_atomic_of_a_protocol_is_in_the_table() {
    let (found, table) = (atomics(), Table::read());
    for (file, name) in [
        ("src/gpu/activity.rs", "is_awake"),
        ("src/os/device_state.rs", "DeviceState"),
    ] {
        assert!(
            found.contains(&(file.into(), name.into())),
            "the rooms are read"
        );
    }
    let named = names(&table.atomics, |entry| entry.file.as_ref());
    let missing: Vec<_> = found.difference(&named).collect();
    assert!(missing.is_empty(), "not in tests/words.toml: {missing:?}");
    // Of other rooms there may be some.
    for (file, name) in named.difference(&found) {
        let source = source(file).unwrap_or_else(|| panic!("{file} is not there"));
        let mut names = source.code.lines().filter_map(atomic_of);
        assert!(
            names.any(|atomic| atomic == name),
            "{file} has no atomic {name}"
        );
    }
}

/// The scenarios, each with its file.
fn scenarios() -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for file in tests().read_dir().unwrap() {
        let path = file.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let is_source = path.extension().is_some_and(|extension| extension == "rs");
        if !name.starts_with("loom") || !is_source {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        for rest in text.split("#[test]\nfn ").skip(1) {
            let scenario = rest.split('(').next().unwrap().to_owned();
            found.insert(scenario, name.clone());
        }
    }
    found
}

#[test]
fn every_entry_names_scenarios_or_says_why_there_is_none() {
    let (scenarios, table) = (scenarios(), Table::read());
    assert!(
        scenarios.contains_key("loom_a_waiter_arms_while_the_engine_signals"),
        "the scenarios are read"
    );
    for entry in table.entries() {
        let names = &entry.names;
        assert!(!names.is_empty(), "{entry:?} is of nothing");
        assert_eq!(
            entry.explored.is_empty(),
            entry.none.is_some(),
            "{names:?}: either scenarios or why there is none"
        );
        assert!(
            entry.none.as_ref().is_none_or(|why| why.contains(' ')),
            "{names:?}: why is there none?"
        );
        for scenario in &entry.explored {
            assert!(
                scenarios.contains_key(scenario),
                "{names:?}: there is no scenario {scenario}"
            );
        }
    }
}
