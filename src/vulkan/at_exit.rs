//! At exit: what is done when the process ends, before Vulkan's drivers and layers take themselves
//! apart.
//!
//! These are libraries that the loader opens with an instance, and `exit` runs what they asked for
//! when they were opened, while the process's other threads go on: a thread in a call of Vulkan finds
//! its tables freed under it. The handlers of `exit` run in the reverse order of their registration.
//! So one that is registered after an instance was made runs before those of the libraries of that
//! instance, and ends what this program does in Vulkan, or waits for who is about to.

use crate::sync::plain::{Mutex, lock};
use std::convert::Infallible;
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
    // Anew for each, since an instance opens the libraries anew when none was left; 32 bytes each.
    // SAFETY: a function without arguments, which may run on any thread.
    if unsafe { libc::atexit(end_all) } != 0 {
        eprintln!("native-fence: no memory for a handler at exit: close adapters before the end");
    }
    Alive { _goes: goes }
}

extern "C" fn end_all() {
    let deadline = Instant::now() + PATIENCE;
    let all = std::mem::take(&mut *lock(&LIVING));
    for living in all {
        living.end(deadline);
    }
}
