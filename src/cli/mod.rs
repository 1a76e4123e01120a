//! The command line of `nfence`.
//!
//! Results go to stdout, everything about the run (progress, what went wrong) to stderr. An exit
//! code says how it ended: 0 well, 1 not, 2 the command line was not understood, 130 by Ctrl-C.
#![forbid(unsafe_code)]

mod apart;
mod choice;
mod compare;
mod conform;
mod devices;
mod diff;
mod doctor;
pub mod driver_settings;
mod engine_process;
mod engine_units;
mod interrupt;
mod litmus;
mod memory;
mod output;
mod paint;
mod preemption;
mod progress;
mod recordable;
mod result_file;
mod scenario;
mod self_test;
mod soak;
mod sweep;
mod tdr;
mod time_span;
mod trace;
mod until;
mod usage;
mod view;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Native GPU fences, as WDDM 3.2 defines them, on any Vulkan 1.2+ device.
#[derive(Debug, Parser)]
#[command(
    name = "nfence",
    version,
    max_term_width = 100,
    arg_required_else_help = true
)]
struct Nfence {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Compare(compare::Compare),
    Conform(conform::Conform),
    #[command(name = apart::NAME, hide = true)]
    Apart(apart::Apart),
    Diff(diff::Diff),
    Doctor(doctor::Doctor),
    #[command(name = engine_process::NAME, hide = true)]
    EngineProcess(engine_process::EngineProcess),
    Litmus(litmus::Litmus),
    Scenario(scenario::Scenario),
    Soak(soak::SoakCommand),
    Sweep(sweep::Sweep),
    #[command(name = sweep::NAME, hide = true)]
    SweepPlay(sweep::Play),
    #[command(name = sweep::PEER_NAME, hide = true)]
    SweepPeer(sweep::Peer),
    Tdr(tdr::Tdr),
    Trace(trace::Trace),
    View(view::View),
}

/// What came of a command that could be carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    Well,
    NotWell,
    Interrupted,
}

/// Runs the program.
#[must_use]
pub fn main() -> ExitCode {
    let command = Nfence::parse().command;
    match &command {
        Command::Compare(_)
        | Command::Conform(_)
        | Command::Doctor(_)
        | Command::Scenario(_)
        | Command::Soak(_)
        | Command::Sweep(_)
        | Command::Tdr(_)
        | Command::Trace(_)
        | Command::View(_) => {
            driver_settings::apply();
        }
        // Four are not started again, since they have what their parent gave them, and one opens no device. Workgroups of
        // litmus tests run at the same time only on threads of the driver's.
        Command::Apart(_)
        | Command::EngineProcess(_)
        | Command::SweepPlay(_)
        | Command::SweepPeer(_)
        | Command::Diff(_)
        | Command::Litmus(_) => {}
    }
    let ending = match command {
        Command::Compare(compare) => compare.run(),
        Command::Conform(conform) => conform.run(),
        Command::Apart(apart) => apart.run(),
        Command::Diff(diff) => diff.run(),
        Command::Doctor(doctor) => doctor.run(),
        Command::EngineProcess(engine) => engine.run(),
        Command::Litmus(litmus) => litmus.run(),
        Command::Scenario(scenario) => scenario.run(),
        Command::Soak(soak) => soak.run(),
        Command::Sweep(sweep) => sweep.run(),
        Command::SweepPlay(play) => play.run(),
        Command::SweepPeer(peer) => peer.run(),
        Command::Tdr(tdr) => tdr.run(),
        Command::Trace(trace) => trace.run(),
        Command::View(view) => view.run(),
    };
    match ending {
        Ok(Ending::Well) => ExitCode::SUCCESS,
        Ok(Ending::NotWell) => ExitCode::FAILURE,
        Ok(Ending::Interrupted) => ExitCode::from(130),
        Err(error) => {
            eprintln!("nfence: {error:#}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_well_formed() {
        Nfence::command().debug_assert();
    }
}
