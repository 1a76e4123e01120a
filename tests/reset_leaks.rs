//! A thousand resets leave nothing behind (TD-14): no thread, no descriptor, no mapping, and no memory that
//! grows with them.
//!
//! What is counted is the whole program's: each test here runs in a process of its own.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod left_out;
    pub(crate) mod until;
}

use native_fence::gpu::{
    AddressSpace, Crowd, Engine, EngineAddress, EngineCaps, EngineLost, EngineUnit, GpuVa,
    Injection, MapError, ModelEngine, ModelOptions, Node, NodePolicy, SliceWork, SpareEngines,
    SparePolicy,
};
use native_fence::kmd::{Driver, DriverOptions};
use native_fence::os::Features;
use native_fence::shared::{Providers, Region};
use native_fence::vulkan::validation;
use native_fence::{Adapter, AdapterOptions, CommandList, TdrPolicy, WaitError};
use std::collections::VecDeque;
use std::fs::{read_dir, read_to_string};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use support::left_out::opened_or_left_out;
use support::until::{LONG, until};

/// Resets after which the program has all that it needs for more of them.
const WARM_UP: usize = 20;

/// None is ever suspected, which would have a spare made in advance; each loss is recovered from at once.
fn tdr() -> TdrPolicy {
    TdrPolicy {
        delay: Duration::from_secs(600),
        limit_count: u32::MAX,
        ..TdrPolicy::default()
    }
}

/// What the program has, as the kernel says.
#[derive(Clone, Copy, Debug)]
struct Holdings {
    threads: usize,
    descriptors: usize,
    mappings: usize,
    resident_kib: usize,
}

impl Holdings {
    fn now() -> Self {
        let count = |folder| read_dir(folder).unwrap().count();
        let status = read_to_string("/proc/self/status").unwrap();
        let mut lines = status.lines();
        let resident = lines.find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        Self {
            threads: count("/proc/self/task"),
            descriptors: count("/proc/self/fd"),
            mappings: read_to_string("/proc/self/maps").unwrap().lines().count(),
            resident_kib: resident.trim().trim_end_matches(" kB").parse().unwrap(),
        }
    }
}

/// Whether a thread still ends an engine that was given up.
fn is_reaping() -> bool {
    let tasks = read_dir("/proc/self/task").unwrap();
    let names = tasks.map(|task| read_to_string(task.unwrap().path().join("comm")));
    // One that has ended meanwhile has no name.
    names.flatten().any(|name| name.trim_end() == "nf-reaper")
}

fn until_reaped() {
    until("engines that were given up have ended", || !is_reaping());
}

/// Resets an engine again and again, with a device for each, whose packet finds the loss; `lose` loses the
/// device of the engine that the first node has by then. Threads and descriptors are as many as before;
/// mappings and KiB are more by less than these bounds, which each a reset would pass.
fn resets_leave_nothing(
    adapter: &Adapter,
    resets: usize,
    (most_mappings, most_kib): (usize, usize),
    mut lose: impl FnMut(),
) {
    let mut reset = |number| {
        let device = adapter.create_device();
        let mut queue = device.create_hw_queue().unwrap();
        lose();
        let value = queue.submit(CommandList::new().nop()).unwrap();
        // In error where its packet was under way; done where it was not, maybe by the engine before.
        match queue.progress_fence().wait(value, LONG) {
            Ok(()) | Err(WaitError::DeviceLost) => {}
            Err(other) => panic!("{other}"),
        }
        until("the reset is noted", || {
            adapter.os().records().len() == number
        });
    };
    (1..=WARM_UP).for_each(&mut reset);
    until_reaped();
    let before = Holdings::now();
    (WARM_UP + 1..=WARM_UP + resets).for_each(&mut reset);
    until_reaped();
    until("its threads and descriptors are gone", || {
        let now = Holdings::now();
        now.threads <= before.threads && now.descriptors <= before.descriptors
    });
    let after = Holdings::now();
    println!("after {resets} resets: {before:?}, {after:?}");
    assert_eq!(
        adapter.node_counters().resets,
        (WARM_UP + resets) as u64,
        "each is a reset"
    );
    assert!(after.mappings < before.mappings + most_mappings);
    assert!(after.resident_kib < before.resident_kib + most_kib);
}

/// A model whose device is lost when a test says so.
#[derive(Debug)]
struct Losable {
    model: ModelEngine,
    is_lost: Arc<AtomicBool>,
}

