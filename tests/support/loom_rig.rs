//! What a scenario for loom is made of: an adapter over model engines whose lanes are threads, and
//! the way to have it explored.

use loom::model::Builder;
use loom::sync::{Condvar, Mutex};
use loom::thread::{self, JoinHandle};
use native_fence::abi::{CrossDoorbells, Delivery, DoorbellStatus, EngineReport, SliceResult};
use native_fence::gpu::{
    Arrival, Crowd, EngineState, MemoryAccess, MemoryObserver, ModelClock, ModelEngine,
    ModelMemory, ModelOptions, ModelThreads, Node, NodePolicy,
};
use native_fence::kmd::{CurrentValueUpdate, Ddi, Driver, DriverOptions, UpdateCurrentValuesFlags};
use native_fence::umd::{Device, HwQueue, HwQueueOptions};
use native_fence::{CrossAdapter, Fence, FenceOptions, Timeout, WaitError, os};
use std::num::NonZeroU32;
use std::ops::RangeInclusive;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

/// Points at which threads may switch in one execution; more is a loop that never ends.
const MOST_BRANCHES: usize = 20_000;

/// Says that each scenario is explored as far as it may be.
const WIDE: &str = "NFENCE_LOOM_WIDE";

/// Says that the tree lacks an ordering, which is to be found.
const TWIN: &str = "NFENCE_LOOM_TWIN";

/// Runs the scenario in every order that needs at most so many switches away from a thread that could go
/// on: the first of `preemptions`, which finds the scenario's twins; with [`WIDE`], and for a twin where the first is 0,
/// the last; or as many as `LOOM_MAX_PREEMPTIONS` says. And says how many orders there were.
///
/// A scenario explores only between [`loom::explore`] and [`loom::stop_exploring`]: how an adapter
/// starts and stops is not what it is about. A wake-up that is lost ends it with loom's `deadlock`.
pub(crate) fn explore(
    preemptions: RangeInclusive<usize>,
    scenario: impl Fn() + Send + Sync + 'static,
) {
    let (usual, wide) = preemptions.into_inner();
    let is = |name| std::env::var_os(name).is_some();
    let preemptions = match usual {
        _ if is(WIDE) => wide,
        // What takes minutes to come to an end is found soon.
        0 if is(TWIN) => wide,
        _ => usual,
    };
    let mut builder = Builder::new();
    builder.max_branches = MOST_BRANCHES;
    builder.preemption_bound = builder.preemption_bound.or(Some(preemptions));
    builder.expect_explicit_explore = true;
    let bound = builder.preemption_bound.unwrap_or_default();
    let executions = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&executions);
    let begun = Instant::now();
    builder.check(move || {
        counter.fetch_add(1, Ordering::Relaxed);
        scenario();
    });
    println!(
        "{}: {} executions of at most {bound} preemptions in {:.1} s",
        std::thread::current().name().unwrap_or("loom"),
        executions.load(Ordering::Relaxed),
        begun.elapsed().as_secs_f64()
    );
}

/// A clock that stands still: a look that finds nothing is idle at once, and no budget is spent
/// but one of nothing.
#[derive(Debug)]
struct StillClock;

impl ModelClock for StillClock {
    fn ticks(&self) -> u64 {
        1
    }
}

/// Holds an engine at the end of its next slice, when it has told nobody yet, or at its next look at a
/// CurrentValue, until the scenario goes on. Beside what is explored: the scenario sees it only where nothing is.
#[derive(Debug, Default)]
struct EndOfSlice {
    holds: AtomicBool,
    holds_look: AtomicBool,
    /// Executions of slices that hear.
    hearings: AtomicU64,
    reached: AtomicBool,
}

