//! Log numbers: which entry a packet gets, and who may write there.

use super::scene::{logs, until_logged};
use crate::abi::{FaultCode, LOG_BUFFER_ENTRIES, PACKET_BYTES, Packet};
use crate::conform::bench::complete;
use crate::conform::seen::same;
use crate::conform::{Bench, Check, Ground, LONG};
use crate::{CommandList, HwQueueOptions, WaitError};
use anyhow::{bail, ensure};

pub(super) const CHECKS: &[Check] = &[Check::by(
    "LG-04",
    "a packet carries the running number of its entry, and the user has no mapping of the log",
    numbers,
)];

fn numbers(ground: &Ground) -> anyhow::Result<()> {
    let bench = ground.bench()?;
    running(&bench)?;
    // Packets: signal 0, wait 0, signal 1, wait 1, progress 2.
    for (packet, number) in [(2, 2), (2, 0), (2, u64::MAX), (3, 0), (3, 2), (4, 1)] {
        wrong(&bench, packet, number)?;
    }
    unmapped(&bench)
}

/// Each packet that logs has the next number of its log, and its entry is the one of that number, round after round.
fn running(bench: &Bench) -> anyhow::Result<()> {
    let mut queue = bench.queue()?;
    let fence = bench.fence(0)?;
    let [_, signals] = logs(bench, &queue);
    let mut list = CommandList::new();
    for round in 0..40_u64 {
        list.clear();
        list.signal(&fence, 2 * round + 1)
            .wait(&fence, 1)
            .signal(&fence, 2 * round + 2);
        complete(&mut queue, &list)?;
        until_logged(&signals, 3 * (round + 1))?;
        for (packet, number) in [
            (0, 3 * round),
            (1, round),
            (2, 3 * round + 1),
            (3, 3 * round + 2),
        ] {
            let at = (4 * round + packet) * PACKET_BYTES + Packet::LOG_NUMBER;
            let seen = queue.raw_memory().1.word(at).peek();
            same(
                &format!("the number of packet {packet} of submission {round}"),
                &seen,
                &number,
            )?;
        }
        let entry = |number: u64| {
            let slot = (number % LOG_BUFFER_ENTRIES) as u32;
            signals.entry(slot).fence_value
        };
        let entries = [0, 1, 2].map(|of| entry(3 * round + of));
        let expected = [2 * round + 1, 2 * round + 2, round + 1];
        same(
            &format!("the entries of submission {round}"),
            &entries,
            &expected,
        )?;
    }
    Ok(())
}

/// One packet has another number than the next one: its queue is stopped there, and nothing of it is done.
fn wrong(bench: &Bench, packet: u64, number: u64) -> anyhow::Result<()> {
    let ahead = bench.fence(10)?;
    let target = bench.fence(0)?;
    let mut queue = bench
        .device
        .create_hw_queue_disconnected(HwQueueOptions::default())?;
    let [_, signals] = logs(bench, &queue);
    let list = &mut CommandList::new();
    list.signal(&target, 1)
        .wait(&ahead, 1)
        .signal(&target, 2)
        .wait(&ahead, 2);
    let value = queue.queue_commands(list)?;
    let at = packet * PACKET_BYTES + Packet::LOG_NUMBER;
    queue.raw_memory().1.word(at).publish(number);
    queue.connect_doorbell()?;
    let ended = queue.progress_fence().wait(value, LONG);
    let Err(WaitError::QueueFaulted(fault)) = ended else {
        bail!(
            "packet {packet}, whose number in its log is {number}, ended so: {ended:?}, and should stop its queue"
        );
    };
    same(
        "reason and packet of the fault",
        &(fault.code, fault.packet),
        &(FaultCode::LogNumber, packet),
    )?;
    let logged = if packet == 2 { 1 } else { 2 };
    let progress = queue.progress_fence().current_value();
    let seen = (
        queue.read_index(),
        signals.total(),
        target.current_value(),
        progress,
    );
    same(
        "read index, entries, value and progress after it",
        &seen,
        &(packet, logged, logged, 0),
    )
}

/// No memory that the user has of a queue lies in a file with a log.
fn unmapped(bench: &Bench) -> anyhow::Result<()> {
    let queue = bench.queue()?;
    let memory = queue.os().memory();
    let [control, packets, doorbell] =
        [&memory.control, &memory.packets, &memory.doorbell].map(|block| block.word(0).address());
    let of_user = [
        control,
        packets,
        doorbell,
        memory.progress.word(0).address(),
    ];
    let maps = std::fs::read_to_string("/proc/self/maps")?;
    let inode_at = |address: *const u64| {
        let holds = |line: &&str| {
            let bounds = line
                .split(' ')
                .next()
                .and_then(|range| range.split_once('-'));
            let bound = |text| usize::from_str_radix(text, 16).unwrap_or_default();
            bounds.is_some_and(|(from, to)| (bound(from)..bound(to)).contains(&address.addr()))
        };
        let line = maps.lines().find(holds);
        line.and_then(|line| line.split_whitespace().nth(4))
            .map(str::to_owned)
    };
    for (_, kind, (region, _), _) in bench.spy.logs() {
        // One that no file is made of is mapped for nobody but who made it.
        let Some(descriptor) = region.descriptor() else {
            continue;
        };
        let inode = rustix::fs::fstat(descriptor)?.st_ino.to_string();
        for address in of_user {
            let shared = inode_at(address) == Some(inode.clone());
            ensure!(
                !shared,
                "the user's mapping at {address:?} is of the memory of the log of {kind:?}"
            );
        }
    }
    Ok(())
}
