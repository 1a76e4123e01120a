//! Watch: the thread that looks after engines while any of them runs, and recovers those that do not answer.
//!
//! It sleeps without a timer while all are let go (HQ-09). An engine that is taken from Parked wakes it
//! (`gpu::activity`); an engine whose device is lost is handed to it, since the interrupt thread that finds
//! that is the engine's own and goes with it.

use super::policy::TdrPolicy;
use super::sequence::Cause;
use super::verdict::{Observed, Verdict};
use crate::kmd::{Activity, DdiError};
use crate::os::adapter_state::AdapterState;
use crate::supply::{RECOVERY_THREAD, start_thread};
use crate::sync::plain::{Mutex, lock};
use crate::sync::{Arc, AtomicBool, Ordering, thread};
use std::collections::HashMap;
use std::sync::{OnceLock, Weak};
use std::time::Instant;

/// See the file's head.
#[derive(Debug, Default)]
pub(super) struct Watch {
    activity: OnceLock<Arc<Activity>>,
    /// Nodes whose engines were found lost.
    lost: Mutex<Vec<u32>>,
    stops: AtomicBool,
    thread: Mutex<Option<thread::JoinHandle<()>>>,
}

impl Watch {
    /// An engine was found lost.
    pub(super) fn lost(&self, node_ordinal: u32) {
        lock(&self.lost).push(node_ordinal);
        self.call();
    }

    fn call(&self) {
        if let Some(activity) = self.activity.get() {
            activity.call();
        }
    }

    /// Ends the thread, and gives it to who waits for it.
    pub(super) fn let_go(&self) -> Option<thread::JoinHandle<()>> {
        self.stops.store(true, Ordering::Release);
        self.call();
        lock(&self.thread).take()
    }

    /// Ends the thread, and waits for it; not on itself.
    pub(super) fn stop(&self) {
        let Some(thread) = self.let_go() else {
            return;
        };
        if thread.thread().id() != thread::current().id() && thread.join().is_err() {
            eprintln!("native-fence: the thread that watches over engines panicked");
        }
    }
}

impl AdapterState {
    /// Starts to watch, where there is something to watch for.
    ///
    /// # Errors
    /// No thread.
    pub(in crate::os) fn start_watch(self: &Arc<Self>) -> Result<(), DdiError> {
        let (policy, watch) = (self.tdr.policy, &self.tdr.watch);
        let Some(tdr) = self.ddi().tdr().filter(|_| policy.detects()) else {
            return Ok(());
        };
        let activity = Arc::clone(watch.activity.get_or_init(|| tdr.activity()));
        let adapter = Arc::downgrade(self);
        let run = move || run(&adapter, &activity, policy);
        let thread = start_thread(RECOVERY_THREAD, run);
        *lock(&watch.thread) = Some(thread.map_err(DdiError::NoThread)?);
        Ok(())
    }

    /// Looks at all engines; whether any of them is at work.
    fn look_after_engines(&self, observed: &mut HashMap<u32, Observed>, now: Instant) -> bool {
        let Some(tdr) = self.ddi().tdr() else {
            return false;
        };
        let lost = std::mem::take(&mut *lock(&self.tdr.watch.lost));
        for node in lost {
            observed.remove(&node);
            self.recover_engine(node, Cause::Lost);
        }
        let mut any = false;
        for node in 0..self.ddi().node_count() {
            let marks = tdr.engine_marks(node);
            any |= marks.is_some();
            match observed
                .entry(node)
                .or_default()
                .look(marks, &self.tdr.policy, now)
            {
                Verdict::Well => {}
                Verdict::Ask => {
                    self.tdr.steps.asked(node);
                    tdr.request_preemption(node);
                }
                Verdict::Suspect => tdr.suspect_engine(node),
                Verdict::TimedOut => self.recover_engine(node, Cause::TimedOut),
            }
        }
        any
    }
}

/// The thread. It keeps no adapter alive while it sleeps.
fn run(adapter: &Weak<AdapterState>, activity: &Activity, policy: TdrPolicy) {
    let mut observed = HashMap::new();
    let mut seen = 0;
    loop {
        let is_busy = {
            let Some(adapter) = adapter.upgrade() else {
                return;
            };
            if adapter.tdr.watch.stops.load(Ordering::Acquire) {
                return;
            }
            activity.finds(|| adapter.look_after_engines(&mut observed, Instant::now()))
        };
        let next = is_busy.then(|| Instant::now() + policy.between_looks());
        seen = activity.wait(seen, next);
    }
}
