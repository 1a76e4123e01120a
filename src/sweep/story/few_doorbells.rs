//! Few doorbells: three queues of an engine that has one. It is taken from the one for the other and given again, and a queue
//! that stands at a wait when it loses it goes on without.

use super::Teller;
use crate::sweep::play::Told;
use crate::sweep::step::{holds, step};
use crate::sweep::waiters::woken;
use crate::{Adapter, CommandList, Fence, HwQueue};

/// Of them, and in each all ring. A doorbell that was rung once is not taken.
const ROUNDS: u64 = 6;
const QUEUES: usize = 3;

/// Tells it.
pub(super) fn tell(teller: &mut Teller<'_>, adapter: &Adapter) -> Result<(), Told> {
    let device = adapter.create_device();
    let gate = teller.make("a fence", &device, || device.create_fence(0))?;
    let mut queues = Vec::new();
    for _ in 0..QUEUES {
        let queue = teller.make("a queue", &device, || device.create_hw_queue())?;
        let fence = teller.make("a fence", &device, || device.create_fence(0))?;
        queues.push((queue, fence));
    }
    teller.beat();
    for round in 1..=ROUNDS {
        for queue in &mut queues {
            ring(queue, round)?;
        }
    }
    // By each that rings when another has it.
    let taken = || adapter.os().interrupts().doorbells_taken();
    let otherwise = format!("{} were", taken());
    let are_taken = taken() >= QUEUES as u64;
    holds("doorbells that are taken", are_taken, otherwise)?;
    teller.beat();

    let Some(((waits, passed), others)) = queues.split_first_mut() else {
        return Ok(());
    };
    let list = CommandList::new()
        .wait(&gate, 1)
        .signal(passed, ROUNDS + 1)
        .clone();
    let end = step("a submission", waits.submit(&list))?;
    for round in ROUNDS + 1..=2 * ROUNDS {
        for queue in &mut *others {
            ring(queue, round)?;
        }
    }
    let stands = passed.current_value() == ROUNDS;
    holds(
        "a queue that waits without a doorbell",
        stands,
        "it goes on",
    )?;
    let armed = passed.arm(ROUNDS + 1);
    step("a signal of the CPU", gate.signal(1))?;
    let progress = waits.progress_fence();
    let ended = woken(|most| progress.wait(end, most));
    step("the progress of a queue without a doorbell", ended)?;
    step("a wait of the CPU", woken(|most| armed.wait(most)))?;
    teller.beat();
    Ok(())
}

/// A queue signals its fence, and the CPU is told.
fn ring((queue, fence): &mut (HwQueue, Fence), value: u64) -> Result<(), Told> {
    let armed = fence.arm(value);
    let list = CommandList::new().signal(fence, value).clone();
    step("a submission by turns", queue.submit(&list))?;
    step("a wait by turns", woken(|most| armed.wait(most)))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
mod tests {
    use super::*;
    use crate::sweep::model_adapter::model_adapter;
    use crate::sweep::step::Other;

    /// Where each queue has a doorbell of its own none is taken, and the chapter has shown nothing.
    ///
    /// Kills `no-doorbell-need-be-taken`.
    #[test]
    fn a_chapter_without_a_want_of_doorbells_fails() {
        let mut other = Other::of(model_adapter().create_device()).unwrap();
        let mut teller = Teller::of_test(&mut other);
        let told = tell(&mut teller, &model_adapter()).unwrap_err();
        assert_eq!(told.step, "doorbells that are taken");
    }
}
