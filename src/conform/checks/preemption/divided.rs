//! Divided packets: what runs between two parts, what may change there, and what stays.

use super::scene::{
    AGAIN, context, copy, fill, handed_to, initialised, is_full_of, large, last_word, short,
    taken_out_in_the_middle, until_answered, word,
};
use crate::abi::{FaultCode, PACKET_BYTES, Packet};
use crate::conform::bench::complete;
use crate::conform::seen::same;
use crate::conform::{Bench, Check, Ground, LONG, until};
use crate::{Allocation, CommandList, HwContext, HwQueue, WaitError};
use anyhow::{bail, ensure};

pub(super) const CHECKS: &[Check] = &[
    Check::by(
        "PR-06",
        "another context runs between two parts of a packet, and the first one's state is restored",
        another_between,
    ),
    Check::by(
        "PR-15",
        "each part of a packet is looked up and checked again",
        checked_again,
    ),
    Check::by(
        "PR-16",
        "to execute, divide or preempt a packet changes none of its memory",
        memory_of_packets,
    ),
];

/// A queue that was taken out in the middle of a copy.
struct Divided {
    context: HwContext,
    queue: HwQueue,
    from: Allocation,
    to: Allocation,
    end: u64,
}

impl Divided {
    fn new(bench: &Bench) -> anyhow::Result<Self> {
        let (context, from, to) = (context(bench)?, large(bench)?, large(bench)?);
        let mut queue = context.create_hw_queue(64)?;
        complete(&mut queue, &fill(&from, 3))?;
        let list = copy(&from, &to);
        let end = taken_out_in_the_middle(context.os(), &mut queue, &list, &to)?;
        Ok(Self {
            context,
            queue,
            from,
            to,
            end,
        })
    }

    fn goes_on(&self) -> anyhow::Result<()> {
        self.context.resume();
        self.queue.progress_fence().wait(self.end, LONG)?;
        ensure!(
            is_full_of(&self.to, 8, 3),
            "a word of the copy is not the source's"
        );
        Ok(())
    }

    /// The queue is stopped at its next part, and stores nothing more.
    fn faults(&self, what: &str, code: FaultCode) -> anyhow::Result<()> {
        self.context.resume();
        match self.queue.progress_fence().wait(u64::MAX, LONG) {
            Err(WaitError::QueueFaulted(fault)) => same(what, &fault.code, &code)?,
            other => bail!("{what}: the queue is not stopped: {other:?}"),
        }
        same(
            &format!("{what}: the last word of the copy"),
            &last_word(&self.to),
            &0,
        )
    }
}

/// Of user-mode queues: the other context stores to what was copied already, and that is not copied again. Of
/// kernel-mode queues: a command is preempted, and another context's comes between.
fn another_between(ground: &Ground) -> anyhow::Result<()> {
    let bench = ground.bench_with(&short())?;
    let copies = Divided::new(&bench)?;
    let other = context(&bench)?;
    let mut fills = other.create_hw_queue(64)?;
    let (between, filled) = (bench.fence(0)?, large(&bench)?);
    let mut list = CommandList::new();
    list.fill(&copies.from, 0..8, 9)
        .fill(&copies.to, 0..8, 4)
        .signal(&between, 1);
    fills.submit(&list)?;
    between.wait(1, LONG)?;
    same(
        "the last word of the copy, in between",
        &last_word(&copies.to),
        &0,
    )?;
    let ended = taken_out_in_the_middle(other.os(), &mut fills, &fill(&filled, 5), &filled)?;
    copies.goes_on()?;
    same(
        "a word that was copied, and stored to in between",
        &word(&copies.to, 0),
        &4,
    )?;
    let logged = copies.queue.read_signal_log()?.entries;
    let of_copy = logged
        .iter()
        .filter(|entry| entry.fence_value == copies.end);
    same("entries of the copy's progress", &of_copy.count(), &1)?;
    same(
        "the last word of the fill, whose context is out",
        &last_word(&filled),
        &0,
    )?;
    other.resume();
    fills.progress_fence().wait(ended, LONG)?;
    ensure!(
        is_full_of(&filled, 0, 5),
        "the fill of the other context is not whole"
    );
    preempted_between(&bench)
}

