//! Context calls: the DDIs of hardware contexts, and that of preemption on the other kind of queues.

use super::driver::Driver;
use super::{ContextHandle, CreateContext, DdiError, PreemptCommand, SuspendContext, Suspension};

pub(super) const NO_SUCH_ENGINE: DdiError =
    DdiError::InvalidParameter("the engine ordinal must be 0: every node has one engine");

/// A driver, asked for its contexts.
pub(super) struct ContextCalls<'a>(pub(super) &'a Driver);

impl ContextCalls<'_> {
    pub(super) fn create(&self, args: &CreateContext) -> Result<ContextHandle, DdiError> {
        self.0.node(args.node_ordinal)?;
        self.0.contexts.create(args)
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
