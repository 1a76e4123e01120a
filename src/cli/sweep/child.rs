//! Child: the process of one fault, and how it ended.

use super::play::NAME;
use crate::shared::bind_to_parent;
use crate::sweep::{Outcome, Planned, Played, judge, judge_by};
use anyhow::Context;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Lines of its stderr that are kept.
const LAST_LINES: usize = 3;

/// What came of a run.
#[derive(Debug)]
pub(super) struct Ran {
    /// Of one that ended by itself.
    pub(super) played: Option<Played>,
    pub(super) outcome: Outcome,
    pub(super) took: Duration,
}

/// Runs it, in time; what came of it is judged by the run that counts, once there is one.
pub(super) fn run(
    planned: Planned,
    counted: Option<&Played>,
    device: Option<&str>,
    limit: Duration,
) -> anyhow::Result<Ran> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg(NAME).arg(planned.to_string());
    if let Some(device) = device {
        command.arg("--device").arg(device);
    }
    command.stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    // By a thread that lasts until it has ended.
    bind_to_parent(&mut command);
    let began = Instant::now();
    let child = command.spawn().context("cannot start a run")?;
    let ends = pidfd_open(Pid::from_child(&child), PidfdFlags::empty())?;
    let (output, is_late) = thread::scope(|scope| {
        let output = scope.spawn(move || child.wait_with_output());
        let time = Timespec::try_from(limit)?;
        let has_ended = poll(&mut [PollFd::new(&ends, PollFlags::IN)], Some(&time))? > 0;
        if !has_ended {
            pidfd_send_signal(&ends, Signal::KILL)?;
        }
        let output = output.join().expect("reading does not panic")?;
        anyhow::Ok((output, !has_ended))
    })?;
    let took = began.elapsed();
    let ended = if is_late {
        Err(format!("it did not end within {} s", limit.as_secs()))
    } else {
        ended(&output)
    };
    let (played, outcome) = match ended {
        Ok(played) => {
            let outcome = match counted {
                Some(counted) => judge_by(planned, &played, counted),
                None => judge(planned, &played),
            };
            (Some(played), outcome)
        }
        Err(why) if planned == Planned::Nothing => anyhow::bail!(why),
        Err(why) => (None, Outcome::Failed(why)),
    };
    Ok(Ran {
        played,
        outcome,
        took,
    })
}

/// What it told, where it ended well.
fn ended(output: &Output) -> Result<Played, String> {
    let said = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<_> = said.lines().collect();
    let last = lines[lines.len().saturating_sub(LAST_LINES)..].join(" / ");
    if let Some(signal) = output.status.signal() {
        return Err(format!("it ended by signal {signal}: {last}"));
    }
    if let Some(panicked) = lines.iter().position(|line| line.contains("panicked at")) {
        let told = lines[panicked..].iter().take(2).copied();
        return Err(format!(
            "it panicked: {}",
            told.collect::<Vec<_>>().join(" ")
        ));
    }
    if !output.status.success() {
        return Err(last);
    }
    serde_json::from_slice(&output.stdout).map_err(|error| format!("it told nothing: {error}"))
}
