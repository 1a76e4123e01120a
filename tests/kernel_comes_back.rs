//! A kernel with the shader library that outlives its engine: it comes to its signal, or to its epilogue, when the engine
//! was given up, and changes nothing (TD-23).
//!
//! A driver that ends long loops ends each of its workgroups that waits for too long, and the next one waits in its turn.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod engine_processes;
    pub(crate) mod engines;
    pub(crate) mod logged;
    pub(crate) mod queue_of;
    pub(crate) mod until;
}

use native_fence::abi::DoorbellStatus;
use native_fence::gpu::EngineUnit;
use native_fence::os::Record;
use native_fence::vulkan::shaders;
use native_fence::{
    Adapter, Allocation, CommandList, Device, DeviceExecutionState, Fence, HwQueue, Kernel,
    KernelCode, Parameters, TdrPolicy, WaitError,
};
use std::time::Duration;
use support::engine_processes::options_of;
use support::logged::logged;
use support::queue_of::queue_of;
use support::until::{LONG, until};

/// They last longer together than the watch is patient, and not long once they may go on.
const WORKGROUPS: [u32; 3] = [20_000, 1, 1];
/// What no driver lets a loop take.
const FOR_EVER: u64 = 1 << 40;

/// A program whose kernel signals its fence when a word is set.
struct Program {
    kernel: Kernel,
    /// Of the word alone: the engine's copy of a page follows it until the engine stores there.
    until: Allocation,
    began: Allocation,
    fence: Fence,
    queue: HwQueue,
    device: Device,
}

/// What an engine may have changed.
#[derive(Debug, PartialEq, Eq)]
struct Stands {
    current_value: u64,
    read_index: u64,
    progress: u64,
    doorbell: DoorbellStatus,
    signals: Vec<u64>,
    began: u64,
    interrupts: u64,
    records: u64,
}

impl Program {
    fn new(adapter: &Adapter, spirv: &[u32]) -> Self {
        let device = adapter.create_device();
        let code = KernelCode::new(spirv, 40).unwrap();
        assert!(code.finds_job());
        let page = || device.create_allocation(4096).unwrap();
        Self {
            kernel: device.create_kernel(code).unwrap(),
            until: page(),
            began: page(),
            fence: device.create_fence(0).unwrap(),
            queue: queue_of(&device, 0),
            device,
        }
    }

    /// The kernel is to signal this value, if it signals, and its queue the next one.
    fn list(&self, list: &mut CommandList, groups: [u32; 3], value: u64) {
        let given = Parameters::new()
            .address(&self.until, 0)
            .address(&self.began, 0)
            .word(FOR_EVER)
            .fence(&self.fence)
            .word(value);
        list.dispatch(&self.kernel, groups, &given).unwrap();
        list.signal(&self.fence, value + 1);
    }

    /// Submits that: what its progress fence comes to.
    fn submit(&mut self, groups: [u32; 3], value: u64) -> u64 {
        let mut list = CommandList::new();
        self.list(&mut list, groups, value);
        self.queue.submit(&list).unwrap()
    }

    fn began(&self) -> u64 {
        let mut began = [0];
        self.began.read(0, &mut began);
        began[0]
    }

    fn stands(&self, adapter: &Adapter) -> Stands {
        Stands {
            current_value: self.fence.current_value(),
            read_index: self.queue.read_index(),
            progress: self.queue.progress_fence().current_value(),
            doorbell: self.queue.doorbell_status(),
            signals: logged(&self.queue, &self.fence),
            began: self.began(),
            interrupts: adapter.os().interrupts().native_fence_signaled(),
            records: adapter.node_counters().records,
        }
    }
}

/// Another program's queue on the engine, which stands at a wait meanwhile.
struct Innocent {
    begin: Fence,
    done: Fence,
    queue: HwQueue,
}

impl Innocent {
    fn new(adapter: &Adapter) -> Self {
        let device = adapter.create_device();
        let fence = || device.create_fence(0).unwrap();
        let (begin, done) = (fence(), fence());
        let mut queue = queue_of(&device, 0);
        let mut list = CommandList::new();
        list.wait(&begin, 1).signal(&done, 1).nop().signal(&done, 2);
        queue.submit(&list).unwrap();
        Self { begin, done, queue }
    }

    /// On the engine that there is now: each packet takes effect once. Nobody waits, of whom an interrupt would tell late.
    fn goes_on(&mut self) {
        self.begin.signal(1).unwrap();
        until("the innocent queue goes on", || {
            self.queue.progress_fence().current_value() == 1
        });
        assert_eq!(logged(&self.queue, &self.done), [1, 2]);
    }

