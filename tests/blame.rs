//! Blame: whose packet an engine was in when it was lost. One that was lost names none, so it is the first of its
//! slices in flight that could go on (TD-06).
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
    pub(crate) mod queue_of;
}

use native_fence::abi::EngineControl;
use native_fence::kmd::DriverOptions;
use native_fence::os::{Record, SuspendError};
use native_fence::{CommandList, TdrPolicy, WaitError};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;
use support::bench::{Bench, EngineSpy, LONG, TdrCall, on_recovering_benches, soon, until};
use support::queue_of::queue_of;

const ENGINE: u32 = Record::VIDEO_ENGINE_TIMEOUT_DETECTED;

fn on_benches(engines: u32, body: impl Fn(&Bench)) {
    on_recovering_benches(engines, soon(), &DriverOptions::default(), body);
}

/// The records are of an engine that was lost, so many times.
fn assert_noted(bench: &Bench, losses: usize) {
    let records = bench.take_records();
    assert!(
        records.iter().all(|record| record.code == ENGINE),
        "{records:?}"
    );
    assert_eq!(records.len(), losses);
}

fn until_noted(bench: &Bench, records: usize) {
    until("the recovery is noted", || {
        bench.adapter.os().records().len() >= records
    });
}

/// How often the host has asked the engine's slices to end.
fn requests(engine: &EngineSpy) -> u64 {
    let control = &engine.named("engine-control")[0];
    control.host.word(EngineControl::REQUEST).observe()
}

/// TD-06: a device whose queue had nothing left when the engine was lost, and gets work before the recovery, is
/// not the one to blame, although the engine finds that queue first.
///
/// Kills `who-comes-after-a-loss-is-blamed`.
#[test]
fn td_06_who_brings_work_after_a_loss_is_not_blamed() {
    on_benches(1, |bench| {
        let innocent = bench.adapter.create_device();
        let mut first = queue_of(&innocent, 0);
        let done = first.submit(CommandList::new().nop()).unwrap();
        first.progress_fence().wait(done, LONG).unwrap();
        let first = Arc::new(Mutex::new(first));
        let later = Arc::clone(&first);
        bench.spy.before_tdr(move |call| {
            if call == TdrCall::CollectDbgInfo(ENGINE) {
                let submit = || later.lock().unwrap().submit(CommandList::new().nop());
                thread::scope(|scope| scope.spawn(submit).join().unwrap()).unwrap();
            }
        });
        let mut guilty = bench.queue();
        bench.until_parked();
        let gate = bench.engines[0].close();
        guilty.submit(CommandList::new().nop()).unwrap();
        until("its slice is in flight", || bench.engines[0].at_gate() == 1);
        bench.engines[0].lose();
        until_noted(bench, 1);
        drop(gate);
        let first = first.lock().unwrap();
        assert_eq!(first.progress_fence().wait(done + 1, LONG), Ok(()));
        assert_eq!(first.error(), None);
        assert_eq!(guilty.error(), Some(WaitError::DeviceLost));
        assert_noted(bench, 1);
    });
}

/// TD-06: whose slice is in flight is to blame, although its context is being suspended, and not one that came into
/// the run list since, whose packets the engine never had.
///
/// Kills `who-is-in-no-slice-in-flight-is-blamed`.
#[test]
fn td_06_who_is_in_no_slice_in_flight_is_not_blamed() {
    on_benches(1, |bench| {
        let device = bench.adapter.create_device();
        let context = device.create_context(0, 1).unwrap();
        let mut guilty = context.create_hw_queue(64).unwrap();
        bench.until_parked();
        let gate = bench.engines[0].close();
        guilty.submit(CommandList::new().nop()).unwrap();
        until("its slice is in flight", || bench.engines[0].at_gate() == 1);
        // The request stands.
        let early = context.suspend(Duration::ZERO);
        assert!(matches!(early, Err(SuspendError::TimedOut)), "{early:?}");
        let mut innocent = bench.queue();
        let done = innocent.submit(CommandList::new().nop()).unwrap();
        bench.engines[0].lose();
        until_noted(bench, 1);
        drop(gate);
        assert_eq!(innocent.progress_fence().wait(done, LONG), Ok(()));
        assert_eq!(innocent.error(), None);
        assert_eq!(guilty.error(), Some(WaitError::DeviceLost));
        assert_noted(bench, 1);
    });
}

