//! Payload: interrupts as a driver would send them, adapters with the optimized payload or without, and logs that a
//! check writes in an engine's stead.

use crate::abi::{FenceId, LogEntry, LogHeader, LogIndex, LogOperation};
use crate::conform::spy::RawLog;
use crate::conform::{Bench, Ground, Unfit, Wanted};
use crate::kmd::{
    DriverOptions, HwQueueHandle, Interrupt, NativeFenceSignaled, SignaledFence, VidSchCaps,
};
use anyhow::ensure;
use std::time::Instant;

/// A NULL array of a node, by a driver that says nothing more.
pub(super) fn null_array(node_ordinal: u32) -> NativeFenceSignaled {
    NativeFenceSignaled {
        node_ordinal,
        engine_ordinal: 0,
        fences: None,
        hw_queue: None,
        evaluate_legacy_monitored_fences: false,
        taken: Instant::now(),
    }
}

/// The optimized payload: a queue, or NULL.
pub(super) fn of_queue(node_ordinal: u32, hw_queue: Option<HwQueueHandle>) -> Interrupt {
    Interrupt::NativeFenceSignaled(NativeFenceSignaled {
        hw_queue,
        ..null_array(node_ordinal)
    })
}

/// An array of one fence, with the value and when it was taken.
pub(super) fn naming(fence: FenceId, value: u64, taken: Instant) -> Interrupt {
    let named = SignaledFence {
        fence,
        value,
        hw_queue: None,
    };
    Interrupt::NativeFenceSignaled(NativeFenceSignaled {
        fences: Some(vec![named]),
        taken,
        ..null_array(0)
    })
}

/// An adapter whose interrupts name fences.
pub(super) fn plain(ground: &Ground) -> anyhow::Result<Bench> {
    let bench = ground.bench()?;
    ensure!(
        !is_optimized(&bench),
        Unfit("it has OptimizedNativeFenceSignaledInterrupt always".into())
    );
    Ok(bench)
}

/// An adapter of so many nodes whose interrupts name queues.
pub(super) fn optimized(ground: &Ground, nodes: u32) -> anyhow::Result<Bench> {
    let bench = ground.bench_with(&Wanted {
        driver: DriverOptions {
            optimized_interrupt: true,
            ..DriverOptions::default()
        },
        ..Wanted::nodes(nodes)
    })?;
    ensure!(
        is_optimized(&bench),
        Unfit("it has no OptimizedNativeFenceSignaledInterrupt".into())
    );
    Ok(bench)
}

fn is_optimized(bench: &Bench) -> bool {
    let caps = bench.adapter.os().vidsch_caps();
    caps.has(VidSchCaps::OPTIMIZED_NATIVE_FENCE_SIGNALED_INTERRUPT)
}

/// Has a log, in which there is nothing yet, say so many entries, as its engine would.
pub(super) fn publish_entries(log: &RawLog, entries: usize) {
    log.block.word(LogHeader::INDEX).publish(entries as u64);
}

/// Writes signals of handles where the log has room for them, as its engine would.
pub(super) fn write_signals(log: &RawLog, signals: &[(u32, u64)]) {
    for (slot, (handle, value)) in (0..).zip(signals) {
        let entry = LogEntry {
            fence_value: *value,
            native_fence: *handle,
            operation: LogOperation::SignalExecuted as u32,
            reserved0: 0,
            observed_ticks: 0,
            reserved1: 0,
            end_ticks: 100 + u64::from(slot),
        };
        let words: [u64; 6] = bytemuck::cast(entry);
        log.block.put_words(LogIndex::entry_offset(slot), &words);
    }
}
