//! `native_fence.h`: made by cbindgen of the functions and structures, with the published names of
//! members, flags and values from the tables that stand beside them.
//!
//! cbindgen reads sources and sees no macros: what those declare, words of bits, enumerations and
//! status codes, is written here from their tables.

use native_fence::abi::Opcode;
use native_fence::abi::wddm::{
    BIT_FIELDS, BitField, ENUMERATIONS, Enumeration, MAX_BROADCAST_CONTEXT, MAX_OBJECT_SIGNALED,
    MAX_OBJECT_WAITED_ON, NATIVE_FENCE_PRIVATE_BYTES, NtStatus, STRUCTURES, Structure,
};
use native_fence::capi;
use std::fmt::Write;
use std::path::{Path, PathBuf};

const HEAD: &str = "\
/* Native GPU fence objects, as WDDM 3.2 defines them, on any Vulkan 1.2+ device: the C interface.
 *
 * Made by scripts/capi of src/capi and src/abi/wddm: do not edit it. The published structures have
 * their published names and layouts on 64-bit machines; functions are D3DKMT's with Nf before the
 * name, since gdi32 they are not. An error changes nothing; NfLastErrorText has a sentence on it.
 * Zero a structure before filling it in. native_fence_ring.h has the way of packets. */";

const TYPES: &str = "\
#if UINTPTR_MAX != 0xFFFFFFFFFFFFFFFF
#error \"the published layouts are those of 64-bit machines\"
#endif

typedef int32_t NTSTATUS;
typedef uint32_t D3DKMT_HANDLE;
typedef uint64_t D3DGPU_VIRTUAL_ADDRESS;
/* HANDLE: eight bytes, whatever they mean. */
typedef uint64_t NF_HANDLE;
";

/// The header, and where it is checked in.
pub(crate) fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/capi/native_fence.h")
}

fn structures() -> impl Iterator<Item = &'static Structure> {
    STRUCTURES.iter().chain(capi::STRUCTURES)
}

/// What the header must say, made of the sources as they are.
pub(crate) fn made() -> String {
    let mut config = cbindgen::Config {
        language: cbindgen::Language::C,
        style: cbindgen::Style::Both,
        header: Some(HEAD.to_owned()),
        include_guard: Some("NATIVE_FENCE_H".to_owned()),
        no_includes: true,
        sys_includes: vec!["stddef.h".to_owned(), "stdint.h".to_owned()],
        after_includes: Some(format!("\n{}", declarations())),
        cpp_compat: true,
        usize_is_size_t: true,
        documentation_style: cbindgen::DocumentationStyle::C,
        ..cbindgen::Config::default()
    };
    let others = [
        ("NtStatus", "NTSTATUS"),
        ("KmtHandle", "D3DKMT_HANDLE"),
        ("GpuVirtualAddress", "D3DGPU_VIRTUAL_ADDRESS"),
        ("Handle", "NF_HANDLE"),
    ];
    let names = structures().map(|s| (s.rust, s.name));
    let names = names.chain(BIT_FIELDS.iter().map(|b| (b.rust, b.name)));
    let names = names.chain(ENUMERATIONS.iter().map(|e| (e.rust, e.name)));
    for (rust, c) in names.chain(others) {
        config.export.rename.insert(rust.to_owned(), c.to_owned());
    }
    // Private bytes of other structures: no function takes them by pointer.
    let own = capi::STRUCTURES.iter().map(|s| s.rust.to_owned());
    config.export.include.extend(own);
    let mut builder = cbindgen::Builder::new().with_config(config);
    for source in sources() {
        builder = builder.with_src(source);
    }
    let bindings = builder.generate().expect("cbindgen reads the sources");
    let mut text = Vec::new();
    bindings.write(&mut text);
    let text = String::from_utf8(text).expect("cbindgen writes UTF-8");
    with_published_members(&text)
}

/// Where functions and structures are declared.
fn sources() -> Vec<PathBuf> {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let wddm = src.join("abi/wddm");
    let entries = wddm.read_dir().expect("the folder can be read");
    let mut files: Vec<_> = entries
        .map(|entry| entry.expect("it can be read").path())
        // These declare nothing but macros, and a type that is written here.
        .filter(|file| {
            !["mod.rs", "published.rs", "status.rs"]
                .iter()
                .any(|f| file.ends_with(f))
        })
        .collect();
    files.sort();
    files.push(src.join("capi/private_data.rs"));
    for calls in ["calls", "sync_object_calls", "kernel_queue_calls"] {
        files.push(src.join(format!("capi/{calls}.rs")));
    }
    files
}

