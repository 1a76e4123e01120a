//! Monitored fences of an adapter: all of them, and those that are waited for.
//!
//! An interrupt about monitored fences names none (MF-02), so the OS looks at every fence that
//! somebody waits for; what nobody waits for costs it nothing.
//!
//! Locks: a fence's, then one of these; under these no other is taken.

use super::monitored_fence::MonitoredFence;
use super::recording::TracedFence;
use super::wait_cell::WaitError;
use crate::abi::{FenceId, LocalHandle};
use crate::kmd::ProcessId;
use crate::sync::{Arc, Mutex, lock};
use std::collections::BTreeMap;
use std::sync::Weak;

/// Fences in whose lists somebody stands.
#[derive(Debug, Default)]
pub(super) struct WaitedFor(Mutex<BTreeMap<FenceId, Weak<MonitoredFence>>>);

impl WaitedFor {
    /// Somebody waits for the fence, or nobody does any more. The caller holds the fence's lock.
    pub(super) fn set(&self, id: FenceId, fence: Option<&Weak<MonitoredFence>>) {
        let mut fences = lock(&self.0);
        match fence {
            Some(fence) => fences.insert(id, Weak::clone(fence)),
            None => fences.remove(&id),
        };
    }

    fn all(&self) -> Vec<Arc<MonitoredFence>> {
        lock(&self.0).values().filter_map(Weak::upgrade).collect()
    }
}

/// See the file's head.
#[derive(Debug, Default)]
pub(super) struct MonitoredFences {
    waited_for: Arc<WaitedFor>,
    all: Mutex<BTreeMap<FenceId, Weak<MonitoredFence>>>,
    /// Handles by which processes name them: what a user-mode queue must not name (MF-09).
    handles: Mutex<BTreeMap<(ProcessId, u32), FenceId>>,
}

impl MonitoredFences {
    /// Where a fence says that it is waited for.
    pub(super) fn waited_for(&self) -> &Arc<WaitedFor> {
        &self.waited_for
    }

    /// A new fence, with its process's handle.
    pub(super) fn enter(&self, fence: &Arc<MonitoredFence>, handle: LocalHandle) {
        lock(&self.all).insert(fence.id(), Arc::downgrade(fence));
        lock(&self.handles).insert((fence.process(), handle.raw()), fence.id());
    }

    /// The fence is destroyed.
    pub(super) fn take_out(&self, fence: &MonitoredFence, handle: LocalHandle) {
        lock(&self.all).remove(&fence.id());
        lock(&self.handles).remove(&(fence.process(), handle.raw()));
    }

    /// Whether a handle of a process, any word that its user wrote, names a monitored fence.
    pub(super) fn is_named_by(&self, process: ProcessId, handle: u32) -> bool {
        lock(&self.handles).contains_key(&(process, handle))
    }

    /// All handles, and what they name.
    pub(super) fn all_handles(&self) -> Vec<(ProcessId, u32, TracedFence)> {
        let handles = lock(&self.handles).clone();
        let named = handles.into_iter().filter_map(|((process, handle), id)| {
            let fence = lock(&self.all).get(&id)?.upgrade()?;
            Some((process, handle, fence.as_ref().into()))
        });
        named.collect()
    }

    /// All of them.
    pub(super) fn all(&self) -> Vec<Arc<MonitoredFence>> {
        lock(&self.all).values().filter_map(Weak::upgrade).collect()
    }

    /// Ends the waits for all of them.
    pub(super) fn fail(&self, error: WaitError) {
        for fence in self.all() {
            fence.fail(error);
        }
    }

    /// Looks at every wait that is pending (MF-02, IN-04).
    pub(super) fn look(&self) {
        for fence in self.waited_for.all() {
            fence.resample();
        }
    }

    /// The same for the fences of one process (MF-07).
    pub(super) fn look_at_those_of(&self, process: ProcessId) {
        for fence in self.waited_for.all() {
            if fence.process() == process {
                fence.resample();
            }
        }
    }
}