impl MemoryObserver for EndOfSlice {
    fn touched(&self, access: MemoryAccess, region: &'static str, offset: u64) {
        // A slice that waits for a ring hears for ever: the others come in between. Not each time, since who was rung
        // for looks twice, and the others need not come between these.
        if region == "cross-doorbells"
            && offset == CrossDoorbells::LINES_IN_USE
            && self.hearings.fetch_add(1, Ordering::Relaxed) % 3 == 2
        {
            thread::yield_now();
        }
        if access == MemoryAccess::Load && region == "fence-cv" {
            while self.holds_look.load(Ordering::Relaxed) {
                self.reached.store(true, Ordering::Relaxed);
                thread::yield_now();
            }
        }
        let results = EngineReport::SLICE_RESULTS..EngineReport::RECORDS;
        let is_reason = results.contains(&offset)
            && (offset - results.start) % SliceResult::BYTES == SliceResult::REASON;
        if access == MemoryAccess::Store && region == "engine-report" && is_reason {
            self.reached.store(true, Ordering::Relaxed);
            while self.holds.load(Ordering::Relaxed) {
                thread::yield_now();
            }
        }
    }
}

/// How a rig is made. Loom has five threads: the scenario's own, and of each node the interrupt's
/// and one for each lane.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RigOptions {
    pub(crate) nodes: u32,
    pub(crate) lanes: u32,
    /// Slices end by their budget as soon as they may, so that two are kept in flight.
    pub(crate) short_slices: bool,
    pub(crate) current_values: Arrival,
    /// Physical doorbells of each node; `None` for enough.
    pub(crate) doorbells: Option<NonZeroU32>,
    /// A slice that waits for a ring of another engine does not end.
    pub(crate) stays_for_rings: bool,
}

impl Default for RigOptions {
    fn default() -> Self {
        Self {
            nodes: 1,
            lanes: 1,
            short_slices: false,
            current_values: Arrival::AtOnce,
            doorbells: None,
            stays_for_rings: false,
        }
    }
}

/// An adapter, and a device on it.
pub(crate) struct Rig {
    pub(crate) device: Device,
    driver: Arc<Driver>,
    memories: Vec<Arc<ModelMemory>>,
    ends: Vec<Arc<EndOfSlice>>,
}

impl Rig {
    pub(crate) fn new(options: RigOptions) -> Self {
        let policy = NodePolicy {
            slice_time: Duration::from_secs(u64::from(!options.short_slices)),
            idle_window: Duration::ZERO,
            company_window: Duration::ZERO,
            crowded_window: Duration::ZERO,
            doorbell_window: Duration::from_secs(u64::from(options.stays_for_rings)),
            delivery: Delivery::Event,
            wait_spin: Duration::ZERO,
        };
        let (mut memories, mut ends) = (Vec::new(), Vec::new());
        let crowd = Arc::new(Crowd::new(options.nodes));
        let nodes = (0..options.nodes).map(|ordinal| {
            let end = Arc::new(EndOfSlice::default());
            ends.push(Arc::clone(&end));
            let engine = ModelEngine::new(ModelOptions {
                observer: Some(end),
                lanes: options.lanes,
                rounds: 1,
                quantum: 1,
                clock: Arc::new(StillClock),
                threads: ModelThreads::OneALane,
                current_values: options.current_values,
                ..ModelOptions::default()
            });
            memories.push(Arc::clone(engine.memory()));
            Node::new(ordinal, Box::new(engine), policy, Arc::clone(&crowd)).unwrap()
        });
        let caps = DriverOptions {
            doorbells: options.doorbells,
            ..DriverOptions::default()
        };
        let driver = Driver::with_options(nodes.collect(), caps);
        let adapter = os::Adapter::start(driver.clone()).unwrap();
        Self {
            device: Device::open(&adapter),
            driver,
            memories,
            ends,
        }
    }

    /// Lets the other threads run until the next slice of an engine ends; only where nothing is
    /// explored.
    pub(crate) fn until_slice_ends(&self, node_ordinal: usize) {
        let end = &self.ends[node_ordinal];
        end.reached.store(false, Ordering::Relaxed);
        end.holds.store(true, Ordering::Relaxed);
        until(|| end.reached.load(Ordering::Relaxed));
        end.holds.store(false, Ordering::Relaxed);
    }

    /// Lets the other threads run until an engine has looked at a CurrentValue and does no more, until
    /// [`Rig::let_go`]; only where nothing is explored.
    pub(crate) fn hold_at_look(&self, node_ordinal: usize) {
        let end = &self.ends[node_ordinal];
        end.reached.store(false, Ordering::Relaxed);
        end.holds_look.store(true, Ordering::Relaxed);
        until(|| end.reached.load(Ordering::Relaxed));
    }

