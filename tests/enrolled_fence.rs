//! Native fences that an ordinary program's own command buffers signal and look at.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![allow(unsafe_code, reason = "the program's command buffers are plain Vulkan")]
#![allow(
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block,
    reason = "a program that makes its handles itself and destroys them last"
)]

mod support {
    pub(crate) mod engines;
    pub(crate) mod thread_switches;
    pub(crate) mod until;
    pub(crate) mod vulkan_program;
}

use ash::vk;
use native_fence::beside::{EnrolError, EnrolledFence, RecordError};
use native_fence::vulkan::{
    self, ENROLLED_BEGIN, ENROLLED_CONDITION_END, ENROLLED_SIGNAL_END, ProgramCommands, Recorded,
    shaders,
};
use native_fence::{
    Adapter, AdapterOptions, CommandList, CrossAdapter, EventHandle, Fence, FenceOptions,
    SignalError, WaitError,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::sync::Arc;
use std::time::Duration;
use support::engines::{model, patient};
use support::thread_switches::{stays_quiet, switches, until_quiet};
use support::until::{LONG, until};
use support::vulkan_program::{Program, Words};

const WATCH: &str = "nf-bridge";

/// A program, and engines that run on its device.
struct World {
    enrolled: EnrolledFence,
    fence: Fence,
    device: native_fence::Device,
    adapter: Adapter,
    handed: Arc<vulkan::Device>,
    program: Program,
}

/// The enrolled fence lives until the last submission with what it recorded has ended.
impl Drop for World {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.program.wait_idle();
        }
    }
}

impl World {
    fn new() -> Self {
        Self::with(FenceOptions::default())
    }

    fn with(fence: FenceOptions) -> Self {
        let program = Program::new();
        let handed = program.hand_over();
        let options = AdapterOptions {
            tdr: patient(),
            ..AdapterOptions::default()
        };
        let adapter = Adapter::open_on_device(&handed, &options).unwrap();
        let device = adapter.create_device();
        let fence = device.create_fence_with(fence).unwrap();
        Self {
            enrolled: EnrolledFence::new(&fence, &handed).unwrap(),
            fence,
            device,
            adapter,
            handed,
            program,
        }
    }

    /// A command buffer of the program's, into which `record` records.
    fn commands(&self, record: impl FnOnce(&mut ProgramCommands)) -> vk::CommandBuffer {
        self.program.record(|raw| {
            record(&mut unsafe { ProgramCommands::new(&self.handed, raw) });
        })
    }

    fn signal(&self, value: u64) -> vk::CommandBuffer {
        self.commands(|commands| self.enrolled.record_signal(commands, value).unwrap())
    }

    /// Submits, enrolled.
    fn submit(&self, commands: vk::CommandBuffer) {
        let submitted = self.enrolled.enrol(|timeline, value| {
            let signals = [(timeline.semaphore(), value)];
            self.program.submit(&[], &[commands], &signals);
            Ok::<(), ()>(())
        });
        submitted.unwrap();
    }

    fn monitored_value(&self) -> u64 {
        self.fence.object().fence().monitored_value()
    }
}

/// Sleeps until a wait with this event has ended.
fn until_told(event: &EventHandle) {
    let long = Timespec {
        tv_sec: 20,
        tv_nsec: 0,
    };
    let readable = poll(&mut [PollFd::new(event, PollFlags::IN)], Some(&long));
    assert_eq!(readable, Ok(1), "nobody was told");
}

/// Where what the program's kernel needs lies in its buffer, in words of 32 bits.
const COUNTS: usize = 0;
const PARAMETERS: usize = 16;
const SUM: usize = 32;

/// The program's own kernel, which adds 1 to a word each time that it runs.
struct Kernel {
    words: Words,
    kernel: (vk::Pipeline, vk::PipelineLayout),
}

