//! Monitored fences, which `nfence compare` puts beside native ones, keep their own contract.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "support/until.rs"]
mod until;

use native_fence::vulkan::{Device, DeviceOptions, Instance, InstanceOptions, choose, validation};
use native_fence::workload::monitored::MonitoredSystem;
use std::time::{Duration, Instant};
use until::{LONG, until, until_sleeping};

/// A system of `engines` engines, each on a device of its own.
fn system(engines: usize) -> MonitoredSystem {
    let instance = Instance::new(InstanceOptions { validation: true }).expect("Vulkan");
    let adapters = instance.adapters();
    let adapter = choose(&adapters, None).expect("a device");
    let queues = (0..engines).map(|_| {
        let device = Device::open(&instance, adapter, DeviceOptions::default()).unwrap();
        device.queue(0).unwrap()
    });
    MonitoredSystem::new(queues).unwrap()
}

fn interrupts(system: &MonitoredSystem) -> u64 {
    system.counts().notifications.unwrap()
}

fn nothing_was_complained_of() {
    assert_eq!(validation::messages(), Vec::<String>::new());
}

/// MF-02: a GPU signal stores the value from the command stream: a thread that only reads the
/// mapping sees it, and nobody else is touched.
///
/// Kills `monitored-signal-stores-elsewhere` and `monitored-signal-stores-nothing`.
#[test]
fn mf_02_a_gpu_signal_is_a_store_that_the_mapping_shows() {
    let system = system(1);
    let (before, fence, after) = (
        system.create_fence(3).unwrap(),
        system.create_fence(5).unwrap(),
        system.create_fence(7).unwrap(),
    );
    let mut queue = system.create_queue(0);
    queue.signal(&fence, u64::MAX - 1).unwrap();
    queue.flush().unwrap();
    until("the signal's value is in memory", || {
        fence.value() == u64::MAX - 1
    });
    assert_eq!((before.value(), after.value()), (3, 7));
    nothing_was_complained_of();
}

/// MF-02: no reader sees half of a value. Both halves of each value are equal, and the CPU reads
/// while the GPU stores.
///
/// Kills `monitored-signal-stores-a-half`.
#[test]
fn mf_02_no_value_is_torn() {
    let system = system(1);
    let fence = system.create_fence(0).unwrap();
    let mut queue = system.create_queue(0);
    let value = |round: u64| round << 32 | round;
    for round in 1..=500 {
        queue.signal(&fence, value(round)).unwrap();
    }
    queue.flush().unwrap();
    until("the last value is in memory", || {
        let now = fence.value();
        assert_eq!(now >> 32, now & u64::from(u32::MAX), "{now:#x}");
        now == value(500)
    });
    nothing_was_complained_of();
}

/// MF-02: an engine of the advanced form interrupts with each signal, whether anybody waits or not,
/// and the interrupt makes the OS look at its waiters.
///
/// Kills `monitored-interrupt-wakes-nobody` and `monitored-interrupts-are-counted-once`.
#[test]
fn mf_02_each_signal_interrupts_and_its_waiter_wakes() {
    let system = system(1);
    let fence = system.create_fence(0).unwrap();
    let mut queue = system.create_queue(0);
    for value in 1..=8 {
        queue.signal(&fence, value).unwrap();
    }
    queue.flush().unwrap();
    until("eight signals interrupt eight times", || {
        interrupts(&system) == 8
    });
    std::thread::scope(|scope| {
        let (tell, told) = std::sync::mpsc::channel();
        let fence = &fence;
        let waiter = scope.spawn(move || {
            tell.send(rustix::thread::gettid()).unwrap();
            fence.wait(9, LONG)
        });
        until_sleeping(told.recv().unwrap());
        let begin = Instant::now();
        queue.signal(fence, 9).unwrap();
        queue.flush().unwrap();
        waiter.join().unwrap().unwrap();
        // A waiter that nobody wakes finds the value when its time is over.
        assert!(begin.elapsed() < LONG / 2);
    });
    until("the ninth interrupts as well", || interrupts(&system) == 9);
    nothing_was_complained_of();
}

