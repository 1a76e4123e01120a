//! The tool on a repository of its own, in a temporary folder.

use std::path::Path;

use crate::compile::readable;
use crate::sources::OF_PROGRAMS;
use crate::tree::{Change, Files, compare, generate};

const MAIN: &str = "//! variant: wide WIDE=2
#version 460
#extension GL_GOOGLE_include_directive : require
#pragma use_vulkan_memory_model
#include \"abi/twice.glsl\"
#include \"abi/once.glsl\"
layout(binding = 0) buffer Data { uint data[]; };
#ifndef WIDE
#define WIDE 1
#endif
void main() { data[0] = once(WIDE); }
";

fn repository(files: &[(&str, &str)]) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    for (path, text) in files {
        put(root.path(), path, text);
    }
    root
}

fn put(root: &Path, path: &str, text: &str) {
    let file = root.join(path);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, text).unwrap();
}

fn trial() -> tempfile::TempDir {
    repository(&[
        ("shaders/trial.comp", MAIN),
        (
            "shaders/abi/once.glsl",
            "uint once(uint x) { return x + 1; }\n",
        ),
        (
            "shaders/abi/twice.glsl",
            "#include \"once.glsl\"\n#include \"abi/once.glsl\"\n",
        ),
    ])
}

fn build(root: &Path) -> Files {
    let files = generate(root).unwrap();
    for change in compare(root, &files).unwrap() {
        change.apply(root).unwrap();
    }
    files
}

#[test]
fn a_repository_without_shaders_has_an_empty_table() {
    let root = repository(&[]);
    let files = generate(root.path()).unwrap();
    assert_eq!(
        files.keys().collect::<Vec<_>>(),
        ["src/vulkan/shaders/table.rs"]
    );
}

#[test]
fn each_variant_has_a_binary_and_each_text_a_hash() {
    let root = trial();
    let files = generate(root.path()).unwrap();

    let binary = |name: &str| &files[&format!("shaders/spv/{name}.spv")];
    assert!(binary("trial").starts_with(&0x0723_0203_u32.to_le_bytes()));
    assert_ne!(binary("trial"), binary("trial.wide"));
    let table = std::str::from_utf8(&files["src/vulkan/shaders/table.rs"]).unwrap();
    for text in [
        "trial.comp",
        "abi/once.glsl",
        "abi/twice.glsl",
        "spv/trial.wide.spv",
    ] {
        assert_eq!(
            table
                .matches(&format!("fnv1a(include_bytes!(\"../../../shaders/{text}\""))
                .count(),
            1
        );
    }
    assert!(table.contains("pub static TRIAL_WIDE: Shader"));
    assert_eq!(
        generate(root.path()).unwrap(),
        files,
        "the same bytes on each run"
    );
}

#[test]
fn what_was_built_is_up_to_date_until_something_changes() {
    let root = trial();
    let root = root.path();
    let files = build(root);
    assert_eq!(compare(root, &files).unwrap(), []);

    put(
        root,
        "shaders/abi/once.glsl",
        "uint once(uint x) { return x + 2; }\n",
    );
    put(
        root,
        "shaders/trial.comp",
        &MAIN.replace("variant: wide", "variant: broad"),
    );
    let changes = compare(root, &generate(root).unwrap()).unwrap();
    let complaints: Vec<_> = changes.iter().map(Change::complaint).collect();
    assert_eq!(
        complaints,
        [
            "shaders/spv/trial.broad.spv: is missing",
            "shaders/spv/trial.broad.spvasm: is missing",
            "shaders/spv/trial.spv: differs from what the shaders compile to",
            "shaders/spv/trial.spvasm: differs from what the shaders compile to",
            "src/vulkan/shaders/table.rs: differs from what the shaders compile to",
            "shaders/spv/trial.wide.spv: no shader asks for this file",
            "shaders/spv/trial.wide.spvasm: no shader asks for this file",
        ]
    );
}

