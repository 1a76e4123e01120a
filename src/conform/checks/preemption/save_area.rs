//! Save area: the memory where a context's queues are saved.

use super::scene::{
    PAGING, context, fill, initialised, is_full_of, large, last_word, short,
    taken_out_in_the_middle, word,
};
use crate::abi::Home;
use crate::conform::bench::complete;
use crate::conform::seen::same;
use crate::conform::spy::{Call, TdrCall};
use crate::conform::{Bench, Check, Ground, LONG, Unfit, Wanted, until};
use crate::kmd::{ContextAllocation, CreateContextAllocation, Interrupt};
use crate::os::SystemDevice;
use crate::shared::Block;
use crate::{CommandList, HwContext};
use anyhow::{Context, ensure};

pub(super) const CHECKS: &[Check] = &[
    Check::by(
        "PR-13",
        "save areas are made and freed with their contexts, outside of any engine's device",
        made_and_freed,
    ),
    Check::by(
        "PR-14",
        "a save area is initialised before the first command, and keeps its content when it moves",
        initialised_and_moved,
    ),
];

/// What the driver has asked for a context, and how many bytes.
fn area_of(bench: &Bench, context: &HwContext) -> anyhow::Result<(ContextAllocation, u64)> {
    let handle = context.os().handle();
    let areas = bench.spy.save_areas(handle);
    let asked = bench.spy.calls().into_iter().find_map(|call| match call {
        Call::CreateContextAllocation(asked, _) if asked.context == Some(handle) => {
            Some(asked.bytes)
        }
        _ => None,
    });
    match (areas.into_iter().next(), asked) {
        (Some(area), Some(bytes)) => Ok((area, bytes)),
        _ => Err(Unfit("the driver asks for no memory to save contexts in".into()).into()),
    }
}

fn block_of(area: &ContextAllocation, bytes: u64) -> anyhow::Result<Block> {
    let host = area
        .region
        .host()
        .context("a save area is not mapped for the host")?;
    Ok(host.part(area.offset, bytes))
}

fn words(block: &Block) -> Vec<u64> {
    let words = (0..block.bytes() as u64).step_by(8);
    words.map(|at| block.word(at).observe()).collect()
}

/// Where a context's area lies, whatever memory the engine's device has.
fn outside(bench: &Bench, context: &HwContext) -> anyhow::Result<(ContextAllocation, u64)> {
    let (area, bytes) = area_of(bench, context)?;
    same(
        "the memory of a save area, which is not to go with an engine's device",
        &area.region.home(),
        &Home::CachedSystem,
    )?;
    ensure!(
        area.region.exported().is_none(),
        "a save area lies in memory of an engine's device"
    );
    Ok((area, bytes))
}

/// Where it lies and how long it lives, also where the device has memory of its own; the system device has none; a
/// device's common area comes by the same calls; and a queue that was taken out in the middle of a fill goes on from there
/// on the engine that comes after a reset.
fn made_and_freed(ground: &Ground) -> anyhow::Result<()> {
    let has_local = Wanted {
        local_memory: true,
        ..Wanted::default()
    };
    if let Some(bench) = ground.bench_if(&has_local)? {
        outside(&bench, &context(&bench)?)?;
    }
    let bench = ground.bench_with(&short())?;
    bench.needs_engine_reset()?;
    let one = context(&bench)?;
    let (area, bytes) = outside(&bench, &one)?;
    same("a save area's place in its page", &(area.offset % 4096), &0)?;
    let mut queue = one.create_hw_queue(64)?;
    let target = large(&bench)?;
    let end = taken_out_in_the_middle(one.os(), &mut queue, &fill(&target, 7), &target)?;
    ensure!(
        words(&block_of(&area, bytes)?)
            .iter()
            .any(|word| *word != 0),
        "nothing was saved there"
    );
    bench.spy.lose_engine(0);
    until("the engine is reset", || {
        bench.spy.tdr_calls().contains(&TdrCall::ResumeHwEngine(0))
    })?;
    same(
        "the last word of the fill, after the reset",
        &last_word(&target),
        &0,
    )?;
    target.write(0, &[0]);
    one.resume();
    queue.progress_fence().wait(end, LONG)?;
    same(
        "the first word, which was filled before the reset",
        &word(&target, 0),
        &0,
    )?;
    ensure!(is_full_of(&target, 8, 7), "the fill is not whole");

    let gone = Call::DestroyContextAllocation(area.id);
    let handle = queue.os().handle();
    same(
        "areas that go before their queues",
        &bench.spy.count(|call| *call == gone),
        &0,
    )?;
    drop(queue);
    drop(one);
    until("the save area goes back", || {
        bench.spy.count(|call| *call == gone) == 1
    })?;
    let calls = bench.spy.calls();
    let place = |of: &Call| calls.iter().position(|call| call == of);
    ensure!(
        place(&Call::DestroyHwQueue(handle)) < place(&gone),
        "the area goes before its queue"
    );

    bench.spy.take();
    let system = SystemDevice::open(bench.adapter.os(), 0)?;
    let asked = bench
        .spy
        .count(|call| matches!(call, Call::CreateContextAllocation(..)));
    same("areas of a system context", &asked, &0)?;
    drop(system);
    let os = bench.spy.os();
    let asked = CreateContextAllocation {
        process: bench.device.process().id(),
        context: None,
        bytes: 40,
    };
    let common = os.create_context_allocation(&asked)?;
    same(
        "the common area of a device",
        &words(&block_of(&common, 40)?),
        &vec![0; 5],
    )?;
    os.destroy_context_allocation(common.id);
    drop(bench.take_records());
    Ok(())
}

