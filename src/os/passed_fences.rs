//! Passed fences: those of an adapter that other processes have open, by the files of their pages.
//!
//! A fence that comes back, or comes twice, is the one that is there: its devices share one object, one
//! slot of the fence's page, and one thread that hears of the others.

use super::adapter_state::AdapterState;
use super::global_fence::GlobalFence;
use super::peer_watch::PeerWatch;
use super::shared_pages::FenceFiles;
use super::turn::{Taken, Turn};
use crate::sync::{Arc, plain};
use std::collections::HashMap;
use std::sync::Weak;

/// See the file's head.
#[derive(Debug, Default)]
pub(super) struct PassedFences {
    fences: plain::Mutex<HashMap<FenceFiles, Weak<GlobalFence>>>,
    watch: plain::Mutex<Weak<PeerWatch>>,
    opening: Turn,
}

impl AdapterState {
    /// The fence with these pages, if it is open here.
    pub(super) fn fence_of(&self, files: FenceFiles) -> Option<Arc<GlobalFence>> {
        let fences = plain::lock(&self.passed_fences.fences);
        fences.get(&files).and_then(Weak::upgrade)
    }

    /// Who has it opens a fence that came, or finds it open.
    pub(super) fn turn_to_open_passed(&self) -> Taken<'_> {
        self.passed_fences.opening.take()
    }

    /// A fence was passed to or from another process.
    pub(super) fn passed_fence(&self, files: FenceFiles, fence: &Arc<GlobalFence>) {
        let mut fences = plain::lock(&self.passed_fences.fences);
        fences.retain(|_, fence| fence.strong_count() > 0);
        fences.insert(files, Arc::downgrade(fence));
    }

    /// The thread that hears of other processes, which lives as long as a fence needs it.
    pub(super) fn peer_watch(&self) -> std::io::Result<Arc<PeerWatch>> {
        let mut watch = plain::lock(&self.passed_fences.watch);
        if let Some(watch) = watch.upgrade() {
            return Ok(watch);
        }
        let started = Arc::new(PeerWatch::start()?);
        *watch = Arc::downgrade(&started);
        Ok(started)
    }
}
