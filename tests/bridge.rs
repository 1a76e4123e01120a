//! Values carried between native fences and an ordinary program's timelines.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![allow(unsafe_code, reason = "the program's semaphores are handed over")]

mod support {
    pub(crate) mod engines;
    pub(crate) mod respawned;
    pub(crate) mod thread_switches;
    pub(crate) mod until;
    pub(crate) mod vulkan_program;
}

use ash::vk;
use native_fence::beside::{AskError, CrossingError, FenceToTimeline, TimelineToFence};
use native_fence::vulkan::{Device, DeviceLoss, Timeline};
use native_fence::{
    Adapter, AdapterOptions, CommandList, Fence, FenceOptions, SignalError, WaitError,
};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};
use support::engines::{patient, shader};
use support::respawned;
use support::thread_switches::{all_sleep, stays_quiet, switches, until_quiet};
use support::until::{LONG, until};
use support::vulkan_program::Program;

/// A program with a device of its own, and engines on another one beside it: a queue of the program's that waits
/// holds up nothing of theirs.
struct Sides {
    fence: Fence,
    timeline: Timeline,
    semaphore: vk::Semaphore,
    device: native_fence::Device,
    adapter: Adapter,
    program: Program,
}

fn import(program: &Program, device: &Arc<Device>, semaphore: vk::Semaphore) -> Timeline {
    // SAFETY: the program destroys its semaphores when nobody else has its handles.
    unsafe { Timeline::import(device, semaphore, program.kept()) }.unwrap()
}

impl Sides {
    fn new() -> Self {
        Self::on_device_lost_by(None)
    }

    fn on_device_lost_by(loss: Option<Arc<DeviceLoss>>) -> Self {
        let program = Program::new();
        let adapter = shader().unwrap();
        let device = adapter.create_device();
        let semaphore = program.timeline(0);
        let of_program = program.try_hand_over(Vec::new(), loss).unwrap();
        Self {
            fence: device.create_fence(0).unwrap(),
            timeline: import(&program, &of_program, semaphore),
            semaphore,
            device,
            adapter,
            program,
        }
    }

    fn monitored_value(&self) -> u64 {
        self.fence.object().fence().monitored_value()
    }

    /// A native queue's signal.
    fn queue_signals(&self, value: u64) {
        let mut queue = self.device.create_hw_queue().unwrap();
        let end = queue.submit(CommandList::new().signal(&self.fence, value));
        queue.progress_fence().wait(end.unwrap(), LONG).unwrap();
    }
}

/// NF-04: each value that is asked for is a waiter of the fence, and none is left where nothing is: not after it was
/// carried, nor when the bridge has gone.
///
/// Kills `a-bridge-leaves-its-waiters`.
#[test]
fn nf_04_what_a_bridge_is_asked_for_is_a_waiter() {
    let sides = Sides::new();
    let bridge = FenceToTimeline::new(&sides.fence, &sides.timeline);
    assert_eq!(sides.monitored_value(), u64::MAX);
    let crossings = [3, 5].map(|value| bridge.signal_after(value, value).unwrap());
    assert_eq!(sides.monitored_value(), 2);
    sides.queue_signals(3);
    assert_eq!(crossings[0].wait(LONG), Some(Ok(())));
    assert_eq!(sides.program.value(sides.semaphore), 3);
    until("the carried one is out of the list", || {
        sides.monitored_value() == 4
    });
    drop(bridge);
    assert_eq!(sides.monitored_value(), u64::MAX);
    assert_eq!(crossings[1].outcome(), Some(Err(CrossingError::Closed)));
    sides.fence.signal(5).unwrap();
    assert_eq!(sides.program.value(sides.semaphore), 3);
}

/// NF-06: an ordinary submission waits for what a native queue signals, submitted before that and after it, asked for
/// before the submission and after it.
#[test]
fn nf_06_an_ordinary_submission_waits_for_a_native_queue() {
    let sides = Sides::new();
    let (program, end) = (&sides.program, sides.program.timeline(0));
    let bridge = FenceToTimeline::new(&sides.fence, &sides.timeline);
    for round in 0..8 {
        let value = 4 * round;
        // Wait before signal, asked for before and after the submission.
        bridge.signal_after(value + 1, value + 1).unwrap();
        program.submit(&[(sides.semaphore, value + 1)], &[], &[(end, value + 1)]);
        program.submit(&[(sides.semaphore, value + 2)], &[], &[(end, value + 2)]);
        bridge.signal_after(value + 2, value + 2).unwrap();
        assert_eq!(program.value(end), value);
        sides.queue_signals(value + 1);
        assert!(program.wait(end, value + 1));
        sides.queue_signals(value + 2);
        assert!(program.wait(end, value + 2));
        // Signal before wait.
        sides.queue_signals(value + 4);
        let crossing = bridge.signal_after(value + 3, value + 4).unwrap();
        assert_eq!(crossing.outcome(), Some(Ok(())), "there on return");
        program.submit(&[(sides.semaphore, value + 4)], &[], &[(end, value + 4)]);
        assert!(program.wait(end, value + 4));
    }
}