    /// The engine goes on.
    pub(crate) fn let_go(&self, node_ordinal: usize) {
        self.ends[node_ordinal]
            .holds_look
            .store(false, Ordering::Relaxed);
    }

    pub(crate) fn fence(&self) -> Fence {
        self.device.create_fence(0).unwrap()
    }

    /// A fence for whose signals engines ring.
    pub(crate) fn doorbell_fence(&self) -> Fence {
        let options = FenceOptions {
            cross_adapter: Some(CrossAdapter::Doorbell),
            ..FenceOptions::default()
        };
        self.device.create_fence_with(options).unwrap()
    }

    /// The driver is told that a fence is always signaled.
    pub(crate) fn always_signal(&self, fence: &Fence) {
        let native = fence.object().fence();
        let (region, offset) = native.current_value_place();
        let words = region.host().unwrap();
        let update = CurrentValueUpdate {
            fence: native.id(),
            value: 0xFFFF_FFFF,
            word: words.word(offset),
        };
        let flags = UpdateCurrentValuesFlags::ALWAYS_SIGNALED;
        let told = self.driver.update_current_values_from_cpu(&[update], flags);
        told.unwrap();
    }

    /// A queue of node 0 whose doorbell is connected. Of several, one after the other is given to
    /// the next lane.
    pub(crate) fn queue(&self) -> HwQueue {
        self.queue_on(0)
    }

    pub(crate) fn queue_on(&self, node_ordinal: u32) -> HwQueue {
        let options = HwQueueOptions {
            node_ordinal,
            ring_capacity: 16,
            ..HwQueueOptions::default()
        };
        self.device.create_hw_queue_with(options).unwrap()
    }

    /// Lets all engines come to rest.
    pub(crate) fn rest(&self) {
        for node in 0..self.memories.len() as u32 {
            until(|| self.driver.engine_state(node) == Some(EngineState::Parked));
        }
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            for memory in &self.memories {
                assert_eq!(memory.violations(), []);
            }
        }
    }
}

/// Lets the other threads run until it is so; only where nothing is explored.
pub(crate) fn until(is: impl Fn() -> bool) {
    while !is() {
        thread::yield_now();
    }
}

pub(crate) fn until_self_service(queue: &HwQueue) {
    until(|| queue.doorbell_status() == DoorbellStatus::Connected);
}

/// Whom a future wakes: a flag, and who sleeps for it.
#[derive(Debug)]
pub(crate) struct Woken {
    is_woken: Mutex<bool>,
    woken: Condvar,
}

impl Woken {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            is_woken: Mutex::new(false),
            woken: Condvar::new(),
        })
    }

    pub(crate) fn poll<F: Future + Unpin>(self: &Arc<Self>, future: &mut F) -> Poll<F::Output> {
        let waker = Waker::from(Arc::clone(self));
        Pin::new(future).poll(&mut Context::from_waker(&waker))
    }
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        *self.is_woken.lock().unwrap() = true;
        self.woken.notify_one();
    }
}

/// Polls a future on this thread until it is ready; a wake-up that is lost is a deadlock.
pub(crate) fn block_on<F: Future + Unpin>(mut future: F) -> F::Output {
    let woken = Woken::new();
    loop {
        if let Poll::Ready(output) = woken.poll(&mut future) {
            return output;
        }
        let mut is_woken = woken.is_woken.lock().unwrap();
        while !*is_woken {
            is_woken = woken.woken.wait(is_woken).unwrap();
        }
        *is_woken = false;
    }
}

/// A thread that waits for `value`, and then looks whether it is there, as it is where values arrive
/// at once.
pub(crate) fn waiter(fence: &Fence, value: u64) -> JoinHandle<Result<bool, WaitError>> {
    let fence = fence.clone();
    thread::spawn(move || {
        let outcome = fence.wait(value, Timeout::Never);
        outcome.map(|()| fence.current_value() >= value)
    })
}

/// The same, come to stand in the fence's list; only where nothing is explored.
pub(crate) fn armed_waiter(fence: &Fence, value: u64) -> JoinHandle<Result<bool, WaitError>> {
    let thread = waiter(fence, value);
    until(|| fence.object().fence().waits() > 0);
    thread
}
