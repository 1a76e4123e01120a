//! A Vulkan device that is lost at any call that can say so (TD-12). The loss is injected into the
//! functions of one engine's device: every call of every kind that a short life makes is, in its turn, the
//! one that finds it. A life makes few, since who waits sleeps, on an engine that reports by interrupts; where
//! waiters watch it instead, who looks first finds what there is. Not every life makes as many of them as the
//! one that counted: a life that has no such call is one without a loss.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod left_out;
    pub(crate) mod queue_of;
    pub(crate) mod until;
    pub(crate) mod walk;
}

use native_fence::abi::Delivery;
use native_fence::gpu::{EngineUnit, Injection, LongKernel, NodePolicy};
use native_fence::vulkan::LossyCall::{
    self, CreateDevice, DeviceWaitIdle, GetSemaphoreCounterValue, QueueSubmit, QueueWaitIdle,
    WaitSemaphores,
};
use native_fence::vulkan::{DeviceLoss, validation};
use native_fence::{
    Adapter, AdapterOptions, CommandList, EngineKind, HwQueueOptions, KernelQueue, OpenError,
    TdrLevel, TdrPolicy, WaitError,
};
use std::num::NonZeroU32;
use std::sync::{Arc, mpsc};
use std::thread;
use support::left_out::opened_or_left_out;
use support::queue_of::disconnected_queue_of;
use support::until::{LONG, until};
use support::walk::is_taken;

/// A program's life on an adapter whose first engine may be lost.
type Life = fn(&Adapter, &DeviceLoss);

/// Two engines of instances of their own, so that one is lost alone.
fn open(injection: &Arc<Injection>, options: &AdapterOptions) -> Result<Adapter, OpenError> {
    Adapter::open(&AdapterOptions {
        validation: validation::asked_for_by_environment(),
        nodes: NonZeroU32::new(2).unwrap(),
        unit: Some(EngineUnit::Instance),
        injection: Some(Arc::clone(injection)),
        // What is shown here is a loss for good.
        tdr: TdrPolicy {
            level: TdrLevel::Off,
            ..TdrPolicy::default()
        },
        ..options.clone()
    })
}

fn is_left_out() -> bool {
    let opened = open(&Injection::new(2).unwrap(), &AdapterOptions::default());
    opened_or_left_out(opened).is_none()
}

/// What is allowed to happen on the device that may be lost.
fn allow(loss: &DeviceLoss, what: &str, ended: Result<(), WaitError>) {
    match ended {
        Ok(()) => {}
        Err(WaitError::DeviceLost) => assert!(loss.is_lost(), "{what}: it is not lost"),
        Err(other) => panic!("{what}: {other}"),
    }
}

/// Signals and waits of CPU and GPU, beside another program, on engines that park between them.
fn by_user_mode(adapter: &Adapter, loss: &DeviceLoss) {
    let (doomed, well) = (adapter.create_device(), adapter.create_device());
    let [gate, fence] = [0, 0].map(|initial| doomed.create_fence(initial).unwrap());
    let mut other = disconnected_queue_of(&well, 1);
    let mut queue = match doomed.create_hw_queue_disconnected(HwQueueOptions::default()) {
        Ok(queue) => queue,
        Err(error) => {
            // Found by the packet that initialises its save area.
            assert!(loss.is_lost(), "{error}");
            other.connect_doorbell().unwrap();
            let innocent = other.submit(&CommandList::new()).unwrap();
            return other.progress_fence().wait(innocent, LONG).unwrap();
        }
    };
    let connected = queue.connect_doorbell();
    assert!(connected.is_ok() || loss.is_lost(), "{connected:?}");
    other.connect_doorbell().unwrap();
    thread::scope(|scope| {
        let last = scope.spawn(|| fence.wait(3, LONG));
        for value in 1..=3 {
            let mut list = CommandList::new();
            list.wait(&gate, value).signal(&fence, value);
            let submitted = queue.submit(&list);
            assert!(submitted.is_ok() || loss.is_lost(), "{submitted:?}");
            let signaled = gate.signal(value);
            assert!(signaled.is_ok() || loss.is_lost(), "{signaled:?}");
            if submitted.is_ok() {
                allow(loss, "a wait for the CPU", fence.wait(value, LONG));
            }
            let innocent = other.submit(&CommandList::new()).unwrap();
            other.progress_fence().wait(innocent, LONG).unwrap();
        }
        // Of a device whose queue was made when the engine was lost already: it is well, and so is
        // what it can signal.
        let _ = fence.signal(3);
        allow(loss, "a wait from the beginning", last.join().unwrap());
    });
    if loss.is_lost() {
        until("the OS is told", || queue.error().is_some());
        assert_eq!(queue.error(), Some(WaitError::DeviceLost));
        let never = queue.progress_fence().wait(u64::MAX, LONG);
        assert_eq!(never, Err(WaitError::DeviceLost));
    }
    assert_eq!(other.error(), None);
}

