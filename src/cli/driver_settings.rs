//! Driver settings: what `nfence` asks of a software driver before it is loaded.
//!
//! lavapipe runs shaders on a pool of threads. An engine is one workgroup, which one thread runs;
//! handing it to a pool costs each slice two thread switches and gives it nothing. With
//! `LP_NUM_THREADS=0` the thread that executes submissions runs the shader itself. The driver
//! reads it from the environment, so the program starts itself once more with it set; a value of
//! the user's own is left alone, and other drivers know nothing of it.
//!
//! Work is what the pool is for: dispatches of many workgroups, which by themselves use all cores. That scenario has
//! the driver as it comes.

use crate::report::Machine;
use crate::vulkan::{AdapterInfo, Driver};
use crate::workload::Scenario;
use std::collections::BTreeMap;
use std::os::unix::process::CommandExt;
use std::process::Command;

const LAVAPIPE_THREADS: &str = "LP_NUM_THREADS";
/// Tells the program that it set the other one, and not the user.
const IS_OURS: &str = "NFENCE_SET_LP_NUM_THREADS";
/// What a report says of rows that were measured without the settings.
pub(super) const AS_IT_COMES: &str = "the driver's own number, LP_NUM_THREADS was not set";

/// Starts the program again with the settings, unless they are set. Returns where nothing is to be
/// done, or the program cannot be started again: then it runs with the driver's own settings.
pub fn apply() {
    if std::env::var_os(LAVAPIPE_THREADS).is_some() {
        return;
    }
    if let Ok(program) = std::env::current_exe() {
        let mut args = std::env::args_os();
        let mut again = Command::new(program);
        if let Some(name) = args.next() {
            again.arg0(name);
        }
        again
            .args(args)
            .env(LAVAPIPE_THREADS, "0")
            .env(IS_OURS, "1");
        // Returns only if it failed.
        let _ = again.exec();
    }
}

/// Whether a scenario is to run without the settings in force, which are the program's own.
pub(super) fn leave_out(adapter: &AdapterInfo, scenario: Scenario) -> bool {
    adapter.driver == Driver::Lavapipe
        && scenario == Scenario::Work
        && std::env::var_os(IS_OURS).is_some()
}

/// Has a process that is started have the driver as it comes.
pub(super) fn take_back(command: &mut Command) {
    command.env_remove(LAVAPIPE_THREADS).env_remove(IS_OURS);
}

/// The settings in force, for the report: figures are compared with it in mind.
pub(super) fn in_force() -> BTreeMap<String, String> {
    std::env::var(LAVAPIPE_THREADS)
        .ok()
        .map(|value| (LAVAPIPE_THREADS.to_owned(), value))
        .into_iter()
        .collect()
}

/// This machine, with the settings in force.
pub(super) fn machine() -> Machine {
    Machine {
        driver_settings: in_force(),
        ..Machine::this()
    }
}
