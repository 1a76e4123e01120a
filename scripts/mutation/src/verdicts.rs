//! Verdicts: what came of the mutants of a tree, kept in the folder as they come, so that a run that was cut short can
//! be gone on with, and a matrix of them by rule.

use crate::mutant::Mutant;
use crate::tree;
use crate::trial::{Row, Verdict};
use anyhow::Context;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

/// A line of the file.
#[derive(Debug, Serialize, Deserialize)]
struct Tried {
    mutant: String,
    test: String,
    verdict: Verdict,
    seconds: f64,
}

/// See the file's head.
#[derive(Debug)]
pub(crate) struct Verdicts {
    file: File,
    rows: BTreeMap<String, Vec<Row>>,
}

impl Verdicts {
    /// Of the tree `original` on a driver, in `folder`: with what earlier runs left of the two. What there is of others
    /// stays beside.
    pub(crate) fn open(folder: &Path, original: &Path, driver: &str) -> anyhow::Result<Self> {
        let tree = tree::digest(original, driver)?;
        let path = folder.join(format!("verdicts-{tree:016x}.jsonl"));
        // None where there was no run.
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let rows = rows_of(&text);
        // Anew with what is right of it: the last line may have been cut short.
        let mut options = OpenOptions::new();
        let opened = options.write(true).create(true).truncate(true).open(&path);
        let mut verdicts = Self {
            file: opened.with_context(|| path.display().to_string())?,
            rows: BTreeMap::new(),
        };
        for (mutant, rows) in rows {
            verdicts.keep(&mutant, rows)?;
        }
        Ok(verdicts)
    }

    /// Keeps what came of a mutant.
    pub(crate) fn keep(&mut self, mutant: &str, rows: Vec<Row>) -> anyhow::Result<()> {
        for row in &rows {
            self.write(&Tried {
                mutant: mutant.to_owned(),
                test: row.test.clone(),
                verdict: row.verdict,
                seconds: row.took.as_secs_f64(),
            })?;
        }
        self.rows.insert(mutant.to_owned(), rows);
        Ok(())
    }

    /// Whether each of a mutant's tests is known to notice it.
    pub(crate) fn is_killed(&self, mutant: &Mutant) -> bool {
        let rows = self.rows.get(&mutant.id).map_or(&[][..], Vec::as_slice);
        let is_good = |test| {
            let mut of_test = rows.iter().filter(|row| row.test == test);
            of_test.any(|row| row.verdict.is_good())
        };
        mutant.tests().all(is_good)
    }

    /// How many of these mutants each rule has, and what came of its lines, as Markdown.
    pub(crate) fn matrix(&self, mutants: &[&Mutant]) -> String {
        let mut by_rule: BTreeMap<&str, (Vec<&str>, [usize; 3])> = BTreeMap::new();
        for mutant in mutants {
            let mut rules: Vec<_> = mutant.rules().collect();
            if rules.is_empty() {
                rules.push("none");
            }
            for rule in rules {
                let (ids, counts) = by_rule.entry(rule).or_default();
                ids.push(&mutant.id);
                for row in self.rows.get(&mutant.id).into_iter().flatten() {
                    counts[match row.verdict {
                        Verdict::Killed => 0,
                        Verdict::Hung => 1,
                        Verdict::Survived | Verdict::Invalid | Verdict::Unproved => 2,
                    }] += 1;
                }
            }
        }
        let mut text = String::from(
            "| rule | mutants | killed | killed (hung) | NOT killed | which |\n|---|---|---|---|---|---|\n",
        );
        for (rule, (ids, [killed, hung, not])) in by_rule {
            let (count, ids) = (ids.len(), ids.join(", "));
            let _ = writeln!(
                text,
                "| {rule} | {count} | {killed} | {hung} | {not} | {ids} |"
            );
        }
        text
    }

