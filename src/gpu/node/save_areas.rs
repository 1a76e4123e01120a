//! Save areas of a node's contexts: they are initialised before a slice refers to their queues, and move while
//! their context is suspended (PR-14).
//!
//! The OS has copied the area before, and in between the host may have written to it: a log was moved, another
//! engine has taken the place of one that was lost. So the two are compared here, where nobody writes, and the
//! area stays where it is if they differ. No slice knows the context's queues, so none has an address of the
//! place before; the next one reads the new one in the queues' descriptors.

use super::{Node, NodeError};
use crate::gpu::{EngineLost, NotTheSame, QueueSlot, SaveArea};
use crate::shared::Region;
use crate::sync::{Arc, lock};

/// What became of a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "an area that was written to since is where it was"]
pub enum SaveAreaMove {
    /// The states lie in the new place.
    Done,
    /// They lie where they were, and were written to since they were copied, or will be: copy them again.
    WrittenSince,
}

impl Node {
    /// The first state of its queues lies in a save area: slices may refer to them from now on.
    pub fn save_area_initialised(&self, area: &Arc<SaveArea>) {
        let mut inner = lock(&self.inner);
        area.set_initialised();
        if inner.run_list.initialised(area) {
            // Slices in flight do not know the queues; and who has rung meanwhile is seen by the next.
            self.request_end(&mut inner);
            drop(inner);
            let _ = self.wake();
        }
    }

    /// Moves a save area of a suspended context to a place that has its content. `queues` are all of the node.
    ///
    /// # Errors
    /// The context is not suspended, or has not left the engine; that is lost; the place cannot be mapped.
    pub fn move_save_area(
        &self,
        context: u32,
        area: &Arc<SaveArea>,
        (region, offset): (&Arc<Region>, u64),
        queues: &[Arc<QueueSlot>],
    ) -> Result<SaveAreaMove, NodeError> {
        let mut inner = lock(&self.inner);
        let serviced = inner.serviced;
        // Of a lost engine nobody knows what it still stores, until another takes its place.
        if inner.is_lost() {
            return Err(NodeError::Lost(EngineLost));
        }
        if !inner.run_list.has_departed(context, serviced) {
            return Err(NodeError::NotSuspended);
        }
        // Its first state is yet to be written where it is.
        if !area.is_initialised() {
            return Ok(SaveAreaMove::WrittenSince);
        }
        let mapping = Self::map_locked(&mut inner, region)?;
        let before = match area.move_to(&mapping, offset) {
            Ok(before) => before,
            Err(NotTheSame) => return Ok(SaveAreaMove::WrittenSince),
        };
        for queue in inner.run_list.with_all(queues) {
            if queue.saves_to(area) {
                queue.states_moved();
            }
        }
        drop(inner);
        // Unmapping takes time.
        drop(before);
        Ok(SaveAreaMove::Done)
    }
}