/// What loses each of the engines that were made, oldest first.
type Losses = Arc<Mutex<VecDeque<Arc<AtomicBool>>>>;

impl Losable {
    fn boxed(losses: &Losses) -> Box<dyn Engine> {
        let is_lost = Arc::new(AtomicBool::new(false));
        losses.lock().unwrap().push_back(Arc::clone(&is_lost));
        let model = ModelEngine::new(ModelOptions::default());
        Box::new(Self { model, is_lost })
    }

    fn unless_lost<T>(&self, answer: Result<T, EngineLost>) -> Result<T, EngineLost> {
        if self.is_lost.load(Ordering::Acquire) {
            return Err(EngineLost);
        }
        answer
    }
}

impl AddressSpace for Losable {
    fn providers(&self) -> &Arc<Providers> {
        self.model.providers()
    }

    fn map(&self, region: &Arc<Region>) -> Result<EngineAddress, MapError> {
        self.model.map(region)
    }
}

impl Engine for Losable {
    fn attach(&mut self, control: GpuVa, before: u64) -> Result<(), MapError> {
        self.model.attach(control, before)
    }

    fn start(&self, slice: u64, work: SliceWork) -> Result<(), EngineLost> {
        self.unless_lost(Ok(()))?;
        self.model.start(slice, work)
    }

    fn wait(&self, slice: u64, timeout: Option<Duration>) -> Result<bool, EngineLost> {
        let ended = self.model.wait(slice, timeout);
        self.unless_lost(ended)
    }

    fn has_ended(&self, slice: u64) -> Result<bool, EngineLost> {
        self.unless_lost(self.model.has_ended(slice))
    }

    fn abandon(&self, slice: u64) {
        self.model.abandon(slice);
    }

    fn prepare_verbose(&self) -> Result<(), MapError> {
        self.model.prepare_verbose()
    }

    fn caps(&self) -> EngineCaps {
        self.model.caps()
    }

    fn base_ticks(&self) -> u64 {
        self.model.base_ticks()
    }

    fn clock_bits(&self) -> u64 {
        self.model.clock_bits()
    }

    fn ticks_in(&self, time: Duration) -> u64 {
        self.model.ticks_in(time)
    }
}

/// TD-14: a thousand resets of a model's engine.
///
/// Kills `an-engine-given-up-is-kept`.
#[test]
fn td_14_a_thousand_resets_leave_nothing_behind() {
    let losses = Losses::default();
    let engine = Losable::boxed(&losses);
    let policy = NodePolicy::default();
    let node = Node::new(0, engine, policy, Arc::new(Crowd::new(1))).unwrap();
    let theirs = Arc::clone(&losses);
    let spares = SpareEngines::new(SparePolicy::OnSuspicion, move || {
        Ok(Losable::boxed(&theirs))
    });
    let driver = Driver::with_spares(vec![node], DriverOptions::default(), Some(spares));
    let adapter = Adapter::with_driver_watched(driver, Features::default(), tdr()).unwrap();
    resets_leave_nothing(&adapter, 1000, (200, 32 << 10), || {
        // The engine that the node has: those before it were lost, and none is made before it is needed.
        let oldest = losses.lock().unwrap().pop_front().unwrap();
        oldest.store(true, Ordering::Release);
    });
}

/// TD-14, on the device: as many resets as fit into a test, of engines that have an instance and a device of
/// Vulkan each. The bench `reset` makes as many as one likes.
///
/// Kills `an-engine-given-up-is-kept`.
#[test]
fn td_14_resets_of_a_vulkan_device_leave_nothing_behind() {
    const ARENAS: &str = "MALLOC_ARENA_MAX";
    // Else the allocator keeps what each of a driver's threads has freed for that thread's arena.
    if std::env::var(ARENAS).is_err() {
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args([
            "td_14_resets_of_a_vulkan_device_leave_nothing_behind",
            "--exact",
            "--nocapture",
        ]);
        assert!(child.env(ARENAS, "1").status().unwrap().success());
        return;
    }
    let injection = Injection::new(1).unwrap();
    let opened = Adapter::open(&AdapterOptions {
        unit: Some(EngineUnit::Instance),
        injection: Some(injection.clone()),
        tdr: tdr(),
        ..AdapterOptions::default()
    });
    let Some(adapter) = opened_or_left_out(opened) else {
        return;
    };
    resets_leave_nothing(&adapter, 25, (25, 25 << 10), || {
        injection.device_loss(0).lose();
    });
    drop(adapter);
    assert_eq!(validation::messages(), Vec::<String>::new());
}
