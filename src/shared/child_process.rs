//! Child process: what binds a process to the one that starts it.
//!
//! What is asked of the system between the fork and the program's first instruction, where nothing else of
//! the parent runs any more.

use rustix::process::{Signal, getpid, getppid, set_parent_process_death_signal};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Descriptors behind the three that every program has.
const FIRST_OTHER: libc::c_uint = 3;

/// Has the process that `command` starts end with this one, also where it is stopped; it is told of no
/// Ctrl-C of the terminal, and has of this one's descriptors what the command names, and no other.
///
/// The system ends it with the thread that starts it: that thread has to last.
pub fn bind_to_parent(command: &mut Command) {
    let parent = getpid();
    command.process_group(0);
    let bind = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        if getppid() != Some(parent) {
            // It ended before it could be said.
            return Err(io::ErrorKind::NotFound.into());
        }
        // All of Rust's are closed by the exec. A system before 5.11 does not know this call, and the
        // program's own are left open there.
        // SAFETY: it has no effect on memory, and closes nothing before the exec.
        unsafe {
            libc::syscall(
                libc::SYS_close_range,
                FIRST_OTHER,
                libc::c_uint::MAX,
                libc::CLOSE_RANGE_CLOEXEC,
            )
        };
        Ok(())
    };
    // SAFETY: three calls of the system, which allocate nothing and touch no lock; an error is one without
    // memory of its own.
    unsafe { command.pre_exec(bind) };
}
