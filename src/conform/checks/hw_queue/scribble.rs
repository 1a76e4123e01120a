//! Scribble: packets that their user changes while they are executed. What is checked is the copy that is executed.

use super::scene::{Ring, words};
use crate::abi::FaultCode::{self, AccessDenied, Progress, Range};
use crate::abi::{PACKET_BYTES, Packet};
use crate::conform::bench::{complete, until_stands};
use crate::conform::seen::same;
use crate::conform::{Bench, Ground, Unfit, until};
use crate::sync::{AtomicBool, Ordering};
use crate::{Allocation, CommandList, Device, Fence, FenceOptions};
use anyhow::ensure;
use std::thread;
use std::time::{Duration, Instant};

/// Attempts of each kind, at the least: how often an engine reads between two changes is chance.
const ATTEMPTS: usize = 60;
/// For how long more are made while all have ended the same way.
const TIME: Duration = Duration::from_secs(2);

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

/// How a packet ended of which one form would stop its queue.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Settled {
    Executed,
    Stopped,
}

/// Whether packets of a kind ended both ways. Where all ended the same way, the engine may have read none of them between two
/// changes, and what it checks was hardly asked.
fn is_hit(mut attempt: impl FnMut() -> anyhow::Result<Settled>) -> anyhow::Result<bool> {
    let (mut executed, mut stopped, began) = (false, false, Instant::now());
    for attempts in 0.. {
        let is_hit = executed && stopped;
        if attempts >= ATTEMPTS && (is_hit || began.elapsed() >= TIME) {
            return Ok(is_hit);
        }
        match attempt()? {
            Settled::Executed => executed = true,
            Settled::Stopped => stopped = true,
        }
    }
    Ok(false)
}

/// A ring of packets, in one of which words go to and fro while it is executed: where, and their two values.
struct Flickering<'a> {
    ring: Ring,
    words: &'a [(u64, [u64; 2])],
}

impl Flickering<'_> {
    /// Until all is executed or the queue is stopped, which is for this reason and at this packet; how it ended.
    fn runs(&mut self, packets: &[Packet], fault: (FaultCode, u64)) -> anyhow::Result<Settled> {
        for packet in packets {
            self.ring.put(packet);
        }
        let memory = self.ring.queue.raw_memory().1.clone();
        let (began, ended) = (AtomicBool::new(false), AtomicBool::new(false));
        thread::scope(|scope| {
            scope.spawn(|| {
                while !ended.load(Ordering::Acquire) {
                    for turn in [0, 1] {
                        for (at, values) in self.words {
                            memory.word(*at).publish(values[turn]);
                        }
                    }
                    began.store(true, Ordering::Release);
                }
            });
            let flickers = until("a packet flickers", || began.load(Ordering::Acquire));
            self.ring.publish(packets.len() as u64);
            let has_settled = flickers.and_then(|()| self.ring.settle());
            ended.store(true, Ordering::Release);
            has_settled
        })?;
        if self.ring.queue.error().is_none() {
            return Ok(Settled::Executed);
        }
        same(
            "why a queue with a packet that flickers was stopped, and at which",
            &self.ring.fault()?,
            &fault,
        )?;
        Ok(Settled::Stopped)
    }
}

/// What flickers between two packets, one of which would stop the queue, is executed as the other one, or stops the queue;
/// and what is logged is what was stored. Kinds of packets of which none was read between two changes are told.
pub(super) fn flickering(ground: &Ground, bench: &Bench) -> anyhow::Result<()> {
    let no_signal = FenceOptions {
        no_signal: true,
        ..FenceOptions::default()
    };
    let forbidden = bench.device.create_fence_with(no_signal)?;
    let transfers = Transfers::on(bench)?;
    let kinds = [
        ("signals", is_hit(|| signal(bench, &forbidden))?),
        ("progress values", is_hit(|| progress(bench))?),
        ("transfers", is_hit(|| transfers.attempt())?),
    ];
    let missed = kinds.iter().filter(|(_, is_hit)| !is_hit);
    let missed: Vec<_> = missed.map(|(kind, _)| *kind).collect();
    if !missed.is_empty() {
        let why = format!(
            "all {} that changed while they were executed ended the same way: what is checked of them may have been read at \
             one moment alone",
            missed.join(" and ")
        );
        ground.if_fit::<()>(Err(Unfit(why).into()))?;
    }
    Ok(())
}

/// Between a signal that its process may make and one that it may not; and another between two values.
fn signal(bench: &Bench, forbidden: &Fence) -> anyhow::Result<Settled> {
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
    let settled = flickering.runs(&packets, (AccessDenied, 1))?;
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
    )?;
    Ok(settled)
}

/// Between a value of the progress fence that rises and one that does not.
fn progress(bench: &Bench) -> anyhow::Result<Settled> {
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
    let settled = flickering.runs(&packets, (Progress, 1))?;
    let should = match settled {
        Settled::Executed => 9,
        Settled::Stopped => 5,
    };
    same(
        "the progress of a queue, after a value that flickers between 3 and 9 behind a 5",
        &progress.current_value(),
        &should,
    )?;
    Ok(settled)
}

/// Memory of fills, with some before and behind it that nothing may change.
struct Transfers<'a> {
    device: &'a Device,
    left: Allocation,
    middle: Allocation,
    right: Allocation,
}

impl<'a> Transfers<'a> {
    const BYTES: u64 = 4096;

    fn on(bench: &'a Bench) -> anyhow::Result<Self> {
        let device = &bench.device;
        let kept = || device.create_allocation(Self::BYTES);
        let (left, middle, right) = (kept()?, kept()?, kept()?);
        Ok(Self {
            device,
            left,
            middle,
            right,
        })
    }

    /// Between a fill of an allocation and one behind its end, of many parts.
    fn attempt(&self) -> anyhow::Result<Settled> {
        let mut flickering = Flickering {
            ring: Ring::new(self.device)?,
            words: &[(PACKET_BYTES + Packet::DESTINATION_OFFSET, [Self::BYTES, 0])],
        };
        let fill = Packet::fill(self.middle.handle(), 0, Self::BYTES, 1);
        let settled = flickering.runs(&[Packet::nop(), fill], (Range, 1))?;
        for beside in [&self.left, &self.right] {
            ensure!(
                words(beside).iter().all(|word| *word == 0),
                "a fill that flickers between two places was checked at one, and done at the other"
            );
        }
        Ok(settled)
    }
}