    /// Nothing has come since, and what comes is done once as well.
    fn has_all_once(&mut self) {
        assert_eq!(logged(&self.queue, &self.done), Vec::<u64>::new());
        assert_eq!(self.done.current_value(), 2);
        let end = self.queue.submit(CommandList::new().signal(&self.done, 3));
        let ended = self.queue.progress_fence().wait(end.unwrap(), LONG);
        assert_eq!((ended, self.queue.error()), (Ok(()), None));
        assert_eq!(logged(&self.queue, &self.done), [3]);
    }
}

/// TD-23: a kernel that waits for a word keeps its engine, which is reset. Then the word comes, by the page that the
/// kernel has still, and it signals: CurrentValue, log, records, progress and memory stand as they stood when the reset
/// was told, and so they do when what is left of the engine has made its steps behind the kernel and ended.
///
/// Kills `a-kernel-that-was-given-up-stores`.
#[test]
fn td_23_a_kernel_that_comes_back_signals_nothing() {
    comes_back(shaders::SPIN_SIGNAL.words, |program| {
        let end = program.submit([1, 1, 1], 1);
        program.queue.progress_fence().wait(end, LONG).unwrap();
        assert_eq!(logged(&program.queue, &program.fence), [1, 2]);
    });
}

/// TD-23: the same of a kernel that schedules itself, in a slice in which it does: its epilogue does the engine's step when
/// the engine was given up, for all queues that can go on, and it is nothing: neither for its own nor for another program's,
/// which its successor has brought on meanwhile.
///
/// Kills `a-kernel-that-was-given-up-stores`.
#[test]
fn td_23_an_epilogue_that_comes_back_does_nothing() {
    comes_back(shaders::HOLD_SELF_SCHEDULING.words, |program| {
        // By the second one it is known that it schedules itself.
        for values in [2..=2, 3..=40] {
            let mut list = CommandList::new();
            for value in values {
                program.list(&mut list, [1, 1, 1], value - 1);
            }
            let end = program.queue.submit(&list).unwrap();
            program.queue.progress_fence().wait(end, LONG).unwrap();
        }
        let signals = logged(&program.queue, &program.fence);
        assert_eq!(signals, (2..=40).collect::<Vec<_>>());
    });
}

/// `well` shows it on an engine that is well, and brings the fence to some value.
fn comes_back(spirv: &[u32], well: impl Fn(&mut Program)) {
    if support::engines::shader().is_none() {
        return;
    }
    let tdr = TdrPolicy {
        delay: Duration::from_secs(1),
        limit_count: 1_000_000,
        ..TdrPolicy::default()
    };
    let adapter = Adapter::open(&options_of(EngineUnit::Instance, 1, tdr)).unwrap();
    let mut program = Program::new(&adapter, spirv);
    program.until.write(0, &[1]);
    well(&mut program);
    program.until.write(0, &[0]);
    let mut innocent = Innocent::new(&adapter);

    let value = program.fence.current_value();
    let waits = [1, 2].map(|more| program.fence.arm(value + more));
    let began = program.began();
    program.submit(WORKGROUPS, value + 1);
    until("the kernel runs", || program.began() > began);
    for wait in waits {
        assert_eq!(wait.wait(LONG), Err(WaitError::DeviceLost));
    }
    until("another engine is there", || {
        adapter.node_counters().resets == 1
    });
    let state = program.device.execution_state();
    assert_eq!(state, DeviceExecutionState::HUNG);
    let codes = || -> Vec<_> {
        let records = adapter.os().records();
        records.iter().map(|record| record.code).collect()
    };
    until("the recovery is noted", || !codes().is_empty());
    innocent.goes_on();
    let stands = program.stands(&adapter);
    assert_eq!((stands.current_value, &stands.signals), (value, &vec![]));
    assert_eq!(adapter.engines_given_up(), 1, "the kernel runs still");

    program.until.write(0, &[1]);
    until("the kernel ends", || adapter.engines_given_up() == 0);
    assert_eq!(program.stands(&adapter), stands);
    assert_eq!(codes(), [Record::VIDEO_ENGINE_TIMEOUT_DETECTED]);
    innocent.has_all_once();

    // Whoever comes has an engine that is well.
    let after = adapter.create_device();
    let mut queue = queue_of(&after, 0);
    let value = queue.submit(CommandList::new().nop()).unwrap();
    queue.progress_fence().wait(value, LONG).unwrap();
}
