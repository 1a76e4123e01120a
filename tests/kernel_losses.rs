//! A Vulkan device that is lost at each call of a life with kernels, and recovered from (TD-12): while they are
//! registered, which makes pipelines, runs them for a first time and records the slices anew, and while slices dispatch
//! them.
//!
//! As in `every_loss.rs` a life without a loss counts the calls of the first engine's device, here from its opening on,
//! and then there is a life for each of them.
//!
//! Open: a driver that loses its device by itself. No CPU driver does.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod kernels;
    pub(crate) mod left_out;
    pub(crate) mod queue_of;
    pub(crate) mod until;
    pub(crate) mod walk;
}

use native_fence::abi::wddm::DeviceExecutionState;
use native_fence::gpu::{EngineUnit, Injection, KernelError, NodeError, SparePolicy};
use native_fence::kmd::DdiError;
use native_fence::os::{OsError, Record};
use native_fence::vulkan::LossyCall::{
    self, GetSemaphoreCounterValue, QueueSubmit, WaitSemaphores,
};
use native_fence::vulkan::{DeviceLoss, validation};
use native_fence::{
    Adapter, AdapterOptions, Allocation, CommandList, CreateError, Device, Fence, HwQueue, Kernel,
    KernelCode, TdrPolicy, WaitError,
};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;
use support::kernels::{add_words, add_words_together, groups_for, sums};
use support::left_out::opened_or_left_out;
use support::queue_of::queue_of;
use support::until::{LONG, until};
use support::walk::is_taken;

const WORDS: u64 = 200;
/// Of a life, if its call comes in these.
const ROUNDS: u64 = 1;
/// Calls of which each has a life.
const FIRST: u64 = 8;
/// More than any life needs.
const MOST_ROUNDS: u64 = 1000;
const ENGINE: u32 = Record::VIDEO_ENGINE_TIMEOUT_DETECTED;

/// Two engines of instances of their own, so that one is lost alone. None is found lost by the watch.
fn opened(injection: &Arc<Injection>) -> Option<Adapter> {
    opened_or_left_out(Adapter::open(&AdapterOptions {
        validation: validation::asked_for_by_environment(),
        nodes: NonZeroU32::new(2).unwrap(),
        unit: Some(EngineUnit::Instance),
        injection: Some(Arc::clone(injection)),
        spares: SparePolicy::OnSuspicion,
        tdr: TdrPolicy {
            delay: Duration::from_secs(60),
            ..TdrPolicy::default()
        },
        ..AdapterOptions::default()
    }))
}

/// A kernel of the device. A loss that meets its registration is told as one, and then it is registered again.
fn registered(device: &Device, code: &KernelCode, loss: &DeviceLoss) -> Kernel {
    let mut kernel = None;
    until("it is registered", || {
        kernel = match device.create_kernel(code.clone()) {
            Ok(kernel) => Some(kernel),
            Err(CreateError::Os(OsError::Driver(DdiError::Node(NodeError::Kernel(
                KernelError::Lost,
            )))))
                if loss.is_lost() =>
            {
                None
            }
            Err(other) => panic!("{other:?}"),
        };
        kernel.is_some()
    });
    kernel.unwrap()
}

/// A program that adds to its words in each round, and says how many rounds there were.
struct Program {
    adds: Kernel,
    memory: Allocation,
    fence: Fence,
    queue: HwQueue,
    is_lost: bool,
    device: Device,
}

impl Program {
    fn new(adapter: &Adapter, code: &KernelCode, loss: &DeviceLoss) -> Self {
        let device = adapter.create_device();
        Self {
            adds: registered(&device, code, loss),
            memory: device.create_allocation(WORDS * 8).unwrap(),
            fence: device.create_fence(0).unwrap(),
            queue: queue_of(&device, 0),
            is_lost: false,
            device,
        }
    }

    fn submit(&mut self, round: u64) {
        let mut list = CommandList::new();
        let sums = sums(&self.memory, &self.memory, 1);
        list.dispatch(&self.adds, groups_for(WORDS), &sums).unwrap();
        list.signal(&self.fence, round);
        // Who has not submitted finds in its wait that it is lost.
        let _ = self.queue.submit(&list);
    }

    fn wait(&mut self, round: u64) {
        match self.fence.wait(round, LONG) {
            Ok(()) => assert_eq!(self.sum(), round),
            Err(WaitError::DeviceLost) => self.is_lost = true,
            Err(other) => panic!("round {round}: {other}"),
        }
    }

