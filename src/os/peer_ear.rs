//! Peer ear: the thread that hears when other operating systems call this one to look at a shared fence.
//!
//! It sleeps for the word of calls in the own slot of the fence's page, and nobody wakes it else: an idle
//! system wakes nobody (HQ-09). Each shared fence has one of its own, so that who calls without end for
//! one fence holds up no other; it ends with the fence's place in the page. A sleep for a word is all that
//! the systems share here: a descriptor would have flags, a counter and locks that whoever has it too can
//! use to make a writer or a reader wait.

use super::native_fence::NativeFence;
use super::opener_page::OpenerPage;
use crate::supply::start_thread;
use crate::sync::{Arc, AtomicBool, Ordering};
use std::io;
use std::sync::Weak;

/// See the file's head. The thread ends when this is dropped.
#[derive(Debug)]
pub(super) struct PeerEar {
    page: OpenerPage,
    slot: usize,
    ended: Arc<AtomicBool>,
}

impl PeerEar {
    /// Starts the thread: from now on each call of the slot's owner has the fence look, and so has each
    /// that came after the owner was called `calls` times.
    ///
    /// # Errors
    /// No thread is left.
    pub(super) fn start(
        page: &OpenerPage,
        slot: usize,
        calls: u64,
        fence: &Arc<NativeFence>,
    ) -> io::Result<Self> {
        let ended = Arc::new(AtomicBool::new(false));
        let ear = Self {
            page: page.clone(),
            slot,
            ended: Arc::clone(&ended),
        };
        let (page, fence) = (page.clone(), Arc::downgrade(fence));
        let run = move || hear(&page, slot, calls, &fence, &ended);
        start_thread("nf-peer", run)?;
        Ok(ear)
    }
}

impl Drop for PeerEar {
    fn drop(&mut self) {
        // Not waited for: the fence may go on that thread.
        self.ended.store(true, Ordering::Release);
        self.page.call(self.slot);
    }
}

fn hear(
    page: &OpenerPage,
    slot: usize,
    mut calls: u64,
    fence: &Weak<NativeFence>,
    ended: &AtomicBool,
) {
    loop {
        page.sleep_while(slot, calls);
        // Before the words are read: who stores after that calls after it.
        calls = page.calls(slot);
        if ended.load(Ordering::Acquire) {
            return;
        }
        let Some(fence) = fence.upgrade() else {
            return;
        };
        fence.peers_called(None);
    }
}