/// NF-20: a native queue that stands at a wait, an engine that has parked at it and a CPU waiter go on when an ordinary
/// submission raises the timeline: it is a CPU signal like any other.
#[test]
fn nf_20_native_waiters_wait_for_an_ordinary_submission() {
    let sides = Sides::new();
    let (program, fence) = (&sides.program, &sides.fence);
    let bridge = TimelineToFence::new(&sides.timeline, fence).unwrap();
    let done = sides.device.create_fence(0).unwrap();
    let mut queue = sides.device.create_hw_queue().unwrap();
    for value in 1..=8 {
        let ask = || bridge.signal_after(value, 10 * value).unwrap();
        let before = (value % 2 == 0).then(ask);
        queue
            .submit(
                CommandList::new()
                    .wait(fence, 10 * value)
                    .signal(&done, value),
            )
            .unwrap();
        let waits = fence.arm(10 * value);
        assert!(waits.outcome().is_none());
        program.submit(&[], &[], &[(sides.semaphore, value)]);
        let crossing = before.unwrap_or_else(ask);
        assert_eq!(crossing.wait(LONG), Some(Ok(())));
        waits.wait(LONG).unwrap();
        done.wait(value, LONG).unwrap();
    }
}

/// HQ-09: while nothing is asked for no thread of a bridge wakes, and where nothing ever was there is none; nor does
/// one wake that sleeps in Vulkan for a value.
///
/// This test watches for a time, since what it shows is that nothing comes; it is right on a machine of any speed.
///
/// Kills `a-bridge-looks-now-and-then`.
#[test]
fn hq_09_a_bridge_wakes_nobody() {
    const BRIDGE: &str = "nf-bridge";
    let sides = Sides::new();
    let there = FenceToTimeline::new(&sides.fence, &sides.timeline);
    let other = sides.device.create_fence(0).unwrap();
    let back = TimelineToFence::new(&sides.timeline, &other).unwrap();
    assert!(switches(BRIDGE).is_empty());
    let quiet = |what: &str| {
        let slices = || sides.adapter.node_counters().slices;
        until_quiet(BRIDGE);
        let submitted = slices();
        stays_quiet(BRIDGE, what);
        assert_eq!(slices(), submitted, "{what}");
    };
    let carried = back.signal_after(1, 1).unwrap();
    there.signal_after(1, 1).unwrap();
    sides.fence.signal(1).unwrap();
    assert_eq!(carried.wait(LONG), Some(Ok(())));
    assert_eq!(switches(BRIDGE).len(), 1);
    quiet("nothing is asked for");
    back.signal_after(2, 2).unwrap();
    quiet("what is asked for does not come");
    // It was no other sleep: the value ends it.
    sides.program.signal(sides.semaphore, 2);
    other.wait(2, LONG).unwrap();
}

/// No thread of a bridge is there any more. One that has left its service may need a moment to be gone.
extern "C" fn refuse_bridges() {
    let patience = Instant::now() + Duration::from_secs(20);
    while !switches("nf-bridge").is_empty() {
        if Instant::now() > patience {
            // SAFETY: ends the process, with nothing that it would have done at its end.
            unsafe { libc::_exit(3) };
        }
        thread::yield_now();
    }
}

/// What a child says before it ends.
const ENDS: &str = "the child ends with a bridge";

/// Ends with a bridge whose thread sleeps, for a value or for nothing.
fn end_with_a_bridge(asks: bool) {
    // SAFETY: a function without arguments, which may run on any thread.
    assert_eq!(unsafe { libc::atexit(refuse_bridges) }, 0);
    let sides = Sides::new();
    let bridge = TimelineToFence::new(&sides.timeline, &sides.fence).unwrap();
    sides.program.signal(sides.semaphore, 1);
    let carried = bridge.signal_after(1, 1).unwrap();
    assert_eq!(carried.wait(LONG), Some(Ok(())));
    if asks {
        bridge.signal_after(2, 2).unwrap();
    }
    until("its thread sleeps", || all_sleep("nf-bridge"));
    std::mem::forget((bridge, sides));
    println!("{ENDS}");
}

#[test]
#[ignore = "run by another test, as a process that ends"]
fn child_ends_with_a_bridge_that_is_asked() {
    end_with_a_bridge(true);
}

#[test]
#[ignore = "run by another test, as a process that ends"]
fn child_ends_with_a_bridge_that_is_not() {
    end_with_a_bridge(false);
}

