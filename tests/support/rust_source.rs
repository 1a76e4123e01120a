//! Rust sources, read for what their code names; comments and texts do not count.

#![allow(dead_code, reason = "each test file uses a part")]

use std::path::{Path, PathBuf};

/// One file under `src`.
#[derive(Debug)]
pub(crate) struct Source {
    /// From `src`, with forward slashes.
    pub(crate) path: String,
    /// The code: comments, texts and characters are blank, lines keep their numbers.
    pub(crate) code: String,
}

impl Source {
    /// Every Rust file under `src`.
    pub(crate) fn all() -> Vec<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let mut files = Vec::new();
        collect(&root, &mut files);
        files.sort();
        let source = |file: PathBuf| {
            let text = std::fs::read_to_string(&file).expect("a source can be read");
            let path = file.strip_prefix(&root).expect("it lies under src");
            let parts: Vec<_> = path.iter().map(|part| part.to_string_lossy()).collect();
            Self {
                path: parts.join("/"),
                code: code_of(&text),
            }
        };
        files.into_iter().map(source).collect()
    }

    /// The folder under `src`, or nothing for a file at the root.
    pub(crate) fn room(&self) -> Option<&str> {
        self.path.split_once('/').map(|(room, _)| room)
    }

    /// Words of the code, each with its line and the rest of the code from it on.
    pub(crate) fn words(&self) -> impl Iterator<Item = (usize, &str, &str)> {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let mut at = 0;
        std::iter::from_fn(move || {
            let start = at + self.code[at..].find(is_word)?;
            let rest = &self.code[start..];
            let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            at = start + end;
            let line = self.code[..start].matches('\n').count() + 1;
            Some((line, &rest[..end], rest))
        })
    }

    /// Names of the crate's root that the code names: by `crate::x` and by `crate::{x, y::z}`.
    pub(crate) fn root_names(&self) -> Vec<(usize, String)> {
        let mut names = Vec::new();
        for (line, word, rest) in self.words() {
            // A macro's `$crate` names it as well.
            let Some(path) = rest.strip_prefix("crate").filter(|_| word == "crate") else {
                continue;
            };
            let Some(path) = path.trim_start().strip_prefix("::") else {
                continue;
            };
            let found = first_names(path.trim_start());
            names.extend(found.into_iter().map(|name| (line, name)));
        }
        names
    }
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in folder.read_dir().expect("a folder can be read") {
        let path = entry.expect("it can be read").path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|e| e == "rs") {
            files.push(path);
        }
    }
}

/// The first names of a path, or of each path of a group.
fn first_names(path: &str) -> Vec<String> {
    let name = |part: &str| -> String {
        let part = part.trim_start();
        let end = part.find(|c: char| !c.is_alphanumeric() && c != '_');
        part[..end.unwrap_or(part.len())].to_owned()
    };
    let Some(group) = path.strip_prefix('{') else {
        return vec![name(path)];
    };
    let mut names = Vec::new();
    let mut depth = 0;
    let mut start = 0;
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            ',' | '}' if depth == 0 => {
                names.push(name(&group[start..at]));
                start = at + 1;
                if c == '}' {
                    break;
                }
            }
            '}' => depth -= 1,
            _ => {}
        }
    }
    names.retain(|name| !name.is_empty());
    names
}

/// Blanks comments, texts and characters.
fn code_of(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let length = blank_length(rest, code.chars().next_back());
        if length == 0 {
            code.push(c);
            rest = &rest[c.len_utf8()..];
            continue;
        }
        let (blank, after) = rest.split_at(length);
        code.extend(blank.chars().map(|c| if c == '\n' { c } else { ' ' }));
        rest = after;
    }
    code
}

/// Length of the comment, text or character that begins here; 0 where code does.
fn blank_length(rest: &str, before: Option<char>) -> usize {
    let until = |from: usize, end: &str| match rest[from..].find(end) {
        Some(at) => from + at + end.len(),
        None => rest.len(),
    };
    if rest.starts_with("//") {
        return rest.find('\n').unwrap_or(rest.len());
    }
    if rest.starts_with("/*") {
        return until(2, "*/");
    }
    let is_in_word = before.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let raw = rest.strip_prefix("br").or(rest.strip_prefix('r'));
    if let Some(raw) = raw.filter(|_| !is_in_word) {
        let hashes = raw.len() - raw.trim_start_matches('#').len();
        if raw[hashes..].starts_with('"') {
            let open = rest.len() - raw.len() + hashes + 1;
            return until(open, &format!("\"{}", "#".repeat(hashes)));
        }
    }
    if rest.starts_with('"') {
        return quoted(rest, '"');
    }
    let mut next = rest.chars().skip(1);
    match (rest.starts_with('\''), next.next(), next.next()) {
        (true, Some('\\'), _) => quoted(rest, '\''),
        // Anything else that begins with a quote is a lifetime.
        (true, Some(c), Some('\'')) => 2 + c.len_utf8(),
        _ => 0,
    }
}

fn quoted(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        if escaped {
            escaped = false;
        } else if c == '\\' {
            escaped = true;
        } else if c == quote {
            return at + c.len_utf8();
        }
    }
    rest.len()
}

/// A source of a test.
pub(crate) fn source(path: &str, text: &str) -> Source {
    Source {
        path: path.to_owned(),
        code: code_of(text),
    }
}
