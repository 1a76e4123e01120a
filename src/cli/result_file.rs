//! Result file: what `nfence compare --json` wrote, read back.

use crate::report::Report;
use anyhow::{Context, ensure};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// No result of a comparison is larger.
const MOST_BYTES: u64 = 256 << 20;

pub(super) fn read(path: &Path) -> anyhow::Result<Report> {
    let of_file = || format!("cannot read {}", path.display());
    let mut json = Vec::new();
    let file = File::open(path).with_context(of_file)?;
    let bytes = file
        .take(MOST_BYTES + 1)
        .read_to_end(&mut json)
        .with_context(of_file)?;
    ensure!(
        bytes as u64 <= MOST_BYTES,
        "{} is larger than any result of `nfence compare --json`",
        path.display()
    );
    Report::read(&json).with_context(of_file)
}
