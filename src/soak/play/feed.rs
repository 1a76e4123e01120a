//! Feeding: submissions as rings have room, in an order of chance, with the CPU's signals between.

use super::opened::{Opened, OpenedFence};
use super::player::{Player, Queue};
use crate::Fence;
use crate::soak::Random;
use crate::soak::outcome::Expected;
use crate::soak::program::Named;
use crate::soak::round::{Disturbance, Round};
use std::time::Instant;

/// Puts all, but for what is behind a wait that never ends and has no room.
pub(super) fn feed(
    (round, expected): (&Round, &Expected),
    queues: &mut [Player],
    fences: &[Opened],
    random: &mut Random,
    deadline: Instant,
) -> Result<(), String> {
    let ends: Vec<usize> = (0..queues.len())
        .map(|at| submissions_that_fit(round, expected, at))
        .collect();
    let mut put = vec![0; queues.len()];
    let mut cpu = round.program.cpu.iter().copied().peekable();
    let takes_doorbells = round.disturbances.contains(&Disturbance::Doorbell);
    while cpu.peek().is_some() || put.iter().zip(&ends).any(|(put, end)| put < end) {
        if Instant::now() > deadline {
            let stand = queues.iter().map(|player| player.queue.taken());
            let stand: Vec<_> = stand.collect();
            return Err(format!(
                "queues stand still: packets taken {stand:?}, submissions put {put:?} of {ends:?}"
            ));
        }
        let at = random.below(queues.len() as u64) as usize;
        let player = &mut queues[at];
        if let Queue::User { queue, .. } = &player.queue
            && takes_doorbells
            && random.below(16) == 0
        {
            queue.os().disconnect_doorbell();
            let rung = queue.ring_doorbell();
            rung.map_err(|error| format!("queue {at} is not rung: {error}"))?;
        }
        if put[at] == ends[at] || !submit(player, &mut put[at], ends[at], random, at)? {
            std::thread::yield_now();
        }
        if random.below(4) == 0 {
            signal(round, &mut cpu, fences, random)?;
        }
    }
    Ok(())
}

/// Submits one, or several with one ring; whether the ring had room.
fn submit(
    player: &mut Player,
    put: &mut usize,
    end: usize,
    random: &mut Random,
    at: usize,
) -> Result<bool, String> {
    let several = 1 + if random.below(3) == 0 {
        random.below(8)
    } else {
        0
    };
    let first = *put;
    for _ in 0..several.min((end - first) as u64) {
        let taken = player.queue.put(*put);
        if !taken.map_err(|error| format!("queue {at} takes nothing: {error}"))? {
            break;
        }
        *put += 1;
    }
    if *put > first {
        let rung = player.queue.ring();
        rung.map_err(|error| format!("queue {at} is not rung: {error}"))?;
    }
    Ok(*put > first)
}

/// The CPU's next signal, or the next two of two fences at a time, by the handle of any device that has the fence open. A
/// call is of one adapter, names no fence twice, and a monitored one alone.
fn signal(
    round: &Round,
    cpu: &mut std::iter::Peekable<impl Iterator<Item = (usize, u64)>>,
    fences: &[Opened],
    random: &mut Random,
) -> Result<(), String> {
    let refused = |error| format!("a CPU signal was refused: {error}");
    let mut batch: Vec<(&Fence, u64)> = Vec::new();
    let mut before = None;
    while batch.is_empty() || random.below(2) == 0 {
        let Some((fence, value)) = cpu.peek().copied() else {
            break;
        };
        let adapter_of = |device: usize| round.devices[device].adapter;
        let mut devices: Vec<_> = fences[fence].keys().copied().collect();
        devices.retain(|device| before.is_none_or(|(_, adapter)| adapter_of(*device) == adapter));
        devices.sort_unstable();
        let is_next = match before {
            Some((before, _)) => {
                before != fence && round.is_native(Named::Fence(fence)) && !devices.is_empty()
            }
            None => true,
        };
        if !is_next {
            break;
        }
        cpu.next();
        let device = *random.pick(&devices);
        match &fences[fence][&device] {
            OpenedFence::Native(fence) => batch.push((fence, value)),
            OpenedFence::Monitored(fence) => return fence.signal(value).map_err(refused),
        }
        if before.replace((fence, adapter_of(device))).is_some() {
            break;
        }
    }
    if batch.is_empty() {
        return Ok(());
    }
    Fence::signal_all(&batch).map_err(refused)
}

/// How many of a queue's submissions find room, where it stands in the end.
fn submissions_that_fit(round: &Round, expected: &Expected, at: usize) -> usize {
    let last = expected.program.queues[at].read + round.program.queues[at].capacity;
    let mut packets = 0;
    let fits = round.submissions(at).take_while(|commands| {
        packets += commands.len() as u64;
        packets <= last
    });
    fits.count()
}
