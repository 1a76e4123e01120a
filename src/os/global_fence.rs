//! Global fence: a fence for as long as anybody has it open or holds a shared handle of it.
//!
//! Each opener and each shared handle has a reference to it. The last one that goes destroys the
//! fence (NF-14); whoever opens it has a reference before, so none opens what is destroyed. Interrupts
//! hold the fence itself and not this: they keep its memory a moment longer and destroy nothing.

use super::adapter::Adapter;
use super::native_fence::NativeFence;
use super::peer_link::PeerLink;
use super::shared_pages::{PassFenceError, SharedPages};
use crate::sync::Arc;
use crate::sync::plain;
use std::sync::OnceLock;

/// See the file's head.
#[derive(Debug)]
pub(super) struct GlobalFence {
    fence: Arc<NativeFence>,
    adapter: Arc<Adapter>,
    /// Set when the driver has made it.
    created: OnceLock<()>,
    /// What other processes open it by, once it was passed to one or came from one.
    passed: plain::Mutex<Option<Arc<SharedPages>>>,
}

impl GlobalFence {
    /// Of a fence that nobody has open yet.
    pub(super) fn new(fence: Arc<NativeFence>, adapter: &Arc<Adapter>) -> Arc<Self> {
        let adapter = Arc::clone(adapter);
        Arc::new(Self {
            fence,
            adapter,
            created: OnceLock::new(),
            passed: plain::Mutex::default(),
        })
    }

    /// The fence.
    pub(super) fn fence(&self) -> &Arc<NativeFence> {
        &self.fence
    }

    /// The driver has made it, and is to destroy it.
    pub(super) fn is_created(&self) {
        self.created.get_or_init(|| ());
    }

    /// The adapter that it is of.
    pub(super) fn adapter(&self) -> &Arc<Adapter> {
        &self.adapter
    }
}

/// Between processes.
impl GlobalFence {
    /// What another process opens the fence by.
    pub(super) fn pages(self: &Arc<Self>) -> Result<Arc<SharedPages>, PassFenceError> {
        if self.fence.terms().is_intra_gpu() {
            return Err(PassFenceError::IntraGpu);
        }
        let mut passed = plain::lock(&self.passed);
        if let Some(pages) = &*passed {
            return Ok(Arc::clone(pages));
        }
        let fence = &self.fence;
        let (current, monitored) = (
            fence.current_value_place().0,
            fence.monitored_value_place().0,
        );
        let terms = fence.terms();
        let asked = (terms.access, terms.keeps_value_on_tdr);
        let pages = SharedPages::of(current, monitored, asked, fence.doorbell().cloned())?;
        let link = PeerLink::first(&pages, self.adapter.peer_watch()?)?;
        // Before anybody can have the pages: those to whom they are sent are told of what is signalled here
        // from now on, and who opens them on this adapter finds this fence, and makes no other.
        link.listen(&self.fence)?;
        self.adapter.passed_fence(pages.files(), self);
        *passed = Some(Arc::clone(&pages));
        // Wakers may run in what follows, and pass the fence on.
        drop(passed);
        link.look(&self.fence);
        Ok(pages)
    }

    /// The fence came from another process.
    pub(super) fn came_by(
        self: &Arc<Self>,
        pages: &Arc<SharedPages>,
        link: &Arc<PeerLink>,
    ) -> Result<(), PassFenceError> {
        *plain::lock(&self.passed) = Some(Arc::clone(pages));
        link.listen(&self.fence)?;
        link.look(&self.fence);
        self.adapter.passed_fence(pages.files(), self);
        Ok(())
    }
}

impl Drop for GlobalFence {
    fn drop(&mut self) {
        if self.created.get().is_some() {
            self.adapter.retire_fence(&self.fence);
        } else {
            self.adapter.forget_fence(self.fence.id());
        }
    }
}
