//! Output: where text and JSON go, which is opened before anything is measured, and files that are written at once.

use anyhow::Context;
use std::fs::{self, File};
use std::io::{BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};

/// A file that text is written to when there is some.
#[derive(Debug)]
pub(super) struct OutputFile {
    path: PathBuf,
    file: File,
}

impl OutputFile {
    /// Opens it. What is in the file stays there until something new is written.
    pub(super) fn open(path: &Path) -> anyhow::Result<Self> {
        let file = File::options()
            .create(true)
            .write(true)
            .truncate(false)
            .open(path)
            .with_context(|| {
                format!(
                    "cannot write {}; name a file in a folder that you may write to",
                    path.display()
                )
            })?;
        let path = path.to_owned();
        Ok(Self { path, file })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes it, instead of what was there.
    pub(super) fn write(mut self, text: &str) -> anyhow::Result<()> {
        let emptied = self.file.set_len(0).or_else(|error| {
            // A pipe or a device has no length, and keeps nothing either.
            if self.file.metadata()?.is_file() {
                Err(error)
            } else {
                Ok(())
            }
        });
        emptied
            .and_then(|()| self.file.write_all(text.as_bytes()))
            .with_context(|| format!("cannot write {}", self.path.display()))
    }
}

/// A file, or `-` for stdout.
#[derive(Debug)]
pub(super) enum JsonOutput {
    Stdout,
    File(OutputFile),
}

impl JsonOutput {
    /// Opens it.
    pub(super) fn open(path: &Path) -> anyhow::Result<Self> {
        if path.as_os_str() == "-" {
            return Ok(Self::Stdout);
        }
        Ok(Self::File(OutputFile::open(path)?))
    }

    /// Whether stdout is taken, so that text for people belongs on stderr.
    pub(super) fn takes_stdout(&self) -> bool {
        matches!(self, Self::Stdout)
    }

    pub(super) fn write(self, value: &impl serde::Serialize) -> anyhow::Result<()> {
        let mut text = serde_json::to_string_pretty(value)?;
        text.push('\n');
        match self {
            Self::Stdout => std::io::stdout()
                .write_all(text.as_bytes())
                .context("cannot write to stdout"),
            Self::File(file) => file.write(&text),
        }
    }
}

/// Writes a file, and gives its size in bytes. What was in it stays until all is written.
pub(super) fn replace(
    path: &Path,
    write: impl FnOnce(BufWriter<&File>) -> anyhow::Result<()>,
) -> anyhow::Result<u64> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".part");
    let beside = Path::new(&beside);
    let of_file = || {
        format!(
            "cannot write {}; name a file in a folder that you may write to",
            path.display()
        )
    };
    let file = File::create(beside).with_context(of_file)?;
    let written = write(BufWriter::new(&file));
    let moved = written.and_then(|()| Ok(fs::rename(beside, path)?));
    if moved.is_err() {
        let _ = fs::remove_file(beside);
    }
    moved.with_context(of_file)?;
    Ok(file.metadata().with_context(of_file)?.len())
}

/// Prints text for people: to stdout, or to stderr where stdout is taken. A reader that has seen
/// enough and closed the pipe is no error.
pub(super) fn print(text: &str, to_stderr: bool) {
    let _ = if to_stderr {
        std::io::stderr().write_all(text.as_bytes())
    } else {
        std::io::stdout().write_all(text.as_bytes())
    };
}

/// Whether text for people may have colours.
pub(super) fn colour(to_stderr: bool) -> bool {
    let wanted = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
        && std::env::var_os("TERM").is_none_or(|term| term != "dumb");
    wanted
        && if to_stderr {
            std::io::stderr().is_terminal()
        } else {
            std::io::stdout().is_terminal()
        }
}
