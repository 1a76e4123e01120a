//! The copy of the repository in which mutants are made.
//!
//! A file is written only where its content differs, so that cargo builds again no more than what
//! a mutant or its removal has touched. Whatever a run that was cut short left is put right by the
//! next copying.

use anyhow::{Context, ensure};
use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Makes `copy` what git tracks, or would track, in `root`.
pub(crate) fn copy_tracked(root: &Path, copy: &Path) -> anyhow::Result<()> {
    copy_files(root, &tracked(root)?, copy)
}

/// What tells a tree from another one, names and contents of its files, and what it is tried on.
pub(crate) fn digest(root: &Path, driver: &str) -> anyhow::Result<u64> {
    let mut files = BTreeSet::new();
    collect(root, Path::new(""), &mut files)?;
    let mut digest = DefaultHasher::new();
    driver.hash(&mut digest);
    for file in files {
        let content =
            std::fs::read(root.join(&file)).with_context(|| file.display().to_string())?;
        (file, content).hash(&mut digest);
    }
    Ok(digest.finish())
}

/// Makes `copy` what lies in `root`.
pub(crate) fn copy_all(root: &Path, copy: &Path) -> anyhow::Result<()> {
    let mut files = BTreeSet::new();
    collect(root, Path::new(""), &mut files)?;
    copy_files(root, &files, copy)
}

fn copy_files(root: &Path, wanted: &BTreeSet<PathBuf>, copy: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(copy)?;
    for file in wanted {
        let content = std::fs::read(root.join(file)).with_context(|| file.display().to_string())?;
        let to = copy.join(file);
        if std::fs::read(&to).is_ok_and(|old| old == content) {
            continue;
        }
        if let Some(folder) = to.parent() {
            std::fs::create_dir_all(folder)?;
        }
        std::fs::write(&to, content).with_context(|| to.display().to_string())?;
    }
    let mut found = BTreeSet::new();
    collect(copy, Path::new(""), &mut found)?;
    for file in found.difference(wanted) {
        std::fs::remove_file(copy.join(file))?;
    }
    Ok(())
}

fn tracked(root: &Path) -> anyhow::Result<BTreeSet<PathBuf>> {
    let output = Command::new("git")
        .args([
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ])
        .current_dir(root)
        .output()
        .context("git is needed to know which files belong to the tree")?;
    ensure!(
        output.status.success(),
        "git ls-files: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let names = String::from_utf8(output.stdout).context("file names are UTF-8")?;
    let names = names.split('\0').filter(|name| !name.is_empty());
    // A tracked file may have been deleted; links (to folders) are not ours to follow.
    let is_file = |file: &PathBuf| {
        root.join(file)
            .symlink_metadata()
            .is_ok_and(|meta| meta.is_file())
    };
    Ok(names.map(PathBuf::from).filter(is_file).collect())
}

fn collect(root: &Path, folder: &Path, files: &mut BTreeSet<PathBuf>) -> anyhow::Result<()> {
    for entry in root.join(folder).read_dir()? {
        let entry = entry?;
        let path = folder.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            collect(root, &path, files)?;
        } else {
            files.insert(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_put_right_and_what_is_right_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::create_dir_all(path("from/src")).unwrap();
        std::fs::write(path("from/src/a.rs"), "a").unwrap();
        std::fs::write(path("from/b.rs"), "b").unwrap();
        copy_all(&path("from"), &path("to")).unwrap();
        let modified = |name: &str| path(name).metadata().unwrap().modified().unwrap();
        let before = modified("to/b.rs");

        std::fs::write(path("to/src/a.rs"), "mutated").unwrap();
        std::fs::write(path("to/src/left.rs"), "by a run that was cut short").unwrap();
        copy_all(&path("from"), &path("to")).unwrap();

        assert_eq!(std::fs::read_to_string(path("to/src/a.rs")).unwrap(), "a");
        assert!(!path("to/src/left.rs").exists());
        assert_eq!(modified("to/b.rs"), before);
    }
}
