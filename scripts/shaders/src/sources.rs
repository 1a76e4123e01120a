//! A shader is one `shaders/<name>.comp`; a variant is the same text with other defines. Those in
//! `shaders/examples/` and `shaders/viewer/` are kernels of programs, which embed them by themselves.
//!
//! The shader itself names its variants, in comment lines before its first line of code:
//! `//! variant: narrow NARROW WORD_BITS=32`. The text without any define is always a variant too.
//!
//! This file lists the shaders and reads those lines.

use std::path::Path;

use anyhow::{Context, Result, bail, ensure};

/// The folders below `shaders/` of what has no place in the library's table: who runs it embeds it.
pub(crate) const OF_PROGRAMS: [&str; 2] = ["examples", "viewer"];

/// One `.comp` file.
#[derive(Debug)]
pub(crate) struct Source {
    /// Path below `shaders/`, without `.comp`: `engine`, `examples/blur`.
    pub(crate) name: String,
    /// Whether the library's table has it.
    pub(crate) is_embedded: bool,
    /// The text, as it lies on disk.
    pub(crate) text: String,
    /// The plain variant first, then those the text asks for, in its order.
    pub(crate) variants: Vec<Variant>,
}

/// One binary to be made of a source.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Variant {
    /// `engine` or `engine.narrow`, below the source's folder.
    pub(crate) name: String,
    /// Defines with their values.
    pub(crate) defines: Vec<(String, Option<String>)>,
}

/// Reads every `shaders/*.comp` and those of programs, in the order of their names. No folder means no
/// shaders.
pub(crate) fn read_all(shaders: &Path) -> Result<Vec<Source>> {
    let mut sources = read_folder(shaders, "")?;
    for folder in OF_PROGRAMS {
        sources.extend(read_folder(shaders, folder)?);
    }
    sources.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(sources)
}

/// Those of a folder below `shaders/`.
fn read_folder(shaders: &Path, folder: &str) -> Result<Vec<Source>> {
    let mut sources = Vec::new();
    let path = shaders.join(folder);
    if !path.exists() {
        return Ok(sources);
    }
    for entry in path
        .read_dir()
        .with_context(|| format!("read {}", path.display()))?
    {
        let path = entry?.path();
        if path.extension().is_none_or(|extension| extension != "comp") {
            continue;
        }
        let name = path
            .file_stem()
            .and_then(|stem| stem.to_str())
            .unwrap_or_default();
        let is_named = is_word(name);
        let name = match folder {
            "" => name.to_owned(),
            folder => format!("{folder}/{name}"),
        };
        ensure!(
            is_named,
            "shaders/{name}.comp: a shader's name is made of a-z, 0-9 and _, as it becomes a Rust name"
        );
        let text =
            std::fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
        let variants = variants(&name, &text)?;
        sources.push(Source {
            name,
            is_embedded: !OF_PROGRAMS.contains(&folder),
            text,
            variants,
        });
    }
    Ok(sources)
}

/// The plain variant and those that the head of `text` asks for.
fn variants(name: &str, text: &str) -> Result<Vec<Variant>> {
    let mut variants = vec![Variant {
        name: name.to_owned(),
        defines: Vec::new(),
    }];
    let head = text.lines().map(str::trim);
    let head = head.take_while(|line| {
        line.is_empty() || line.starts_with("//") || line.starts_with("#version")
    });
    for (index, line) in head.enumerate() {
        let Some(request) = line.strip_prefix("//! variant:") else {
            continue;
        };
        let place = format!("shaders/{name}.comp:{}", index + 1);
        let mut words = request.split_whitespace();
        let Some(suffix) = words.next().filter(|suffix| is_word(suffix)) else {
            bail!("{place}: error: a variant needs a suffix of a-z, 0-9 and _");
        };
        let defines: Vec<_> = words
            .map(|word| match word.split_once('=') {
                Some((define, value)) => (define.to_owned(), Some(value.to_owned())),
                None => (word.to_owned(), None),
            })
            .collect();
        ensure!(
            !defines.is_empty(),
            "{place}: error: variant `{suffix}` defines nothing"
        );
        let variant = Variant {
            name: format!("{name}.{suffix}"),
            defines,
        };
        ensure!(
            variants.iter().all(|other| other.name != variant.name),
            "{place}: error: variant `{suffix}` is asked for twice"
        );
        variants.push(variant);
    }
    Ok(variants)
}

fn is_word(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
}
