//! Collecting what stands when all is done.

use super::Counted;
use super::opened::{Opened, OpenedFence};
use super::player::{Player, Queue};
use super::scene::Scene;
use crate::abi::LocalHandle;
use crate::abi::wddm::VidSchCaps;
use crate::os::LogRead;
use crate::soak::Stage;
use crate::soak::outcome::{Expected, FenceEnd, Logged, Outcome, QueueOutcome};
use crate::soak::program::{Command, Memory, Named};
use crate::soak::round::Round;
use crate::{Adapter, Fence};
use std::collections::HashMap;
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

/// All but what threads have told. It has a patience of its own: bursts may have taken longer than that.
pub(super) fn outcome(
    (stage, scene): (&Stage, &Scene),
    (round, expected): (&Round, &Expected),
    counted: &Counted,
) -> Result<Outcome, String> {
    let deadline = Instant::now() + stage.patience;
    let mut values = Vec::new();
    let mut fences = Vec::new();
    for (at, opened) in scene.fences.iter().enumerate() {
        let mut stands = opened.values().map(OpenedFence::current_value);
        let value = stands.next().unwrap_or_default();
        if let Some(other) = stands.find(|other| *other != value) {
            return Err(format!(
                "fence {at} stands at {value} here and at {other} there"
            ));
        }
        values.push(value);
        let home = round.fences[at].home;
        let native = opened[&home].native();
        let native = native.filter(|_| round.crosses(at).is_none());
        let adapter = stage.adapter(round.devices[home].adapter);
        let is_excused = may_be_named(adapter, round) || queues_wait_for(round, at);
        fences.push(native.map(|fence| fence_end(fence, is_excused, deadline)));
    }
    let queues = scene.queues.iter().zip(&expected.program.queues);
    let queues = queues.map(|(player, end)| queue(player, end.logged, deadline, counted));
    Ok(Outcome {
        values,
        fences,
        backward_signals: 0,
        queues: queues.collect::<Result<_, _>>()?,
        waits: Vec::new(),
        bursts: Vec::new(),
        visits: Vec::new(),
        heir: None,
    })
}

/// Whether an interrupt may name a fence that nobody ever waited for (NF-06): where it names a queue, and such fences are
/// found in its log; where an engine does not see what the host stores, and compares with nothing; and of an engine that
/// takes another's place, which asks anew.
pub(super) fn may_be_named(adapter: &Adapter, round: &Round) -> bool {
    let caps = adapter.os().vidsch_caps();
    let is_optimized = caps.has(VidSchCaps::OPTIMIZED_NATIVE_FENCE_SIGNALED_INTERRUPT);
    is_optimized || !adapter.providers().is_system_memory_seen() || round.fault.is_some()
}

/// Engines that park, and the operating system for queues of kernel mode, wait for what queues do.
fn queues_wait_for(round: &Round, fence: usize) -> bool {
    let mut commands = round
        .program
        .queues
        .iter()
        .flat_map(|queue| &queue.commands);
    commands.any(|command| matches!(command, Command::Wait(Named::Fence(of), _) if *of == fence))
}

/// What stands of a fence that nobody waits for any more, once it is so: an engine that was parked at it may have gone on
/// before the operating system had it out of its list.
pub(super) fn fence_end(fence: &Fence, may_be_named: bool, deadline: Instant) -> FenceEnd {
    let fence = fence.object().fence();
    while fence.monitored_value() != u64::MAX && Instant::now() < deadline {
        std::thread::yield_now();
    }
    FenceEnd {
        monitored_value: fence.monitored_value(),
        was_awaited: may_be_named || fence.waits() > 0,
        named: fence.notifications(),
    }
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
    let logs = logs.map(|log| logged(&player.names, &log));
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

/// Entries by what their handles name.
pub(super) fn logged(names: &HashMap<LocalHandle, Named>, read: &LogRead) -> Logged {
    let name = |handle| names.get(&LocalHandle::from_raw(handle)).copied();
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use super::*;
    use crate::os::WaitError;
    use crate::soak::{Ground, Scope};

    const LONG: Duration = Duration::from_secs(60);

    /// Whoever is still in a fence's list when it is asked for its end is waited for.
    ///
    /// Kills `soak-a-fence-is-looked-at-once`.
    #[test]
    fn a_fence_has_its_end_when_nobody_is_in_its_list() {
        let scope = Scope {
            seed: 1,
            burst_signals: 0,
            faults: false,
        };
        let ground = Ground {
            is_polled: false,
            ..scope.ground(0)
        };
        let stage = Stage::of_models(&ground, None, false, LONG).unwrap();
        let device = stage.adapter(0).create_device();
        let fence = device.create_fence(0).unwrap();
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| fence.wait(1, Duration::from_secs(1)));
            let deadline = Instant::now() + LONG;
            while fence.object().fence().waits() == 0 {
                assert!(Instant::now() < deadline, "nobody waits");
                std::thread::yield_now();
            }
            let end = FenceEnd {
                monitored_value: u64::MAX,
                was_awaited: true,
                named: 0,
            };
            assert_eq!(fence_end(&fence, false, Instant::now() + LONG), end);
            assert_eq!(waiter.join().unwrap(), Err(WaitError::TimedOut));
        });
    }
}
