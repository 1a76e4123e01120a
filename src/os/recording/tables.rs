//! Tables: the queues and fences of a trace, by the numbers that its events have for them.

use super::TracedFence;
use super::dispatches::Dispatches;
use super::pairing::Pairing;
use crate::abi::FenceId;
use crate::trace::{FenceName, Operation, QueueId, QueueName};
use std::collections::HashMap;

/// A queue of the trace.
#[derive(Debug)]
pub(super) struct TracedQueue {
    pub(super) name: QueueName,
    waits: Pairing,
    signals: Pairing,
    pub(super) dispatches: Dispatches,
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
    queue_numbers: HashMap<QueueId, u32>,
    pub(super) fences: Vec<FenceName>,
    fence_numbers: HashMap<FenceName, u32>,
    /// What handles named, by process.
    names: HashMap<(u64, u32), FenceName>,
    /// Of fences that have another name than their id.
    by_id: HashMap<FenceId, FenceName>,
    handles: HashMap<(u64, u32), u32>,
}

impl Tables {
    /// Handles were opened.
    pub(super) fn named(&mut self, names: HashMap<(u64, u32), TracedFence>) {
        for (handle, fence) in names {
            // It may have been another fence's before, which was closed.
            self.handles.remove(&handle);
            self.names.insert(handle, fence.name());
            if fence.crosses.is_some() {
                self.by_id.insert(fence.id, fence.name());
            }
        }
    }

    /// A queue, which may be known.
    pub(super) fn enter(&mut self, id: QueueId, process: u64, is_kernel_mode: bool) {
        let queues = &mut self.queues;
        self.queue_numbers.entry(id).or_insert_with(|| {
            queues.push(TracedQueue {
                name: QueueName {
                    node_ordinal: id.node_ordinal,
                    number: id.number,
                    process,
                    is_kernel_mode,
                },
                waits: Pairing::default(),
                signals: Pairing::default(),
                dispatches: Dispatches::default(),
            });
            queues.len() as u32 - 1
        });
    }

    /// The number of a queue; none of one that nobody told of.
    pub(super) fn queue(&self, id: QueueId) -> Option<u32> {
        self.queue_numbers.get(&id).copied()
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
        let name = self.by_id.get(&id).copied();
        self.fence(name.unwrap_or_else(|| id.into()))
    }

    /// The same by a process's handle, whatever word that is.
    pub(super) fn fence_of_handle(&mut self, process: u64, handle: u32) -> u32 {
        if let Some(number) = self.handles.get(&(process, handle)) {
            return *number;
        }
        let named = self.names.get(&(process, handle));
        let name = named.copied().unwrap_or(FenceName::Handle {
            adapter: 0,
            process,
            handle,
        });
        let number = self.fence(name);
        self.handles.insert((process, handle), number);
        number
    }
}
