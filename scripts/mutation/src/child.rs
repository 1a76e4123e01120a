//! A program that is run with a time limit and can be ended by Ctrl-C, with all that it started. Several threads may run
//! one each.

use crate::mutex::lock;
use anyhow::{Context, ensure};
use rustix::process::{Pid, Signal, kill_process_group};
use std::collections::HashSet;
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    By(ExitStatus),
    TimeLimit,
}

impl Ended {
    pub(crate) fn succeeded(self) -> bool {
        matches!(self, Self::By(status) if status.success())
    }

    pub(crate) fn code(self) -> Option<i32> {
        match self {
            Self::By(status) => status.code(),
            Self::TimeLimit => None,
        }
    }
}

/// What Ctrl-C ends.
#[derive(Debug, Default)]
struct Running {
    is_interrupted: bool,
    groups: HashSet<Pid>,
}

/// Runs programs.
#[derive(Debug)]
pub(crate) struct Runner {
    running: Arc<Mutex<Running>>,
}

/// What a program is given to end by itself when it is told to: nextest ends its tests first.
const GRACE: Duration = Duration::from_secs(10);

impl Runner {
    /// Takes over Ctrl-C.
    pub(crate) fn new() -> anyhow::Result<Self> {
        let running = Arc::<Mutex<Running>>::default();
        let heard = Arc::clone(&running);
        ctrlc::set_handler(move || {
            let mut running = lock(&heard);
            running.is_interrupted = true;
            for group in &running.groups {
                // It fails where the group is gone already.
                let _ = kill_process_group(*group, Signal::TERM);
            }
        })?;
        Ok(Self { running })
    }

    /// Runs it to its end; all that it says goes to the end of the file `log`.
    pub(crate) fn run(
        &self,
        command: &mut Command,
        limit: Duration,
        log: &Path,
    ) -> anyhow::Result<Ended> {
        let output = File::options().create(true).append(true).open(log)?;
        // A process group of its own: the program's children are ended with it.
        command
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .process_group(0);
        // Under the lock, so that Ctrl-C finds it or it is not begun.
        let mut running = lock(&self.running);
        ensure!(!running.is_interrupted, "interrupted");
        let mut child = command
            .spawn()
            .with_context(|| format!("{} does not start", command.get_program().display()))?;
        let group = Pid::from_child(&child);
        running.groups.insert(group);
        drop(running);
        let (sender, end) = channel();
        std::thread::spawn(move || sender.send(child.wait()));
        let status = end.recv_timeout(limit).ok();
        if status.is_none() {
            end_group(group, &end);
        }
        let mut running = lock(&self.running);
        running.groups.remove(&group);
        ensure!(!running.is_interrupted, "interrupted");
        Ok(match status {
            Some(status) => Ended::By(status?),
            None => Ended::TimeLimit,
        })
    }
}

/// Ends a group, whose first program's end `end` tells.
fn end_group(group: Pid, end: &Receiver<std::io::Result<ExitStatus>>) {
    for signal in [Signal::TERM, Signal::KILL] {
        // It fails where the group is gone already.
        let _ = kill_process_group(group, signal);
        if end.recv_timeout(GRACE).is_ok() {
            return;
        }
    }
}
