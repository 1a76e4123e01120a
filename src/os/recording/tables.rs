//! Tables: the queues and fences of a trace, by the numbers that its events have for them.

use super::pairing::Pairing;
use crate::abi::FenceId;
use crate::os::adapter_state::AdapterState;
use crate::os::queue_record::QueueRecord;
use crate::sync::Arc;
use crate::trace::{FenceName, Operation, QueueName};
use std::collections::HashMap;

/// A queue of the trace.
#[derive(Debug)]
pub(super) struct TracedQueue {
    pub(super) name: QueueName,
    /// Of a user-mode queue, until its last entry was read.
    pub(super) record: Option<Arc<QueueRecord>>,
    waits: Pairing,
    signals: Pairing,
}

impl TracedQueue {
    pub(super) fn pairing(&mut self, operation: Operation) -> &mut Pairing {
        match operation {
            Operation::Wait => &mut self.waits,
            Operation::Signal => &mut self.signals,
        }
    }
}

/// See the file's head.
#[derive(Debug, Default)]
pub(super) struct Tables {
    pub(super) queues: Vec<TracedQueue>,
    queue_numbers: HashMap<QueueName, u32>,
    pub(super) fences: Vec<FenceName>,
    fence_numbers: HashMap<FenceName, u32>,
    handles: HashMap<(u64, u32), u32>,
}

impl Tables {
    /// The number of a queue.
    pub(super) fn queue(&mut self, name: QueueName) -> u32 {
        let queues = &mut self.queues;
        *self.queue_numbers.entry(name).or_insert_with(|| {
            queues.push(TracedQueue {
                name,
                record: None,
                waits: Pairing::default(),
                signals: Pairing::default(),
            });
            queues.len() as u32 - 1
        })
    }

    /// The number of a fence.
    pub(super) fn fence(&mut self, name: FenceName) -> u32 {
        let fences = &mut self.fences;
        *self.fence_numbers.entry(name).or_insert_with(|| {
            fences.push(name);
            fences.len() as u32 - 1
        })
    }

    /// The same by the driver's name.
    pub(super) fn fence_of_id(&mut self, id: FenceId) -> u32 {
        self.fence(id.into())
    }

    /// The same by a process's handle, whatever word that is.
    pub(super) fn fence_of_handle(
        &mut self,
        adapter: &AdapterState,
        process: u64,
        handle: u32,
    ) -> u32 {
        if let Some(number) = self.handles.get(&(process, handle)) {
            return *number;
        }
        let name = adapter
            .traced_fence(process, handle)
            .map_or(FenceName::Handle { process, handle }, FenceName::from);
        let number = self.fence(name);
        self.handles.insert((process, handle), number);
        number
    }
}