/// The packet that initialises the area completes, and the OS is kept from knowing it: no command of the context runs,
/// while another one's do. Then a fill is preempted in its middle, and its area moves twice.
fn initialised_and_moved(ground: &Ground) -> anyhow::Result<()> {
    let bench = ground.bench_with(&short())?;
    let mut beside = bench.queue()?;
    let (fence, passed) = (bench.fence(0)?, bench.fence(0)?);
    complete(&mut beside, CommandList::new().signal(&passed, 1))?;
    initialised(&bench, 0)?;
    bench.spy.take();
    let is_completed = |told: &Interrupt| matches!(told, Interrupt::DmaCompleted { .. });
    bench.spy.hold_interrupts(is_completed);
    let suspended = context(&bench)?;
    let (area, bytes) = area_of(&bench, &suspended)?;
    let mut queue = suspended.create_hw_queue(64)?;
    queue.submit(CommandList::new().signal(&fence, 1))?;
    bench.spy.until_handled(is_completed)?;
    for value in 2..=6 {
        complete(&mut beside, CommandList::new().signal(&passed, value))?;
    }
    same(
        "a signal of a context whose save area is not known to be initialised",
        &fence.current_value(),
        &0,
    )?;
    let told = Call::ContextAllocationInitialised(area.id);
    same(
        "what the driver was told meanwhile",
        &bench.spy.count(|call| *call == told),
        &0,
    )?;
    bench.spy.pass_held_interrupts();
    fence.wait(1, LONG)?;
    let calls = bench.spy.calls();
    let packets = calls
        .iter()
        .filter(|call| matches!(call, Call::SubmitCommand { flags, .. } if *flags == PAGING));
    same("paging packets for one save area", &packets.count(), &1)?;
    same(
        "how often the driver was told",
        &bench.spy.count(|call| *call == told),
        &1,
    )?;

    let system = SystemDevice::open(bench.adapter.os(), 0)?;
    let refused = system.move_save_areas(suspended.os(), Some(LONG));
    ensure!(refused.is_err(), "the save area of a running context moves");
    let target = large(&bench)?;
    let end = taken_out_in_the_middle(suspended.os(), &mut queue, &fill(&target, 7), &target)?;
    for _ in 0..2 {
        let before = area_of(&bench, &suspended)?.0;
        let (old, content) = (block_of(&before, bytes)?, words(&block_of(&before, bytes)?));
        system.move_save_areas(suspended.os(), Some(LONG))?;
        let after = area_of(&bench, &suspended)?.0;
        let stays =
            std::sync::Arc::ptr_eq(&before.region, &after.region) && before.offset == after.offset;
        ensure!(!stays, "a save area that was moved is where it was");
        ensure!(
            words(&block_of(&after, bytes)?) == content,
            "a moved save area has another content"
        );
        for at in (0..bytes).step_by(8) {
            old.word(at).publish(u64::MAX);
        }
    }
    target.write(0, &[0]);
    suspended.resume();
    queue.progress_fence().wait(end, LONG)?;
    same(
        "the first word, which was filled before the move",
        &word(&target, 0),
        &0,
    )?;
    ensure!(is_full_of(&target, 8, 7), "the fill is not whole");
    Ok(())
}
