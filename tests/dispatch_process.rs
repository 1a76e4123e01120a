//! Kernels of engines in processes of their own: what a kernel does to its engine is the loss of its own device, and
//! what its registration does, of nobody's.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod engine_processes;
    pub(crate) mod engines;
    pub(crate) mod kernels;
    pub(crate) mod logged;
    pub(crate) mod queue_of;
    pub(crate) mod respawned;
    pub(crate) mod until;
}

use native_fence::abi::DoorbellStatus;
use native_fence::gpu::EngineUnit;
use native_fence::os::Record;
use native_fence::vulkan::{AdapterInfo, AdapterKind};
use native_fence::{
    Adapter, Allocation, CommandList, Device, DeviceExecutionState, Fence, HwQueue, Kernel,
    Parameters, TdrPolicy, WaitError,
};
use rustix::process::{Resource, Rlimit, setrlimit};
use std::os::unix::process::ExitStatusExt;
use std::time::Duration;
use support::engine_processes::{in_processes, options_of};
use support::kernels::{
    add_words, add_words_self_scheduling, add_words_together, groups_for, spin, spins, sums,
};
use support::logged::logged;
use support::queue_of::queue_of;
use support::until::{LONG, until};
use support::{engines, respawned};

const WORDS: u64 = 200;
/// An address that no process maps.
const WILD: u64 = 0x10;

fn watched(delay: Duration) -> TdrPolicy {
    TdrPolicy {
        delay,
        limit_count: 1_000_000,
        ..TdrPolicy::default()
    }
}

/// Nobody finds in a test's time that an engine does not answer: what is found is found by its end.
fn late() -> TdrPolicy {
    watched(Duration::from_secs(600))
}

fn words<const N: usize>(of: &Allocation) -> [u64; N] {
    let mut words = [0; N];
    of.read(0, &mut words);
    words
}

/// Has a kernel that adds words store where nothing is mapped.
fn wild(from: &Allocation) -> Parameters {
    let parameters = Parameters::new().address(from, 0);
    parameters.word(WILD).word(WORDS).word(1)
}

/// The same, but load from there.
fn loads_wildly(to: &Allocation) -> Parameters {
    let parameters = Parameters::new().word(WILD).address(to, 0);
    parameters.word(WORDS).word(1)
}

/// A program that adds to its words, and says after each addition how many there were.
struct Program {
    adds: Kernel,
    memory: Allocation,
    fence: Fence,
    queue: HwQueue,
    additions: u64,
    /// Of what it submitted last.
    progress: u64,
    logged: Vec<u64>,
    device: Device,
}

impl Program {
    fn new(adapter: &Adapter, node_ordinal: u32) -> Self {
        let device = adapter.create_device();
        Self {
            adds: device.create_kernel(add_words()).unwrap(),
            memory: device.create_allocation(WORDS * 8).unwrap(),
            fence: device.create_fence(0).unwrap(),
            queue: queue_of(&device, node_ordinal),
            additions: 0,
            progress: 0,
            logged: Vec::new(),
            device,
        }
    }

    /// Submits so many additions.
    fn submit(&mut self, count: u64) {
        for _ in 0..count {
            self.additions += 1;
            let mut list = CommandList::new();
            let sums = sums(&self.memory, &self.memory, 1);
            list.dispatch(&self.adds, groups_for(WORDS), &sums).unwrap();
            list.signal(&self.fence, self.additions);
            self.progress = self.queue.submit(&list).unwrap();
        }
    }

    /// All that it submitted was done, once, and it is told nothing else.
    fn check(&mut self) {
        let ended = self.queue.progress_fence().wait(self.progress, LONG);
        assert_eq!(ended, Ok(()));
        assert_eq!(words(&self.memory), [self.additions; WORDS as usize]);
        assert_eq!(self.fence.current_value(), self.additions);
        self.logged.extend(logged(&self.queue, &self.fence));
        assert_eq!(self.logged, (1..=self.additions).collect::<Vec<_>>());
        let state = self.device.execution_state();
        assert_eq!(state, DeviceExecutionState::ACTIVE);
        assert_eq!(self.queue.error(), None);
    }
}

/// The device of a queue whose kernel was the end of its engine is told so, and nobody else is.
fn is_lost(device: &Device, queue: &HwQueue) {
    let ended = queue.progress_fence().wait(1, LONG);
    assert_eq!(ended, Err(WaitError::DeviceLost));
    assert_eq!(device.execution_state(), DeviceExecutionState::HUNG);
    assert_eq!(queue.doorbell_status(), DoorbellStatus::DisconnectedAbort);
}

fn codes(adapter: &Adapter) -> Vec<u32> {
    let records = adapter.os().records();
    records.iter().map(|record| record.code).collect()
}

const ENGINE: u32 = Record::VIDEO_ENGINE_TIMEOUT_DETECTED;

