//! A thousand resets leave nothing behind (TD-14): no thread, no descriptor, no child, no mapping, and no memory
//! that grows with them.
//!
//! On the device as many are made as a suite has time for. `NFENCE_RESETS=1000` makes so many of each sort, which
//! takes a quarter of an hour or more: `scripts/test --quick -- --profile long --test reset_leaks` waits for it.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod forwarded_engine;
    pub(crate) mod holdings;
    pub(crate) mod left_out;
    pub(crate) mod resets;
    pub(crate) mod until;
}

use native_fence::gpu::{
    AddressSpace, Crowd, Engine, EngineAddress, EngineLost, EngineUnit, Injection, LongKernel,
    MapError, ModelEngine, ModelOptions, Node, NodePolicy, SliceWork, SpareEngines, SparePolicy,
};
use native_fence::kmd::{Driver, DriverOptions};
use native_fence::os::{Features, Record};
use native_fence::shared::{Providers, Region};
use native_fence::vulkan::validation;
use native_fence::{Adapter, AdapterOptions, CommandList, TdrPolicy, WaitError};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::VecDeque;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use support::forwarded_engine::forwards_to;
use support::holdings::{Holdings, has_thread};
use support::left_out::opened_or_left_out;
use support::resets::resets_or;
use support::until::{LONG, until};

/// Resets after which the program has all that it needs for more of them.
const WARM_UP: usize = 20;
/// Between two looks that are printed.
const SHOWN: usize = 50;
/// Mappings and memory more than those by which a program that leaks nothing may grow.
const MOST_MAPPINGS: usize = 100;
const MOST_KIB: usize = 32 << 10;

/// None is ever suspected, which would have a spare made in advance; each loss is recovered from at once.
fn tdr() -> TdrPolicy {
    TdrPolicy {
        delay: Duration::from_secs(600),
        limit_count: u32::MAX,
        ..TdrPolicy::default()
    }
}

/// Engines that were given up have ended, and the next spare is there, if one is kept.
fn until_quiet(adapter: &Adapter, spares: SparePolicy) {
    until("engines that were given up have ended", || {
        adapter.engines_given_up() == 0 && !has_thread("nf-reaper")
    });
    until("a spare is kept", || {
        spares == SparePolicy::OnSuspicion || adapter.has_spare()
    });
}

/// Resets an engine again and again, with a device for each, whose packet finds what `strike` has done to the
/// engine that the first node has by then; where that was too little, again. Threads, descriptors and children
/// are as many as before; mappings and memory are more by less than a fixed amount, however many resets there
/// were.
fn resets_leave_nothing(
    adapter: &Adapter,
    spares: SparePolicy,
    resets: usize,
    mut strike: impl FnMut(),
) {
    let noted = || adapter.os().records().len();
    let mut reset = || {
        let before = noted();
        let device = adapter.create_device();
        let mut queue = device.create_hw_queue().unwrap();
        while noted() == before {
            strike();
            let value = queue.submit(CommandList::new().nop());
            // In error where its packet was under way; done where it was not, maybe by the engine before.
            match value.map(|value| queue.progress_fence().wait(value, LONG)) {
                Ok(Ok(())) => {}
                Ok(Err(WaitError::DeviceLost)) | Err(_) => {
                    until("the reset is noted", || noted() > before);
                }
                Ok(Err(other)) => panic!("{other}"),
            }
        }
        // One that still runs takes a core from the next.
        until_quiet(adapter, spares);
    };
    (0..WARM_UP).for_each(|_| reset());
    let (before, begin) = (Holdings::now(), Instant::now());
    for number in 1..=resets {
        reset();
        if number % SHOWN == 0 {
            println!(
                "{number} resets, {:.1?}: {:?}",
                begin.elapsed(),
                Holdings::now()
            );
        }
    }
    let time = begin.elapsed();
    until("its threads, descriptors and children are gone", || {
        let now = Holdings::now();
        now.threads <= before.threads
            && now.descriptors <= before.descriptors
            && now.children <= before.children
    });
    let after = Holdings::now();
    println!("{resets} resets in {time:.1?}: {before:?}, {after:?}");
    let is_wide = |record: &Record| record.code == Record::VIDEO_TDR_TIMEOUT_DETECTED;
    until("each is noted", || {
        // Where one was struck again as it began, the OS's packet is found there twice: the engine is reset, and
        // then the adapter, which is one record.
        let records = adapter.os().records();
        let twice = records.iter().filter(|record| is_wide(record)).count();
        let resets = adapter.node_counters().resets as usize;
        (records.len()..=records.len() + twice).contains(&resets)
    });
    assert!(noted() >= WARM_UP + resets, "each is a reset");
    // Less than one a reset, and little more than none.
    assert!(after.mappings < before.mappings + MOST_MAPPINGS.min(10 + resets / 2));
    assert!(after.resident_kib < before.resident_kib + MOST_KIB);
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
    forwards_to!(model);

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
    resets_leave_nothing(&adapter, SparePolicy::OnSuspicion, 1000, || {
        // The engine that the node has: those before it were lost, and none is made before it is needed.
        if let Some(oldest) = losses.lock().unwrap().pop_front() {
            oldest.store(true, Ordering::Release);
        }
    });
}

