//! A Vulkan device that is lost at each call of a short life, and recovered from (TD-12); and spares that are
//! lost before they take its place (TD-08).
//!
//! A life without a loss counts how often each function is called on the first engine's device, from its
//! making to its end. Then there is one life for each of these calls, on a fresh device, in which that call
//! finds the loss. A program here sleeps until it is told and looks at nothing, and the adapter delivers by
//! interrupts: so a life makes few calls. How many of them wait or look is still a matter of who comes in
//! time; a life that has not come to its call when its rounds are over goes on, round by round, until it has.
//! So each call that was counted is one that is lost at.
//!
//! Open: a driver that loses its device by itself. No CPU driver does.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod left_out;
    pub(crate) mod logged;
    pub(crate) mod programs;
    pub(crate) mod queue_of;
    pub(crate) mod until;
    pub(crate) mod walk;
}

use native_fence::abi::wddm::DeviceExecutionState;
use native_fence::gpu::{EngineUnit, Injection, SparePolicy};
use native_fence::os::Record;
use native_fence::vulkan::LossyCall::{
    self, CreateDevice, DeviceWaitIdle, GetSemaphoreCounterValue, QueueSubmit, QueueWaitIdle,
    WaitSemaphores,
};
use native_fence::vulkan::{DeviceLoss, validation};
use native_fence::{Adapter, AdapterOptions, CommandList, OpenError, TdrPolicy};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;
use support::left_out::opened_or_left_out;
use support::programs::Programs;
use support::queue_of::queue_of;
use support::until::{LONG, until};
use support::walk::is_taken;

/// Of a life, if its call comes in these.
const ROUNDS: u64 = 3;
/// More than any life needs.
const MOST_ROUNDS: u64 = 1000;
const ENGINE: u32 = Record::VIDEO_ENGINE_TIMEOUT_DETECTED;

/// Two engines of instances of their own, so that one is lost alone. None is found lost by the watch.
fn open(injection: &Arc<Injection>, spares: SparePolicy) -> Result<Adapter, OpenError> {
    Adapter::open(&AdapterOptions {
        validation: validation::asked_for_by_environment(),
        nodes: NonZeroU32::new(2).unwrap(),
        unit: Some(EngineUnit::Instance),
        injection: Some(Arc::clone(injection)),
        spares,
        tdr: TdrPolicy {
            delay: Duration::from_secs(60),
            ..TdrPolicy::default()
        },
        ..AdapterOptions::default()
    })
}

fn injection() -> Arc<Injection> {
    Injection::new(2).unwrap()
}

fn is_left_out() -> bool {
    let opened = open(&injection(), SparePolicy::OnSuspicion);
    opened_or_left_out(opened).is_none()
}

fn codes(adapter: &Adapter) -> Vec<u32> {
    let records = adapter.os().records();
    records.iter().map(|record| record.code).collect()
}

/// Times that the engine of each node was replaced.
fn resets(adapter: &Adapter) -> [u64; 2] {
    let ddi = adapter.os().ddi();
    [0, 1].map(|node| ddi.node_counters(node).unwrap().resets)
}

/// Whoever comes now has a queue that runs, on either engine.
fn works(adapter: &Adapter) {
    let device = adapter.create_device();
    for node in [0, 1] {
        let mut queue = queue_of(&device, node);
        let value = queue.submit(CommandList::new().nop()).unwrap();
        assert_eq!(queue.progress_fence().wait(value, LONG), Ok(()));
    }
}

/// From the making of the first engine's device to its end. It is lost in between, or as late as at the end,
/// or not at all where that is not planned.
fn live(injection: &Arc<Injection>, is_planned: bool) -> Arc<DeviceLoss> {
    let loss = injection.device_loss(0);
    let adapter = match open(injection, SparePolicy::OnSuspicion) {
        Ok(adapter) => adapter,
        Err(error) => {
            assert!(loss.is_lost(), "{error}");
            let error = error.to_string();
            assert!(error.contains("lost"), "{error}");
            return loss;
        }
    };
    let mut programs = Programs::new(&adapter);
    for _ in 0..ROUNDS {
        programs.round();
    }
    if is_planned {
        while !loss.is_lost() && programs.rounds() < MOST_ROUNDS {
            programs.round();
        }
        programs.round();
    }
    if loss.is_lost() {
        until("the reset is noted", || !codes(&adapter).is_empty());
        assert_eq!((codes(&adapter), resets(&adapter)), (vec![ENGINE], [1, 0]));
    } else {
        assert_eq!((codes(&adapter), resets(&adapter)), (vec![], [0, 0]));
    }
    works(&adapter);
    programs.assert_recovered();
    drop((programs, adapter));
    // Whoever lets go of the device last, which may be a thread of the adapter's.
    until("the device has come to its end", || {
        loss.calls(DeviceWaitIdle) > 0
    });
    loss
}