impl Kernel {
    fn new(program: &Program) -> Self {
        let words = program.words();
        let sum = words.address + 4 * SUM as u64;
        for (index, parameter) in [sum, sum, 1, 1].into_iter().enumerate() {
            words.put(PARAMETERS + 2 * index, parameter as u32);
            words.put(PARAMETERS + 2 * index + 1, (parameter >> 32) as u32);
        }
        words.put(SUM, 0);
        words.put(SUM + 1, 0);
        Self {
            words,
            kernel: program.kernel(shaders::ADD_WORDS.words),
        }
    }

    /// Records an indirect dispatch of it.
    fn record(&self, program: &Program, raw: vk::CommandBuffer) {
        let (pipeline, layout) = self.kernel;
        let parameters = self.words.address + 4 * PARAMETERS as u64;
        let compute = vk::PipelineBindPoint::COMPUTE;
        let stage = vk::ShaderStageFlags::COMPUTE;
        let device = program.device();
        unsafe {
            device.cmd_bind_pipeline(raw, compute, pipeline);
            device.cmd_push_constants(raw, layout, stage, 0, &parameters.to_ne_bytes());
            device.cmd_dispatch_indirect(raw, self.words.buffer, 4 * COUNTS as u64);
        }
    }

    fn counts(&self) -> [u32; 3] {
        [0, 1, 2].map(|index| self.words.get(COUNTS + index))
    }

    fn set_counts(&self, counts: [u32; 3]) {
        for (index, count) in counts.into_iter().enumerate() {
            self.words.put(COUNTS + index, count);
        }
    }

    fn sum(&self) -> u32 {
        self.words.get(SUM)
    }
}

/// NF-06: threads that wait for what a program's own command buffer signals are woken, whether they came before the
/// submission or after it, and find what it did before.
///
/// Kills `an-enrolled-submission-is-not-watched`, `a-waiter-is-not-told-of-elsewhere`.
#[test]
fn nf_06_a_cpu_waiter_is_woken_by_a_programs_own_commands() {
    let world = World::new();
    let kernel = Kernel::new(&world.program);
    kernel.set_counts([1, 1, 1]);
    let event = EventHandle::new().unwrap();
    for value in 1..=32 {
        let commands = world.program.record(|raw| {
            kernel.record(&world.program, raw);
            let commands = &mut unsafe { ProgramCommands::new(&world.handed, raw) };
            world.enrolled.record_signal(commands, value).unwrap();
        });
        if value % 2 == 0 {
            // Nobody looks for it but who watches the submission.
            let wait = world.fence.wait_event(value, &event);
            world.submit(commands);
            until_told(&event);
            assert_eq!((event.reset(), wait.outcome()), (1, Some(Ok(()))));
        } else {
            world.submit(commands);
            pollster::block_on(world.fence.wait_async(value)).unwrap();
        }
        assert_eq!(u64::from(kernel.sum()), value);
        assert_eq!(world.monitored_value(), u64::MAX);
    }
}

/// XA-03: no record tells of what a program's own command buffer stores; another adapter hears of it when the submission
/// has ended, its threads and its engines.
///
/// Kills `what-a-program-signals-stays-on-its-adapter`.
#[test]
fn xa_03_another_adapter_hears_of_a_programs_own_commands() {
    let world = World::with(FenceOptions {
        cross_adapter: Some(CrossAdapter::Propagated),
        ..FenceOptions::default()
    });
    let (other, _memory) = model();
    let device = other.create_device();
    let there = device.open_fence(&world.fence.share().unwrap()).unwrap();
    let mut queue = device.create_hw_queue().unwrap();
    let event = EventHandle::new().unwrap();
    for value in 1..=4 {
        let wait = there.wait_event(value, &event);
        let parks = other.node_counters().parks;
        let end = queue
            .submit(CommandList::new().wait(&there, value))
            .unwrap();
        until("the engine has parked at the wait", || {
            other.node_counters().parks > parks
        });
        world.submit(world.signal(value));
        until_told(&event);
        assert_eq!((event.reset(), wait.outcome()), (1, Some(Ok(()))));
        until("the queue goes on", || {
            queue.progress_fence().current_value() >= end
        });
    }
}

