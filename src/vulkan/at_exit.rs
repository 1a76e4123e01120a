//! At exit: what is done when the process ends, before Vulkan's drivers and layers take themselves
//! apart.
//!
//! These are libraries that the loader opens with an instance, and `exit` runs what they asked for
//! when they were opened, while the process's other threads go on: a thread in a call of Vulkan finds
//! its tables freed under it. The handlers of `exit` run in the reverse order of their registration.
//! So one that is registered after an instance was made runs before those of the libraries of that
//! instance, and ends what this program does in Vulkan, or waits for who is about to.
//!
//! A device that was given up may run for ever, and whoever waits for it is in Vulkan for as long. Where such
//! are left when all others have ended, the process ends at once: nothing that would still be run at its end
//! could take apart what they use.

use crate::sync::Ordering;
use crate::sync::plain::{AtomicU64, Mutex, lock};
use std::convert::Infallible;
use std::ffi::{c_int, c_void};
use std::sync::Weak;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::time::{Duration, Instant};

/// How long a device that answers nothing holds up the end of a process that has it open.
const PATIENCE: Duration = Duration::from_secs(2);

/// Something that must end before.
pub trait EndsAtExit: Send + Sync {
    /// Ends it, or gives it up at the deadline. Runs on the thread that called `exit`, whichever that
    /// is.
    fn end_at_exit(&self, deadline: Instant);
}

/// Held by what ends at exit, as its last field: dropped when all else of it is.
#[derive(Debug)]
pub struct Alive {
    /// Nothing is sent: the other end is told when this goes.
    _goes: Sender<Infallible>,
}

/// Held for a device that was given up, until nothing of this program is in a call on it any more.
#[derive(Debug)]
pub struct InVulkan(());

impl InVulkan {
    /// One more. Drivers register handlers also when something of theirs is first used, and those would run
    /// before what was registered with the instance; all that such a device uses was used by now.
    #[must_use]
    pub fn begin() -> Self {
        IN_VULKAN.fetch_add(1, Ordering::AcqRel);
        end_all_at_exit();
        Self(())
    }

    /// How many there are.
    #[cfg(test)]
    pub(crate) fn count() -> u64 {
        IN_VULKAN.load(Ordering::Acquire)
    }
}

impl Drop for InVulkan {
    fn drop(&mut self) {
        IN_VULKAN.fetch_sub(1, Ordering::AcqRel);
    }
}

/// How many there are.
static IN_VULKAN: AtomicU64 = AtomicU64::new(0);

struct Living {
    what: Weak<dyn EndsAtExit>,
    gone: Receiver<Infallible>,
}

impl Living {
    fn is_gone(&self) -> bool {
        self.gone.try_recv() == Err(TryRecvError::Disconnected)
    }

    fn end(self, deadline: Instant) {
        if let Some(what) = self.what.upgrade() {
            what.end_at_exit(deadline);
            // Else this might be the last reference, and would take apart what other threads use.
            std::mem::forget(what);
        } else {
            // Another thread drops it, and is in Vulkan until it has.
            let left = deadline.saturating_duration_since(Instant::now());
            let _gone_or_late = self.gone.recv_timeout(left);
        }
    }
}

static LIVING: Mutex<Vec<Living>> = Mutex::new(Vec::new());

/// Ends `what` at `exit` if it is still there. Called when the instance that it uses was made.
#[must_use = "it is held by what ends at exit"]
pub fn at_exit(what: Weak<dyn EndsAtExit>) -> Alive {
    let (goes, gone) = channel();
    let mut living = lock(&LIVING);
    living.retain(|other| !other.is_gone());
    living.push(Living { what, gone });
    drop(living);
    end_all_at_exit();
    Alive { _goes: goes }
}

/// Before all that was registered so far. Anew for each, since an instance opens the libraries anew when none
/// was left; 32 bytes each.
fn end_all_at_exit() {
    // SAFETY: a function that touches nothing of its second argument, and may run on any thread.
    if unsafe { on_exit(end_all, std::ptr::null_mut()) } != 0 {
        eprintln!("native-fence: no memory for a handler at exit: close adapters before the end");
    }
}

#[cfg(target_env = "gnu")]
unsafe extern "C" {
    /// As `atexit`, for a function that is told the status.
    fn on_exit(end: extern "C" fn(c_int, *mut c_void), with: *mut c_void) -> c_int;
}

/// Where the C library tells nobody the status, it is that of a process that ended well.
#[cfg(not(target_env = "gnu"))]
unsafe fn on_exit(_: extern "C" fn(c_int, *mut c_void), _: *mut c_void) -> c_int {
    extern "C" fn end() {
        end_all(0, std::ptr::null_mut());
    }
    // SAFETY: a function without arguments, which may run on any thread.
    unsafe { libc::atexit(end) }
}

extern "C" fn end_all(status: c_int, _: *mut c_void) {
    let deadline = Instant::now() + PATIENCE;
    let all = std::mem::take(&mut *lock(&LIVING));
    for living in all {
        living.end(deadline);
    }
    if IN_VULKAN.load(Ordering::Acquire) > 0 {
        // SAFETY: writes what the program has written to any stream of C's.
        unsafe { libc::fflush(std::ptr::null_mut()) };
        // SAFETY: the process is gone, with all its threads.
        unsafe { libc::_exit(status) };
    }
}