/// How often each function is called in a life.
fn counted() -> Option<impl Fn(LossyCall) -> u64> {
    if is_left_out() {
        return None;
    }
    let loss = live(&injection(), false);
    assert!(!loss.is_lost());
    Some(move |call| loss.calls(call))
}

/// A life for each call.
fn lose_at_every(calls: &[LossyCall]) {
    let Some(counted) = counted() else {
        return;
    };
    for &call in calls {
        let count = counted(call);
        println!("{}: {count} calls", call.name());
        assert!(count > 0);
        // Of the last call of a device nothing comes after it.
        let is_at_end = matches!(call, QueueWaitIdle | DeviceWaitIdle);
        for at in (1..=count).filter(|at| is_taken(*at)) {
            println!("at call {at}");
            let injection = injection();
            injection.device_loss(0).plan(call, at);
            let loss = live(&injection, !is_at_end);
            assert!(loss.is_lost(), "{} was called less often", call.name());
            let later = LossyCall::ALL.into_iter().filter(|later| *later != call);
            let calls: u64 = later.map(|later| loss.calls(later)).sum();
            assert!(call != CreateDevice || calls == 0, "there is a device");
            assert_eq!(validation::messages(), Vec::<String>::new());
        }
    }
}

/// TD-12, TD-06, TD-14: at each submission. The engine on that device alone is reset; of its two programs at most
/// one is in error, and its waiters are told; the others have done each packet once and in order.
///
/// Kills `a-loss-is-left-to-itself`.
#[test]
fn td_12_a_device_lost_at_any_submission_is_recovered_from() {
    lose_at_every(&[QueueSubmit]);
}

/// The same at each wait.
///
/// Kills `a-loss-is-left-to-itself`.
#[test]
fn td_12_a_device_lost_at_any_wait_is_recovered_from() {
    lose_at_every(&[WaitSemaphores]);
}

/// The same at each look.
///
/// Kills `a-loss-is-left-to-itself`.
#[test]
fn td_12_a_device_lost_at_any_look_is_recovered_from() {
    lose_at_every(&[GetSemaphoreCounterValue]);
}

/// TD-12: at its making an adapter does not come up, which says so; at its end nobody is there to be told.
///
/// Kills `a-device-is-made-without-a-loss`.
#[test]
fn td_12_a_device_is_lost_at_its_making_and_at_its_end() {
    lose_at_every(&[CreateDevice, QueueWaitIdle, DeviceWaitIdle]);
}

/// A round in which `lost` is lost when the programs have submitted and wait for the CPU: another program, whose
/// packet finds that. Returns when it is noted so many times.
fn lose(adapter: &Adapter, programs: &mut Programs, lost: &DeviceLoss, records: usize) {
    let finder = adapter.create_device();
    let mut queue = queue_of(&finder, 0);
    programs.round_with(|| {
        lost.lose();
        // It may be told before it has submitted.
        let _ = queue.submit(CommandList::new().nop());
        until("it is noted", || codes(adapter).len() >= records);
    });
}

/// A life in which the first engine's device is lost; no spare is made before.
fn lose_engine(injection: &Arc<Injection>) -> (Adapter, Programs) {
    let adapter = open(injection, SparePolicy::OnSuspicion).unwrap();
    let mut programs = Programs::new(&adapter);
    programs.round();
    lose(&adapter, &mut programs, &injection.device_loss(0), 1);
    (adapter, programs)
}