/// A program may end with a bridge: its thread is gone before Vulkan takes itself apart, and where it cannot be, since
/// it sleeps there, the process ends at once.
///
/// Kills `a-bridge-stays-at-exit`, `a-thread-left-in-vulkan-is-not-told-of`.
#[test]
fn a_process_may_end_with_a_bridge() {
    respawned::run_well("child_ends_with_a_bridge_that_is_not", &[], ENDS);
    respawned::run_well("child_ends_with_a_bridge_that_is_asked", &[], ENDS);
}

/// A signal that nobody asked for crosses nowhere, and makes no interrupt.
#[test]
fn what_nobody_asked_for_does_not_cross() {
    let sides = Sides::new();
    let bridge = FenceToTimeline::new(&sides.fence, &sides.timeline);
    let interrupts = sides.adapter.os().interrupts().fences_named();
    sides.queue_signals(7);
    assert_eq!(sides.program.value(sides.semaphore), 0);
    let named = sides.adapter.os().interrupts().fences_named();
    // The progress fence's waiter was one.
    assert!(named <= interrupts + 1);
    drop(bridge);
}

#[test]
fn values_that_go_back_are_refused() {
    let sides = Sides::new();
    let there = FenceToTimeline::new(&sides.fence, &sides.timeline);
    there.signal_after(4, 4).unwrap();
    for asked in [(3, 5), (5, 4), (5, 3)] {
        let before = (4, 4);
        let error = there.signal_after(asked.0, asked.1).unwrap_err();
        assert_eq!(error, AskError::Backward { asked, before });
    }
    sides.program.signal(sides.semaphore, 9);
    let error = there.signal_after(5, 9).unwrap_err();
    assert_eq!(error, AskError::TimelineIsThere { asked: 9, now: 9 });
    // The program has raised it beyond: it stays so.
    let crossing = there.signal_after(6, 10).unwrap();
    sides.program.signal(sides.semaphore, 20);
    sides.fence.signal(6).unwrap();
    assert_eq!(crossing.outcome(), Some(Ok(())));
    assert_eq!(sides.program.value(sides.semaphore), 20);

    let back = TimelineToFence::new(&sides.timeline, &sides.fence).unwrap();
    let error = back.signal_after(1, 5).unwrap_err();
    let current = 6;
    assert_eq!(error, AskError::Fence(SignalError::Backward { current }));
    // What goes back by then is told when it is.
    let crossing = back.signal_after(21, 7).unwrap();
    sides.fence.signal(8).unwrap();
    sides.program.signal(sides.semaphore, 21);
    let current = 8;
    assert_eq!(
        crossing.wait(LONG),
        Some(Err(SignalError::Backward { current }.into()))
    );
    // The next one crosses.
    let crossing = back.signal_after(21, 9).unwrap();
    assert_eq!(crossing.wait(LONG), Some(Ok(())));
    assert_eq!(sides.fence.current_value(), 9);
}

#[test]
fn a_bridge_that_is_dropped_tells_so_and_waits_for_nothing() {
    let sides = Sides::new();
    let bridge = TimelineToFence::new(&sides.timeline, &sides.fence).unwrap();
    let crossings = [1, 2].map(|value| bridge.signal_after(value, value).unwrap());
    let waits = sides.fence.arm(1);
    until("its thread sleeps", || all_sleep("nf-bridge"));
    drop(bridge);
    for crossing in crossings {
        assert_eq!(crossing.outcome(), Some(Err(CrossingError::Closed)));
    }
    // The thread is left to its sleep, and carries nothing when it ends.
    sides.program.signal(sides.semaphore, 2);
    until("the thread has ended", || switches("nf-bridge").is_empty());
    assert!(waits.outcome().is_none());
    assert_eq!(sides.fence.current_value(), 0);
}

/// The handle closes with the program's last clone and the bridge, whose thread keeps none: waits end.
#[test]
fn a_thread_that_is_left_keeps_no_fence() {
    let sides = Sides::new();
    let bridge = TimelineToFence::new(&sides.timeline, &sides.fence).unwrap();
    bridge.signal_after(1, 1).unwrap();
    until("its thread sleeps", || all_sleep("nf-bridge"));
    let Sides {
        fence,
        semaphore,
        program,
        ..
    } = &sides;
    let object = Arc::downgrade(fence.object());
    drop(bridge);
    assert_eq!(object.strong_count(), 1, "the program's own");
    program.signal(*semaphore, 1);
}

#[test]
fn a_fence_that_is_closed_is_told() {
    let sides = Sides::new();
    let bridge = FenceToTimeline::new(&sides.fence, &sides.timeline);
    let crossing = bridge.signal_after(1, 1).unwrap();
    sides.fence.close();
    let closed = Err(CrossingError::Fence(WaitError::Closed));
    assert_eq!(crossing.wait(LONG), Some(closed));
}

