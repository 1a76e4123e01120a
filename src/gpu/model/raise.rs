//! Raising: interrupt records, their ring, and one-shot arming.
//!
//! As `shaders/engine/raise.glsl`.

use super::lane::{Globals, Lane};
use super::violation::Checked;
use crate::abi::{EngineReport, FenceEntry, InterruptRecord, QueueDescriptor};

pub(super) fn store_record(g: &Globals<'_>, index: u64, record: &InterruptRecord) -> Checked<()> {
    let at = g.report_va + EngineReport::record(index);
    g.put(at + InterruptRecord::FENCE_ID, record.fence_id)?;
    g.put(at + InterruptRecord::VALUE, record.value)?;
    g.put(at + InterruptRecord::HW_QUEUE, record.hw_queue)?;
    g.put(at + InterruptRecord::LOG_NUMBER, record.log_number)
}

/// One whose MonitoredValue nobody adopts stays armed (XA-03).
pub(super) fn disarm(g: &Globals<'_>, fence_entry: u64) -> Checked<()> {
    if g.observe(fence_entry + FenceEntry::MONITORED_VALUE_VA)? != 0 {
        g.put(fence_entry + FenceEntry::SHADOW, u64::MAX)?;
    }
    Ok(())
}

impl Lane<'_> {
    /// Stores the records that the lane noted. Without room the count alone goes up, and lane 0
    /// tells the OS that the set is no longer exactly known.
    pub(super) fn raise_what_was_noted(&mut self) -> Checked<()> {
        for raised in &self.i {
            let ordinal = self.s.raised.add(1);
            let mut fence_id = InterruptRecord::FAULT;
            if !raised.faults {
                fence_id = self.peek(raised.fence_entry + FenceEntry::ID)?;
                // What the handle said; the shader asks the entry, which costs loom more than it costs a GPU.
                if !raised.keeps_armed {
                    self.put(raised.fence_entry + FenceEntry::SHADOW, u64::MAX)?;
                }
            }
            if self.s.record_room.get() != 0 {
                let number = self.peek(self.q.descriptor_va + QueueDescriptor::HW_QUEUE)?;
                let fault = self.q.fault.filter(|_| raised.faults);
                let record = InterruptRecord {
                    fence_id,
                    value: raised.value,
                    hw_queue: number | fault.map_or(0, |code| code as u64) << 32,
                    log_number: raised.log_number,
                };
                store_record(self.g, self.s.record_base.get() + ordinal, &record)?;
            }
            if self.g.passes.end_loop() {
                break;
            }
        }
        Ok(())
    }
}
