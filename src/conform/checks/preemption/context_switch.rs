//! Context switch: the packet of no length by which an engine lets go of a context.

use super::scene::{
    PAGING, SWITCH, handed_to, initialised, is_full_of, large, nop, short, told, word,
};
use crate::CommandList;
use crate::conform::bench::finish;
use crate::conform::seen::same;
use crate::conform::spy::Call;
use crate::conform::{Check, Ground, until};
use crate::os::SystemDevice;
use anyhow::{Context, ensure};

pub(super) const CHECKS: &[Check] = &[Check::by(
    "PR-12",
    "before a kernel-mode queue is freed a ContextSwitch packet has the engine let go of it",
    let_go,
)];

/// Of queues that have run, and of the system device's; one has a fill under way when it goes, of which nothing more is
/// stored. One that never ran gets none. (Of user-mode queues SuspendContext does it: PR-09.)
fn let_go(ground: &Ground) -> anyhow::Result<()> {
    let bench = ground.bench_with(&short())?;
    let target = large(&bench)?;
    let system = SystemDevice::open(bench.adapter.os(), 0)?;
    let paged = system.open_allocation(target.os())?;
    let paged_in = system.fill(&paged, 0..64, 1)?;
    until("the paging packet completes", || {
        system.progress_fence().fence().current_value() >= paged_in
    })?;
    let mut ran = bench.device.create_kernel_queue()?;
    nop(&mut ran)?;
    finish(&mut ran)?;
    let quiet = bench.device.create_kernel_queue()?;
    let mut fills = bench.device.create_kernel_queue()?;
    let begun = initialised(&bench, 0)? + 1;
    let mut list = CommandList::new();
    for value in 2..=9 {
        list.fill(&target, 0..target.bytes(), value);
    }
    fills.submit(&list)?;
    until("the fills have begun", || word(&target, 0) != 1)?;
    let [of_ran, of_fills, of_quiet] = [&ran, &fills, &quiet].map(|queue| queue.os().handle());
    let of_system = system.queue().handle();
    drop(fills);
    target.write(0, &vec![0; target.bytes() as usize / 8]);
    drop((ran, quiet, paged, system));
    // What may still be at work there has ended, if it ever does.
    let mut after = bench.device.create_kernel_queue()?;
    nop(&mut after)?;
    finish(&mut after)?;
    ensure!(
        is_full_of(&target, 0, 0),
        "something of a queue that was freed is stored afterwards"
    );

    let switches: Vec<_> = handed_to(&bench)
        .into_iter()
        .filter(|(_, id, flags)| flags.has(SWITCH) && *id > begun)
        .collect();
    let expected = [
        (of_fills, begun + 1, SWITCH),
        (of_ran, begun + 2, SWITCH),
        (of_system, begun + 3, SWITCH.with(PAGING)),
    ];
    ensure!(
        !switches.iter().any(|(queue, ..)| *queue == of_quiet),
        "a queue that never ran is switched: {switches:?}"
    );
    same("switches, with their queues and ids", &switches, &expected)?;
    let calls = bench.spy.calls();
    for (queue, id, _) in expected {
        until("a switch completes with its id", || {
            told(&bench).contains(&Ok(id))
        })?;
        let switched = |call: &Call| {
            matches!(call, Call::SubmitCommand { hw_queue, submission_id, .. }
                if (*hw_queue, *submission_id) == (queue, id))
        };
        let place = |is: &dyn Fn(&Call) -> bool| calls.iter().position(is);
        let freed = place(&|call| *call == Call::DestroyHwQueue(queue));
        let freed = freed.context("a queue that was dropped is not destroyed")?;
        ensure!(
            place(&switched) < Some(freed),
            "a queue is destroyed before it is let go of"
        );
    }
    Ok(())
}
