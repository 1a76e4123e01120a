//! A program that is run with a time limit and can be ended by Ctrl-C, with all that it started.

use anyhow::{Context, bail};
use rustix::process::{Pid, Signal, kill_process_group};
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
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

#[derive(Debug)]
enum Event {
    Ended(std::io::Result<ExitStatus>),
    Interrupted,
}

/// Runs programs, one at a time.
#[derive(Debug)]
pub(crate) struct Runner {
    sender: Sender<Event>,
    events: Receiver<Event>,
}

/// What a program is given to end by itself when it is told to: nextest ends its tests first.
const GRACE: Duration = Duration::from_secs(10);

impl Runner {
    /// Takes over Ctrl-C.
    pub(crate) fn new() -> anyhow::Result<Self> {
        let (sender, events) = channel();
        let interrupt = sender.clone();
        ctrlc::set_handler(move || {
            // Nobody listens only when the program ends anyway.
            let _ = interrupt.send(Event::Interrupted);
        })?;
        Ok(Self { sender, events })
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
        let mut child = command
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .process_group(0)
            .spawn()
            .with_context(|| format!("{} does not start", command.get_program().display()))?;
        let group = Pid::from_child(&child);
        let sender = self.sender.clone();
        std::thread::spawn(move || sender.send(Event::Ended(child.wait())));
        match self.events.recv_timeout(limit) {
            Ok(Event::Ended(status)) => Ok(Ended::By(status?)),
            Ok(Event::Interrupted) => {
                self.end(group);
                bail!("interrupted");
            }
            Err(RecvTimeoutError::Timeout) => {
                self.end(group);
                Ok(Ended::TimeLimit)
            }
            Err(RecvTimeoutError::Disconnected) => unreachable!("a sender is kept"),
        }
    }

    fn end(&self, group: Pid) {
        for signal in [Signal::TERM, Signal::KILL] {
            // It fails where the group is gone already.
            let _ = kill_process_group(group, signal);
            loop {
                match self.events.recv_timeout(GRACE) {
                    Ok(Event::Ended(_)) => return,
                    Ok(Event::Interrupted) => {}
                    Err(_) => break,
                }
            }
        }
    }
}
