//! A Vulkan device that was only thought lost: its engine is left running on purpose, and changes nothing when it
//! comes to what it was given before (TD-23).
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod left_out;
    pub(crate) mod queue_of;
    pub(crate) mod until;
}

use native_fence::abi::wddm::DeviceExecutionState;
use native_fence::gpu::{EngineUnit, Injection, LongKernel, SparePolicy};
use native_fence::vulkan::validation;
use native_fence::{
    Adapter, AdapterOptions, Allocation, CommandList, Device, Fence, HwQueue, TdrPolicy, WaitError,
};
use std::sync::Arc;
use std::time::Duration;
use support::left_out::opened_or_left_out;
use support::queue_of::queue_of;
use support::until::{LONG, until};

const BYTES: u64 = 4096;

fn opened() -> Option<(Adapter, Arc<Injection>)> {
    let injection = Injection::new(1).unwrap();
    let opened = Adapter::open(&AdapterOptions {
        validation: validation::asked_for_by_environment(),
        unit: Some(EngineUnit::Instance),
        injection: Some(Arc::clone(&injection)),
        spares: SparePolicy::Kept,
        tdr: TdrPolicy {
            // It is lost, and never late.
            delay: Duration::from_secs(600),
            ..TdrPolicy::default()
        },
        ..AdapterOptions::default()
    });
    Some((opened_or_left_out(opened)?, injection))
}

/// A program with a queue on the engine, and what the queue stores to.
struct Program {
    device: Device,
    queue: HwQueue,
    fence: Fence,
    memory: Allocation,
}

/// What an engine may have changed.
#[derive(Debug, PartialEq, Eq)]
struct Stands {
    read_index: u64,
    fence: u64,
    progress: u64,
    signals: u64,
    memory: Vec<u64>,
}

impl Program {
    /// Whose queue has executed something, and is away from the engine.
    fn new(adapter: &Adapter) -> Self {
        let device = adapter.create_device();
        let mut queue = queue_of(&device, 0);
        let value = queue.submit(CommandList::new().nop()).unwrap();
        queue.progress_fence().wait(value, LONG).unwrap();
        queue.os().disconnect_doorbell();
        Self {
            queue,
            fence: device.create_fence(0).unwrap(),
            memory: device.create_allocation(BYTES).unwrap(),
            device,
        }
    }

    /// Fills, and signals, twice from `first` on; its progress value.
    fn submit(&mut self, first: u64) -> u64 {
        let mut list = CommandList::new();
        for value in [first, first + 1] {
            list.fill(&self.memory, 0..BYTES, value)
                .signal(&self.fence, value);
        }
        self.queue.submit(&list).unwrap()
    }

    fn stands(&self) -> Stands {
        let mut memory = vec![0; BYTES as usize / 8];
        self.memory.read(0, &mut memory);
        let mut entries = self.queue.read_signal_log().unwrap().entries;
        entries.retain(|entry| entry.native_fence == self.fence.handle().raw());
        Stands {
            read_index: self.queue.read_index(),
            fence: self.fence.current_value(),
            progress: self.queue.progress_fence().current_value(),
            signals: entries.len() as u64,
            memory,
        }
    }
}

/// TD-23, on a Vulkan device: a slice stands behind a kernel when the device is said to be lost, another engine
/// takes the place of this one and executes what is the innocent's, and goes on to later values. Then the kernel
/// ends and the slice runs: of neither program, the one whose packet counts as aborted or the other one, is
/// anything otherwise than before.
///
/// It finds what its successor left, and nothing to do there. What one would store that goes on with a packet is
/// shown on the model (`cut_off.rs`), and on a driver that cuts no loops by `engine_reset.rs`.
///
/// Kills `an-engine-loses-its-memory-before-it-ends`.
#[test]
fn td_23_a_lost_device_that_goes_on_changes_nothing() {
    let Some((adapter, injection)) = opened() else {
        return;
    };
    let kernel = LongKernel {
        workgroups: 300,
        passes: 60_000,
    };
    let [mut one, mut other] = [Program::new(&adapter), Program::new(&adapter)];
    until("a spare stands ready", || adapter.has_spare());
    let loss = injection.device_loss(0);
    loss.let_go_on();
    injection.before_next_slice(0, kernel);
    let values = [one.submit(1), other.submit(1)];
    for program in [&mut one, &mut other] {
        program.queue.connect_doorbell().unwrap();
    }
    until("the kernel runs", || injection.workgroups_done(0) > 0);
    let begun = [one.stands(), other.stands()];
    loss.lose();
    until("another engine has its place", || {
        !adapter.os().records().is_empty()
    });
    assert_eq!(adapter.engines_given_up(), 1, "the kernel runs still");

    let waits = [(&one, values[0]), (&other, values[1])]
        .map(|(of, value)| of.queue.progress_fence().wait(value, LONG));
    let aborted = waits.map(|wait| wait == Err(WaitError::DeviceLost));
    assert_eq!(aborted.iter().filter(|is| **is).count(), 1, "{waits:?}");
    let [one_begun, other_begun] = begun;
    let (aborted, begun, mut innocent) = match aborted {
        [true, _] => (one, one_begun, other),
        _ => (other, other_begun, one),
    };
    assert_eq!(aborted.device.execution_state(), DeviceExecutionState::HUNG);
    let value = innocent.submit(3);
    innocent.queue.progress_fence().wait(value, LONG).unwrap();
    let stand = [aborted.stands(), innocent.stands()];
    assert_eq!(stand[0], begun);
    assert_eq!((stand[1].signals, stand[1].fence), (4, 4));
    assert!(stand[1].memory.iter().all(|word| *word == 4));

    until("the kernel ends, and the slice behind it", || {
        adapter.engines_given_up() == 0
    });
    assert_eq!(
        injection.workgroups_done(0),
        u64::from(kernel.workgroups),
        "it was left to itself"
    );
    let signals = |stands: Stands| Stands {
        // What was read of the log is not read again.
        signals: 0,
        ..stands
    };
    assert_eq!([aborted.stands(), innocent.stands()], stand.map(signals));
    let last = innocent.submit(5);
    innocent.queue.progress_fence().wait(last, LONG).unwrap();
    assert_eq!(innocent.fence.current_value(), 6);
    drop((aborted, innocent, adapter));
    assert_eq!(validation::messages(), Vec::<String>::new());
}
