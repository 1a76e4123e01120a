//! The protocols of waiters, posts, interrupts, parking and retirement, in every order that loom
//! finds.
#![cfg(loom)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use native_fence::gpu::{
    Delivery, EngineState, ModelClock, ModelEngine, ModelMemory, ModelOptions, Node, NodePolicy,
};
use native_fence::kmd::Driver;
use native_fence::umd::{Device, HwQueue, HwQueueOptions};
use native_fence::{CommandList, Timeout, os};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

#[derive(Debug)]
struct StillClock;

impl ModelClock for StillClock {
    fn ticks(&self) -> u64 {
        1
    }
}

const LONG: u64 = 1_000_000_000;

struct Rig {
    device: Device,
    adapter: Arc<os::Adapter>,
    driver: Arc<Driver>,
    memory: Arc<ModelMemory>,
}

impl Rig {
    fn new(lanes: u32, slice_time: u64) -> Self {
        let engine = ModelEngine::new(ModelOptions {
            lanes,
            current_values: if slice_time == LONG + 1 {
                Delivery::AtSliceEnd
            } else {
                Delivery::AtOnce
            },
            rounds: 1,
            quantum: 1,
            clock: Arc::new(StillClock),
            ..ModelOptions::default()
        });
        let memory = Arc::clone(engine.memory());
        let policy = NodePolicy {
            slice_time: Duration::from_nanos(slice_time),
            idle_window: Duration::ZERO,
            wait_spin: Duration::ZERO,
        };
        let node = Node::new(0, Box::new(engine), policy).unwrap();
        let driver = Driver::new(vec![node]);
        let adapter = os::Adapter::start(driver.clone());
        Self {
            device: Device::open(&adapter),
            adapter,
            driver,
            memory,
        }
    }

    fn queue(&self) -> HwQueue {
        let options = HwQueueOptions {
            ring_capacity: 4,
            ..HwQueueOptions::default()
        };
        self.device.create_hw_queue_with(options).unwrap()
    }

    fn park(&self) {
        while self.driver.engine_state(0) != Some(EngineState::Parked) {
            loom::thread::yield_now();
        }
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert_eq!(self.memory.violations(), []);
        }
    }
}

fn explore(name: &str, scenario: fn()) {
    let executions = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&executions);
    let mut builder = loom::model::Builder::new();
    builder.max_branches = 20_000;
    builder.preemption_bound = builder.preemption_bound.or(Some(2));
    builder.expect_explicit_explore = true;
    let begun = Instant::now();
    builder.check(move || {
        let n = counter.fetch_add(1, Ordering::Relaxed);
        if n % 10000 == 9999 {
            eprintln!("{} {:?}", n, begun.elapsed());
        }
        scenario();
    });
    eprintln!(
        "{name}: {} executions in {:.1} s",
        executions.load(Ordering::Relaxed),
        begun.elapsed().as_secs_f64()
    );
}

#[test]
fn waiter_one_lane() {
    explore("a waiter arms while the engine signals", || {
        let rig = Rig::new(1, LONG);
        let fence = rig.device.create_fence(0).unwrap();
        let mut queue = rig.queue();
        rig.park();
        loom::explore();
        queue.submit(CommandList::new().signal(&fence, 1)).unwrap();
        fence.wait(1, Timeout::Never).unwrap();
        loom::stop_exploring();
        drop(queue);
        drop(fence);
    });
}

#[test]
fn waiter_two_lanes() {
    explore("a waiter arms while the other lane signals", || {
        let rig = Rig::new(2, LONG);
        let fence = rig.device.create_fence(0).unwrap();
        let idle = rig.queue();
        let mut queue = rig.queue();
        rig.park();
        loom::explore();
        queue.submit(CommandList::new().signal(&fence, 1)).unwrap();
        fence.wait(1, Timeout::Never).unwrap();
        loom::stop_exploring();
        drop(idle);
        drop(queue);
        drop(fence);
    });
}