/// TD-06, TD-12, TD-22: a kernel of whichever kind that stores where nothing is mapped, or loads from there, is the end
/// of its engine's process, as which it is found at once, and not the program's. The device whose packet it was is in
/// error; each queue of another, on the same engine and on one beside it, completes all its work, once. Again and again.
///
/// Kills `a-process-has-no-kernels`, `a-wild-kernel-has-no-name`.
#[test]
fn td_12_a_loss_that_a_wild_kernel_causes_is_its_own_devices() {
    let Some(adapter) = in_processes(2, late()) else {
        return;
    };
    // It comes first in the run list, and can always go on.
    let mut same = Program::new(&adapter, 0);
    let mut other = Program::new(&adapter, 1);
    let beside = adapter.engine_process(1);
    type Wild = fn(&Allocation) -> Parameters;
    let kinds: [(_, Wild); 4] = [
        (add_words(), wild),
        (add_words(), loads_wildly),
        (add_words_together(), wild),
        (add_words_self_scheduling(), wild),
    ];
    for (losses, (code, wild)) in (1..).zip(kinds) {
        let process = adapter.engine_process(0);
        let device = adapter.create_device();
        let adds = device.create_kernel(code).unwrap();
        let memory = device.create_allocation(WORDS * 8).unwrap();
        let mut guilty = queue_of(&device, 0);
        let mut list = CommandList::new();
        list.dispatch(&adds, groups_for(WORDS), &wild(&memory))
            .unwrap();
        same.submit(10);
        other.submit(10);
        guilty.submit(&list).unwrap();
        same.submit(10);
        other.submit(10);
        is_lost(&device, &guilty);
        same.check();
        other.check();
        assert_ne!(adapter.engine_process(0), process);
        assert_eq!(adapter.node_counters().resets, losses);
        // The kernels are those of the next process: nobody has registered them again.
        same.submit(3);
        same.check();
    }
    assert_eq!(adapter.engine_process(1), beside);
    assert_eq!(codes(&adapter), [ENGINE; 4]);
}

/// Set for the program that runs a wild kernel.
const RUNS_WILD: &str = "NFENCE_TEST_RUNS_WILD";
/// What it says when its wild kernel is all that is left to do.
const WAITS: &str = "the wild kernel is submitted";

/// TD-12: where engines have no process of their own such a kernel is a lost device, of which who waits is told; or, where
/// kernels are functions that the program's threads run, the end of the program, at once. Nowhere does it count as done.
///
/// Kills `shader-a-dispatch-is-passed-over`.
#[test]
fn td_12_a_wild_kernel_in_the_program_is_its_loss() {
    let Some(adapter) = engines::shader() else {
        return;
    };
    let is_cpu = |info: &AdapterInfo| info.kind == AdapterKind::Cpu;
    let on_cpu = adapter.info().is_some_and(is_cpu);
    drop(adapter);
    let program = respawned::run("a_program_with_a_wild_kernel", &[(RUNS_WILD, "1".into())]);
    if on_cpu {
        let signal = program.status.signal();
        assert!(
            matches!(signal, Some(libc::SIGSEGV | libc::SIGBUS)),
            "{program:?}"
        );
        assert!(
            String::from_utf8_lossy(&program.stdout).contains(WAITS),
            "{program:?}"
        );
    } else {
        respawned::ended_well(&program, WAITS);
    }
}

#[test]
#[ignore = "part of another test, which starts it"]
fn a_program_with_a_wild_kernel() {
    if std::env::var_os(RUNS_WILD).is_none() {
        println!("part of another test, which starts it");
        return;
    }
    // Nobody looks at what is left of it.
    setrlimit(
        Resource::Core,
        Rlimit {
            current: Some(0),
            maximum: Some(0),
        },
    )
    .unwrap();
    let adapter = engines::shader().unwrap();
    let device = adapter.create_device();
    let kernel = device.create_kernel(add_words()).unwrap();
    let memory = device.create_allocation(WORDS * 8).unwrap();
    let mut queue = device.create_hw_queue().unwrap();
    let mut list = CommandList::new();
    list.dispatch(&kernel, groups_for(WORDS), &wild(&memory))
        .unwrap();
    let held = device.create_fence(0).unwrap();
    let mut waits = CommandList::new();
    queue.submit(waits.wait(&held, 1)).unwrap();
    let end = queue.submit(&list).unwrap();
    println!("{WAITS}");
    held.signal(1).unwrap();
    let told = queue.progress_fence().wait(end, LONG);
    assert_eq!(told, Err(WaitError::DeviceLost));
}

/// TD-13, TD-22, TD-23: a kernel without an end is recovered from, and changes nothing when that is told: in a process
/// of its own it has ended by then, and in this one it goes on, in memory that is nobody's. What a queue of another
/// device dispatched takes effect once.
///
/// Kills `a-kernel-that-was-given-up-stores`.
#[test]
fn td_23_a_kernel_without_end_changes_nothing_after_its_reset() {
    if support::engines::shader().is_none() {
        return;
    }
    for unit in [EngineUnit::Instance, EngineUnit::Process] {
        println!("{unit:?}");
        let options = options_of(unit, 1, watched(Duration::from_secs(1)));
        let adapter = Adapter::open(&options).unwrap();
        let mut innocent = Program::new(&adapter, 0);
        innocent.submit(5);
        let device = adapter.create_device();
        let counts = device.create_kernel(spin()).unwrap();
        let memory = device.create_allocation(16).unwrap();
        let mut guilty = queue_of(&device, 0);
        let mut list = CommandList::new();
        // No driver cuts the loop that workgroups are. (lavapipe counts them in 32 bits.) Each takes as many passes as
        // that lets it, and adds one to the second word.
        let for_hours = [65_535, 65_535, 1];
        list.dispatch(&counts, for_hours, &spins(&memory, 1000))
            .unwrap();
        guilty.submit(&list).unwrap();
        innocent.submit(5);
        until("the kernel runs", || words::<2>(&memory)[1] > 0);
        innocent.submit(5);
        is_lost(&device, &guilty);
        let [_, counted] = words(&memory);
        innocent.check();
        innocent.submit(20);
        innocent.check();
        assert_eq!(words(&memory), [0, counted]);
        if unit == EngineUnit::Instance {
            assert_eq!(adapter.engines_given_up(), 1, "the kernel runs still");
        } else {
            until("its process is gone", || adapter.engines_given_up() == 0);
        }
        assert_eq!(codes(&adapter), [ENGINE]);
    }
}