    /// All words are the same.
    fn sum(&self) -> u64 {
        let mut words = [0; WORDS as usize];
        self.memory.read(0, &mut words);
        assert_eq!(words, [words[0]; WORDS as usize]);
        words[0]
    }

    fn ended(&self, rounds: u64) {
        let state = self.device.execution_state();
        if self.is_lost {
            assert_eq!(state, DeviceExecutionState::HUNG);
        } else {
            assert_eq!(state, DeviceExecutionState::ACTIVE);
            assert_eq!((self.queue.error(), self.sum()), (None, rounds));
        }
    }
}

/// Programs on the first engine, beside which kernels come and go.
struct Programs {
    all: [Program; 2],
    rounds: u64,
}

impl Programs {
    fn round(&mut self, adapter: &Adapter, loss: &DeviceLoss) {
        self.rounds += 1;
        let is_well = |one: &&mut Program| !one.is_lost;
        let mut well: Vec<_> = self.all.iter_mut().filter(is_well).collect();
        for one in &mut well {
            one.submit(self.rounds);
        }
        let passer_by = adapter.create_device();
        drop(registered(&passer_by, &add_words(), loss));
        for one in &mut well {
            one.wait(self.rounds);
        }
    }
}

/// From the opening to the end of all programs: how often each function was called. A loss that is planned has come.
/// `None` where there is no device.
fn live(plan: Option<(LossyCall, u64)>) -> Option<[u64; LossyCall::ALL.len()]> {
    let injection = Injection::new(2).unwrap();
    let loss = injection.device_loss(0);
    let adapter = opened(&injection)?;
    let before = LossyCall::ALL.map(|call| loss.calls(call));
    if let Some((call, at)) = plan {
        loss.plan_from_now(call, at);
    }
    let codes = [add_words(), add_words_together()];
    let mut programs = Programs {
        all: codes.map(|code| Program::new(&adapter, &code, &loss)),
        rounds: 0,
    };
    let is_awaited = || plan.is_some() && !loss.is_lost();
    while programs.rounds < ROUNDS || is_awaited() && programs.rounds < MOST_ROUNDS {
        programs.round(&adapter, &loss);
    }
    let calls = LossyCall::ALL.map(|call| loss.calls(call) - before[call as usize]);
    let codes = || -> Vec<u32> {
        let records = adapter.os().records();
        records.iter().map(|record| record.code).collect()
    };
    if plan.is_some() {
        assert!(loss.is_lost(), "{plan:?} never comes");
        until("the reset is noted", || !codes().is_empty());
        programs.round(&adapter, &loss);
        assert_eq!(codes(), [ENGINE]);
    }
    let ddi = adapter.os().ddi();
    let resets = [0, 1].map(|node| ddi.node_counters(node).unwrap().resets);
    assert_eq!(resets, [u64::from(plan.is_some()), 0]);
    let lost = programs.all.iter().filter(|one| one.is_lost);
    assert!(lost.count() <= 1, "one packet was under way");
    for one in &programs.all {
        one.ended(programs.rounds);
    }
    drop((programs, adapter));
    assert_eq!(validation::messages(), Vec::<String>::new());
    Some(calls)
}

/// A life for a call, of all that matter.
fn lose_at_every(call: LossyCall) {
    let Some(calls) = live(None) else {
        return;
    };
    let count = calls[call as usize];
    println!("{}: {count} calls", call.name());
    assert!(count > 0);
    // A life takes half a second: of the calls behind the first ones, which are each of another sort, each third.
    let each = 1..=count.min(FIRST);
    for at in each
        .chain((FIRST + 1..=count).step_by(3))
        .filter(|at| is_taken(*at))
    {
        println!("at call {at}");
        live(Some((call, at)));
    }
}

/// TD-12, TD-06, TD-22: at each submission, also those that run kernels that come for a first time. Who registers one is
/// told that the engine is lost, and not that its kernel is bad; of the programs on the engine one is in error at most,
/// and the other's kernels have run once each, with no new registration.
///
/// Kills `a-loss-is-a-bad-kernel`.
#[test]
fn td_12_a_device_with_kernels_lost_at_any_submission_is_recovered_from() {
    lose_at_every(QueueSubmit);
}

/// The same at each wait.
///
/// Kills `a-lost-wait-is-a-bad-kernel`.
#[test]
fn td_12_a_device_with_kernels_lost_at_any_wait_is_recovered_from() {
    lose_at_every(WaitSemaphores);
}

/// The same at each look.
///
/// Kills `a-loss-is-left-to-itself`.
#[test]
fn td_12_a_device_with_kernels_lost_at_any_look_is_recovered_from() {
    lose_at_every(GetSemaphoreCounterValue);
}
