//! Every scenario has a bench.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use native_fence::workload::Scenario;
use std::path::Path;

#[test]
fn every_scenario_has_a_bench() {
    let benches = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches");
    let manifest = include_str!("../Cargo.toml");
    let mut text = String::new();
    for entry in benches.read_dir().unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "rs") {
            let name = path.file_stem().unwrap().to_str().unwrap();
            let declared = format!("[[bench]]\nname = \"{name}\"\nharness = false");
            assert!(manifest.contains(&declared), "{name} is not in Cargo.toml");
            text += &std::fs::read_to_string(path).unwrap();
        }
    }
    for scenario in Scenario::ALL {
        let named = format!("Scenario::{scenario:?}");
        assert!(text.contains(&named), "{scenario} has no bench");
    }
}
