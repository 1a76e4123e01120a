//! Supply: what the system gives, and of which it may be had to refuse one, on purpose.
//!
//! A system refuses a mapping or a thread where many are there already, and hardly ever does so in a test. So whoever asks
//! it for one asks the supply first, which counts, and gives the system's own refusal once: to the one that is planned. Calls
//! of Vulkan's are refused by shims (`vulkan::faults`), descriptors by the system.
//!
//! There is one plan and one count for the process, and a sweep (`sweep`) makes it: without one nothing is refused.

use crate::sync::plain::{AtomicU64, Mutex, lock};
use crate::sync::{Arc, Ordering, thread};
use rustix::io::Errno;
use std::sync::OnceLock;

/// See the file's head.
#[derive(Debug)]
pub(crate) struct Supply {
    refusal: Errno,
    asked: AtomicU64,
    /// The number of the one that is refused; they are counted from 1.
    refused: AtomicU64,
    refused_to: OnceLock<String>,
}

/// Mappings of shared memory, and the files behind them.
#[cfg(not(loom))]
pub(crate) static MAPPINGS: Supply = Supply::new(Errno::NOMEM);
/// What a mapping is for by which an engine is cut off.
#[cfg(not(loom))]
pub(crate) const CUT_OFF: &str = "cut-off";
/// The thread that recovers engines, and asks for what their spares map.
pub(crate) const RECOVERY_THREAD: &str = "nf-tdr";
/// Threads.
pub(crate) static THREADS: Supply = Supply::new(Errno::AGAIN);

impl Supply {
    const fn new(refusal: Errno) -> Self {
        Self {
            refusal,
            asked: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            refused_to: OnceLock::new(),
        }
    }

    /// Plans that the one of this number is refused, counted from 1 and from now.
    #[cfg(not(loom))]
    pub(crate) fn refuse(&self, number: u64) {
        self.refused.store(self.asked() + number, Ordering::Relaxed);
    }

    /// How many were asked for.
    #[cfg(not(loom))]
    pub(crate) fn asked(&self) -> u64 {
        self.asked.load(Ordering::Relaxed)
    }

    /// The thread that was refused one, and after a slash which thread, or what for; `None` where nobody was.
    #[cfg(not(loom))]
    pub(crate) fn refused_to(&self) -> Option<&str> {
        self.refused_to.get().map(String::as_str)
    }

    /// Asks for one: a thread of this name, or a mapping for this.
    ///
    /// # Errors
    /// It is the one that is refused.
    pub(crate) fn ask_for(&self, what: &str) -> rustix::io::Result<()> {
        let number = self.asked.fetch_add(1, Ordering::Relaxed) + 1;
        if number != self.refused.load(Ordering::Relaxed) {
            return Ok(());
        }
        let asker = thread::current();
        let asker = asker.name().unwrap_or("a thread without a name");
        // It comes once: no other has this number.
        let _ = self.refused_to.set(format!("{asker}/{what}"));
        Err(self.refusal)
    }
}

/// Starts a thread of this name.
///
/// # Errors
/// The system has none left, which names its call.
pub(crate) fn start_thread<T: Send + 'static>(
    name: &str,
    run: impl FnOnce() -> T + Send + 'static,
) -> std::io::Result<thread::JoinHandle<T>> {
    let asked = THREADS.ask_for(name).map_err(std::io::Error::from);
    let started = asked.and_then(|()| thread::Builder::new().name(name.to_owned()).spawn(run));
    started.map_err(|error| std::io::Error::new(error.kind(), format!("pthread_create: {error}")))
}

/// The same for a thread that has something, which comes back where there is none.
///
/// # Errors
/// As [`start_thread`].
pub(crate) fn start_thread_with<T: Send + 'static>(
    name: &str,
    what: T,
    run: impl FnOnce(T) + Send + 'static,
) -> Result<(), (std::io::Error, T)> {
    // Whoever cannot start a thread drops what was to run there.
    let kept = Arc::new(Mutex::new(Some(what)));
    let passed = Arc::clone(&kept);
    let started = start_thread(name, move || {
        let what = lock(&passed).take();
        what.map(run)
    });
    let Err(error) = started else {
        return Ok(());
    };
    let kept = lock(&kept).take();
    // Nobody else has taken it.
    kept.map_or(Ok(()), |what| Err((error, what)))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_one_that_is_planned_is_refused_and_no_other() {
        let supply = Supply::new(Errno::NOMEM);
        assert_eq!(supply.ask_for("nf-spare"), Ok(()));
        supply.refuse(2);
        let asked = [(); 3].map(|()| supply.ask_for("nf-spare"));
        assert_eq!(asked, [Ok(()), Err(Errno::NOMEM), Ok(())]);
        assert_eq!(supply.asked(), 4);
        let refused_to = supply.refused_to().unwrap();
        assert!(refused_to.ends_with("/nf-spare"), "{refused_to}");
    }
}
