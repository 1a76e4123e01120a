//! Contexts of a driver: of each, which there is, on which node, and where its queues are saved.
//!
//! What suspends them is the node's; here are their names.

use super::nodes::one_engine;
use super::{ContextAllocationId, ContextHandle, ContextKind, CreateContext, DdiError, ProcessId};
use crate::gpu::{SaveArea, StateSlot};
use crate::sync::{Arc, Mutex, lock};
use std::collections::BTreeMap;

/// A context of the driver's.
#[derive(Debug)]
struct Made {
    process: ProcessId,
    kind: ContextKind,
    /// Save areas, with the OS's name of each; none of a system context's.
    areas: Vec<(Option<ContextAllocationId>, Arc<SaveArea>)>,
}

#[derive(Debug, Default)]
struct State {
    made: BTreeMap<ContextHandle, Made>,
    next: u32,
}

/// See the file's head.
#[derive(Debug, Default)]
pub(super) struct Contexts(Mutex<State>);

const NO_SUCH_CONTEXT: DdiError = DdiError::InvalidParameter("no such context");

impl Contexts {
    /// One more, on a node that there is.
    ///
    /// # Errors
    /// An affinity that the node has not.
    pub(super) fn create(&self, args: &CreateContext) -> Result<ContextHandle, DdiError> {
        one_engine(args.engine_affinity)?;
        let mut state = lock(&self.0);
        let handle = ContextHandle {
            node_ordinal: args.node_ordinal,
            number: state.next,
        };
        state.next += 1;
        let made = Made {
            process: args.process,
            kind: args.kind,
            areas: Vec::new(),
        };
        state.made.insert(handle, made);
        Ok(handle)
    }

    /// The context is destroyed.
    pub(super) fn remove(&self, context: ContextHandle) {
        let removed = lock(&self.0).made.remove(&context);
        // Without the lock: its areas go back to the OS.
        drop(removed);
    }

    /// Refuses what is none.
    ///
    /// # Errors
    /// There is none of that name.
    pub(super) fn check(&self, context: ContextHandle) -> Result<(), DdiError> {
        let is_made = lock(&self.0).made.contains_key(&context);
        is_made.then_some(()).ok_or(NO_SUCH_CONTEXT)
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

    /// Whose it is.
    ///
    /// # Errors
    /// There is none of that name.
    pub(super) fn owner(
        &self,
        context: ContextHandle,
    ) -> Result<(ProcessId, ContextKind), DdiError> {
        let state = lock(&self.0);
        let made = state.made.get(&context).ok_or(NO_SUCH_CONTEXT)?;
        Ok((made.process, made.kind))
    }

    /// The context has one more save area.
    pub(super) fn add_area(
        &self,
        context: ContextHandle,
        area: (Option<ContextAllocationId>, Arc<SaveArea>),
    ) {
        if let Some(made) = lock(&self.0).made.get_mut(&context) {
            made.areas.push(area);
        }
    }

    /// A slot for one more queue of the context, while its areas have one.
    pub(super) fn state_slot(&self, context: ContextHandle) -> Option<StateSlot> {
        let state = lock(&self.0);
        let mut areas = state.made.get(&context)?.areas.iter();
        areas.find_map(|(_, area)| area.take())
    }

    /// The save area that the OS names so, and its context.
    pub(super) fn area(&self, id: ContextAllocationId) -> Option<(ContextHandle, Arc<SaveArea>)> {
        let state = lock(&self.0);
        let mut all = state.made.iter();
        all.find_map(|(context, made)| {
            let mut areas = made.areas.iter();
            let (_, area) = areas.find(|(named, _)| *named == Some(id))?;
            Some((*context, Arc::clone(area)))
        })
    }
}
