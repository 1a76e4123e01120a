//! Scene: work that is in the middle of it, and what OS and driver tell each other of commands.
//!
//! A command of a kernel-mode queue whose context is suspended was handed over and is not executed: so what an engine
//! has is a fact and not a matter of time.

use crate::conform::{Bench, LONG, Wanted, spy::Call, until};
use crate::gpu::NodePolicy;
use crate::kmd::{HwQueueHandle, Interrupt, SubmitCommandFlags};
use crate::{Allocation, CommandList, HwContext, HwQueue, KernelQueue, os};
use anyhow::bail;
use std::time::Duration;

pub(in crate::conform::checks) const NEW: SubmitCommandFlags = SubmitCommandFlags(0);
pub(in crate::conform::checks) const AGAIN: SubmitCommandFlags = SubmitCommandFlags::RESUBMISSION;
pub(in crate::conform::checks) const PAGING: SubmitCommandFlags = SubmitCommandFlags::PAGING;
pub(in crate::conform::checks) const SWITCH: SubmitCommandFlags =
    SubmitCommandFlags::CONTEXT_SWITCH;

/// Attempts at what may be over before it is looked at.
const ATTEMPTS: usize = 100;

/// Engines whose slices, if they run such, end as soon as they have looked at every queue.
pub(in crate::conform::checks) fn short() -> Wanted {
    Wanted {
        policy: NodePolicy {
            slice_time: Duration::ZERO,
            ..NodePolicy::default()
        },
        ..Wanted::default()
    }
}

/// A context of the bench's device.
pub(in crate::conform::checks) fn context(bench: &Bench) -> anyhow::Result<HwContext> {
    Ok(bench.device.create_context(0, 1)?)
}

/// Memory that takes many parts to fill.
pub(in crate::conform::checks) fn large(bench: &Bench) -> anyhow::Result<Allocation> {
    Ok(bench.device.create_allocation(4 << 20)?)
}

/// A fill of all of it.
pub(in crate::conform::checks) fn fill(target: &Allocation, value: u64) -> CommandList {
    let mut list = CommandList::new();
    list.fill(target, 0..target.bytes(), value);
    list
}

/// A copy of all of it.
pub(in crate::conform::checks) fn copy(from: &Allocation, to: &Allocation) -> CommandList {
    let mut list = CommandList::new();
    list.copy(from, 0..from.bytes(), to, 0);
    list
}

pub(in crate::conform::checks) fn word(of: &Allocation, at: u64) -> u64 {
    let mut word = [0];
    of.read(at, &mut word);
    word[0]
}

pub(in crate::conform::checks) fn last_word(of: &Allocation) -> u64 {
    word(of, of.bytes() - 8)
}

/// Whether each word from a byte on is the same.
pub(in crate::conform::checks) fn is_full_of(memory: &Allocation, from: u64, value: u64) -> bool {
    let mut words = vec![0; (memory.bytes() - from) as usize / 8];
    memory.read(from, &mut words);
    words.iter().all(|word| *word == value)
}

/// Has a context leave the engine in the middle of a fill or a copy of a queue of its; gives the value that completes
/// the list. One that was done before it was looked at counts for nothing.
pub(in crate::conform::checks) fn taken_out_in_the_middle(
    context: &os::HwContext,
    queue: &mut HwQueue,
    list: &CommandList,
    target: &Allocation,
) -> anyhow::Result<u64> {
    for _ in 0..ATTEMPTS {
        target.write(0, &vec![0; target.bytes() as usize / 8]);
        let end = queue.submit(list)?;
        until("a fill or a copy has begun", || word(target, 0) != 0)?;
        context.suspend(Some(LONG))?;
        if last_word(target) == 0 {
            return Ok(end);
        }
        context.resume();
        queue.progress_fence().wait(end, LONG)?;
    }
    bail!("in {ATTEMPTS} attempts no request to suspend came in the middle of a fill or a copy")
}

/// Submits a command that does nothing.
pub(in crate::conform::checks) fn nop(queue: &mut KernelQueue) -> anyhow::Result<u64> {
    Ok(queue.submit(CommandList::new().nop())?)
}

/// Waits until the memory of all contexts is initialised and all commands of a node have completed; gives the last id.
pub(in crate::conform::checks) fn initialised(
    bench: &Bench,
    node_ordinal: u32,
) -> anyhow::Result<u64> {
    until("the memory of contexts is initialised", || {
        bench.spy.has_initialised() && bench.spy.has_paged()
    })?;
    until("all commands have completed", || {
        let (submitted, completed) = bench.adapter.os().submission_ids(node_ordinal);
        submitted == completed
    })?;
    Ok(bench.adapter.os().submission_ids(node_ordinal).0)
}

/// Queue, id and flags of the commands that the driver was handed, in their order.
pub(in crate::conform::checks) fn handed_to(
    bench: &Bench,
) -> Vec<(HwQueueHandle, u64, SubmitCommandFlags)> {
    let command = |call| match call {
        Call::SubmitCommand {
            hw_queue,
            submission_id,
            flags,
        } => Some((hw_queue, submission_id, flags)),
        _ => None,
    };
    bench.spy.calls().into_iter().filter_map(command).collect()
}

/// Id and flags of them.
pub(in crate::conform::checks) fn handed(bench: &Bench) -> Vec<(u64, SubmitCommandFlags)> {
    let commands = handed_to(bench).into_iter();
    commands.map(|(_, id, flags)| (id, flags)).collect()
}

/// What the driver told of them: ids that have completed, and of answers to a preemption the last completed id as an
/// error.
pub(in crate::conform::checks) fn told(bench: &Bench) -> Vec<Result<u64, u64>> {
    let told = |interrupt| match interrupt {
        Interrupt::DmaCompleted { submission_id, .. } => Some(Ok(submission_id)),
        Interrupt::DmaPreempted {
            last_completed_id, ..
        } => Some(Err(last_completed_id)),
        _ => None,
    };
    let interrupts = bench.spy.interrupts().into_iter();
    interrupts.filter_map(told).collect()
}

/// Waits until so much was told.
pub(in crate::conform::checks) fn until_told(bench: &Bench, count: usize) -> anyhow::Result<()> {
    until("the driver tells the OS of what it was handed", || {
        told(bench).len() >= count
    })
}

/// Waits until the last request to preempt a node is answered.
pub(in crate::conform::checks) fn until_answered(bench: &Bench) -> anyhow::Result<()> {
    until("the preemption is answered", || {
        bench.adapter.os().preemption(0).1
    })
}
