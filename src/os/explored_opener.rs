//! Explored opener: one operating system's place among those that have a fence open, as loom explores it.
//!
//! The place and the page are the real ones; the fence is left out, and with it the threads that hear. A
//! scenario says when an opener looks at the others, and when it hears that it was called.

use super::explored_processes::{PeerWatch, end};
use super::opener_page::OpenerPage;
use super::peer_link::PeerLink;
use super::peers::Peers;
use super::shared_pages::{PassFenceError, SharedPages};
use crate::abi::{HandleAccess, NO_CPU_WAITER, PAGE_BYTES, WordGroup};
use crate::shared::{ExploresMore, Region};
use crate::sync::Arc;

/// Slots that a scenario has at most.
const SLOTS: usize = 3;

/// See the file's head. It leaves its slot when it is dropped.
#[derive(Debug)]
pub struct ExploredOpener {
    pages: Arc<SharedPages>,
    page: OpenerPage,
    link: Arc<PeerLink>,
    /// How often its slot's owner had been called when it began to hear.
    calls: u64,
}

impl ExploredOpener {
    /// The first of a new fence.
    ///
    /// # Errors
    /// Never.
    pub fn first() -> Result<Self, PassFenceError> {
        let _more = ExploresMore::of(&[WordGroup::MonitoredValues]);
        let current = Region::for_words(WordGroup::CurrentValues, PAGE_BYTES)?;
        let monitored = Region::for_words(WordGroup::MonitoredValues, PAGE_BYTES)?;
        let pages = SharedPages::of(&current, &monitored, (HandleAccess::FULL, false), None)?;
        let page = pages.page()?;
        // Loom wants the words made before there are several threads.
        let _ = page.is_always_signaled();
        for slot in 0..SLOTS {
            let _ = (page.owner(slot), page.awaited(slot), page.calls(slot));
            page.telling().clear(slot);
        }
        let link = PeerLink::first(&pages, Arc::new(PeerWatch::start()?))?;
        Self::of(&pages, link)
    }

    /// One more of the same fence, which hears from then on.
    ///
    /// # Errors
    /// No slot is left.
    pub fn join(&self) -> Result<Self, PassFenceError> {
        let link = PeerLink::join(&self.pages, Arc::new(PeerWatch::start()?))?;
        Self::of(&self.pages, link)
    }

    fn of(pages: &Arc<SharedPages>, link: Arc<PeerLink>) -> Result<Self, PassFenceError> {
        let (pages, page) = (Arc::clone(pages), pages.page()?);
        let calls = page.calls(link.slot());
        Ok(Self {
            pages,
            page,
            link,
            calls,
        })
    }

    /// All others take it for ended from now on; it goes on.
    pub fn seems_ended(&self) {
        end(self.page.owner(self.link.slot()));
    }

    /// Its waiters wait for this.
    pub fn awaits(&self, value: u64) {
        self.link.await_own(value - 1);
    }

    /// Looks at the others, and frees the slots of those that have ended: the least value that one waits for.
    #[must_use]
    pub fn least_awaited(&self) -> Option<u64> {
        let monitored = self.link.least(NO_CPU_WAITER, &|| 0, 0);
        monitored?.checked_add(1)
    }

    /// Whether it was called since it began to hear.
    #[must_use]
    pub fn was_called(&self) -> bool {
        self.page.calls(self.link.slot()) != self.calls
    }

    /// What it does when it hears that it was called, before it looks: whether it has a slot.
    #[must_use]
    pub fn hears(&self) -> bool {
        self.link.heard(None);
        self.link.keeps_slot()
    }

    /// A device of it is lost that could signal the fence.
    pub fn loses(&self) {
        self.link.always_signal();
    }

    /// Whether it reads that some device is.
    #[must_use]
    pub fn knows_of_loss(&self) -> bool {
        self.link.is_always_signaled()
    }
}
