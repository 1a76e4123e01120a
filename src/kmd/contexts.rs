//! Contexts of a driver: of each, which there is and on which node.
//!
//! What suspends them is the node's; here are their names.

use super::{ContextHandle, CreateContext, DdiError};
use crate::sync::{Mutex, lock};
use std::collections::BTreeSet;

#[derive(Debug, Default)]
struct State {
    made: BTreeSet<ContextHandle>,
    next: u32,
}

/// See the file's head.
#[derive(Debug, Default)]
pub(super) struct Contexts(Mutex<State>);

impl Contexts {
    /// One more, on a node that there is.
    ///
    /// # Errors
    /// An affinity that the node has not.
    pub(super) fn create(&self, args: &CreateContext) -> Result<ContextHandle, DdiError> {
        if args.engine_affinity != 1 {
            return Err(DdiError::InvalidParameter(
                "the engine affinity must be exactly bit 0: every node has one engine",
            ));
        }
        let mut state = lock(&self.0);
        let handle = ContextHandle {
            node_ordinal: args.node_ordinal,
            number: state.next,
        };
        state.next += 1;
        state.made.insert(handle);
        Ok(handle)
    }

    /// The context is destroyed.
    pub(super) fn remove(&self, context: ContextHandle) {
        lock(&self.0).made.remove(&context);
    }

    /// Refuses what is none.
    ///
    /// # Errors
    /// There is none of that name.
    pub(super) fn check(&self, context: ContextHandle) -> Result<(), DdiError> {
        let is_made = lock(&self.0).made.contains(&context);
        let refusal = DdiError::InvalidParameter("no such context");
        is_made.then_some(()).ok_or(refusal)
    }

    /// The same for a queue of a node.
    ///
    /// # Errors
    /// There is none of that name on that node.
    pub(super) fn check_of(
        &self,
        context: ContextHandle,
        node_ordinal: u32,
    ) -> Result<(), DdiError> {
        self.check(context)?;
        let is_there = context.node_ordinal == node_ordinal;
        let refusal = DdiError::InvalidParameter("the context is one of another node");
        is_there.then_some(()).ok_or(refusal)
    }
}