/// MF-03: what was recorded before a wait is flushed by it and runs, without another call.
///
/// Kills `monitored-wait-flushes-nothing`.
#[test]
fn mf_03_a_wait_flushes_what_was_recorded() {
    let system = system(1);
    let create = || system.create_fence(0).unwrap();
    let (earlier, gate) = (create(), create());
    let mut queue = system.create_queue(0);
    queue.signal(&earlier, 1).unwrap();
    // It returns, or the test hangs: nobody signals the gate.
    queue.wait(&gate, 1).unwrap();
    earlier.wait(1, LONG).unwrap();
    nothing_was_complained_of();
}

/// MF-03: the caller of a wait has returned, what was queued behind it is not run, though the engine
/// runs other queues' work; the value lets it go.
///
/// Kills `monitored-wait-passes-at-once` and `monitored-cpu-signal-schedules-nothing`.
#[test]
fn mf_03_what_follows_a_wait_is_not_scheduled_before_its_value() {
    let system = system(1);
    let create = || system.create_fence(0).unwrap();
    let (gate, later, other) = (create(), create(), create());
    let mut queue = system.create_queue(0);
    queue.wait(&gate, 2).unwrap();
    queue.signal(&later, 1).unwrap();
    queue.flush().unwrap();

    // A value below is no reason to go on.
    gate.signal(1).unwrap();
    let mut beside = system.create_queue(0);
    beside.signal(&other, 1).unwrap();
    beside.flush().unwrap();
    // Handed to the engine after everything that had been handed to it.
    other.wait(1, LONG).unwrap();
    assert_eq!(later.value(), 0);
    let submitted = system.counts().submits;
    assert_eq!(submitted, 1, "the engine has what may run and no more");

    // From here on nothing but the CPU's signal makes the OS look.
    until("the interrupt is served", || interrupts(&system) == 1);
    gate.signal(2).unwrap();
    later.wait(1, LONG).unwrap();
    nothing_was_complained_of();
}

/// MF-03: a wait that is already satisfied holds nothing back.
///
/// Kills `monitored-wait-wants-more`.
#[test]
fn mf_03_a_satisfied_wait_passes() {
    let system = system(1);
    let (gate, done) = (
        system.create_fence(4).unwrap(),
        system.create_fence(0).unwrap(),
    );
    let mut queue = system.create_queue(0);
    queue.wait(&gate, 4).unwrap();
    queue.signal(&done, 1).unwrap();
    queue.flush().unwrap();
    done.wait(1, LONG).unwrap();
    nothing_was_complained_of();
}

/// MF-03: the signal of one engine lets go what waits on another, through the interrupt and the OS.
///
/// Kills `monitored-interrupt-schedules-nothing`.
#[test]
fn mf_03_engines_hand_over_through_the_os() {
    let system = system(2);
    let (there, back) = (
        system.create_fence(0).unwrap(),
        system.create_fence(0).unwrap(),
    );
    let (mut first, mut second) = (system.create_queue(0), system.create_queue(1));
    for value in 1..=20 {
        first.signal(&there, value).unwrap();
        first.wait(&back, value).unwrap();
        second.wait(&there, value).unwrap();
        second.signal(&back, value).unwrap();
    }
    second.flush().unwrap();
    back.wait(20, LONG).unwrap();
    assert_eq!(there.value(), 20);
    nothing_was_complained_of();
}

/// A wait that nobody satisfies ends when its time is over, and leaves nothing behind.
#[test]
fn a_cpu_wait_ends_with_its_time() {
    let system = system(1);
    let fence = system.create_fence(1).unwrap();
    assert!(fence.wait(2, Duration::from_millis(1)).is_err());
    assert!(fence.signal(0).is_err(), "it goes up only");
    fence.wait(1, Duration::ZERO).unwrap();
    nothing_was_complained_of();
}
