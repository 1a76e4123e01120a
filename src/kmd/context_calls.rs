//! Context calls: the DDIs of hardware contexts, and that of preemption on the other kind of queues.

use super::context_allocation::save_area;
use super::driver::Driver;
use super::{
    ContextAllocationId, ContextHandle, ContextKind, CreateContext, DdiError, Place,
    PreemptCommand, SaveAreaMove, SuspendContext, Suspension,
};
use crate::gpu::{Node, SaveArea, StateSlot};
use crate::sync::Arc;

pub(super) const NO_SUCH_ENGINE: DdiError =
    DdiError::InvalidParameter("the engine ordinal must be 0: every node has one engine");

/// A driver, asked for its contexts.
pub(super) struct ContextCalls<'a>(pub(super) &'a Driver);

impl ContextCalls<'_> {
    pub(super) fn create(&self, args: &CreateContext) -> Result<ContextHandle, DdiError> {
        let node = self.0.node(args.node_ordinal)?;
        let context = self.0.contexts.create(args)?;
        match self.area(node, context) {
            Ok(area) => self.0.contexts.add_area(context, area),
            Err(error) => {
                self.0.contexts.remove(context);
                return Err(error);
            }
        }
        Ok(context)
    }

    /// One more save area: of the OS's memory, but for contexts of the OS's own device.
    fn area(
        &self,
        node: &Node,
        context: ContextHandle,
    ) -> Result<(Option<ContextAllocationId>, Arc<SaveArea>), DdiError> {
        let (process, kind) = self.0.contexts.owner(context)?;
        // Loom's scenarios have no paging packets: each of their executions would begin with one.
        if kind != ContextKind::Program || cfg!(loom) {
            return Ok((None, node.own_save_area(kind)?));
        }
        let callbacks = self.0.reporter.callbacks()?;
        let (id, area) = save_area(node, callbacks, (process, context))?;
        Ok((Some(id), area))
    }

    /// Where one more queue of a context is saved.
    pub(super) fn state_slot(
        &self,
        node: &Node,
        context: ContextHandle,
    ) -> Result<StateSlot, DdiError> {
        if let Some(slot) = self.0.contexts.state_slot(context) {
            return Ok(slot);
        }
        let area = self.area(node, context)?;
        let Some(slot) = area.1.take() else {
            unreachable!("a new area has slots")
        };
        self.0.contexts.add_area(context, area);
        Ok(slot)
    }

    pub(super) fn allocation_initialised(&self, id: ContextAllocationId) {
        // It went with its context otherwise.
        if let Some((context, area)) = self.0.contexts.area(id)
            && let Ok(node) = self.0.node(context.node_ordinal)
        {
            node.save_area_initialised(&area);
        }
    }

    pub(super) fn move_allocation(
        &self,
        id: ContextAllocationId,
        to: Place<'_>,
    ) -> Result<SaveAreaMove, DdiError> {
        let area = self.0.contexts.area(id);
        let (context, area) = area.ok_or(DdiError::InvalidParameter("no such save area"))?;
        let node = self.0.node(context.node_ordinal)?;
        let queues = self.0.queues.of_node(context.node_ordinal);
        let place = (to.region, to.offset);
        Ok(node.move_save_area(context.number, &area, place, &queues)?)
    }

    pub(super) fn destroy(&self, context: ContextHandle) {
        // It has no queue: the node forgets that it was suspended, and its priority.
        self.resume(context);
        let _known = self.set_priority(context, 0);
        self.0.contexts.remove(context);
    }

    pub(super) fn suspend(&self, args: &SuspendContext) -> Result<Suspension, DdiError> {
        self.0.contexts.check(args.context)?;
        let node = self.0.node(args.context.node_ordinal)?;
        let (suspension, report) = node.suspend_context(args.context.number, args.suspend_fence)?;
        self.0.deliver_all(node, [report]);
        Ok(suspension)
    }

    pub(super) fn set_priority(
        &self,
        context: ContextHandle,
        priority: i32,
    ) -> Result<(), DdiError> {
        self.0.contexts.check(context)?;
        let node = self.0.node(context.node_ordinal)?;
        node.set_priority(context.number, priority);
        Ok(())
    }

    pub(super) fn preempt(&self, args: &PreemptCommand) -> Result<(), DdiError> {
        if args.engine_ordinal != 0 {
            return Err(NO_SUCH_ENGINE);
        }
        let node = self.0.node(args.node_ordinal)?;
        let report = self.0.reporter.preempt(node, args.preemption_id)?;
        self.0.deliver_all(node, report);
        Ok(())
    }

    pub(super) fn resume(&self, context: ContextHandle) {
        if let Ok(node) = self.0.node(context.node_ordinal) {
            node.resume_context(context.number);
        }
    }
}