    fn write(&mut self, line: &Tried) -> anyhow::Result<()> {
        let mut text = serde_json::to_string(line)?;
        text.push('\n');
        Ok(self.file.write_all(text.as_bytes())?)
    }
}

/// The rows of a file, by mutant.
fn rows_of(text: &str) -> BTreeMap<String, Vec<Row>> {
    let lines = text
        .lines()
        .map_while(|line| serde_json::from_str::<Tried>(line).ok());
    let mut rows: BTreeMap<_, Vec<Row>> = BTreeMap::new();
    for tried in lines {
        let rows = rows.entry(tried.mutant).or_default();
        // What came last of a test counts.
        rows.retain(|row| row.test != tried.test);
        rows.push(Row {
            test: tried.test,
            verdict: tried.verdict,
            took: Duration::try_from_secs_f64(tried.seconds).unwrap_or_default(),
        });
    }
    rows
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]
    use super::*;

    fn row(test: &str, verdict: Verdict) -> Row {
        Row {
            test: test.to_owned(),
            verdict,
            took: Duration::from_millis(1500),
        }
    }

    fn mutant(id: &str, rule: &str, tests: &[&str]) -> Mutant {
        let text = format!(
            "id = {id:?}\nrule = {rule:?}\ntests = {tests:?}\nfile = \"a\"\nfind = \"b\"\nreplace = \"c\"\nwhy = \"d\"\n"
        );
        toml::from_str(&text).unwrap()
    }

    #[test]
    fn what_was_tried_is_known_again_of_the_same_tree_alone() {
        let folder = tempfile::tempdir().unwrap();
        let original = folder.path().join("original");
        std::fs::create_dir(&original).unwrap();
        std::fs::write(original.join("a.rs"), "a").unwrap();
        let open = || Verdicts::open(folder.path(), &original, "lavapipe").unwrap();
        let [both, half, survives] = [
            mutant("both", "NF-01", &["t", "u"]),
            mutant("half", "NF-01", &["t", "u"]),
            mutant("survives", "NF-02", &["t"]),
        ];
        let mut verdicts = open();
        let rows = vec![row("t", Verdict::Killed), row("u", Verdict::Hung)];
        verdicts.keep("both", rows).unwrap();
        let rows = vec![row("t", Verdict::Killed)];
        verdicts.keep("half", rows).unwrap();
        let rows = vec![row("t", Verdict::Survived)];
        verdicts.keep("survives", rows).unwrap();
        drop(verdicts);

        // Cut short in the midst of a line.
        let files: Vec<_> = folder.path().read_dir().unwrap().collect();
        let mut files = files.into_iter().map(|file| file.unwrap().path());
        let path = files.find(|path| path.extension().is_some()).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, text + "{\"mut").unwrap();
        for _ in 0..2 {
            let verdicts = open();
            assert!(verdicts.is_killed(&both));
            assert!(!verdicts.is_killed(&half) && !verdicts.is_killed(&survives));
            let matrix = verdicts.matrix(&[&both, &half, &survives]);
            assert!(
                matrix.contains("| NF-01 | 2 | 2 | 1 | 0 | both, half |"),
                "{matrix}"
            );
            assert!(
                matrix.contains("| NF-02 | 1 | 0 | 0 | 1 | survives |"),
                "{matrix}"
            );
        }
        // What came of one last counts.
        for (verdict, is_killed) in [(Verdict::Killed, true), (Verdict::Survived, false)] {
            open().keep("survives", vec![row("t", verdict)]).unwrap();
            assert_eq!(open().is_killed(&survives), is_killed);
        }
        std::fs::write(original.join("a.rs"), "b").unwrap();
        assert!(!open().is_killed(&both), "it is another tree");
        std::fs::write(original.join("a.rs"), "a").unwrap();
        let other = Verdicts::open(folder.path(), &original, "another driver").unwrap();
        assert!(!other.is_killed(&both));
        assert!(open().is_killed(&both), "it is that tree again");
    }
}
