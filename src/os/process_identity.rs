//! Process identity: which process has a slot of a shared fence, and whether it still lives.
//!
//! A process id is used again; with the time that the process started at it is not. A process's
//! descriptor (pidfd) becomes readable when it ends, however it ends, and names no other process. Between
//! reading the id and opening the descriptor the process may have ended and its id been given to
//! another, so the start time is read after the descriptor is open.
//!
//! All processes that share a fence see each other's ids: they are in one PID namespace, which the
//! fence's page names and whoever opens it compares with its own ([`pid_namespace`]).
//!
//! Only what the system says of a process that is gone makes it one that has ended. Whatever else keeps
//! it from telling, that no descriptor is left or that `/proc` hides the process, is an error: to clear
//! the slot of one that lives would leave its waiters asleep.

use crate::abi::OpenerSlot;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// A process, in one word; never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ProcessIdentity(u64);

/// A process's descriptor: readable when it has ended.
pub(super) type ProcessDescriptor = OwnedFd;

/// What a process's word says of it now.
#[derive(Debug)]
pub(super) enum Standing {
    /// It lives, or lived when this was made.
    Lives(ProcessDescriptor),
    /// It has ended, or the word never named one.
    Ended,
}

impl ProcessIdentity {
    /// This process.
    ///
    /// # Errors
    /// When `/proc` does not say, or no descriptor is left to read it.
    pub(super) fn own() -> io::Result<Self> {
        let process = std::process::id();
        let started = start_time(process)?.ok_or_else(|| {
            let why = "/proc does not say when this process started: mount /proc";
            io::Error::new(io::ErrorKind::Unsupported, why)
        })?;
        let word = started << OpenerSlot::PROCESS_BITS | u64::from(process);
        Ok(Self(word))
    }

    /// As a slot has it.
    pub(super) fn word(self) -> u64 {
        self.0
    }

    /// How the process of a word from shared memory stands: any 64 bits.
    ///
    /// # Errors
    /// The system does not say: it has no descriptor left, or `/proc` hides the process. It may live.
    pub(super) fn standing(word: u64) -> io::Result<Standing> {
        let process = (word & ((1 << OpenerSlot::PROCESS_BITS) - 1)) as u32;
        let started = word >> OpenerSlot::PROCESS_BITS;
        let Some(pid) = Pid::from_raw(process.cast_signed()) else {
            return Ok(Standing::Ended);
        };
        let descriptor = match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(descriptor) => descriptor,
            // INVAL, or NOENT of newer systems: the id is a thread's.
            Err(Errno::SRCH | Errno::INVAL | Errno::NOENT) => return Ok(Standing::Ended),
            Err(error) => return Err(error.into()),
        };
        // Read now: if the id has passed to another process, it started at another time. One that its
        // parent has not asked about yet has an id, and has ended.
        let says = start_time(process)?;
        if has_ended(&descriptor) || says.is_some_and(|says| says != started) {
            return Ok(Standing::Ended);
        }
        match says {
            Some(_) => Ok(Standing::Lives(descriptor)),
            None => Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                "/proc hides it: mount /proc without hidepid, or run both processes as one user",
            )),
        }
    }
}

/// Whether a process has ended.
pub(super) fn has_ended(process: &ProcessDescriptor) -> bool {
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&now)) == Ok(1)
}

/// The PID namespace that this process is in, by the number that `/proc` has for it.
///
/// # Errors
/// When `/proc` does not say.
pub(super) fn pid_namespace() -> io::Result<u64> {
    Ok(std::fs::metadata("/proc/self/ns/pid")?.ino())
}

/// When a process started, in ticks since the machine did, cut to what a word has room for. `None` where
/// there is no such process, or none to be seen.
fn start_time(process: u32) -> io::Result<Option<u64>> {
    start_time_in(Path::new(&format!("/proc/{process}/stat")))
}

fn start_time_in(stat: &Path) -> io::Result<Option<u64>> {
    let stat = match std::fs::read(stat) {
        Ok(stat) => stat,
        // SRCH: it ended between the opening and the reading.
        Err(error)
            if error.kind() == io::ErrorKind::NotFound
                || error.raw_os_error() == Some(Errno::SRCH.raw_os_error()) =>
        {
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    // The name, in parentheses, may have any bytes in it; of what follows it is the 20th.
    let fields = stat.rsplit(|byte| *byte == b')').next();
    let fields = fields.and_then(|fields| std::str::from_utf8(fields).ok());
    let started = fields.and_then(|fields| fields.split_whitespace().nth(19)?.parse::<u64>().ok());
    match started {
        Some(started) => Ok(Some(started & (u64::MAX >> OpenerSlot::PROCESS_BITS))),
        None => Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "/proc/*/stat is not of the form that proc(5) gives",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn lives(word: u64) -> bool {
        matches!(ProcessIdentity::standing(word), Ok(Standing::Lives(_)))
    }

    #[test]
    fn a_word_names_one_process_and_no_later_one_with_its_id() {
        let own = ProcessIdentity::own().unwrap().word();
        assert!(lives(own));
        let started_at_another_time = own + (1 << OpenerSlot::PROCESS_BITS);
        assert!(!lives(started_at_another_time));
        for word in [
            0,
            u64::MAX,
            own >> OpenerSlot::PROCESS_BITS << OpenerSlot::PROCESS_BITS,
        ] {
            assert!(!lives(word), "{word:#x}");
        }
    }

    #[test]
    fn a_process_that_ended_is_told_from_one_that_lives() {
        let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
        let started = start_time(child.id()).unwrap().unwrap();
        let word = started << OpenerSlot::PROCESS_BITS | u64::from(child.id());
        assert!(lives(word));
        let Ok(Standing::Lives(process)) = ProcessIdentity::standing(word) else {
            panic!("it lives");
        };
        child.kill().unwrap();
        poll(&mut [PollFd::new(&process, PollFlags::IN)], None).unwrap();
        assert!(!lives(word), "its parent has not asked about it");
        child.wait().unwrap();
        assert!(!lives(word));
    }

    /// Kills `what-cannot-be-read-has-ended`.
    #[test]
    fn only_a_process_that_is_gone_has_no_start_time() {
        let gone = start_time_in(Path::new("/proc/4194305/stat"));
        assert!(matches!(gone, Ok(None)), "{gone:?}");
        assert!(
            start_time_in(Path::new("/proc/self/stat"))
                .unwrap()
                .is_some()
        );
        for unreadable in ["/proc", "/proc/version"] {
            let answer = start_time_in(Path::new(unreadable));
            assert!(answer.is_err(), "{unreadable}: {answer:?}");
        }
    }

    /// Whoever writes a thread's number into a slot takes it for good otherwise.
    #[test]
    fn a_threads_number_names_no_process() {
        let thread = std::thread::spawn(|| {
            let thread = rustix::thread::gettid()
                .as_raw_nonzero()
                .get()
                .cast_unsigned();
            let started = start_time(thread).unwrap().unwrap();
            let word = started << OpenerSlot::PROCESS_BITS | u64::from(thread);
            matches!(ProcessIdentity::standing(word), Ok(Standing::Ended))
        });
        assert!(thread.join().unwrap());
    }
}