/// The same by the OS: monitored fences and kernel-mode queues.
fn by_kernel_mode(adapter: &Adapter, loss: &DeviceLoss) {
    let (doomed, well) = (adapter.create_device(), adapter.create_device());
    let mut other = well.create_kernel_queue_on(1).unwrap();
    let mut queue = match doomed.create_kernel_queue_on(0) {
        Ok(queue) => queue,
        Err(error) => {
            assert!(loss.is_lost(), "{error}");
            let innocent = other.submit(&CommandList::new()).unwrap();
            return other.progress_fence().wait(innocent, LONG).unwrap();
        }
    };
    let fences = [0, 0].map(|initial| doomed.create_monitored_fence(initial));
    let [Ok(gate), Ok(fence)] = fences else {
        return assert!(loss.is_lost(), "{fences:?}");
    };
    thread::scope(|scope| {
        let last = scope.spawn(|| fence.wait(3, LONG));
        for value in 1..=3 {
            let submitted = queue
                .wait(&gate, value)
                .and_then(|queue| queue.signal(&fence, value))
                .and_then(KernelQueue::flush);
            assert!(submitted.is_ok() || loss.is_lost(), "{submitted:?}");
            // A monitored fence of a lost device stands at its maximum.
            let signaled = gate.signal(value);
            assert!(signaled.is_ok() || loss.is_lost(), "{signaled:?}");
            if submitted.is_ok() {
                allow(loss, "a wait for the CPU", fence.wait(value, LONG));
            }
            let innocent = other.submit(&CommandList::new()).unwrap();
            other.progress_fence().wait(innocent, LONG).unwrap();
        }
        let _ = fence.signal(3);
        allow(loss, "a wait from the beginning", last.join().unwrap());
    });
    if loss.is_lost() {
        until("the OS is told", || queue.error().is_some());
        assert_eq!(queue.error(), Some(WaitError::DeviceLost));
    }
    assert_eq!(other.error(), None);
}

/// Opens an adapter whose first engine is lost as planned, lives, and drops it all; in time.
fn live_and_die(injection: &Arc<Injection>, options: &AdapterOptions, life: Life, what: &str) {
    let (done, ended) = mpsc::channel();
    let (injection, options) = (Arc::clone(injection), options.clone());
    let thread = thread::spawn(move || {
        let loss = injection.device_loss(0);
        match open(&injection, &options) {
            Ok(adapter) => life(&adapter, &loss),
            Err(error) => {
                assert!(loss.is_lost(), "{error}");
                assert!(error.to_string().contains("lost"), "{error}");
            }
        }
        done.send(()).unwrap();
    });
    let in_time = ended.recv_timeout(2 * LONG);
    assert_ne!(
        in_time,
        Err(mpsc::RecvTimeoutError::Timeout),
        "{what}: it hangs"
    );
    assert!(thread.join().is_ok(), "{what}");
    assert_eq!(validation::messages(), Vec::<String>::new(), "{what}");
}

/// Lives once to count the calls of these kinds, and once for each of them.
fn lose_at_every(calls: &[LossyCall], options: &AdapterOptions, life: Life) {
    if is_left_out() {
        return;
    }
    let counted = Injection::new(2).unwrap();
    live_and_die(&counted, options, life, "without a loss");
    assert!(!counted.device_loss(0).is_lost());
    for &call in calls {
        let count = counted.device_loss(0).calls(call);
        let mut losses = 0;
        // A life that is slow looks thousands of times, and each of those looks is as good as its neighbour.
        let is_tried = |at: &u64| *at <= 32 || at.is_power_of_two();
        for at in (1..=count).filter(is_tried).filter(|at| is_taken(*at)) {
            let injection = Injection::new(2).unwrap();
            let loss = injection.device_loss(0);
            loss.plan(call, at);
            let what = format!("{call:?}, call {at} of {count}");
            live_and_die(&injection, options, life, &what);
            if at == 1 && matches!(call, QueueWaitIdle | DeviceWaitIdle) {
                // Whoever lets go of the device last makes it, which may be a thread of the adapter's.
                until("the end is lost", || loss.is_lost());
            }
            losses += u64::from(loss.is_lost());
        }
        println!("{call:?}: lost at {losses} of {count} calls");
        // Not every life makes as many calls, and who waits or looks is whoever comes in time.
        let is_sure = match call {
            CreateDevice | QueueSubmit | QueueWaitIdle | DeviceWaitIdle => true,
            WaitSemaphores | GetSemaphoreCounterValue => false,
        };
        assert!(losses > 0 || !is_sure, "{call:?} loses nothing");
    }
}