#[test]
fn kernels_of_programs_have_binaries_and_no_place_in_the_table() {
    let root = trial();
    let root = root.path();
    let table = generate(root).unwrap()["src/vulkan/shaders/table.rs"].clone();
    for folder in OF_PROGRAMS {
        let kernel = format!("shaders/{folder}/kernel.comp");
        put(root, &kernel, MAIN);
        let files = build(root);
        let binary = format!("shaders/spv/{folder}/kernel.spv");
        assert!(files.contains_key(&binary));
        assert!(files.contains_key(&format!("shaders/spv/{folder}/kernel.wide.spvasm")));
        assert_eq!(files["src/vulkan/shaders/table.rs"], table);
        assert_eq!(compare(root, &files).unwrap(), []);

        std::fs::remove_file(root.join(&kernel)).unwrap();
        let changes = compare(root, &generate(root).unwrap()).unwrap();
        assert_eq!(changes.len(), 4, "the binaries of two variants");
        let complaint = changes[0].complaint();
        assert_eq!(complaint, format!("{binary}: no shader asks for this file"));
        for change in &changes {
            change.apply(root).unwrap();
        }
    }
}

#[test]
fn an_error_names_file_and_line_of_the_included_file() {
    let root = trial();
    put(
        root.path(),
        "shaders/abi/once.glsl",
        "\nuint once(uint x) { return y; }\n",
    );
    let error = generate(root.path()).unwrap_err().to_string();
    let expected = "shaders/abi/once.glsl:2: error: 'y' : undeclared identifier";
    assert!(error.starts_with(expected), "{error}");
    assert!(
        error.contains("(shaders/trial.comp as variant `trial.wide`)"),
        "{error}"
    );
}

#[test]
fn an_error_after_the_includes_names_the_line_of_the_shader() {
    let root = trial();
    put(
        root.path(),
        "shaders/trial.comp",
        &MAIN.replace("data[0] =", "nothing ="),
    );
    let error = generate(root.path()).unwrap_err().to_string();
    assert!(
        error.starts_with("shaders/trial.comp:11: error: 'nothing'"),
        "{error}"
    );
}

#[test]
fn an_include_that_is_missing_or_outside_is_an_error() {
    for path in ["abi/nothing.glsl", "../../secret.glsl", "/etc/hostname"] {
        let root = trial();
        put(root.path(), "secret.glsl", "\n");
        put(
            root.path(),
            "shaders/trial.comp",
            &MAIN.replace("abi/twice.glsl", path),
        );
        let error = generate(root.path()).unwrap_err().to_string();
        assert!(
            error.starts_with("shaders/trial.comp:5: error: "),
            "{error}"
        );
        assert!(error.contains(path), "{error}");
    }
}

#[test]
fn a_request_for_a_variant_that_makes_no_sense_is_an_error() {
    for (request, complaint) in [
        ("", "a variant needs a suffix"),
        ("Wide WIDE", "a variant needs a suffix"),
        ("wide", "variant `wide` defines nothing"),
        (
            "wide A\n//! variant: wide B",
            "variant `wide` is asked for twice",
        ),
    ] {
        let root = trial();
        let text = MAIN.replace("wide WIDE=2", request);
        put(root.path(), "shaders/trial.comp", &text);
        let error = generate(root.path()).unwrap_err().to_string();
        assert!(
            error.starts_with("shaders/trial.comp:") && error.contains(complaint),
            "{error}"
        );
    }
}

#[test]
fn a_line_that_is_no_complaint_is_kept() {
    let log = "WARNING: 0:3: 'x' : odd\nERROR: Linking compute stage: no main\n\
               ERROR: 1 compilation errors.  No code generated.\n";
    assert_eq!(
        readable(log, "shaders/a.comp"),
        "shaders/a.comp:3: warning: 'x' : odd\n\
         shaders/a.comp: ERROR: Linking compute stage: no main\n"
    );
}
