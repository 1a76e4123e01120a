//! Adapters whose engines are processes of their own.
#![allow(dead_code, reason = "each test file uses a part")]

use super::engines;
use native_fence::gpu::EngineUnit;
use native_fence::vulkan::validation;
use native_fence::{Adapter, AdapterOptions, TdrPolicy};
use std::num::NonZeroU32;
use std::path::PathBuf;

/// So many engines of a unit, watched like this.
pub(crate) fn options_of(unit: EngineUnit, nodes: u32, tdr: TdrPolicy) -> AdapterOptions {
    AdapterOptions {
        validation: validation::asked_for_by_environment(),
        nodes: NonZeroU32::new(nodes).unwrap(),
        unit: Some(unit),
        engine_program: Some(PathBuf::from(env!("CARGO_BIN_EXE_nfence"))),
        tdr,
        ..AdapterOptions::default()
    }
}

/// An adapter of so many engine processes; none without a device.
pub(crate) fn in_processes(nodes: u32, tdr: TdrPolicy) -> Option<Adapter> {
    let options = options_of(EngineUnit::Process, nodes, tdr);
    engines::shader().map(|_| Adapter::open(&options).unwrap())
}

/// Runs a test's body on every engine, and on one in a process of its own.
pub(crate) fn on_every_engine_and_process(body: impl Fn(&Adapter)) {
    engines::on_every_engine(&body);
    if let Some(adapter) = in_processes(1, engines::patient()) {
        println!("in a process");
        body(&adapter);
    }
}
