//! Collecting what stands when all is done.

use super::Counted;
use super::opened::OpenedFence;
use super::player::{Player, Queue};
use super::scene::{Opened, Scene};
use crate::abi::LocalHandle;
use crate::os::LogRead;
use crate::soak::outcome::{Expected, Logged, Outcome, QueueOutcome};
use crate::soak::program::Memory;
use std::time::{Duration, Instant};

/// Waits until each queue and fence is where it must be.
pub(super) fn settle(
    expected: &Expected,
    queues: &[Player],
    fences: &[Opened],
    deadline: Instant,
) -> Result<(), String> {
    let left = || {
        deadline
            .saturating_duration_since(Instant::now())
            .max(Duration::from_millis(1))
    };
    for (at, (player, end)) in queues.iter().zip(&expected.program.queues).enumerate() {
        let progress = player.queue.progress();
        progress.wait(end.progress, left()).map_err(|error| {
            let stands = progress.current_value();
            format!(
                "queue {at} comes to {stands} and not to {}: {error}",
                end.progress
            )
        })?;
    }
    for (at, (opened, value)) in fences.iter().zip(&expected.program.values).enumerate() {
        for fence in opened.values() {
            fence.wait(*value, left()).map_err(|error| {
                let stands = fence.current_value();
                format!("fence {at} comes to {stands} and not to {value}: {error}")
            })?;
        }
    }
    // The progress value is stored before the read index.
    for (at, (player, end)) in queues.iter().zip(&expected.program.queues).enumerate() {
        while player.queue.taken() < end.read {
            if Instant::now() > deadline {
                let stands = player.queue.taken();
                return Err(format!("queue {at} takes {stands} packets of {}", end.read));
            }
            std::thread::yield_now();
        }
    }
    Ok(())
}

/// All but what threads have told.
pub(super) fn outcome(
    scene: &Scene,
    expected: &Expected,
    deadline: Instant,
    counted: &Counted,
) -> Result<Outcome, String> {
    let mut values = Vec::new();
    for (at, opened) in scene.fences.iter().enumerate() {
        let mut stands = opened.values().map(OpenedFence::current_value);
        let value = stands.next().unwrap_or_default();
        if let Some(other) = stands.find(|other| *other != value) {
            return Err(format!(
                "fence {at} stands at {value} here and at {other} there"
            ));
        }
        values.push(value);
    }
    let queues = scene.queues.iter().zip(&expected.program.queues);
    let queues = queues.map(|(player, end)| queue(player, end.logged, deadline, counted));
    Ok(Outcome {
        values,
        queues: queues.collect::<Result<_, _>>()?,
        waits: Vec::new(),
        bursts: Vec::new(),
    })
}

fn queue(
    player: &Player,
    due: [u64; 2],
    deadline: Instant,
    counted: &Counted,
) -> Result<QueueOutcome, String> {
    let unread = |error| format!("a log is not read: {error}");
    let logs = match &player.queue {
        Queue::User { queue, .. } => [
            queue.read_wait_log().map_err(unread)?,
            queue.read_signal_log().map_err(unread)?,
        ],
        Queue::Kernel(kernel) => kernel.logs(due, deadline),
    };
    let mut memory = Memory::default();
    for (allocation, words) in player.memory.iter().zip(&mut memory.0) {
        allocation.read(0, words);
    }
    for time in &mut memory.0[0] {
        *time = u64::from(*time != 0);
    }
    let logs = logs.map(|log| logged(player, &log));
    let read = logs.iter().map(|log| log.entries.len() as u64).sum();
    Counted::add(&counted.entries_read, read);
    Ok(QueueOutcome {
        read: player.queue.taken(),
        progress: player.queue.progress().current_value(),
        stopped: player.queue.stopped(),
        logs,
        memory,
    })
}

fn logged(player: &Player, read: &LogRead) -> Logged {
    let name = |handle| player.names.get(&LocalHandle::from_raw(handle)).copied();
    let named: Vec<_> = read
        .entries
        .iter()
        .filter_map(|entry| Some((name(entry.native_fence)?, entry.fence_value)))
        .collect();
    Logged {
        refused: read.refused + (read.entries.len() - named.len()) as u64,
        lost: read.lost,
        entries: named,
    }
}