/// NF-04: an engine that has parked at a wait is a waiter: it comes back when a program's own command buffer signals.
///
/// Kills `an-enrolled-submission-is-not-watched`.
#[test]
fn nf_04_a_parked_engine_waits_for_a_programs_own_commands() {
    let world = World::new();
    let done = world.device.create_fence(0).unwrap();
    let mut queue = world.device.create_hw_queue().unwrap();
    for value in 1..=4 {
        let list = &mut CommandList::new();
        let list = list.wait(&world.fence, value).signal(&done, value);
        let parks = world.adapter.node_counters().parks;
        queue.submit(list).unwrap();
        until("the engine has parked at the wait", || {
            let parks_now = world.adapter.node_counters().parks;
            world.monitored_value() == value - 1 && parks_now > parks
        });
        world.submit(world.signal(value));
        done.wait(value, LONG).unwrap();
    }
}

/// HQ-09: enrolled submissions of a fence that nobody waits for wake nobody; nor does a waiter for what is not
/// submitted.
///
/// This test watches for a time, since what it shows is that nothing comes; it is right on a machine of any speed.
///
/// Kills `an-enrolled-submission-is-always-watched`.
#[test]
fn hq_09_an_enrolled_fence_that_nobody_waits_for_wakes_nobody() {
    let world = World::new();
    until("the thread has its name", || switches(WATCH).len() == 1);
    let before = until_quiet(WATCH);
    for value in 1..=16 {
        world.submit(world.signal(value));
    }
    until("it was signalled", || world.fence.current_value() == 16);
    assert_eq!(until_quiet(WATCH), before, "nobody waited");
    let wait = world.fence.arm(17);
    stays_quiet(WATCH, "what is waited for is not submitted");
    world.submit(world.signal(17));
    wait.wait(LONG).unwrap();
    until("what is waited for was watched", || {
        switches(WATCH) != before
    });
}

/// HQ-08: work that is recorded behind a condition runs where the fence has the value, and is passed over where not,
/// as the fence stands when the queue comes to it.
///
/// Kills `a-condition-is-not-looked-at`.
#[test]
fn hq_08_a_programs_indirect_work_runs_on_condition_of_a_fence() {
    let world = World::new();
    let kernel = Kernel::new(&world.program);
    let end = world.program.timeline(0);
    let conditional = |value| {
        world.program.record(|raw| {
            let commands = &mut unsafe { ProgramCommands::new(&world.handed, raw) };
            let counts = kernel.words.address + 4 * COUNTS as u64;
            let recorded = world.enrolled.record_condition(commands, value, counts);
            recorded.unwrap();
            kernel.record(&world.program, raw);
        })
    };
    let mut round = 0;
    let mut run = |commands: &[vk::CommandBuffer]| {
        round += 1;
        kernel.set_counts([1, 1, 1]);
        let signals = [(end, round)];
        world.program.submit(&[], commands, &signals);
        assert!(world.program.wait(end, round));
        (kernel.counts(), kernel.sum())
    };
    assert_eq!(run(&[conditional(5)]), ([0; 3], 0), "it stands at 0");
    let mut queue = world.device.create_hw_queue().unwrap();
    queue
        .submit(CommandList::new().signal(&world.fence, 5))
        .unwrap();
    world.fence.wait(5, LONG).unwrap();
    assert_eq!(run(&[conditional(5)]), ([1; 3], 1), "a queue has signalled");
    assert_eq!(run(&[conditional(6)]), ([0; 3], 1));
    // In one submission: the condition finds what was signalled before it.
    let both = [world.signal(u64::MAX), conditional(u64::MAX)];
    assert_eq!(run(&both), ([1; 3], 2));
}