/// TD-06, TD-09: the same where that engine is not the one that is recovered from, but one that depends on it
/// and is lost with it: to be asked for its status changes nothing of whose packet it was in.
///
/// Kills `a-lost-engine-is-asked-whose-packet-it-is-in`.
#[test]
fn td_06_who_brings_work_to_a_dependent_engine_after_its_loss_is_not_blamed() {
    on_benches(2, |bench| {
        bench.spy.answer_group(|_| 0b11);
        let innocent = bench.adapter.create_device();
        let mut first = queue_of(&innocent, 1);
        let done = first.submit(CommandList::new().nop()).unwrap();
        first.progress_fence().wait(done, LONG).unwrap();
        let devices = [0, 1].map(|_| bench.adapter.create_device());
        let mut guilty = [0, 1].map(|node| queue_of(&devices[node as usize], node));
        bench.until_parked();
        let gates: Vec<_> = bench.engines.iter().map(EngineSpy::close).collect();
        for queue in &mut guilty {
            queue.submit(CommandList::new().nop()).unwrap();
        }
        until("their slices are in flight", || {
            bench.engines.iter().all(|engine| engine.at_gate() == 1)
        });
        let first = Arc::new(Mutex::new(first));
        let (later, dependent) = (Arc::clone(&first), Arc::clone(&bench.engines[1]));
        let driver = bench.parking_driver();
        let is_lost = move || {
            use native_fence::kmd::Ddi;
            driver.tdr().is_some_and(|tdr| tdr.engine_is_lost(1))
        };
        bench.spy.before_tdr(move |call| {
            if call == TdrCall::CollectDbgInfo(ENGINE) {
                dependent.lose();
                until("it is known to be lost", &is_lost);
                let submit = || later.lock().unwrap().submit(CommandList::new().nop());
                thread::scope(|scope| scope.spawn(submit).join().unwrap()).unwrap();
            }
        });
        bench.engines[0].lose();
        until_noted(bench, 2);
        drop(gates);
        let first = first.lock().unwrap();
        assert_eq!(first.progress_fence().wait(done + 1, LONG), Ok(()));
        assert_eq!(first.error(), None);
        for queue in &guilty {
            assert_eq!(queue.error(), Some(WaitError::DeviceLost));
        }
        assert_noted(bench, 2);
    });
}

/// TD-06: who was first in the slice in flight is to blame, although it pauses since, so that its logs can move; not who
/// is behind it.
///
/// Kills `who-stays-is-blamed-before-who-pauses`.
#[test]
fn td_06_who_pauses_while_its_engine_is_lost_is_to_blame() {
    // Once it has asked, the watch waits for longer than the test.
    let patient = TdrPolicy {
        delay: 10 * LONG,
        ..soon()
    };
    on_recovering_benches(1, patient, &DriverOptions::default(), |bench| {
        let mut guilty = bench.queue();
        let device = bench.adapter.create_device();
        let mut innocent = queue_of(&device, 0);
        bench.until_parked();
        let engine = &bench.engines[0];
        let gate = engine.close();
        let parked = requests(engine);
        guilty.submit(CommandList::new().nop()).unwrap();
        let done = innocent.submit(CommandList::new().nop()).unwrap();
        until("their slice is in flight", || engine.at_gate() == 1);
        until("the watch has asked", || requests(engine) > parked);
        let before = requests(engine);
        thread::scope(|scope| {
            let moves = scope.spawn(|| guilty.resize_logs(500));
            until("it pauses", || requests(engine) > before);
            engine.lose();
            until_noted(bench, 1);
            drop(gate);
            // Whether they moved is not asked: that of a queue which is stopped meanwhile may go either way.
            let _ = moves.join().unwrap();
        });
        assert_eq!(innocent.progress_fence().wait(done, LONG), Ok(()));
        assert_eq!(innocent.error(), None);
        assert_eq!(guilty.error(), Some(WaitError::DeviceLost));
        assert_noted(bench, 1);
    });
}
