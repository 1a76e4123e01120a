//! The example programs, as a user runs them.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "support/engines.rs"]
mod engines;

use std::path::Path;
use std::process::Command;

/// What an example prints. Cargo has built it along with the tests, unless this test was built alone.
fn printed(example: &str) -> Option<String> {
    engines::shader()?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| env!("CARGO").into());
    let output = Command::new(cargo)
        .args(["run", "--quiet", "--locked", "--example", example])
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")))
        .output()
        .unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{complaint}");
    Some(String::from_utf8(output.stdout).unwrap())
}

/// Each example is one that Cargo builds, and that is run here.
#[test]
fn every_example_is_built_and_run() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/examples");
    let (manifest, tests) = (include_str!("../Cargo.toml"), include_str!("examples.rs"));
    for entry in folder.read_dir().unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        let declared = format!("name = \"{name}\"\npath = \"tests/examples/{name}.rs\"");
        assert!(manifest.contains(&declared), "{name} is not in Cargo.toml");
        assert!(tests.contains(&format!("printed(\"{name}\")")), "{name}");
    }
}

/// HQ-08 at work: what three queues on two engines make of frames is what the CPU makes of them.
#[test]
fn load_the_image_pipeline_makes_what_the_cpu_makes() {
    let Some(printed) = printed("image_pipeline") else {
        return;
    };
    let lines: Vec<_> = printed.lines().collect();
    let &[result, time] = &lines[..] else {
        panic!("{printed}");
    };
    assert_eq!(
        result,
        "12 frames of 320 x 200 pixels: each is what the CPU makes of it"
    );
    assert!(time.starts_with("3 queues on 2 engines took ") && time.ends_with(" ms"));
}

/// HQ-08 at work: a tree of queues, submitted from the root down, adds up what the CPU does.
#[test]
fn load_the_reduction_tree_adds_up_what_the_cpu_does() {
    let Some(printed) = printed("reduction_tree") else {
        return;
    };
    let lines: Vec<_> = printed.lines().collect();
    let &[result, time] = &lines[..] else {
        panic!("{printed}");
    };
    assert!(result.starts_with("800000 numbers add up to "), "{printed}");
    assert!(result.ends_with(", as they do on the CPU"), "{printed}");
    assert!(time.starts_with("7 queues on 2 engines took ") && time.ends_with(" ms"));
}
