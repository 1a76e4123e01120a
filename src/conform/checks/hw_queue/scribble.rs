//! Scribble: packets that their user changes while they are executed. What is checked is the copy that is executed.

use super::scene::{Ring, until_stands, words};
use crate::abi::FaultCode::{self, AccessDenied, Progress, Range};
use crate::abi::{PACKET_BYTES, Packet};
use crate::conform::Bench;
use crate::conform::bench::complete;
use crate::conform::seen::same;
use crate::sync::{AtomicBool, Ordering};
use crate::{CommandList, Fence, FenceOptions};
use anyhow::ensure;
use std::thread;

/// Attempts of each kind: how often an engine reads between two changes is chance.
const ATTEMPTS: usize = 60;

/// The packet of a wait is overwritten while its queue stands at it, by a wait that its process may not make and that
/// would pass: the engine goes on with its copy, or copies and checks anew, and never takes it from the ring unchecked.
pub(super) fn standing(bench: &Bench) -> anyhow::Result<()> {
    let no_wait = FenceOptions {
        initial: 50,
        no_wait: true,
        ..FenceOptions::default()
    };
    let (gate, forbidden) = (bench.fence(0)?, bench.device.create_fence_with(no_wait)?);
    let mut ring = Ring::new(&bench.device)?;
    ring.submit(&[Packet::wait(gate.handle(), 5, 0)]);
    until_stands(bench, &ring.queue, 5)?;
    let bad = Packet::wait(forbidden.handle(), 1, 0);
    ring.queue.raw_memory().1.put_words(0, &bad.words());
    // The engine looks again and again.
    let mut other = bench.queue()?;
    for value in 1..=5 {
        gate.signal(value - 1)?;
        complete(&mut other, CommandList::new().nop())?;
        let _ = ring.queue.ring_doorbell();
    }
    same(
        "packets executed of a wait that was overwritten",
        &ring.queue.read_index(),
        &0,
    )?;
    gate.signal(5)?;
    ring.settle()?;
    match ring.queue.error() {
        None => Ok(()),
        Some(_) => same(
            "reason and packet of what it was overwritten with",
            &ring.fault()?,
            &(AccessDenied, 0),
        ),
    }
}

/// A ring of packets, in one of which words go to and fro while it is executed: where, and their two values.
struct Flickering<'a> {
    ring: Ring,
    words: &'a [(u64, [u64; 2])],
}

impl Flickering<'_> {
    /// Until all is executed or the queue is stopped, which is for this reason and at this packet.
    fn runs(&mut self, packets: &[Packet], fault: (FaultCode, u64)) -> anyhow::Result<()> {
        for packet in packets {
            self.ring.put(packet);
        }
        let (memory, ended) = (
            self.ring.queue.raw_memory().1.clone(),
            AtomicBool::new(false),
        );
        thread::scope(|scope| {
            scope.spawn(|| {
                while !ended.load(Ordering::Acquire) {
                    for turn in [0, 1] {
                        for (at, values) in self.words {
                            memory.word(*at).publish(values[turn]);
                        }
                    }
                }
            });
            self.ring.publish(packets.len() as u64);
            let settled = self.ring.settle();
            ended.store(true, Ordering::Release);
            settled
        })?;
        match self.ring.queue.error() {
            None => Ok(()),
            Some(_) => same(
                "why a queue with a packet that flickers was stopped, and at which",
                &self.ring.fault()?,
                &fault,
            ),
        }
    }
}

/// What flickers between two packets, one of which would stop the queue, is executed as the other one, or stops the queue;
/// and what is logged is what was stored.
pub(super) fn scribbled(bench: &Bench) -> anyhow::Result<()> {
    let no_signal = FenceOptions {
        no_signal: true,
        ..FenceOptions::default()
    };
    let forbidden = bench.device.create_fence_with(no_signal)?;
    for _ in 0..ATTEMPTS {
        signals(bench, &forbidden)?;
        progress(bench)?;
    }
    transfers(bench)
}

/// Between a signal that its process may make and one that it may not; and another between two values.
fn signals(bench: &Bench, forbidden: &Fence) -> anyhow::Result<()> {
    let (fence, allowed) = (bench.fence(0)?, bench.fence(0)?);
    let good = Packet::signal(allowed.handle(), 1, 1);
    let bad = Packet::signal(forbidden.handle(), 1, 1);
    let mut flickering = Flickering {
        ring: Ring::new(&bench.device)?,
        words: &[
            (Packet::VALUE, [1, 2]),
            (PACKET_BYTES + Packet::CONTROL, [bad.control, good.control]),
        ],
    };
    let packets = [Packet::signal(fence.handle(), 1, 0), good];
    flickering.runs(&packets, (AccessDenied, 1))?;
    same(
        "a fence that the process may not signal",
        &forbidden.current_value(),
        &0,
    )?;
    let logged = flickering.ring.queue.read_signal_log()?.entries;
    let logged = logged.first().map(|entry| entry.fence_value);
    same(
        "the value that a signal has logged, and CurrentValue",
        &logged,
        &Some(fence.current_value()),
    )
}

/// Between a value of the progress fence that rises and one that does not.
fn progress(bench: &Bench) -> anyhow::Result<()> {
    let mut flickering = Flickering {
        ring: Ring::new(&bench.device)?,
        words: &[(PACKET_BYTES + Packet::VALUE, [3, 9])],
    };
    let progress = flickering.ring.queue.progress_fence().clone();
    let handle = progress.handle();
    let packets = [
        Packet::progress(handle, 5, 0),
        Packet::progress(handle, 9, 1),
    ];
    flickering.runs(&packets, (Progress, 1))?;
    let should = match flickering.ring.queue.error() {
        None => 9,
        Some(_) => 5,
    };
    same(
        "the progress of a queue, after a value that flickers between 3 and 9 behind a 5",
        &progress.current_value(),
        &should,
    )
}

/// Between a fill of an allocation and one behind its end, of many parts.
fn transfers(bench: &Bench) -> anyhow::Result<()> {
    const BYTES: u64 = 4096;
    let device = &bench.device;
    let kept = || device.create_allocation(BYTES);
    let [left, middle, right] = [kept()?, kept()?, kept()?];
    for attempt in 1..=ATTEMPTS as u64 {
        let mut flickering = Flickering {
            ring: Ring::new(device)?,
            words: &[(PACKET_BYTES + Packet::DESTINATION_OFFSET, [BYTES, 0])],
        };
        let fill = Packet::fill(middle.handle(), 0, BYTES, attempt);
        flickering.runs(&[Packet::nop(), fill], (Range, 1))?;
        for beside in [&left, &right] {
            ensure!(
                words(beside).iter().all(|word| *word == 0),
                "a fill that flickers between two places was checked at one, and done at the other"
            );
        }
    }
    Ok(())
}
