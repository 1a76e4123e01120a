//! Signals of kernels: what the invocations of a job stored, logged and compared once the kernel has ended.
//!
//! As `shaders/engine/kernel_signal.glsl`, which says why it is the engine that does the rest of them.

use super::cross_doorbell::ring;
use super::dispatch_table::Job;
use super::lane::{Globals, Shared};
use super::raise::{disarm, store_record};
use super::step::{LogPlace, log_entry};
use super::violation::Checked;
use crate::abi::{
    EngineControl, EngineReport, FenceEntry, InterruptRecord, LogOperation, QueueDescriptor,
    QueueState, RECORD_RING_CAPACITY,
};
use crate::sync::plain::lock;
use crate::sync::{Ordering, fence};

/// What the signals of a round's kernels leave for lane 0.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Finished {
    /// Records, also those that had no room.
    pub(super) raised: u64,
    pub(super) had_no_room: bool,
    pub(super) logged: u64,
    /// Below the value before.
    pub(super) backward: u64,
}

/// The record of a signal that raises. Lane 0 publishes the ring's index after the lanes have met, if there was room for
/// all.
fn raise_for_kernel(
    g: &Globals<'_>,
    finished: &mut Finished,
    fence_entry: u64,
    mut record: InterruptRecord,
) -> Checked<()> {
    disarm(g, fence_entry)?;
    let index = g.peek(g.report_va + EngineReport::RECORD_WRITE)? + finished.raised;
    finished.raised += 1;
    let read = g.observe(g.control_va + EngineControl::RECORD_READ)?;
    if index.wrapping_sub(read) < RECORD_RING_CAPACITY {
        record.fence_id = g.peek(fence_entry + FenceEntry::ID)?;
        store_record(g, index, &record)?;
    } else {
        finished.had_no_room = true;
    }
    Ok(())
}

/// Does the rest of the signals of a job, whose queue has its state there. One lane of the model does so.
pub(super) fn finish_signals(g: &Globals<'_>, s: &Shared, job: &Job, state: u64) -> Checked<()> {
    if job.signals.is_empty() {
        return Ok(());
    }
    let mut finished = *lock(&s.finished);
    let described = |offset| g.peek(job.descriptor_va + offset);
    let hw_queue = described(QueueDescriptor::HW_QUEUE)?;
    let log_number = g.peek(state + QueueState::SIGNAL_NUMBER)?;
    let mut at = LogPlace {
        log: described(QueueDescriptor::SIGNAL_LOG_VA)?,
        index: g.peek(state + QueueState::SIGNAL_LOG_INDEX)?,
        entries: described(QueueDescriptor::SIGNAL_LOG_ENTRIES)? as u32,
    };
    // Places are taken in another order than the clock is read: one log's times never go back (LG-08).
    let mut ticks = 0;
    for signal in &job.signals {
        ticks = signal.ticks.max(ticks);
        let entry = (LogOperation::SignalExecuted, signal.handle(), signal.value);
        at.index = log_entry(g.memory, None, at, entry, ticks)?;
        fence(Ordering::AcqRel); // order_log_before_comparison
        let fence_entry = signal.fence_entry_va;
        if fence_entry != 0 && signal.value > g.peek(fence_entry + FenceEntry::SHADOW)? {
            let record = InterruptRecord {
                fence_id: 0,
                value: signal.value,
                hw_queue,
                log_number,
            };
            raise_for_kernel(g, &mut finished, fence_entry, record)?;
        }
        finished.backward += u64::from(signal.is_backward());
        if let Some(doorbell) = signal
            .doorbell()
            .filter(|_| g.doorbells && fence_entry != 0)
        {
            ring(g, s, doorbell)?;
        }
    }
    g.put(state + QueueState::SIGNAL_LOG_INDEX, at.index)?;
    finished.logged += job.signals.len() as u64;
    *lock(&s.finished) = finished;
    Ok(())
}