/// NF-23, NF-22: a bridge to a fence that its handle may not signal is none; one whose handle is closed later carries
/// nothing, and says so before it sleeps for it.
///
/// Kills `a-bridge-takes-any-fence`, `a-bridge-asks-for-a-closed-fence`.
#[test]
fn nf_23_a_bridge_to_a_fence_that_takes_no_signals_is_refused() {
    let sides = Sides::new();
    let refused = |fence: &Fence| TimelineToFence::new(&sides.timeline, fence).unwrap_err();
    let options = FenceOptions {
        no_signal: true,
        ..FenceOptions::default()
    };
    let silent = sides.device.create_fence_with(options).unwrap();
    assert_eq!(refused(&silent), SignalError::AccessDenied);
    let bridge = TimelineToFence::new(&sides.timeline, &sides.fence).unwrap();
    sides.fence.close();
    assert_eq!(refused(&sides.fence), SignalError::Closed);
    let asked = bridge.signal_after(1, 1).unwrap_err();
    assert_eq!(asked, AskError::Fence(SignalError::Closed));
    assert!(switches("nf-bridge").is_empty());
}

/// Both directions, when the program's device is lost: what is asked for is told, and nothing more can be asked for.
#[test]
fn a_loss_of_the_programs_device_is_told() {
    let loss = DeviceLoss::new();
    let sides = Sides::on_device_lost_by(Some(Arc::clone(&loss)));
    let there = FenceToTimeline::new(&sides.fence, &sides.timeline);
    let other = sides.device.create_fence(0).unwrap();
    let back = TimelineToFence::new(&sides.timeline, &other).unwrap();
    let (one, two) = (
        there.signal_after(1, 1).unwrap(),
        back.signal_after(2, 2).unwrap(),
    );
    loss.lose();
    let lost = |outcome| matches!(outcome, Some(Err(CrossingError::Device(_))));
    assert!(lost(two.wait(LONG)));
    sides.fence.signal(1).unwrap();
    assert!(lost(one.wait(LONG)));
    let refused = there.signal_after(2, 2).unwrap_err();
    assert!(matches!(refused, AskError::Device(_)));
    let refused = back.signal_after(3, 3).unwrap_err();
    assert!(matches!(refused, AskError::Device(_)));
}

/// Engines on the program's device itself, whose queue it shares: a value that is there when the program's work comes
/// to it orders that work, and the other way.
#[test]
fn bridges_work_on_a_shared_queue() {
    let program = Program::new();
    let handed = program.hand_over();
    let options = AdapterOptions {
        tdr: patient(),
        ..AdapterOptions::default()
    };
    let adapter = Adapter::open_on_device(&handed, &options).unwrap();
    let device = adapter.create_device();
    let (there, back) = (program.timeline(0), program.timeline(0));
    let (fence, other) = (
        device.create_fence(0).unwrap(),
        device.create_fence(0).unwrap(),
    );
    let to = FenceToTimeline::new(&fence, &import(&program, &handed, there));
    let from = TimelineToFence::new(&import(&program, &handed, back), &other).unwrap();
    let mut queue = device.create_hw_queue().unwrap();
    for value in 1..=16 {
        let crossing = to.signal_after(value, value).unwrap();
        from.signal_after(value, value).unwrap();
        let list = &mut CommandList::new();
        queue
            .submit(list.wait(&other, value - 1).signal(&fence, value))
            .unwrap();
        // On the queue that the engine is on, work waits only for what has crossed.
        assert_eq!(crossing.wait(LONG), Some(Ok(())));
        program.submit(&[(there, value)], &[], &[(back, value)]);
    }
    other.wait(16, LONG).unwrap();
}

/// Many values asked for by several threads while queues signal: each ends once, and the timeline only goes up.
#[test]
fn load_values_asked_for_by_threads_all_cross() {
    let sides = Sides::new();
    let bridge = FenceToTimeline::new(&sides.fence, &sides.timeline);
    let mut queue = sides.device.create_hw_queue().unwrap();
    const VALUES: u64 = 2000;
    thread::scope(|scope| {
        scope.spawn(|| {
            for value in 1..=VALUES {
                let list = &mut CommandList::new();
                let list = list.signal(&sides.fence, value);
                queue.submit_blocking(list, LONG).unwrap();
            }
        });
        for value in 1..=VALUES {
            let crossing = bridge.signal_after(value, value).unwrap();
            if value % 100 == 0 {
                assert_eq!(crossing.wait(LONG), Some(Ok(())));
                assert!(sides.program.value(sides.semaphore) >= value);
            }
        }
        assert!(sides.program.wait(sides.semaphore, VALUES));
    });
    until("nothing is left of it", || {
        sides.monitored_value() == u64::MAX
    });
}
