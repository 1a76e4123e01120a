//! Raised: interrupts as a driver makes them, and log entries as an engine does.
#![allow(dead_code, reason = "each test file uses a part")]

use super::bench::{Bench, RawLog, native};
use native_fence::abi::{LogEntry, LogHeader, LogIndex, LogOperation, LogType};
use native_fence::kmd::{HwQueueHandle, Interrupt, NativeFenceSignaled, SignaledFence};
use native_fence::{Fence, HwQueue};
use std::time::Instant;

fn payload(fences: Option<Vec<SignaledFence>>, hw_queue: Option<HwQueueHandle>) -> Interrupt {
    Interrupt::NativeFenceSignaled(NativeFenceSignaled {
        node_ordinal: 0,
        engine_ordinal: 0,
        fences,
        hw_queue,
        evaluate_legacy_monitored_fences: false,
        taken: Instant::now(),
    })
}

/// The optimized payload: a queue alone.
pub(crate) fn queue_raised(queue: &HwQueue) -> Interrupt {
    payload(None, Some(queue.os().handle()))
}

/// The same with a NULL queue.
pub(crate) fn any_raised() -> Interrupt {
    payload(None, None)
}

/// The other: a fence, with a value that satisfies nobody.
pub(crate) fn fence_raised(fence: &Fence) -> Interrupt {
    let named = SignaledFence {
        fence: native(fence).id(),
        value: 0,
        hw_queue: None,
    };
    payload(Some(vec![named]), None)
}

/// Logs a signal in the place in force of a queue whose engine does nothing, as it would.
pub(crate) fn log_signal(bench: &Bench, queue: &HwQueue, fence: &Fence, value: u64) {
    let log = signal_log(bench, queue);
    let index = log.index();
    let entry = LogEntry {
        fence_value: value,
        native_fence: fence.handle().raw(),
        operation: LogOperation::SignalExecuted as u32,
        reserved0: 0,
        observed_ticks: 0,
        reserved1: 0,
        end_ticks: 100,
    };
    let words: [u64; 6] = bytemuck::cast(entry);
    let at = LogIndex::entry_offset(index.first_free_entry_index);
    log.block.put_words(at, &words);
    let next = index.next(entries(&log) as u32);
    log.block.word(LogHeader::INDEX).publish(next.word());
}

/// The place in force of a queue's log of signals.
pub(crate) fn signal_log(bench: &Bench, queue: &HwQueue) -> RawLog {
    bench.spy.log(queue.os().handle(), LogType::Signals)
}

/// NumberOfEntries of a log's header.
pub(crate) fn entries(log: &RawLog) -> u64 {
    log.block.word(LogHeader::NUMBER_OF_ENTRIES).peek()
}
