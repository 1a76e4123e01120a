//! What is generated lies in `shaders/spv/`, of programs in folders below it, and in
//! `src/vulkan/shaders/table.rs`.
//!
//! A file there is as it should be, or it is new, changed or orphaned (no shader asks for it).
//!
//! This file makes the wanted contents and compares them with the disk.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, anyhow};

use crate::compile::compile;
use crate::sources::{self, OF_PROGRAMS};
use crate::table::{self, Entry};

const SPV: &str = "shaders/spv";
const TABLE: &str = "src/vulkan/shaders/table.rs";

/// Contents by path below the repository.
pub(crate) type Files = BTreeMap<String, Vec<u8>>;

/// Compiles everything.
///
/// # Errors
/// The complaints about all shaders together.
pub(crate) fn generate(root: &Path) -> Result<Files> {
    let shaders = root.join("shaders");
    let sources = sources::read_all(&shaders)?;
    let mut files = Files::new();
    let mut texts = BTreeMap::new();
    let mut entries = Vec::new();
    let mut complaints = Vec::new();
    for source in &sources {
        let file = format!("{}.comp", source.name);
        if source.is_embedded {
            texts.insert(file.clone(), source.text.clone());
        }
        for variant in &source.variants {
            match compile(&shaders, source, variant) {
                Ok(binary) => {
                    let bytes: Vec<u8> =
                        binary.words.iter().flat_map(|w| w.to_le_bytes()).collect();
                    files.insert(format!("{SPV}/{}.spv", variant.name), bytes.clone());
                    let disassembly = binary.disassembly.into_bytes();
                    files.insert(format!("{SPV}/{}.spvasm", variant.name), disassembly);
                    if source.is_embedded {
                        texts.extend(binary.includes);
                        entries.push(Entry {
                            source: file.clone(),
                            variant,
                            bytes,
                        });
                    }
                }
                Err(complaint) => complaints.push(complaint.to_string()),
            }
        }
    }
    if !complaints.is_empty() {
        return Err(anyhow!("{}", complaints.join("\n")));
    }
    files.insert(
        TABLE.to_owned(),
        table::write(&entries, &texts).into_bytes(),
    );
    Ok(files)
}

/// A file that is not as it should be.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// Not on disk yet.
    New(String, Vec<u8>),
    /// Other bytes on disk.
    Changed(String, Vec<u8>),
    /// On disk, and no shader asks for it.
    Orphaned(String),
}

/// The changes that would bring the disk to `wanted`.
pub(crate) fn compare(root: &Path, wanted: &Files) -> Result<Vec<Change>> {
    let mut changes = Vec::new();
    for (path, bytes) in wanted {
        match std::fs::read(root.join(path)) {
            Ok(found) if found == *bytes => {}
            Ok(_) => changes.push(Change::Changed(path.clone(), bytes.clone())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                changes.push(Change::New(path.clone(), bytes.clone()));
            }
            Err(error) => return Err(error).with_context(|| format!("read {path}")),
        }
    }
    let of_programs = OF_PROGRAMS.map(|folder| format!("{SPV}/{folder}"));
    for folder in std::iter::once(SPV.to_owned()).chain(of_programs) {
        let found = files_in(root, &folder)?.into_iter();
        let orphaned = found.filter(|path| !wanted.contains_key(path));
        changes.extend(orphaned.map(Change::Orphaned));
    }
    Ok(changes)
}

/// Paths below the repository of the files in a folder, which need not exist, by name.
fn files_in(root: &Path, folder: &str) -> Result<Vec<String>> {
    let path = root.join(folder);
    if !path.exists() {
        return Ok(Vec::new());
    }
    let mut paths = Vec::new();
    for entry in path.read_dir().with_context(|| format!("read {folder}"))? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            paths.push(format!("{folder}/{}", entry.file_name().to_string_lossy()));
        }
    }
    paths.sort();
    Ok(paths)
}

impl Change {
    /// Writes or removes the file.
    pub(crate) fn apply(&self, root: &Path) -> Result<()> {
        match self {
            Self::New(path, bytes) | Self::Changed(path, bytes) => {
                let file = root.join(path);
                if let Some(folder) = file.parent() {
                    std::fs::create_dir_all(folder)
                        .with_context(|| format!("create for {path}"))?;
                }
                std::fs::write(file, bytes).with_context(|| format!("write {path}"))
            }
            Self::Orphaned(path) => {
                std::fs::remove_file(root.join(path)).with_context(|| format!("remove {path}"))
            }
        }
    }

    /// What `apply` did.
    pub(crate) fn done(&self) -> String {
        match self {
            Self::New(path, _) => format!("new      {path}"),
            Self::Changed(path, _) => format!("changed  {path}"),
            Self::Orphaned(path) => format!("removed  {path}"),
        }
    }

    /// What `--check` says.
    pub(crate) fn complaint(&self) -> String {
        match self {
            Self::New(path, _) => format!("{path}: is missing"),
            Self::Changed(path, _) => format!("{path}: differs from what the shaders compile to"),
            Self::Orphaned(path) => format!("{path}: no shader asks for this file"),
        }
    }
}
