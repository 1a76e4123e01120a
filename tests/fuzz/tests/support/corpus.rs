//! Corpus: the files of a target that are checked in, by their names.

use std::path::{Path, PathBuf};

/// Where each is, and what it says.
///
/// # Panics
/// There are none.
pub(crate) fn corpus(target: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("corpus")
        .join(target);
    let files = folder.read_dir().expect("the target has a corpus");
    let mut paths: Vec<_> = files.map(|file| file.expect("a file").path()).collect();
    assert!(!paths.is_empty(), "the corpus of {target} is empty");
    paths.sort();
    let read = paths.into_iter().map(|path| {
        let bytes = std::fs::read(&path).expect("it can be read");
        (path, bytes)
    });
    read.collect()
}