/// TD-12, TD-06: a spare whose device is lost at any call of its making is no engine, and another one is made:
/// the engine alone is reset.
///
/// Kills `a-spare-that-is-lost-in-its-making-takes-all-along`.
#[test]
fn td_12_a_spare_lost_at_any_call_of_its_making_is_made_again() {
    if is_left_out() {
        return;
    }
    let counted = injection();
    let spare = counted.next_spare();
    let adapter = open(&counted, SparePolicy::Kept).unwrap();
    until("a spare is made", || adapter.has_spare());
    let calls = LossyCall::ALL.map(|call| (call, spare.calls(call)));
    drop(adapter);
    for (call, count) in calls {
        println!("{}: {count} calls", call.name());
        let is_made_by = matches!(call, CreateDevice | QueueSubmit | WaitSemaphores);
        assert!(count > 0 || !is_made_by);
        for at in (1..=count).filter(|at| is_taken(*at)) {
            println!("at call {at}");
            let injection = injection();
            let spare = injection.next_spare();
            spare.plan(call, at);
            let (adapter, mut programs) = lose_engine(&injection);
            assert!(spare.is_lost());
            programs.round();
            assert_eq!((codes(&adapter), resets(&adapter)), (vec![ENGINE], [1, 0]));
            works(&adapter);
            programs.assert_recovered();
            drop((programs, adapter));
            assert_eq!(validation::messages(), Vec::<String>::new());
        }
    }
}

/// TD-12: a spare whose device is lost when it is kept, which nobody finds out before it has taken the place:
/// then it is replaced in its turn, and nobody is in error for it.
///
/// Kills `a-loss-is-left-to-itself`.
#[test]
fn td_12_a_spare_lost_while_it_is_kept_is_replaced() {
    if is_left_out() {
        return;
    }
    let injection = injection();
    let (engine, spare) = (injection.device_loss(0), injection.next_spare());
    let adapter = open(&injection, SparePolicy::Kept).unwrap();
    until("a spare is made", || adapter.has_spare());
    let mut programs = Programs::new(&adapter);
    programs.round();
    spare.lose();
    lose(&adapter, &mut programs, &engine, 2);
    programs.round();
    assert_eq!(codes(&adapter), [ENGINE; 2]);
    assert_eq!(resets(&adapter), [2, 0]);
    works(&adapter);
    programs.assert_recovered();
}

/// TD-08: two spares that are lost one after the other are no bad luck: the engine cannot be reset, and the
/// adapter is, which says why. Whoever had work queued has lost its device.
///
/// Kills `a-spare-is-made-until-one-is-well`.
#[test]
fn td_08_an_engine_whose_spares_are_lost_is_promoted_to_the_adapter() {
    if is_left_out() {
        return;
    }
    let injection = injection();
    for spare in [(); 2].map(|()| injection.next_spare()) {
        spare.plan(CreateDevice, 1);
    }
    let (adapter, programs) = lose_engine(&injection);
    let records = adapter.os().records();
    let promoted = (
        Record::VIDEO_TDR_TIMEOUT_DETECTED,
        Record::ENGINE_TIMEOUT_PROMOTED,
    );
    assert_eq!(records.len(), 1);
    assert_eq!((records[0].code, records[0].parameters[2]), promoted);
    let why = records[0].to_string();
    assert!(why.contains("VK_ERROR_DEVICE_LOST"), "{why}");
    assert_eq!(resets(&adapter), [1, 1]);
    programs.assert_all_lost(&[DeviceExecutionState::HUNG, DeviceExecutionState::RESET]);
    works(&adapter);
}

/// TD-20: where none is well for the reset of the adapter either, that fails, and the adapter is stopped: its
/// record says why, and whoever waits is told.
///
/// Kills `a-reset-of-the-adapter-fails-without-a-reason`.
#[test]
fn td_20_an_adapter_whose_spares_are_all_lost_is_stopped() {
    if is_left_out() {
        return;
    }
    let injection = injection();
    for spare in [(); 4].map(|()| injection.next_spare()) {
        spare.plan(CreateDevice, 1);
    }
    let (adapter, programs) = lose_engine(&injection);
    let records = adapter.os().records();
    assert_eq!(records.len(), 1);
    assert_eq!(records[0].code, Record::VIDEO_TDR_FAILURE);
    let why = records[0].to_string();
    assert!(why.contains("VK_ERROR_DEVICE_LOST"), "{why}");
    assert!(adapter.os().stopped().is_some());
    programs.assert_stopped();
    let refused = adapter.create_device().create_fence(0).unwrap_err();
    assert!(refused.to_string().contains("0x116"), "{refused}");
}