#[test]
fn two_waiters() {
    explore("two waiters, the first answers", || {
        let rig = Rig::new(1, LONG);
        let fence = rig.device.create_fence(0).unwrap();
        let mut queue = rig.queue();
        rig.park();
        loom::explore();
        let second = {
            let fence = fence.clone();
            loom::thread::spawn(move || fence.wait(2, Timeout::Never).unwrap())
        };
        queue.submit(CommandList::new().signal(&fence, 1)).unwrap();
        fence.wait(1, Timeout::Never).unwrap();
        fence.signal(2).unwrap();
        second.join().unwrap();
        loom::stop_exploring();
        drop(queue);
        drop(fence);
    });
}

#[test]
fn record_before_value() {
    explore("a record reaches the CPU before its value", || {
        let rig = Rig::new(1, LONG + 1);
        let f = rig.device.create_fence(0).unwrap();
        let g = rig.device.create_fence(0).unwrap();
        let mut queue = rig.queue();
        let first = {
            let f = f.clone();
            loom::thread::spawn(move || f.wait(1, Timeout::Never).unwrap())
        };
        while f.object().fence().waits() == 0 {
            loom::thread::yield_now();
        }
        rig.park();
        loom::explore();
        queue.submit(CommandList::new().signal(&f, 1)).unwrap();
        queue.submit(CommandList::new().signal(&g, 1)).unwrap();
        g.wait(1, Timeout::Never).unwrap();
        first.join().unwrap();
        loom::stop_exploring();
        let named = rig.adapter.interrupts().fences_named();
        assert!(named <= 2, "{named}");
        drop(queue);
        drop(g);
        drop(f);
    });
}

#[test]
fn park_doorbell() {
    explore("a doorbell while the engine parks", || {
        let rig = Rig::new(1, LONG);
        let fence = rig.device.create_fence(0).unwrap();
        let mut queue = rig.queue();
        rig.park();
        loom::explore();
        queue.submit(CommandList::new().signal(&fence, 1)).unwrap();
        queue.submit(CommandList::new().signal(&fence, 2)).unwrap();
        fence.wait(2, Timeout::Never).unwrap();
        loom::stop_exploring();
        drop(queue);
        drop(fence);
    });
}

#[test]
fn park_self_service() {
    explore("a ring while the engine serves itself and parks", || {
        let rig = Rig::new(1, 0);
        let fence = rig.device.create_fence(0).unwrap();
        let mut queue = rig.queue();
        rig.park();
        loom::explore();
        queue.submit(CommandList::new().signal(&fence, 1)).unwrap();
        queue.submit(CommandList::new().signal(&fence, 2)).unwrap();
        fence.wait(2, Timeout::Never).unwrap();
        loom::stop_exploring();
        drop(queue);
        drop(fence);
    });
}

#[test]
fn park_cpu_signal() {
    explore("a CPU signal while the engine parks", || {
        let rig = Rig::new(1, LONG);
        let from = rig.device.create_fence(0).unwrap();
        let to = rig.device.create_fence(0).unwrap();
        let mut queue = rig.queue();
        rig.park();
        loom::explore();
        queue
            .submit(CommandList::new().wait(&from, 1).signal(&to, 1))
            .unwrap();
        from.signal(1).unwrap();
        to.wait(1, Timeout::Never).unwrap();
        loom::stop_exploring();
        drop(queue);
        drop(from);
        drop(to);
    });
}

#[test]
fn retire() {
    explore("a fence goes while its signal is on its way", || {
        let rig = Rig::new(1, LONG);
        let old = rig.device.create_fence(0).unwrap();
        let mut queue = rig.queue();
        rig.park();
        loom::explore();
        queue.submit(CommandList::new().signal(&old, 7)).unwrap();
        drop(old);
        let new = rig.device.create_fence(0).unwrap();
        new.signal(1).unwrap();
        loom::stop_exploring();
        queue.os().disconnect_doorbell();
        assert_eq!(new.current_value(), 1);
        drop(queue);
        drop(new);
    });
}
