//! Refusal: at which mutants of the woven tree the compiler points.

use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// A line of what cargo says.
#[derive(Deserialize)]
struct Said {
    reason: String,
    #[serde(default)]
    message: Option<Message>,
}

#[derive(Deserialize)]
struct Message {
    level: String,
    #[serde(rename = "message")]
    text: String,
    spans: Vec<Place>,
    children: Vec<Message>,
}

#[derive(Deserialize)]
struct Place {
    file_name: String,
    line_start: usize,
    is_primary: bool,
}

/// Where the copies stand.
#[derive(Debug, Default)]
pub(super) struct Places(BTreeMap<String, Vec<(u32, Range<usize>)>>);

impl Places {
    pub(super) fn of_file(&mut self, file: &str, lines: Vec<(u32, Range<usize>)>) {
        self.0.insert(file.to_owned(), lines);
    }

    pub(super) fn numbers(&self) -> BTreeSet<u32> {
        let all = self.0.values().flatten();
        all.map(|(number, _)| *number).collect()
    }

    fn at(&self, place: &Place) -> Option<u32> {
        let lines = self.0.get(&place.file_name)?;
        let mut here = lines
            .iter()
            .filter(|(_, lines)| lines.contains(&place.line_start));
        here.next().map(|(number, _)| *number)
    }
}

/// The mutants at which the compiler points with an error; where no error's own place is a mutant's, those that it
/// names beside it.
pub(super) fn refused(said: &str, places: &Places) -> BTreeSet<u32> {
    let messages = said
        .lines()
        .filter_map(|line| serde_json::from_str::<Said>(line).ok());
    let messages = messages.filter(|said| said.reason == "compiler-message");
    let errors: Vec<_> = messages
        .filter_map(|said| said.message)
        .filter(|message| message.level == "error")
        .collect();
    let mut refused = BTreeSet::new();
    for error in &errors {
        let own = |is_primary: bool| {
            let meant = error
                .spans
                .iter()
                .filter(move |place| place.is_primary == is_primary);
            meant
                .filter_map(|place| places.at(place))
                .collect::<Vec<_>>()
        };
        let mut found = own(true);
        if found.is_empty() {
            found = own(false);
        }
        if found.is_empty() {
            let beside = error.children.iter().flat_map(|child| &child.spans);
            found = beside.filter_map(|place| places.at(place)).collect();
        }
        if found.is_empty() && !error.text.starts_with("aborting") {
            println!("at no mutant: {}", error.text);
        }
        refused.extend(found);
    }
    refused
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(file: &str, line: usize, is_primary: bool, beside: &str) -> String {
        let place = |line: usize, is_primary: bool| {
            format!(r#"{{"file_name":"{file}","line_start":{line},"is_primary":{is_primary}}}"#)
        };
        let children = match beside.parse() {
            Ok(line) => format!(
                r#"{{"level":"note","message":"","spans":[{}],"children":[]}}"#,
                place(line, true)
            ),
            Err(_) => String::new(),
        };
        format!(
            r#"{{"reason":"compiler-message","message":{{"level":"error","message":"no","spans":[{}],"children":[{children}]}}}}"#,
            place(line, is_primary)
        )
    }

    #[test]
    fn the_compiler_points_at_mutants() {
        let mut places = Places::default();
        places.of_file("src/a.rs", vec![(1, 10..20), (2, 20..30), (3, 30..40)]);
        let lines = [
            said("src/a.rs", 12, true, ""),
            said("src/a.rs", 29, false, ""),
            said("src/b.rs", 12, true, ""),
            String::from("not JSON"),
        ];
        assert_eq!(refused(&lines.join("\n"), &places), BTreeSet::from([1, 2]));
        let beside = said("src/a.rs", 50, true, "31");
        assert_eq!(refused(&beside, &places), BTreeSet::from([3]));
    }
}
