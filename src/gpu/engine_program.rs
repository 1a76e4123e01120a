//! Engine program: what an engine in a process of its own is a process of, and its start and end.
//!
//! The program is `nfence`, by a command that people have no use for. It has a socket to its parent for its
//! input and nothing else of it, and ends with it, however that ends.

use crate::shared::bind_to_parent;
use crate::supply::start_thread;
use crate::sync::plain::{Mutex, lock};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

/// The command of `nfence` that is an engine.
pub const ENGINE_COMMAND: &str = "engine-process";

const PROGRAM: &str = "nfence";
/// What the system says the running one is once its file was removed, or replaced by another.
const REPLACED: &str = "nfence (deleted)";
/// The running program, also where its file is another by now.
const RUNNING: &str = "/proc/self/exe";
/// A process that is killed has ended within this, unless a driver of the system holds it. On a busy machine it may
/// take seconds: the last of its threads to leave lets go of its memory, and Mesa's thread for its cache of shaders, which
/// has the lowest priority there is, may be that.
const END_TIME: Duration = Duration::from_secs(10);

/// No program to start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "engines in processes of their own need the program nfence, which is not beside this one nor in PATH: \
     install it, or name it with AdapterOptions::engine_program"
)]
pub struct NoEngineProgram;

/// The program for engines where none is named: the running one if it is that, else the one beside it, else
/// the first in PATH.
///
/// # Errors
/// There is none.
pub fn engine_program() -> Result<PathBuf, NoEngineProgram> {
    let running = std::env::current_exe().ok();
    let paths = std::env::var_os("PATH");
    found(running.as_deref(), paths.as_deref(), Path::is_file).ok_or(NoEngineProgram)
}

fn found(
    running: Option<&Path>,
    paths: Option<&OsStr>,
    is_there: impl Fn(&Path) -> bool,
) -> Option<PathBuf> {
    let name = running.and_then(Path::file_name);
    if [PROGRAM, REPLACED]
        .into_iter()
        .any(|of| name == Some(OsStr::new(of)))
    {
        return Some(PathBuf::from(RUNNING));
    }
    let beside = running.and_then(Path::parent).map(Path::to_owned);
    let in_path = paths.into_iter().flat_map(std::env::split_paths);
    let mut all = beside.into_iter().chain(in_path);
    all.find_map(|folder| Some(folder.join(PROGRAM)).filter(|program| is_there(program)))
}

/// A process that an engine is in; killed when it is dropped.
#[derive(Debug)]
pub(super) struct EngineProcess {
    child: Mutex<Child>,
    /// Readable when it has ended.
    descriptor: OwnedFd,
    /// Nobody waits for its end after this; there from when it was killed.
    given_up_at: OnceLock<Instant>,
    pub(super) id: u32,
}

impl EngineProcess {
    /// Starts one, whose input is the other end of a socket.
    pub(super) fn start(program: &Path, socket: OwnedFd) -> io::Result<Self> {
        let mut command = Command::new(program);
        command
            .arg(ENGINE_COMMAND)
            .stdin(Stdio::from(socket))
            .stdout(Stdio::null());
        bind_to_parent(&mut command);
        let mut child = spawn(command)?;
        let id = child.id();
        let pid = Pid::from_raw(id.cast_signed()).ok_or(io::ErrorKind::NotFound)?;
        match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(descriptor) => Ok(Self {
                child: Mutex::new(child),
                descriptor,
                given_up_at: OnceLock::new(),
                id,
            }),
            Err(error) => {
                let _ = child.kill();
                let _ = child.wait();
                Err(error.into())
            }
        }
    }

    /// Kills it, also where it is stopped, and waits for its end; whether it came. Then nothing of it
    /// touches memory any more, and nothing of it is left in the system's table.
    pub(super) fn end(&self) -> bool {
        // One that has ended cannot be killed, which is as good.
        let _ = pidfd_send_signal(&self.descriptor, Signal::KILL);
        let deadline = self.given_up_at.get_or_init(|| Instant::now() + END_TIME);
        if !self.ends_by(*deadline) {
            return false;
        }
        // Of whoever collects children of any kind it is gone already.
        let _ = lock(&self.child).try_wait();
        true
    }

    /// Its threads are all gone when it says so.
    fn ends_by(&self, deadline: Instant) -> bool {
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let left = Timespec::try_from(left).unwrap_or_default();
            let process = PollFd::new(&self.descriptor, PollFlags::IN);
            match poll(&mut [process], Some(&left)) {
                Err(Errno::INTR) => {}
                ended => return ended == Ok(1),
            }
        }
    }
}

impl Drop for EngineProcess {
    fn drop(&mut self) {
        self.end();
    }
}

/// Name of the thread that starts engines' processes: made for the first one, it lasts as long as this process.
pub(crate) const STARTER_THREAD: &str = "nf-starter";

type Started = Sender<io::Result<Child>>;

/// Starts a process on a thread that lasts as long as this process: the system ends a child with the thread
/// that started it.
fn spawn(command: Command) -> io::Result<Child> {
    static STARTER: OnceLock<Mutex<Sender<(Command, Started)>>> = OnceLock::new();
    let starter = if let Some(starter) = STARTER.get() {
        starter
    } else {
        let (sender, commands) = channel::<(Command, Started)>();
        let run = move || {
            for (mut command, started) in commands {
                // Who asked has not gone away before the answer.
                let _ = started.send(command.spawn());
            }
        };
        start_thread(STARTER_THREAD, run)?;
        // Of two at a time one's thread ends at once, without a child.
        STARTER.get_or_init(|| Mutex::new(sender))
    };
    let (started, child) = channel();
    let gone = || io::Error::other("the thread that starts engines is gone");
    lock(starter).send((command, started)).map_err(|_| gone())?;
    child.recv().map_err(|_| gone())?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(running: &str, paths: &str, there: &[&str]) -> Option<PathBuf> {
        let is_there = |path: &Path| there.iter().any(|there| Path::new(there) == path);
        found(Some(Path::new(running)), Some(OsStr::new(paths)), is_there)
    }

    #[test]
    fn the_program_is_the_running_one_or_beside_it_or_in_path() {
        let of = |path: &str| Some(PathBuf::from(path));
        assert_eq!(program("/a/nfence", "/b", &["/b/nfence"]), of(RUNNING));
        let replaced = program("/a/nfence (deleted)", "/b", &["/a/nfence"]);
        assert_eq!(replaced, of(RUNNING), "not the other one");
        let both = ["/a/nfence", "/c/nfence"];
        assert_eq!(program("/a/game", "/b:/c", &both), of("/a/nfence"));
        assert_eq!(program("/a/game", "/b:/c", &both[1..]), of("/c/nfence"));
        assert_eq!(program("/a/game", "/b:/c", &[]), None);
    }
}
