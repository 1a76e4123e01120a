//! Level: at which interrupt level the driver is called, and what its failures come to.

use crate::conform::bench::complete;
use crate::conform::seen::same;
use crate::conform::spy::{Failing, Moment};
use crate::conform::{Check, Ground, LONG};
use crate::kmd::Level;
use crate::sync::Arc;
use crate::sync::plain::{Mutex, lock};
use crate::{CommandList, Fence, SignalError, WaitError};
use anyhow::ensure;

pub(super) const CHECKS: &[Check] = &[Check::by(
    "FQ-09",
    "each DDI is called at its level, a wrong one is a record; a failed update stops the adapter",
    levels,
)];

/// The levels of calls that hooks run in, during a life of waits and signals; then two calls that belong lower, made from
/// within UpdateMonitoredValues; then a driver that fails each update. The level of each call there is, is
/// `tests/ddi_level_table.rs`.
fn levels(ground: &Ground) -> anyhow::Result<()> {
    called_at(ground)?;
    wrong_level(ground)?;
    fails(ground, Failing::UpdateMonitoredValues, 0x12)?;
    fails(ground, Failing::UpdateCurrentValuesFromCpu, 0x13)
}

fn called_at(ground: &Ground) -> anyhow::Result<()> {
    let bench = ground.bench()?;
    let seen = Arc::new(Mutex::new(Vec::new()));
    let notes = Arc::clone(&seen);
    bench.spy.keep_level_in_hooks();
    bench
        .spy
        .hook(move |moment, _| lock(&notes).push((moment, Level::of_thread())));
    let (fence, mut queue) = (bench.fence(0)?, bench.queue()?);
    let waiter = bench.waiter(&fence, 1)?;
    complete(&mut queue, CommandList::new().signal(&fence, 1))?;
    same("a wait", &waiter.join(), &Ok(()))?;
    let waiter = bench.waiter(&fence, 2)?;
    fence.signal(2)?;
    same("a wait", &waiter.join(), &Ok(()))?;
    queue.read_signal_log()?;
    queue.os().disconnect_doorbell();
    queue.connect_doorbell()?;
    bench.spy.unhook();
    for (moment, level) in lock(&seen).iter() {
        let most = match moment {
            Moment::BeforeUpdateOfMonitoredValues | Moment::AfterUpdateOfMonitoredValues => {
                same(
                    "the level of UpdateMonitoredValues",
                    level,
                    &Level::DeviceInterrupt,
                )?;
                continue;
            }
            Moment::BeforeUpdateOfCurrentValues
            | Moment::InUpdateOfLogs
            | Moment::InSubmitCommand
            | Moment::BeforeRemovalOfLog
            | Moment::AfterSetOfLog
            | Moment::BeforeParking
            | Moment::BeforeResume => Level::Dispatch,
            _ => Level::Passive,
        };
        ensure!(
            *level <= most,
            "{moment:?} is at {level}, and should be at {most} or below"
        );
    }
    same(
        "the level of the caller afterwards",
        &Level::of_thread(),
        &Level::Passive,
    )
}

fn wrong_level(ground: &Ground) -> anyhow::Result<()> {
    let bench = ground.bench()?;
    let (fence, mut queue) = (bench.fence(0)?, bench.queue()?);
    bench.until_told(&mut queue)?;
    let (os, handle) = (Arc::downgrade(bench.adapter.os()), queue.os().handle());
    let doorbell = queue.os().doorbell();
    bench.spy.keep_level_in_hooks();
    bench
        .spy
        .once(Moment::AfterUpdateOfMonitoredValues, move || {
            if let (Some(os), Some(doorbell)) = (os.upgrade(), doorbell) {
                // What comes of it is a record.
                let _ = os.ddi().update_native_fence_logs(&[handle]);
                os.ddi().notify_work_submission(doorbell);
            }
        });
    let waiter = bench.waiter(&fence, 1)?;
    let records = bench.take_records();
    let seen: Vec<_> = records
        .iter()
        .map(|r| (r.code, [r.parameters[0], r.parameters[1]]))
        .collect();
    let raised = Level::DeviceInterrupt as u64;
    let should = [
        (0xC4, [raised, Level::Dispatch as u64]),
        (0xC4, [raised, Level::Passive as u64]),
    ];
    same(
        "records of UpdateNativeFenceLogs and NotifyWorkSubmission within UpdateMonitoredValues",
        &seen,
        &should,
    )?;
    complete(&mut queue, CommandList::new().signal(&fence, 1))?;
    same("a wait afterwards", &waiter.join(), &Ok(()))
}

/// Who waits, for whatever fence, ends by the one record, and nothing is made any more.
fn fails(ground: &Ground, call: Failing, parameter: u64) -> anyhow::Result<()> {
    let bench = ground.bench()?;
    let (first, second) = (bench.fence(0)?, bench.fence(0)?);
    let waiter = bench.waiter(&first, 5)?;
    bench.spy.fail(call);
    if call == Failing::UpdateMonitoredValues {
        same(
            "a wait whose post fails",
            &second.wait(3, LONG),
            &Err(WaitError::AdapterStopped),
        )?;
    } else {
        let signalled = Fence::signal_all(&[(&first, 1), (&second, 1)]);
        same(
            "a signal that fails",
            &signalled,
            &Err(SignalError::AdapterStopped),
        )?;
    }
    same(
        "a wait of another fence",
        &waiter.join(),
        &Err(WaitError::AdapterStopped),
    )?;
    let records = bench.take_records();
    let seen: Vec<_> = records.iter().map(|r| (r.code, r.parameters[0])).collect();
    same("records", &seen, &[(0x119, parameter)])?;
    ensure!(
        bench.device.create_fence(0).is_err(),
        "a stopped adapter makes a fence"
    );
    Ok(())
}
