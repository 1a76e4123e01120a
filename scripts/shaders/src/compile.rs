//! glslang turns one variant of a shader into SPIR-V 1.5 for Vulkan 1.2.
//!
//! Included files are looked for beside the includer, then under `shaders/`; each is read once per
//! variant, a second `#include` of it is empty. Names stay in the binary (tests compare the
//! offsets of GLSL's structs with Rust's), debug information does not.
//!
//! This file compiles, and brings glslang's complaints into the form `file:line: error: text`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result, anyhow, ensure};
use glslang::error::GlslangError;
use glslang::include::{IncludeHandler, IncludeResult, IncludeType};
use glslang::{
    Compiler, CompilerOptions, ShaderInput, ShaderMessage, ShaderSource, ShaderStage,
    SourceLanguage, SpirvVersion, Target, VulkanVersion,
};
use rspirv::binary::Disassemble;

use crate::sources::{Source, Variant};

/// What came of one variant.
pub(crate) struct Binary {
    /// SPIR-V.
    pub(crate) words: Vec<u32>,
    /// The same, readable.
    pub(crate) disassembly: String,
    /// Included files: path below `shaders/` and text.
    pub(crate) includes: BTreeMap<String, String>,
}

/// Compiles `variant` of `source`.
///
/// # Errors
/// The complaints of glslang, one a line.
pub(crate) fn compile(shaders: &Path, source: &Source, variant: &Variant) -> Result<Binary> {
    let file = format!("shaders/{}.comp", source.name);
    let compiler = Compiler::acquire().context("glslang does not start")?;
    ensure!(
        !source.text.contains('\0'),
        "{file}: error: there is a NUL in the text"
    );
    let text = ShaderSource::from(source.text.clone());
    let options = CompilerOptions {
        source_language: SourceLanguage::GLSL,
        target: Target::Vulkan {
            version: VulkanVersion::Vulkan1_2,
            spirv_version: SpirvVersion::SPIRV1_5,
        },
        version_profile: None,
        messages: ShaderMessage::SPV_RULES | ShaderMessage::VULKAN_RULES,
    };
    let defines: Vec<_> = variant
        .defines
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_deref()))
        .collect();
    let mut includes = Includes {
        shaders,
        read: BTreeMap::new(),
    };
    let made = ShaderInput::new(
        &text,
        ShaderStage::Compute,
        &options,
        Some(&defines),
        Some(&mut includes),
    )
    .and_then(|input| compiler.create_shader(input))
    .and_then(|shader| {
        eprint!("{}", readable(&shader.get_log(), &file));
        shader.compile()
    });
    let words = made.map_err(|error| complaint(&error, &file, variant))?;
    let module = rspirv::dr::load_words(&words)
        .map_err(|error| anyhow!("{file}: error: glslang wrote no valid SPIR-V: {error}"))?;
    let disassembly = module.disassemble() + "\n";
    Ok(Binary {
        words,
        disassembly,
        includes: includes.read,
    })
}

fn complaint(error: &GlslangError, file: &str, variant: &Variant) -> anyhow::Error {
    let text = match error {
        GlslangError::PreprocessError(log)
        | GlslangError::ParseError(log)
        | GlslangError::MapIoError(log)
        | GlslangError::LinkError(log) => readable(&log.log, file),
        other => format!("{file}: error: {other}\n"),
    };
    if variant.defines.is_empty() {
        anyhow!("{}", text.trim_end())
    } else {
        anyhow!(
            "{}\n({file} as variant `{}`)",
            text.trim_end(),
            variant.name
        )
    }
}

/// `ERROR: abi/x.glsl:12: text` becomes `shaders/abi/x.glsl:12: error: text`; glslang knows the
/// shader itself as string 0.
pub(crate) fn readable(log: &str, file: &str) -> String {
    let mut out = String::new();
    for line in log.lines().filter(|line| !line.trim().is_empty()) {
        let kinds = [("ERROR: ", "error"), ("WARNING: ", "warning")];
        let kind = kinds
            .iter()
            .find_map(|(mark, kind)| Some((line.strip_prefix(mark)?, kind)));
        let place = kind.and_then(|(rest, kind)| {
            let (name, rest) = rest.split_once(':')?;
            let (number, text) = rest.split_once(':')?;
            number.parse::<u32>().ok()?;
            let name = if name == "0" {
                file.to_owned()
            } else {
                format!("shaders/{name}")
            };
            Some(format!("{name}:{number}: {kind}: {}\n", text.trim()))
        });
        match place {
            Some(placed) => out += &placed,
            // "2 compilation errors. No code generated." says nothing new.
            None if line.contains("No code generated") => {}
            None => {
                let _ = writeln!(out, "{file}: {}", line.trim());
            }
        }
    }
    out
}

struct Includes<'a> {
    shaders: &'a Path,
    read: BTreeMap<String, String>,
}

impl IncludeHandler for Includes<'_> {
    fn include(
        &mut self,
        _: IncludeType,
        header: &str,
        includer: &str,
        _: usize,
    ) -> Option<IncludeResult> {
        let beside = Path::new(includer)
            .parent()
            .unwrap_or(Path::new(""))
            .join(header);
        let found = [beside.as_path(), Path::new(header)]
            .into_iter()
            .find_map(|path| {
                let name = below(path)?;
                if self.read.contains_key(&name) {
                    return Some((name, None));
                }
                let text = std::fs::read_to_string(self.shaders.join(&name)).ok()?;
                Some((name, Some(text)))
            });
        let (name, text) = found?;
        if let Some(text) = &text {
            self.read.insert(name.clone(), text.clone());
        }
        Some(IncludeResult {
            name,
            data: text.unwrap_or_default(),
        })
    }
}

/// `path` without `.` and `..`, or nothing where it leaves `shaders/`.
fn below(path: &Path) -> Option<String> {
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(part) => clean.push(part),
            Component::CurDir => {}
            Component::ParentDir => {
                if !clean.pop() {
                    return None;
                }
            }
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(clean.to_str()?.replace('\\', "/"))
}
