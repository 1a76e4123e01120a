//! Bounds: what an engine may touch for one queue.
//!
//! Taken from the queue's descriptor, which the OS wrote, and from the handle table of its process,
//! by ways of their own: the registers with which the lane computes its addresses take no part.

use super::memory::ModelMemory;
use super::violation::Checked;
use crate::abi::{
    HandleEntry, LogEntry, LogHeader, PACKET_BYTES, QueueDescriptor, QueueProgress, RingControl,
};
use crate::gpu::QueueSlot;
use crate::sync::plain::{Mutex, lock};
use std::collections::HashSet;
use std::ops::Range;

/// What one queue may touch.
#[derive(Debug)]
pub(super) struct Bounds {
    ring: Range<u64>,
    ring_control: Range<u64>,
    /// Descriptor and states, logs, progress words.
    own: [Range<u64>; 4],
    handle_directory: u64,
    /// CurrentValues that the process was seen to have open since the queue was loaded.
    opened: Mutex<HashSet<u64>>,
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
                from(descriptor, QueueSlot::PAGE_BYTES),
                log(
                    QueueDescriptor::WAIT_LOG_VA,
                    QueueDescriptor::WAIT_LOG_ENTRIES,
                )?,
                log(
                    QueueDescriptor::SIGNAL_LOG_VA,
                    QueueDescriptor::SIGNAL_LOG_ENTRIES,
                )?,
                from(word(QueueDescriptor::PROGRESS_VA)?, QueueProgress::BYTES),
            ],
            handle_directory,
            opened: Mutex::new(HashSet::new()),
        })
    }

    /// What forbids the queue the word at `va`, which lies in a region of this name.
    pub(super) fn forbid(&self, region: &str, va: u64) -> Option<&'static str> {
        let (allowed, rule) = match region {
            "hw-queue-ring" => (
                self.ring.contains(&va) || self.ring_control.contains(&va),
                "it is not in the queue's own ring",
            ),
            "hw-queue" | "fence-log" | "hw-queue-progress" => (
                self.own.iter().any(|own| own.contains(&va)),
                "it belongs to another queue or process",
            ),
            "fence-cv" => (
                lock(&self.opened).contains(&va),
                "the queue's process has no handle open on this fence",
            ),
            "fence-mv" => (false, "no queue touches a MonitoredValue"),
            _ => (true, ""),
        };
        (!allowed).then_some(rule)
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
        for leaf in 0..HandleEntry::LEAVES {
            let leaf = memory.observe(self.handle_directory + leaf * 8, None)?;
            if leaf == 0 {
                continue;
            }
            for slot in 0..HandleEntry::LEAF_ENTRIES {
                let entry = leaf + slot * HandleEntry::BYTES;
                let opened = memory.observe(entry + HandleEntry::META, None)? as u32 != 0;
                if opened
                    && memory.peek(entry + HandleEntry::CURRENT_VALUE_VA, None)? == current_value
                {
                    lock(&self.opened).insert(current_value);
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}