/// The barriers around what is recorded, which a driver on the CPU hides and the validation layers do not follow.
///
/// Kills `an-enrolled-signal-overtakes`, `a-condition-comes-late`.
#[test]
fn what_is_recorded_stands_between_its_barriers() {
    let world = World::new();
    let mut recorded = Vec::new();
    world.commands(|commands| {
        world.enrolled.record_signal(commands, 1).unwrap();
        world.enrolled.record_condition(commands, 1, 64).unwrap();
        recorded = commands.recorded().to_vec();
    });
    let barriers: Vec<_> = recorded
        .iter()
        .filter_map(|command| match command {
            Recorded::Barrier(barrier) => Some(*barrier),
            _ => None,
        })
        .collect();
    assert_eq!(
        barriers,
        [
            ENROLLED_BEGIN,
            ENROLLED_SIGNAL_END,
            ENROLLED_BEGIN,
            ENROLLED_CONDITION_END
        ]
    );
    let is_dispatch = |at: usize| recorded[at] == Recorded::Dispatch([1, 1, 1]);
    assert!(recorded.len() == 10 && is_dispatch(3) && is_dispatch(8));
}

/// Counts that do not lie as Vulkan has it, and a command buffer of another device, are refused by name, and nothing is
/// recorded.
///
/// Kills `counts-lie-anywhere`, `a-command-buffer-of-any-device`.
#[test]
fn what_cannot_be_recorded_is_refused() {
    let (world, other) = (World::new(), World::new());
    world.commands(|commands| {
        for counts in [65, 66, 67] {
            let refused = world.enrolled.record_condition(commands, 1, counts);
            assert_eq!(refused, Err(RecordError::Unaligned(counts)));
        }
        let of_another = Err(RecordError::OtherDevice(vulkan::OtherDevice));
        assert_eq!(other.enrolled.record_signal(commands, 1), of_another);
        let refused = other.enrolled.record_condition(commands, 1, 64);
        assert_eq!(refused, of_another);
        assert_eq!(commands.recorded(), []);
    });
}

#[test]
fn a_submission_that_was_not_made_enrols_nothing() {
    let world = World::new();
    let mut values = Vec::new();
    for is_made in [false, false, true] {
        let commands = world.signal(1);
        let made = world.enrolled.enrol(|timeline, value| {
            values.push(value);
            if !is_made {
                return Err("the program had no memory");
            }
            let signals = [(timeline.semaphore(), value)];
            world.program.submit(&[], &[commands], &signals);
            Ok(())
        });
        assert_eq!(made.is_ok(), is_made);
    }
    assert_eq!(values, [1, 1, 1]);
    world.fence.wait(1, LONG).unwrap();
}

#[test]
fn fences_and_devices_that_cannot_be_enrolled_are_refused() {
    let world = World::new();
    let own = world.adapter.info().unwrap();
    let instance = vulkan::Instance::new(vulkan::InstanceOptions::default()).unwrap();
    let own = vulkan::Device::open(&instance, own, vulkan::DeviceOptions::default()).unwrap();
    let refused = |fence: &Fence, device| EnrolledFence::new(fence, device).unwrap_err();
    let error = refused(&world.fence, &own);
    assert!(matches!(error, EnrolError::NotThePrograms), "{error}");
    let options = FenceOptions {
        no_signal: true,
        ..FenceOptions::default()
    };
    let silent = world.device.create_fence_with(options).unwrap();
    let error = refused(&silent, &world.handed);
    assert!(matches!(
        error,
        EnrolError::Fence(SignalError::AccessDenied)
    ));
    let closed = world.device.create_fence(0).unwrap();
    closed.close();
    let error = refused(&closed, &world.handed);
    assert!(matches!(error, EnrolError::Fence(SignalError::Closed)));
    assert_eq!(
        world.fence.wait(1, Duration::ZERO),
        Err(WaitError::TimedOut)
    );
}