/// Whether this is the process that does the test `test`, in which the allocator keeps what is freed in one
/// place: else it does for each thread of a driver. Where it is not, that has done it.
fn is_by_itself(test: &str) -> bool {
    const ARENAS: &str = "MALLOC_ARENA_MAX";
    if std::env::var(ARENAS).is_ok() {
        return true;
    }
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args([test, "--exact", "--nocapture"]);
    if std::env::var_os("NFENCE_RESETS").is_some() {
        // The validation layers keep something of each instance, some 60 KiB: too much of a thousand.
        child.env("NFENCE_VALIDATION", "0");
    }
    assert!(child.env(ARENAS, "1").status().unwrap().success());
    false
}

/// An adapter of one engine, and what is put in its way; none without a device.
fn opened(tdr: TdrPolicy) -> Option<(Adapter, Arc<Injection>)> {
    let injection = Injection::new(1).unwrap();
    let opened = Adapter::open(&AdapterOptions {
        unit: Some(EngineUnit::Instance),
        injection: Some(Arc::clone(&injection)),
        spares: SparePolicy::Kept,
        tdr,
        ..AdapterOptions::default()
    });
    Some((opened_or_left_out(opened)?, injection))
}

/// TD-14, on the device: resets of engines that have an instance and a device of Vulkan each, which is lost.
///
/// Kills `an-engine-given-up-is-kept`.
#[test]
fn td_14_resets_of_a_lost_vulkan_device_leave_nothing_behind() {
    if !is_by_itself("td_14_resets_of_a_lost_vulkan_device_leave_nothing_behind") {
        return;
    }
    let Some((adapter, injection)) = opened(tdr()) else {
        return;
    };
    resets_leave_nothing(&adapter, SparePolicy::Kept, resets_or(30), || {
        injection.device_loss(0).lose();
    });
    drop(adapter);
    assert_eq!(validation::messages(), Vec::<String>::new());
}

/// TD-14: the same of engines that hang: a kernel keeps each of them until it has been given up, and hardly
/// longer.
///
/// Kills `an-engine-given-up-is-kept`.
#[test]
fn td_14_resets_of_a_hung_engine_leave_nothing_behind() {
    if !is_by_itself("td_14_resets_of_a_hung_engine_leave_nothing_behind") {
        return;
    }
    let tdr = TdrPolicy {
        delay: Duration::from_millis(100),
        ..tdr()
    };
    let Some((adapter, injection)) = opened(tdr) else {
        return;
    };
    let mut kernel = LongKernel {
        workgroups: 100,
        passes: 60_000,
    };
    let mut before = (0, 0);
    resets_leave_nothing(&adapter, SparePolicy::Kept, resets_or(20), || {
        let (done, resets) = (injection.workgroups_done(0), adapter.node_counters().resets);
        // It was over before the engine was given up: 625 ms, in 500 of which that is asked whether it goes on.
        if resets == before.1 && done >= before.0 + u64::from(kernel.workgroups) {
            kernel.workgroups *= 2;
        }
        before = (done, resets);
        injection.before_next_slice(0, kernel);
    });
    drop(adapter);
    assert_eq!(validation::messages(), Vec::<String>::new());
}

/// TD-14: the same of engines in processes of their own, each of which is killed.
///
/// Kills `a-killed-child-is-never-asked-about`.
#[test]
fn td_14_resets_of_killed_engine_processes_leave_nothing_behind() {
    if !is_by_itself("td_14_resets_of_killed_engine_processes_leave_nothing_behind") {
        return;
    }
    let opened = Adapter::open(&AdapterOptions {
        unit: Some(EngineUnit::Process),
        engine_program: Some(PathBuf::from(env!("CARGO_BIN_EXE_nfence"))),
        spares: SparePolicy::Kept,
        tdr: tdr(),
        ..AdapterOptions::default()
    });
    let Some(adapter) = opened_or_left_out(opened) else {
        return;
    };
    resets_leave_nothing(&adapter, SparePolicy::Kept, resets_or(30), || {
        let process = adapter.engine_process(0).unwrap();
        // One that has ended since is as good as killed.
        let _ = kill_process(Pid::from_raw(process.cast_signed()).unwrap(), Signal::KILL);
    });
}
