//! A program's own Vulkan device, handed over: engines run on it, and it stays the program's.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod kernels;
    pub(crate) mod until;
    pub(crate) mod vulkan_program;
}

use ash::{ext, khr, vk};
use native_fence::gpu::EngineUnit;
use native_fence::vulkan::{
    DeviceImportError, DeviceLoss, DeviceNeeds, Need, ProgramQueue, QueueLock, Timeline,
};
use native_fence::{
    Adapter, AdapterOptions, Buffer, CommandList, Device, DeviceExecutionState, Fence, HwQueue,
    Kernel, KernelCapability, OpenError, Parameters, TdrPolicy,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;
use support::kernels::{
    add_words, add_words_declaring, add_words_self_scheduling, add_words_together, groups_for,
};
use support::until::{LONG, until};
use support::vulkan_program::Program;

fn patient() -> AdapterOptions {
    AdapterOptions {
        tdr: TdrPolicy {
            delay: Duration::from_secs(600),
            ..TdrPolicy::default()
        },
        ..AdapterOptions::default()
    }
}

/// A queue's work between fences, on an adapter.
fn fences_pass(adapter: &Adapter) {
    let device = adapter.create_device();
    let (between, done) = (
        device.create_fence(0).unwrap(),
        device.create_fence(0).unwrap(),
    );
    let mut producer = device.create_hw_queue().unwrap();
    let mut consumer = device.create_hw_queue().unwrap();
    consumer
        .submit(CommandList::new().wait(&between, 1).signal(&done, 1))
        .unwrap();
    producer
        .submit(CommandList::new().signal(&between, 1))
        .unwrap();
    done.wait(1, LONG).unwrap();
}

/// The lock of a queue, which counts.
#[derive(Default)]
struct Counted {
    lock: std::sync::Mutex<()>,
    turns: AtomicU64,
}

impl QueueLock for Counted {
    fn during(&self, call: &mut dyn FnMut()) {
        let _turn = self.lock.lock().unwrap();
        self.turns.fetch_add(1, Ordering::Relaxed);
        call();
    }
}

const WORDS: usize = 1000;

/// What a queue does with kernels and buffers of a device.
struct Work {
    kernels: [Kernel; 3],
    given: Buffer<u64>,
    summed: Buffer<u64>,
    fence: Fence,
    queue: HwQueue,
    device: Device,
}

impl Work {
    fn new(adapter: &Adapter) -> Self {
        let device = adapter.create_device();
        let codes = [
            add_words(),
            add_words_together(),
            add_words_self_scheduling(),
        ];
        Self {
            kernels: codes.map(|code| device.create_kernel(code).unwrap()),
            given: device.create_buffer(WORDS).unwrap(),
            summed: device.create_buffer(WORDS).unwrap(),
            fence: device.create_fence(0).unwrap(),
            queue: device.create_hw_queue().unwrap(),
            device,
        }
    }

    /// An upload, a kernel of each kind and a download, by the queue. What comes back is right.
    fn done(&mut self, number: u64) {
        let first = self.fence.current_value();
        let elements: Vec<u64> = (0..WORDS as u64).map(|at| at * number).collect();
        let sums = |from: &Buffer<u64>| {
            let from = Parameters::new().address(from, 0).address(&self.summed, 0);
            from.word(WORDS as u64).word(number)
        };
        // Enough for the kind whose workgroups are of 8.
        let (fence, groups) = (&self.fence, groups_for(8 * WORDS as u64));
        let mut list = CommandList::new();
        list.upload(&self.given, 0, &elements, fence, first + 1)
            .unwrap();
        let from = [&self.given, &self.summed, &self.summed];
        for (kernel, from) in self.kernels.iter().zip(from) {
            list.dispatch(kernel, groups, &sums(from)).unwrap();
        }
        let download = list.download(&self.summed, .., fence, first + 2).unwrap();
        self.queue.submit(&list).unwrap();
        let expected: Vec<u64> = elements.iter().map(|one| one + 3 * number).collect();
        assert_eq!(download.wait(LONG).unwrap(), expected);
    }
}

/// HQ-08: kernels and buffers are the program's device's as fences are. What registers a kernel takes turns with the
/// program at its queue, as slices do, and the program's own work runs between.
///
/// Kills `a-programs-queue-is-used-out-of-turn`.
#[test]
fn hq_08_kernels_and_buffers_are_on_the_programs_device() {
    let program = Program::new();
    let lock = Arc::new(Counted::default());
    let queue = ProgramQueue::in_turns(program.queue, program.family, lock.clone());
    let device = program.try_hand_over(vec![queue], None).unwrap();
    let adapter = Adapter::open_on_device(&device, &patient()).unwrap();
    drop(device);
    let mut work = Work::new(&adapter);
    let end = program.timeline(0);
    for round in 1..=5 {
        work.done(round);
        let _turn = lock.lock.lock().unwrap();
        program.submit(&[], &[], &[(end, round)]);
    }
    assert!(program.wait(end, 5));
    let slices = adapter.node_counters().slices;
    drop((work, adapter));
    until("nothing of it is left", || program.is_alone());
    let turns = lock.turns.load(Ordering::Relaxed);
    assert!(
        turns >= slices + 2,
        "each slice, and what runs each kernel for a first time"
    );
}

#[test]
fn engines_run_on_the_programs_device_in_turns_with_it() {
    let program = Program::new();
    let lock = Arc::new(Counted::default());
    let queue = ProgramQueue::in_turns(program.queue, program.family, lock.clone());
    let device = program.try_hand_over(vec![queue], None).unwrap();
    let adapter = Adapter::open_on_device(&device, &patient()).unwrap();
    let before = lock.turns.load(Ordering::Relaxed);
    fences_pass(&adapter);
    let submits = adapter.node_counters().slices;
    let turns = lock.turns.load(Ordering::Relaxed);
    assert!(turns > before, "engines submit on the program's queue");
    assert!(turns >= submits, "each submission takes the program's lock");
}

/// What was made on the device is gone when the adapter is, the device is not, and the program goes on with it
/// and hands it over again. (Its end destroys the device, with the validation layer looking.)
#[test]
fn the_device_stays_the_programs() {
    let program = Program::new();
    let end = program.timeline(0);
    for round in 1..=2 {
        let device = program.hand_over();
        let adapter = Adapter::open_on_device(&device, &patient()).unwrap();
        fences_pass(&adapter);
        program.submit(&[], &[], &[(end, round)]);
        assert!(program.wait(end, round));
        assert!(device.queue(0).is_none(), "an engine has it");
        drop((adapter, device));
        until("nothing of it is left", || program.is_alone());
    }
}

/// A queue that is given back waits for what was submitted here: what waits until all of it is idle would wait for
/// work of the program's that stands behind that.
#[test]
fn giving_a_queue_back_waits_for_nothing_of_the_programs() {
    let program = Program::new();
    let device = program.hand_over();
    let mut queue = device.queue(0).unwrap();
    let own = Timeline::new(&device, 0).unwrap();
    queue.submit_one(None, None, (&own, 1)).unwrap();
    let (gate, end) = (program.timeline(0), program.timeline(0));
    program.submit(&[(gate, 1)], &[], &[(end, 1)]);
    let gives_back = thread::spawn(move || drop((queue, own)));
    until("the queue is given back", || gives_back.is_finished());
    gives_back.join().unwrap();
    assert!(device.queue(0).is_some());
    assert_eq!(program.value(end), 0);
    program.signal(gate, 1);
    assert!(program.wait(end, 1));
}

/// A program whose device can be lost, and an adapter on that.
fn on_a_device_to_lose() -> (Program, Arc<DeviceLoss>, Adapter) {
    let program = Program::new();
    let loss = DeviceLoss::new();
    let queue = ProgramQueue::in_turns(program.queue, program.family, program.lock.clone());
    let device = program.try_hand_over(vec![queue], Some(Arc::clone(&loss)));
    let device = device.unwrap();
    let adapter = Adapter::open_on_device(&device, &patient()).unwrap();
    drop(device);
    (program, loss, adapter)
}

/// An engine that is lost with the program's device has its place taken by one on a device of its own; of the
/// program's nothing is kept.
#[test]
fn an_engine_that_is_lost_with_the_programs_device_is_recovered_from() {
    let (program, loss, adapter) = on_a_device_to_lose();
    fences_pass(&adapter);
    let lost = adapter.create_device();
    let (fence, mut queue) = (
        lost.create_fence(0).unwrap(),
        lost.create_hw_queue().unwrap(),
    );
    loss.lose();
    // It may be lost before this is submitted, or with it.
    let _submitted = queue.submit(CommandList::new().signal(&fence, 1));
    until("another engine has its place", || {
        adapter.node_counters().resets == 1
    });
    fences_pass(&adapter);
    drop((fence, queue, lost, adapter));
    until("the program has its device alone", || program.is_alone());
    // It was lost for this library alone.
    let end = program.timeline(0);
    program.submit(&[], &[], &[(end, 1)]);
    assert!(program.wait(end, 1));
}

/// TD-12, TD-22: the same with kernels. Those of a device that had nothing under way run on the engine that takes the
/// place, with no new registration, and what was done before the loss stays.
///
/// Kills `a-spare-has-no-kernels`.
#[test]
fn td_12_kernels_outlive_the_programs_device() {
    let (program, loss, adapter) = on_a_device_to_lose();
    let (mut work, mut other) = (Work::new(&adapter), Work::new(&adapter));
    work.done(1);
    other.done(2);
    loss.lose();
    // Who submits first may be the one that finds it, and is in error for it.
    let _submitted = other.queue.submit(CommandList::new().nop());
    until("another engine has its place", || {
        adapter.node_counters().resets == 1
    });
    assert_eq!(work.device.execution_state(), DeviceExecutionState::ACTIVE);
    work.done(3);
    drop((work, other, adapter));
    until("the program has its device alone", || program.is_alone());
    let end = program.timeline(0);
    program.submit(&[], &[], &[(end, 1)]);
    assert!(program.wait(end, 1));
}

#[test]
fn what_was_not_turned_on_is_named() {
    let refused = |change: fn(&mut DeviceNeeds)| {
        let program = Program::that_turns_on(change);
        let queue = ProgramQueue::handed_over(program.queue, program.family);
        program.try_hand_over(vec![queue], None).unwrap_err()
    };
    let lacks = |error: DeviceImportError| match error {
        DeviceImportError::NotTurnedOn(gaps) => gaps[0].need,
        other => panic!("{other}"),
    };
    let no_atomics = refused(|needs| needs.vulkan_1_2.shader_buffer_int64_atomics = vk::FALSE);
    assert!(
        no_atomics
            .to_string()
            .contains("(buffer-int64-atomics): turn on")
    );
    assert_eq!(lacks(no_atomics), Need::BufferInt64Atomics);
    let no_clock = refused(|needs| needs.shader_clock = None);
    assert_eq!(lacks(no_clock), Need::ShaderClock);
    let no_memory = refused(|needs| {
        let shares = [
            ext::external_memory_host::NAME,
            khr::external_memory_fd::NAME,
        ];
        needs.extensions.retain(|name| !shares.contains(name));
    });
    assert_eq!(lacks(no_memory), Need::SharedMemory);
    let no_sizes = refused(|needs| needs.maintenance4 = None);
    assert_eq!(no_sizes, DeviceImportError::NoMaintenance4);
}

/// HQ-04: on a program's device a kernel may declare what the program turned on, whatever its adapter offers beside.
///
/// Kills `what-a-program-left-off-is-on` and `a-kernel-may-have-what-its-device-has-not`.
#[test]
fn hq_04_kernels_have_what_the_program_turned_on() {
    use KernelCapability::{Float16, Float64, Int8, Int16, StorageBuffer16BitAccess};
    let program = Program::that_turns_on(|needs| {
        needs.core.shader_float64 = vk::FALSE;
        needs.vulkan_1_1.storage_buffer16_bit_access = vk::FALSE;
        needs.vulkan_1_2.shader_int8 = vk::FALSE;
    });
    let device = program.hand_over();
    let has = KernelCapability::all_of(device.adapter());
    let adapter = Adapter::open_on_device(&device, &patient()).unwrap();
    let process = adapter.create_device();
    let refused = |capability: KernelCapability| {
        let code = add_words_declaring(capability.number()).unwrap();
        process.create_kernel(code).err().map(|why| why.to_string())
    };
    for capability in [Float64, StorageBuffer16BitAccess, Int8] {
        assert!(!has.contains(&capability));
        let why = refused(capability).unwrap();
        let says = format!("the device has no {}: its adapter does", capability.needs());
        assert!(why.contains(&says), "{why}");
    }
    for capability in [Float16, Int16] {
        let is_on = has.contains(&capability);
        assert_eq!(refused(capability).is_none(), is_on, "{capability}");
    }
}

#[test]
fn an_extension_without_functions_is_not_believed() {
    let mut program = Program::that_turns_on(|needs| {
        let host = ext::external_memory_host::NAME;
        needs.extensions.retain(|name| *name != host);
    });
    let host = ext::external_memory_host::NAME;
    program.turned_on.extensions.push(host);
    let error = program.try_hand_over(Vec::new(), None).unwrap_err();
    assert_eq!(error, DeviceImportError::NoFunctions(host));
}

/// Without what may be left out the engines work all the same.
#[test]
fn a_device_without_clocks_of_the_cpu_and_descriptors_has_fences() {
    let program = Program::that_turns_on(|needs| {
        let optional = [
            ext::calibrated_timestamps::NAME,
            khr::external_memory_fd::NAME,
        ];
        needs.extensions.retain(|name| !optional.contains(name));
    });
    let device = program.hand_over();
    fences_pass(&Adapter::open_on_device(&device, &patient()).unwrap());
}

#[test]
fn queues_that_cannot_be_engines_are_refused() {
    let program = Program::new();
    let queue = |family| ProgramQueue::handed_over(program.queue, family);
    let refused = |queues| program.try_hand_over(queues, None).unwrap_err();
    let same = program.family;
    assert_eq!(
        refused(vec![queue(same), queue(same)]),
        DeviceImportError::QueueTwice
    );
    assert_eq!(
        refused(vec![queue(same), queue(same + 1)]),
        DeviceImportError::SeveralFamilies
    );
    assert_eq!(
        refused(vec![queue(77)]),
        DeviceImportError::NoComputeFamily(77)
    );
    let none = program.hand_over_for_timelines();
    let error = Adapter::open_on_device(&none, &patient()).unwrap_err();
    assert!(matches!(error, OpenError::Unit(_)), "{error}");
    let options = AdapterOptions {
        unit: Some(EngineUnit::Process),
        ..patient()
    };
    let error = Adapter::open_on_device(&program.hand_over(), &options).unwrap_err();
    assert!(matches!(error, OpenError::UnitOfProgram(_)), "{error}");
}