/// TD-12, in part: what the OS does about a loss is told of by other tests; here, that it is told, at
/// whichever call it comes: each wait ends with the error, nobody hangs, the other engine's work is done,
/// and all of it can be dropped.
///
/// Open: a driver that loses its device. No CPU driver does.
///
/// Kills `a-planned-loss-never-comes`.
#[test]
fn td_12_a_device_is_lost_at_any_submission_and_at_its_end() {
    let calls = [CreateDevice, QueueSubmit, QueueWaitIdle, DeviceWaitIdle];
    lose_at_every(&calls, &AdapterOptions::default(), by_user_mode);
}

/// The same for the waits for a slice's end.
///
/// Kills `a-lost-wait-goes-on`.
#[test]
fn td_12_a_device_is_lost_at_any_wait() {
    lose_at_every(&[WaitSemaphores], &AdapterOptions::default(), by_user_mode);
}

/// The same where waiters watch the engine and sleep little.
///
/// Kills `a-node-goes-on-after-its-loss`.
#[test]
fn td_12_a_device_is_lost_at_any_look() {
    let options = AdapterOptions {
        policy: NodePolicy {
            delivery: Delivery::Polled,
            wait_spin: LONG,
            ..NodePolicy::default()
        },
        ..AdapterOptions::default()
    };
    lose_at_every(&[GetSemaphoreCounterValue], &options, by_user_mode);
}

/// The same of kernel-mode queues.
///
/// Kills `a-lost-engine-is-not-told`.
#[test]
fn td_12_a_device_is_lost_at_any_call_of_the_os() {
    let calls = [QueueSubmit, WaitSemaphores];
    lose_at_every(&calls, &AdapterOptions::default(), by_kernel_mode);
}

/// The same where engines execute command buffers.
///
/// Kills `a-lost-command-engine-is-not-told`.
#[test]
fn td_12_a_device_of_command_buffers_is_lost_at_any_call() {
    let options = AdapterOptions {
        engine: EngineKind::CommandBuffers,
        ..AdapterOptions::default()
    };
    lose_at_every(&LossyCall::ALL, &options, by_kernel_mode);
}

/// The device goes on after its loss was told: what it looks at stays mapped until it is done, though
/// the program that it was of is gone. What it stores meanwhile, and that nobody takes it for new, is
/// not shown here (TD-23).
///
/// Without the validation layer it kills `a-loss-is-only-seen-by-later-calls`; what stays mapped is held to a mutant in
/// `cut_off.rs`.
#[test]
fn a_lost_device_that_goes_on_crashes_nothing() {
    if is_left_out() {
        return;
    }
    let injection = Injection::new(2).unwrap();
    let (loss, kernel) = (
        injection.device_loss(0),
        LongKernel {
            workgroups: 300,
            passes: 60_000,
        },
    );
    loss.let_go_on();
    let theirs = Arc::clone(&injection);
    let adapter = match open(&injection, &AdapterOptions::default()) {
        Ok(adapter) => adapter,
        Err(error) => panic!("{error}"),
    };
    {
        let device = adapter.create_device();
        let fence = device.create_fence(0).unwrap();
        let mut queue = disconnected_queue_of(&device, 0);
        // Before there is anything to run: a slice in flight takes what is submitted, and is the last.
        theirs.before_next_slice(0, kernel);
        queue.connect_doorbell().unwrap();
        let mut list = CommandList::new();
        list.signal(&fence, 1);
        queue.submit(&list).unwrap();
        until("the kernel runs", || theirs.workgroups_done(0) > 0);
        loss.lose();
        assert_eq!(fence.wait(2, LONG), Err(WaitError::DeviceLost));
        let done = theirs.workgroups_done(0);
        assert!(
            done < u64::from(kernel.workgroups),
            "it is told while the kernel runs"
        );
    }
    // The slice behind the kernel runs when its program has gone.
    until("the kernel ends", || {
        theirs.workgroups_done(0) == u64::from(kernel.workgroups)
    });
    drop(adapter);
    assert_eq!(validation::messages(), Vec::<String>::new());
}

/// A loss is noticed where nothing is submitted: whoever sleeps on the device wakes.
///
/// Kills `a-loss-is-told-to-no-sleeper`.
#[test]
fn td_12_a_parked_device_is_lost() {
    if is_left_out() {
        return;
    }
    let injection = Injection::new(2).unwrap();
    live_and_die(
        &injection,
        &AdapterOptions::default(),
        |adapter, loss| {
            let device = adapter.create_device();
            let fence = device.create_fence(0).unwrap();
            let mut queue = disconnected_queue_of(&device, 0);
            queue.connect_doorbell().unwrap();
            let value = queue.submit(&CommandList::new()).unwrap();
            queue.progress_fence().wait(value, LONG).unwrap();
            until("the engine's thread sleeps", || loss.sleepers() > 0);
            thread::scope(|scope| {
                let waiter = scope.spawn(|| fence.wait(1, LONG));
                loss.lose();
                assert_eq!(waiter.join().unwrap(), Err(WaitError::DeviceLost));
            });
            assert_eq!(queue.error(), Some(WaitError::DeviceLost));
        },
        "a loss while it is parked",
    );
}
