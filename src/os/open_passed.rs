//! Opening a fence that came from another operating system.

use super::adapter::OsError;
use super::fence_storage::FenceStorage;
use super::global_fence::GlobalFence;
use super::native_fence::{Reach, Terms};
use super::peer_link::PeerLink;
use super::process::{FenceObject, Process};
use super::shared_pages::SharedPages;
use super::signaller::Signaller;
use crate::sync::Arc;

impl Process {
    /// A handle on the fence with these pages: on the object that the adapter has of it already, or on a
    /// new one, which takes a slot of the fence's page.
    pub(super) fn open_passed(
        self: &Arc<Self>,
        pages: &Arc<SharedPages>,
    ) -> Result<FenceObject, OsError> {
        // One at a time, from the look to the entry: else each of several would make an object and take a
        // slot. The driver calls nobody back when a fence is created and opened.
        let _turn = self.adapter().turn_to_open_passed();
        if let Some(global) = self.adapter().fence_of(pages.files()) {
            return self.open(global, |_| Ok(()));
        }
        let link = PeerLink::join(pages, self.adapter().peer_watch().map_err(passing)?)?;
        let storage = FenceStorage::received(pages, link.slot())?;
        let terms = Terms {
            signaller: Signaller::Openers,
            access: pages.access,
            is_shareable: true,
            keeps_value_on_tdr: pages.keeps_value_on_tdr,
            reach: Reach::Adapter,
        };
        let fence = self.adapter().register_fence(terms, storage, None)?;
        if let Some(doorbell) = &pages.doorbell {
            fence.rings(Arc::clone(doorbell));
        }
        let object = self.open_first(GlobalFence::new(fence, self.adapter()))?;
        // With an engine that knows it and a handle: what comes from now on is heard.
        object.global().came_by(pages, &link)?;
        Ok(object)
    }
}

fn passing(error: std::io::Error) -> OsError {
    OsError::Passing(error.into())
}