/// What macros declare.
fn declarations() -> String {
    let mut text = TYPES.to_owned();
    for (name, number) in NtStatus::ALL {
        let _ = write!(text, "\n#define {name} ((NTSTATUS)0x{number:08X})");
    }
    let constants = [
        ("D3DDDI_NATIVE_FENCE_PDD_SIZE", NATIVE_FENCE_PRIVATE_BYTES),
        ("D3DDDI_MAX_OBJECT_WAITED_ON", MAX_OBJECT_WAITED_ON as usize),
        ("D3DDDI_MAX_OBJECT_SIGNALED", MAX_OBJECT_SIGNALED as usize),
        (
            "D3DDDI_MAX_BROADCAST_CONTEXT",
            MAX_BROADCAST_CONTEXT as usize,
        ),
        ("NF_OPCODE_NOP", Opcode::Nop as usize),
        ("NF_OPCODE_WAIT", Opcode::Wait as usize),
        ("NF_OPCODE_SIGNAL", Opcode::Signal as usize),
        ("NF_OPCODE_PROGRESS", Opcode::Progress as usize),
    ];
    text.push('\n');
    for (name, number) in constants {
        let _ = write!(text, "\n#define {name} {number}");
    }
    text.push('\n');
    for of in ENUMERATIONS {
        text += &enumeration(of);
    }
    for of in BIT_FIELDS {
        text += &bit_field(of);
    }
    text
}

fn enumeration(of: &Enumeration) -> String {
    let name = of.name;
    let mut text = format!("\ntypedef enum {name} {{\n");
    for (value, number) in of.values {
        let _ = writeln!(text, "  {value} = {number},");
    }
    let _ = writeln!(text, "}} {name};");
    text
}

fn bit_field(of: &BitField) -> String {
    let name = of.name;
    let mut text = format!("\ntypedef union {name} {{\n  struct {{\n");
    let (mut next, mut gaps) = (0, 0);
    let gap = |bits: u32, gaps: &mut u32| {
        *gaps += 1;
        format!("    uint32_t Reserved{gaps} : {bits};\n", gaps = *gaps)
    };
    for (part, low, width) in of.parts {
        if *low > next {
            text += &gap(low - next, &mut gaps);
        }
        let _ = writeln!(text, "    uint32_t {part} : {width};");
        next = low + width;
    }
    if next < 32 {
        text += &gap(32 - next, &mut gaps);
    }
    let _ = writeln!(text, "  }};\n  uint32_t Value;\n}} {name};");
    text
}

/// Gives members their published names, and pointers their types. Members of a published union's
/// structure, whose names have its name and a point before them, come to stand in it.
fn with_published_members(text: &str) -> String {
    let mut of: Option<&Structure> = None;
    let mut lines: Vec<String> = Vec::new();
    // Where the comment of the next member begins, and in which structure the last one stood.
    let (mut begin, mut inner) = (0, None::<String>);
    for line in text.lines() {
        let ends = line.starts_with('}');
        if let Some(name) = line.strip_prefix("typedef struct ") {
            let name = name.trim_end_matches(" {");
            of = structures().find(|structure| structure.name == name);
            begin = lines.len() + 1;
        }
        let member = of.and_then(|structure| member(structure, line));
        if ends || line.ends_with(';') {
            let next = member.as_ref().and_then(|(inner, _)| inner.clone());
            if inner != next {
                let close = inner.take().map(|name| format!("  }} {name};"));
                let open = next.as_ref().map(|_| "  struct {".to_owned());
                let around: Vec<_> = close.into_iter().chain(open).collect();
                let after = begin + around.len();
                lines.splice(begin..begin, around);
                (inner, begin) = (next, after);
            }
            if inner.is_some() {
                lines[begin..]
                    .iter_mut()
                    .for_each(|line| line.insert_str(0, "  "));
            }
        }
        // What is escaped for rustdoc.
        lines.push(match member {
            Some((Some(_), declared)) => format!("  {declared}"),
            Some((None, declared)) => declared,
            None => line.replace("\\[", "[").replace("\\]", "]"),
        });
        if ends {
            of = None;
        }
        if ends || line.ends_with(';') {
            begin = lines.len();
        }
    }
    lines.join("\n") + "\n"
}

/// The structure within the structure that it stands in, and its declaration.
fn member(of: &Structure, line: &str) -> Option<(Option<String>, String)> {
    let declared = line.trim().strip_suffix(';')?;
    let (kind, declared) = declared.rsplit_once(' ')?;
    let (field, array) = match declared.split_once('[') {
        Some((field, "NATIVE_FENCE_PRIVATE_BYTES]")) => {
            (field, "[D3DDDI_NATIVE_FENCE_PDD_SIZE]".to_owned())
        }
        Some((field, array)) => (field, format!("[{array}")),
        None => (declared, String::new()),
    };
    let member = of.members.iter().find(|member| member.rust == field)?;
    let kind = member.pointer.map_or(format!("{kind} "), |pointer| {
        match pointer.strip_suffix('*') {
            Some(_) => pointer.to_owned(),
            None => format!("{pointer} "),
        }
    });
    let (inner, name) = match member.name.split_once('.') {
        Some((inner, name)) => (Some(inner.to_owned()), name),
        None => (None, member.name),
    };
    Some((inner, format!("  {kind}{name}{array};")))
}
