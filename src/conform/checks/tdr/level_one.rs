//! Level one: who is in the driver, and with whom.

use super::scene::{codes, is_one_engine_reset, queue_of, until_reset, until_stopped};
use crate::conform::checks::preemption::scene::nop;
use crate::conform::seen::same;
use crate::conform::spy::{Call, Moment, TdrCall};
use crate::conform::{Check, Ground, LONG, Waiter, Wanted, is_sleeping, until};
use crate::kmd::Interrupt;
use crate::os::{Features, Record};
use crate::sync::Arc;
use crate::sync::plain::{Mutex, lock};
use crate::{CommandList, KernelQueue, TdrPolicy};
use anyhow::{Context, ensure};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

pub(super) const CHECKS: &[Check] = &[Check::by(
    "TD-18",
    "one thread at a time preempts, submits, asks and resets; nobody else is in a reset of the adapter",
    level_one,
)];

/// Threads that submit to two engines while one is preempted and reset; one that stays inside; and calls that come while
/// the adapter is reset. Whose packet the driver has aborted, since its engine was slow to end, has an error instead.
fn level_one(ground: &Ground) -> anyhow::Result<()> {
    let bench = ground.bench_with(&Wanted::nodes(2))?;
    let mut queues = Vec::new();
    for node in [0, 1, 0, 1] {
        queues.push(bench.adapter.create_device().create_kernel_queue_on(node)?);
    }
    let aborted = Arc::new(Mutex::new(None));
    let noted = Arc::clone(&aborted);
    bench.spy.answer_reset(move |reset| {
        *lock(&noted) = reset.hw_queue;
        Ok(reset)
    });
    thread::scope(|scope| {
        let submits = |mut queue: KernelQueue| {
            let aborted = &aborted;
            move || -> anyhow::Result<()> {
                let ended = (0..30).try_for_each(|_| {
                    let value = nop(&mut queue)?;
                    Ok(queue.progress_fence().wait(value, LONG)?)
                });
                let is_aborted = *lock(aborted) == Some(queue.os().handle());
                if is_aborted { Ok(()) } else { ended }
            }
        };
        let threads = queues.drain(..).map(|queue| scope.spawn(submits(queue)));
        let threads: Vec<_> = threads.collect();
        for _ in 0..20 {
            bench.preempt(0)?;
            bench.preempt(1)?;
        }
        bench.spy.lose_engine(0);
        for thread in threads {
            thread
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        }
        anyhow::Ok(())
    })?;
    until_reset(&bench, 0, 1)?;
    let (calls, met) = bench.spy.level_one();
    ensure!(
        calls > 0 && met == 0,
        "of {calls} calls that preempt, submit, ask or reset, {met} met another one"
    );
    is_one_engine_reset(&bench)?;
    stays_inside(ground)?;
    in_a_reset(ground)
}

/// A thread that submits does not come out; TdrDdiDelay later the adapter is stopped.
fn stays_inside(ground: &Ground) -> anyhow::Result<()> {
    let tdr = TdrPolicy {
        delay: Duration::from_secs(600),
        ddi_delay: Duration::from_millis(200),
        ..TdrPolicy::default()
    };
    let bench = ground.bench_watched(&Wanted::nodes(2), Features::default(), tdr)?;
    let mut queue = bench.device.create_kernel_queue_on(1)?;
    crate::conform::checks::preemption::scene::initialised(&bench, 1)?;
    let (tell, told) = mpsc::channel();
    let (leave, leaves) = mpsc::channel::<()>();
    bench.spy.once(Moment::InSubmitCommand, move || {
        // Who waited long enough is gone.
        let _ = tell.send(());
        let _ = leaves.recv_timeout(LONG);
    });
    thread::scope(|scope| {
        let submits = scope.spawn(|| nop(&mut queue).map(|_| ()));
        told.recv_timeout(LONG).context("nobody submits")?;
        bench.spy.lose_engine(0);
        let record = until_stopped(&bench);
        let _ = leave.send(());
        let _late = submits.join();
        same(
            "the record of a thread that stays in the driver",
            &record?.code,
            &Record::VIDEO_TDR_FAILURE,
        )
    })
}

/// A fence is made, one is signalled and a queue is made, each by a thread that is held until the reset is over; an
/// interrupt gets in.
fn in_a_reset(ground: &Ground) -> anyhow::Result<()> {
    let bench = ground.bench_with(&Wanted::nodes(2))?;
    let (device, signalled) = (bench.adapter.create_device(), bench.fence(0)?);
    let ready = queue_of(&device, 1)?;
    let (tell, told) = mpsc::channel();
    let (leave, leaves) = mpsc::channel::<()>();
    let leaves = Mutex::new(leaves);
    bench.spy.before_tdr(move |call| {
        if call == TdrCall::ResetFromTimeout {
            let _ = tell.send(());
            let _ = lock(&leaves).recv_timeout(LONG);
        }
    });
    bench.spy.fail_tdr(TdrCall::ResetEngine(0));
    bench.spy.lose_engine(0);
    told.recv_timeout(LONG)
        .context("the adapter is not reset")?;
    let called = bench.spy.calls().len();
    type Act<'a> = Box<dyn FnOnce() -> anyhow::Result<()> + Send + 'a>;
    let acts: Vec<Act<'_>> = vec![
        Box::new(|| device.create_fence(0).map(drop).map_err(Into::into)),
        Box::new(|| Ok(signalled.signal(1)?)),
        Box::new(|| queue_of(&device, 0).map(drop)),
        Box::new(|| device.create_allocation(4096).map(drop).map_err(Into::into)),
        Box::new(|| {
            ready.os().disconnect_doorbell();
            Ok(())
        }),
    ];
    let numbers = Arc::new(Mutex::new(Vec::new()));
    let seen = thread::scope(|scope| {
        let count = acts.len();
        let threads = acts.into_iter().map(|act| {
            let numbers = Arc::clone(&numbers);
            scope.spawn(move || {
                lock(&numbers).push(rustix::thread::gettid());
                act()
            })
        });
        let threads: Vec<_> = threads.collect();
        let held = until("each thread is held, or through", || {
            let numbers = lock(&numbers);
            let held = numbers.iter().filter(|number| is_sleeping(**number));
            let through = threads.iter().filter(|thread| thread.is_finished());
            numbers.len() == count && held.count() + through.count() >= count
        });
        bench
            .spy
            .interrupt(Interrupt::ObjectsRetired { objects: vec![] });
        let mut calls = bench.spy.calls().split_off(called);
        calls.retain(|call| !matches!(call, Call::Interrupt(_) | Call::UpdateMonitoredValues(_)));
        let _ = leave.send(());
        for thread in threads {
            thread
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        }
        held?;
        anyhow::Ok(calls)
    })?;
    same(
        "calls into the driver while the adapter is reset",
        &seen,
        &vec![],
    )?;
    same(
        "the signal that was held up",
        &signalled.current_value(),
        &1,
    )?;
    let _ = codes(&bench, 1)?;
    let (mut queue, fence) = (bench.queue()?, bench.fence(0)?);
    let waiter = Waiter::standing(&fence, 1, LONG)?;
    queue.submit(CommandList::new().signal(&fence, 1))?;
    same("a wait after the reset", &waiter.join(), &Ok(()))
}
