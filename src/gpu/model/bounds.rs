//! Bounds: what an engine may touch for one queue.
//!
//! Taken from the queue's descriptor, which the OS wrote, and from the handle table of its process,
//! by ways of their own: the registers with which the lane computes its addresses take no part.

use super::memory::ModelMemory;
use super::violation::Checked;
use crate::abi::{
    HandleAccess, HandleEntry, LogEntry, LogHeader, PACKET_BYTES, QueueDescriptor, QueueProgress,
    QueueState, RingControl, STATE_COPIES,
};
use crate::sync::plain::{Mutex, lock};
use std::collections::HashSet;
use std::ops::Range;

/// What one queue may touch.
#[derive(Debug)]
pub(super) struct Bounds {
    ring: Range<u64>,
    ring_control: Range<u64>,
    /// Descriptor, states, logs, progress words.
    own: [Range<u64>; 6],
    handle_directory: u64,
    /// CurrentValues that the process was seen to have open since the queue was loaded.
    opened: Mutex<HashSet<u64>>,
    /// Allocations that it had open when the last part of a transfer began.
    allocations: Mutex<Vec<Range<u64>>>,
}

impl Bounds {
    /// Of the queue whose descriptor lies at `descriptor`.
    pub(super) fn read(memory: &ModelMemory, descriptor: u64) -> Checked<Self> {
        let word = |offset| memory.peek(descriptor + offset, None);
        let ring = word(QueueDescriptor::RING_VA)?;
        let ring_control = word(QueueDescriptor::RING_CONTROL_VA)?;
        let handle_directory = word(QueueDescriptor::HANDLE_DIRECTORY_VA)?;
        let from = |start: u64, bytes: u64| start..start + bytes;
        let log = |va, entries| {
            let bytes = LogHeader::BYTES + word(entries)? * LogEntry::BYTES;
            Checked::Ok(from(word(va)?, bytes))
        };
        Ok(Self {
            ring: ring..ring + word(QueueDescriptor::RING_CAPACITY)? * PACKET_BYTES,
            ring_control: ring_control..ring_control + RingControl::BYTES,
            own: [
                from(descriptor, QueueDescriptor::BYTES),
                from(
                    word(QueueDescriptor::STATE_VA)?,
                    STATE_COPIES * QueueState::BYTES,
                ),
                log(
                    QueueDescriptor::WAIT_LOG_VA,
                    QueueDescriptor::WAIT_LOG_ENTRIES,
                )?,
                log(
                    QueueDescriptor::SIGNAL_LOG_VA,
                    QueueDescriptor::SIGNAL_LOG_ENTRIES,
                )?,
                log(
                    QueueDescriptor::VERBOSE_LOG_VA,
                    QueueDescriptor::VERBOSE_LOG_ENTRIES,
                )?,
                from(word(QueueDescriptor::PROGRESS_VA)?, QueueProgress::BYTES),
            ],
            handle_directory,
            opened: Mutex::new(HashSet::new()),
            allocations: Mutex::default(),
        })
    }

    /// What forbids the queue the word at `va`, which lies in a region of this name.
    pub(super) fn forbid(&self, region: &str, va: u64) -> Option<&'static str> {
        let (allowed, rule) = match region {
            "hw-queue-ring" => (
                self.ring.contains(&va) || self.ring_control.contains(&va),
                "it is not in the queue's own ring",
            ),
            "hw-queue" | "fence-log" | "fence-log-large" | "hw-queue-progress" => (
                self.own.iter().any(|own| own.contains(&va)),
                "it belongs to another queue or process",
            ),
            "fence-cv" => (
                lock(&self.opened).contains(&va),
                "the queue's process has no handle open on this fence",
            ),
            "allocation" => (
                self.is_open(va),
                "the queue's process has no handle open on this allocation",
            ),
            // A paging packet of the OS moves one.
            "save-area" => (
                self.own.iter().any(|own| own.contains(&va)) || self.is_open(va),
                "it belongs to another queue",
            ),
            "fence-mv" => (false, "no queue touches a MonitoredValue"),
            _ => (true, ""),
        };
        (!allowed).then_some(rule)
    }

    fn is_open(&self, va: u64) -> bool {
        let allocations = lock(&self.allocations);
        allocations.iter().any(|open| open.contains(&va))
    }

    /// Looks a CurrentValue up in the handle table of the queue's process before the queue touches
    /// it. Every slot that was ever opened is looked at.
    pub(super) fn meet_current_value(
        &self,
        memory: &ModelMemory,
        current_value: u64,
    ) -> Checked<()> {
        if lock(&self.opened).contains(&current_value) {
            return Ok(());
        }
        self.search(memory, |access, va, _| {
            let is_it = access.kind() == HandleAccess::FULL && va == current_value;
            if is_it {
                lock(&self.opened).insert(current_value);
            }
            is_it
        })
    }

    /// Looks up which allocations the queue's process has open, before a part of a transfer.
    pub(super) fn meet_allocations(&self, memory: &ModelMemory) -> Checked<()> {
        let mut allocations = lock(&self.allocations);
        allocations.clear();
        self.search(memory, |access, va, bytes| {
            if access.has(HandleAccess::ALLOCATION) {
                allocations.push(va..va + bytes);
            }
            false
        })
    }

    /// Shows every entry of the handle table that was ever opened, its access, address and detail,
    /// until it is the one.
    fn search(
        &self,
        memory: &ModelMemory,
        mut is_it: impl FnMut(HandleAccess, u64, u64) -> bool,
    ) -> Checked<()> {
        for leaf in 0..HandleEntry::LEAVES {
            let leaf = memory.observe(self.handle_directory + leaf * 8, None)?;
            if leaf == 0 {
                continue;
            }
            for slot in 0..HandleEntry::LEAF_ENTRIES {
                let entry = leaf + slot * HandleEntry::BYTES;
                let meta = memory.observe(entry + HandleEntry::META, None)?;
                let va = memory.peek(entry + HandleEntry::VA, None)?;
                let detail = memory.peek(entry + HandleEntry::DETAIL, None)?;
                let access = HandleAccess((meta >> 32) as u32);
                if meta as u32 != 0 && is_it(access, va, detail) {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}
