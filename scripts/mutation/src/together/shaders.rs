//! Shaders: the library takes them from a folder, where a variable of the environment names one.
//!
//! The SPIR-V is part of the library. In the woven one each shader of the table is looked for in the folder first, by its
//! name, when it is first used: a mutant's folder has those that its edit changes.

use crate::workshop::Workshop;
use anyhow::Context;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// The generated table.
pub(crate) const TABLE: &str = "src/vulkan/shaders/table.rs";

/// The table whose shaders are looked for in the folder. `ALL` keeps those that were built: who reads them is not
/// of those whom a mutant of a shader deceives this way.
pub(crate) fn weave_table(text: &str) -> String {
    let mut woven = String::new();
    for line in text.lines() {
        let name = line
            .strip_prefix("pub static ")
            .and_then(|line| line.strip_suffix(": Shader = Shader {"));
        if let Some(name) = name {
            let _ = writeln!(
                woven,
                "pub static {name}: std::sync::LazyLock<Shader> = \
                 std::sync::LazyLock::new(|| crate::mutant::shader(&{name}_AS_BUILT));\n\
                 static {name}_AS_BUILT: Shader = Shader {{"
            );
        } else if line.starts_with("pub static ALL: ") {
            woven.push_str(&line.replace(',', "_AS_BUILT,").replace("];", "_AS_BUILT];"));
            woven.push('\n');
        } else {
            woven.push_str(line);
            woven.push('\n');
        }
    }
    woven
}

/// Compiles the shaders of the copy `tree`, which a mutant has edited, and keeps what has changed in a folder of the
/// mutant's; `None` where they do not compile, or none of the table's has changed.
pub(crate) fn compile(
    workshop: &Workshop<'_>,
    tree: &Path,
    id: &str,
    log: &Path,
) -> anyhow::Result<Option<PathBuf>> {
    if !workshop.build_shaders_in(tree, log)?.succeeded() {
        return Ok(None);
    }
    let folder = workshop.folder.join("spirv").join(id);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder)?;
    let (built, original) = (
        tree.join("shaders/spv"),
        workshop.original().join("shaders/spv"),
    );
    let mut is_changed = false;
    for entry in built
        .read_dir()
        .with_context(|| built.display().to_string())?
    {
        let (path, name) = {
            let entry = entry?;
            (entry.path(), entry.file_name())
        };
        if path.extension().is_none_or(|extension| extension != "spv") {
            continue;
        }
        let bytes = std::fs::read(&path)?;
        if std::fs::read(original.join(&name)).is_ok_and(|before| before != bytes) {
            std::fs::write(folder.join(&name), bytes)?;
            is_changed = true;
        }
    }
    Ok(is_changed.then_some(folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_looks_in_the_folder_first() {
        let text = "\
/// `shaders/work.comp`.
pub static WORK: Shader = Shader {
    name: \"work\",
    words: &words::<3>(include_bytes!(\"work.spv\")),
};

pub static ALL: &[&Shader] = &[&SPIN, &WORK];
";
        let woven = weave_table(text);
        assert!(woven.contains("pub static WORK: std::sync::LazyLock<Shader>"));
        assert!(woven.contains("\nstatic WORK_AS_BUILT: Shader = Shader {\n    name: \"work\",\n"));
        assert!(woven.contains("&[&SPIN_AS_BUILT, &WORK_AS_BUILT];"));
        assert!(syn::parse_file(&woven).is_ok());
    }
}
