//! The README's example is the one of the crate's front page, which is compiled and run.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::path::Path;

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// What stands between the first line `open` and the next line "```".
fn block<'a>(lines: impl Iterator<Item = &'a str>, open: &str) -> Vec<&'a str> {
    lines
        .skip_while(|line| *line != open)
        .skip(1)
        .take_while(|line| *line != "```")
        .collect()
}

#[test]
fn the_example_is_that_of_the_front_page() {
    let (library, readme) = (read("src/lib.rs"), read("README.md"));
    let page = library.lines().filter_map(|line| line.strip_prefix("//!"));
    let page = block(
        page.map(|line| line.strip_prefix(' ').unwrap_or(line)),
        "```",
    );
    let shown: Vec<_> = page
        .into_iter()
        .filter(|line| !line.starts_with("# "))
        .collect();
    assert!(shown.len() > 10);
    assert_eq!(block(readme.lines(), "```rust"), shown);
}