/// The answer to the preemption is in before the other context's command completes, as often as that takes.
fn preempted_between(bench: &Bench) -> anyhow::Result<()> {
    let (of_copy, of_other) = (context(bench)?, context(bench)?);
    of_other.set_priority(3)?;
    let (mut copies, mut other) = (
        of_copy.create_kernel_queue()?,
        of_other.create_kernel_queue()?,
    );
    let (from, to) = (large(bench)?, large(bench)?);
    let between = bench.device.create_monitored_fence(0)?;
    let filled = copies.submit(&fill(&from, 3))?;
    copies.progress_fence().wait(filled, LONG)?;
    for attempt in 1..=50 {
        initialised(bench, 0)?;
        to.write(0, &vec![0; to.bytes() as usize / 8]);
        let before = handed_to(bench).len();
        let copied = copies.submit(&copy(&from, &to))?;
        until("the copy has begun", || word(&to, 0) != 0)?;
        bench.preempt(0)?;
        let mut list = CommandList::new();
        list.fill(&to, 0..8, 4);
        other.record(&list)?;
        other.signal(&between, attempt)?;
        other.flush()?;
        between.wait(attempt, LONG)?;
        let is_between = last_word(&to) == 0;
        until_answered(bench)?;
        copies.progress_fence().wait(copied, LONG)?;
        ensure!(is_full_of(&to, 8, 3), "a preempted copy is not whole");
        let calls = handed_to(bench);
        let of_copies = calls[before..]
            .iter()
            .filter(|(queue, ..)| *queue == copies.os().handle());
        let flags: Vec<_> = of_copies.map(|(_, _, flags)| flags.has(AGAIN)).collect();
        if is_between && flags == [false, true] {
            return same(
                "a word that was copied, and stored to in between",
                &word(&to, 0),
                &4,
            );
        }
    }
    bail!(
        "in 50 attempts no command of a context of higher priority ran in the middle of a preempted copy"
    )
}

/// Between two parts a handle is closed, an allocation is destroyed, the packet is changed, and logs move. (A save area
/// that moves: PR-14.)
fn checked_again(ground: &Ground) -> anyhow::Result<()> {
    let bench = ground.bench_with(&short())?;
    let closed = Divided::new(&bench)?;
    closed.from.close();
    closed.faults(
        "the source's handle is closed between two parts",
        FaultCode::StaleHandle,
    )?;

    let mut destroyed = Divided::new(&bench)?;
    let source = std::mem::replace(&mut destroyed.from, bench.device.create_allocation(64)?);
    let bytes = source.bytes();
    drop(source);
    let another = bench.device.create_allocation(bytes)?;
    destroyed.faults(
        "the source is destroyed between two parts",
        FaultCode::StaleHandle,
    )?;
    ensure!(
        is_full_of(&another, 0, 0),
        "what was made in the place of a destroyed allocation was stored to"
    );

    let changed = Divided::new(&bench)?;
    let (_, packets) = changed.queue.raw_memory();
    let at = PACKET_BYTES * (changed.queue.read_index() % 64);
    packets
        .word(at + Packet::BYTES_TO_TRANSFER)
        .put(changed.to.bytes() + 8);
    changed.faults(
        "the packet asks for more than there is, from its second part on",
        FaultCode::Range,
    )?;

    let mut moved = Divided::new(&bench)?;
    moved.queue.resize_logs(200)?;
    let done = bench.fence(0)?;
    let end = moved.queue.submit(CommandList::new().signal(&done, 1))?;
    moved.goes_on()?;
    moved.queue.progress_fence().wait(end, LONG)?;
    let log = moved.queue.read_signal_log()?;
    same(
        "entries that a log has lost that moved between two parts",
        &log.lost,
        &0,
    )?;
    let values = log.entries.iter().map(|entry| entry.fence_value).rev();
    let values: Vec<_> = values.take(3).collect();
    same(
        "the last signals logged after the move, newest first",
        &values,
        &vec![end, 1, moved.end],
    )
}

/// The bytes of a ring's packets while a copy is divided and after it; and of one that an engine left at a wait.
fn memory_of_packets(ground: &Ground) -> anyhow::Result<()> {
    let bench = ground.bench_with(&short())?;
    let divided = Divided::new(&bench)?;
    let (_, packets) = divided.queue.raw_memory();
    let words = || -> Vec<u64> {
        let all = (0..packets.bytes() as u64).step_by(8);
        all.map(|at| packets.word(at).observe()).collect()
    };
    let at = PACKET_BYTES * (divided.queue.read_index() % 64);
    let handles = (divided.from.handle(), divided.to.handle());
    let expected = Packet::copy((handles.1, 0), (handles.0, 0), divided.to.bytes()).words();
    same(
        "the packet of a copy in the middle of it",
        &packets.peek_words::<8>(at),
        &expected,
    )?;
    let between = words();
    divided.goes_on()?;
    ensure!(
        words() == between,
        "the ring's packets are changed by the rest of the copy"
    );
    for _ in 0..2 {
        divided.context.suspend(LONG)?;
        divided.context.resume();
    }
    ensure!(
        words() == between,
        "the ring's packets are changed by a suspension"
    );
    Ok(())
}
