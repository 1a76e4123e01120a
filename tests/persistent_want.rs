//! A driver that is out of memory for good, or that answers with an error which it does not explain: who waits ends with an
//! error that names the call, nothing is done twice, and nothing is freed that may be in use.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod forwarded_engine;
    pub(crate) mod until;
}
mod vulkan_support;

use native_fence::gpu::{
    AddressSpace, Crowd, CutOff, Engine, EngineAddress, EngineLost, EngineMemory, EngineUnit,
    MapError, ModelEngine, ModelOptions, Node, NodePolicy, SliceWork, SpareEngines, SparePolicy,
};
use native_fence::kmd::{Driver, DriverOptions};
use native_fence::os::Features;
use native_fence::shared::{Providers, Region, RegionError};
use native_fence::vulkan::faults::{Kind, VulkanCall, faults};
use native_fence::vulkan::{
    Buffer, CommandBuffer, CommandRecorder, Device, DeviceOptions, Home, HostImport, Instance,
    InstanceOptions, Queue, Reuse, SLICE_BEGIN, SignalError, Submission, SubmitError, Timeline,
    WaitOutcome, choose,
};
use native_fence::{Adapter, AdapterOptions, CommandList, TdrLevel, TdrPolicy, WaitError};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};
use support::forwarded_engine::forwards_to;
use support::until::{LONG, until};
use vulkan_support::{Memfd, PAGE};

const NO_MEMORY: &str = "VK_ERROR_OUT_OF_HOST_MEMORY";
const UNKNOWN: &str = "VK_ERROR_UNKNOWN";

/// Faults and counts are the process's: tests take turns.
struct Turn(#[expect(dead_code, reason = "held, not read")] MutexGuard<'static, ()>);

impl Turn {
    fn take() -> Self {
        static TURN: Mutex<()> = Mutex::new(());
        Self(TURN.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        faults().lift();
    }
}

/// The next use of the call fails, in the manner that `mark` says.
fn plan(call: VulkanCall, mark: &str, error: &str) {
    let (name, at) = (call.name(), faults().uses(call) + 1);
    let fault = format!("{name}#{at}{mark}={error}");
    faults().plan(fault.parse().unwrap());
}

/// Each use fails from now on.
fn plan_from_now_on(call: VulkanCall, error: &str) {
    plan(call, "+", error);
}

/// What each call made that is still there.
fn alive() -> [u64; Kind::ALL.len()] {
    Kind::ALL.map(|kind| faults().alive(kind))
}

fn device() -> (Arc<Device>, Queue) {
    let instance = Instance::with_faults(InstanceOptions::default()).unwrap();
    let adapters = instance.adapters();
    let adapter = choose(&adapters, None).unwrap();
    let device = Device::open(&instance, adapter, DeviceOptions::default()).unwrap();
    let queue = device.queue(0).unwrap();
    (device, queue)
}

fn timelines(device: &Arc<Device>) -> [Timeline; 2] {
    [(); 2].map(|()| Timeline::new(device, 0).unwrap())
}

fn commands(device: &Arc<Device>) -> CommandBuffer {
    let recorder = CommandRecorder::begin(device, Reuse::OneAtATime).unwrap();
    recorder.barrier(SLICE_BEGIN).end().unwrap()
}

/// On a thread of its own, since what never ends is not to hold up the test.
fn ends<T: Send + 'static>(what: &str, run: impl FnOnce() -> T + Send + 'static) -> T {
    let (tell, told) = mpsc::channel();
    let thread = thread::spawn(move || tell.send(run()));
    let told = told.recv_timeout(LONG);
    let told = told.unwrap_or_else(|_| panic!("{what} does not end"));
    // What it had goes with it: the process may end then.
    thread.join().unwrap().unwrap();
    told
}

/// A wait for which the driver has no memory ends with an error that names the call: with its time, or without one by a
/// bound of its own. A want of a moment is none of a wait's, however short; and the device is none the worse for any.
///
/// Kills `a-want-is-borne-for-ever`, `a-want-of-a-moment-ends-a-wait`, `a-wait-gives-up-before-its-time`,
/// `a-lasting-fault-strikes-once`.
#[test]
fn a_wait_for_which_memory_never_comes_ends_and_names_the_call() {
    let _turn = Turn::take();
    let (device, _queue) = device();
    let timeline = Timeline::new(&device, 0).unwrap();
    for error in [NO_MEMORY, "VK_ERROR_OUT_OF_DEVICE_MEMORY"] {
        plan_from_now_on(VulkanCall::WaitSemaphores, error);
        let times = [Some(Duration::ZERO), Some(Duration::from_millis(100)), None];
        for time in times {
            let waits = timeline.clone();
            let began = Instant::now();
            let failure = ends("the wait", move || waits.wait(1, time)).unwrap_err();
            let lasted = began.elapsed();
            assert!(lasted >= time.unwrap_or_default(), "{time:?}: {lasted:?}");
            let text = failure.to_string();
            assert!(text.contains("out of memory (vkWaitSemaphores)"), "{text}");
            assert!(!failure.is_loss());
        }
        faults().lift();
    }
    timeline.signal(1).unwrap();
    plan(VulkanCall::WaitSemaphores, "", NO_MEMORY);
    let strikes = faults().strikes();
    let waited = timeline.wait(1, Some(Duration::ZERO));
    assert_eq!(waited, Ok(WaitOutcome::Reached));
    assert_eq!(faults().strikes(), strikes + 1);
}

/// A queue that the driver cannot wait for goes when what it was given is complete, which it learns in another way, and not
/// before. Then all goes.
///
/// Kills `a-queue-that-is-not-waited-for-is-idle`, `who-cannot-wait-does-not-look`.
#[test]
fn a_queue_that_the_driver_cannot_wait_for_goes_when_it_is_idle() {
    let _turn = Turn::take();
    let cannot_wait = [VulkanCall::QueueWaitIdle, VulkanCall::WaitSemaphores];
    let ways = [
        (&cannot_wait[..1], VulkanCall::WaitSemaphores),
        (&cannot_wait[..], VulkanCall::GetSemaphoreCounterValue),
    ];
    for (fail, asked) in ways {
        for error in [NO_MEMORY, UNKNOWN] {
            let before = alive();
            let (device, mut queue) = device();
            let [gate, done] = timelines(&device);
            let waits = Some((&gate, 1));
            queue.submit_one(None, waits, (&done, 1)).unwrap();
            for call in fail {
                plan_from_now_on(*call, error);
            }
            let uses = faults().uses(asked);
            let (tell, told) = mpsc::channel();
            let looks = done.clone();
            let drops = thread::spawn(move || {
                drop(queue);
                tell.send(looks.value())
            });
            until("the drop asks in another way", || {
                faults().uses(asked) > uses
            });
            gate.signal(1).unwrap();
            let value = told.recv_timeout(LONG);
            assert_eq!(value.expect("the drop does not end"), Ok(1));
            // The timeline that it has goes with it: the process may end then.
            drops.join().unwrap().unwrap();
            faults().lift();
            drop((gate, done, device));
            until("all is destroyed", || alive() == before);
        }
    }
}

/// Where the driver answers none of the calls that tell whether a queue is idle, its drop ends, and nothing is freed that the
/// device may still use, then or later: it goes on with what it was given.
///
/// Kills `what-may-be-in-use-is-freed`, `a-device-in-doubt-goes`, `pages-of-a-device-in-doubt-go`,
/// `a-queue-in-doubt-is-given-out`.
#[test]
fn nothing_is_freed_of_a_device_of_which_nobody_knows_whether_it_is_done() {
    let _turn = Turn::take();
    let (device, mut queue) = device();
    let memory = Arc::new(Memfd::new(PAGE));
    let pages = Arc::downgrade(&memory);
    let import = HostImport::new(&device, memory).unwrap();
    let buffer = Buffer::new(&device, PAGE as u64, Home::CachedSystem, "a buffer").unwrap();
    let commands = commands(&device);
    let [gate, done] = timelines(&device);
    let waits = Some((&gate, 1));
    queue
        .submit_one(Some(&commands), waits, (&done, 1))
        .unwrap();
    let before = alive();
    for call in [
        VulkanCall::QueueWaitIdle,
        VulkanCall::WaitSemaphores,
        VulkanCall::GetSemaphoreCounterValue,
    ] {
        plan_from_now_on(call, UNKNOWN);
    }
    ends("the drop", move || drop(queue));
    faults().lift();

    gate.signal(1).unwrap();
    assert_eq!(done.wait(1, Some(LONG)), Ok(WaitOutcome::Reached));
    assert!(device.queue(0).is_none(), "nobody knew what it runs");
    drop((import, buffer, commands, gate, done, device));
    assert_eq!(alive(), before, "{:?}", Kind::ALL);
    assert!(pages.strong_count() > 0, "pages that it may write");
}

/// An engine whose driver gives up counts as lost, and the adapter says which call answered what; not that a device is lost,
/// which nobody knows. Its waiters end, and so does the adapter, with all that it has.
///
/// Kills `a-lost-engine-names-no-call`, `an-unknown-answer-is-a-loss`.
#[test]
fn an_engine_whose_driver_gives_up_says_why_and_its_adapter_ends() {
    let _turn = Turn::take();
    for (error, told) in [(NO_MEMORY, "out of memory"), (UNKNOWN, "ERROR_UNKNOWN")] {
        let instance = Instance::with_faults(InstanceOptions::default()).unwrap();
        let adapters = instance.adapters();
        let info = choose(&adapters, None).unwrap();
        let before = alive();
        let options = AdapterOptions {
            unit: Some(EngineUnit::Instance),
            // For good.
            tdr: TdrPolicy {
                level: TdrLevel::Off,
                ..TdrPolicy::default()
            },
            ..AdapterOptions::default()
        };
        let adapter = Adapter::open_on(&instance, info, &options).unwrap();
        let device = adapter.create_device();
        let fence = device.create_fence(0).unwrap();
        let mut queue = device.create_hw_queue().unwrap();
        plan_from_now_on(VulkanCall::WaitSemaphores, error);
        // The engine may be found lost before.
        let _submitted = queue.submit(CommandList::new().signal(&fence, 1));
        assert_eq!(fence.wait(2, LONG), Err(WaitError::DeviceLost));
        let why = adapter.engine_failure(0).unwrap();
        assert!(why.contains("vkWaitSemaphores"), "{why}");
        assert!(why.contains(told) && !why.contains("lost"), "{why}");
        ends("the adapter", move || drop((queue, fence, device, adapter)));
        faults().lift();
        until("all is destroyed", || alive() == before);
    }
}

/// An engine whose driver gives up in its first slice, which may run on, comes to no adapter; and it is over before the memory
/// goes that it stores to.
///
/// Kills `an-engine-that-does-not-come-up-outlives-its-memory`.
#[test]
fn an_engine_that_does_not_come_up_goes_before_what_it_stores_to() {
    let _turn = Turn::take();
    let instance = Instance::with_faults(InstanceOptions::default()).unwrap();
    let adapters = instance.adapters();
    let info = choose(&adapters, None).unwrap();
    let before = alive();
    for _ in 0..3 {
        plan(VulkanCall::WaitSemaphores, "", UNKNOWN);
        let opened = Adapter::open_on(&instance, info, &AdapterOptions::default());
        assert!(opened.is_err(), "its engine has executed nothing");
        drop(opened);
        faults().lift();
        until("all is destroyed", || alive() == before);
    }
    drop(Adapter::open_on(&instance, info, &AdapterOptions::default()).unwrap());
}

/// A submission that the driver has taken and answered with an error that leaves that open is not made again, by whomever; and
/// what it names is there until it is complete.
///
/// Kills `what-may-be-submitted-is-submitted-again`, `what-may-be-submitted-is-forgotten`.
#[test]
fn what_may_have_been_submitted_is_not_submitted_again_nor_freed() {
    let _turn = Turn::take();
    for (error, is_list) in [
        (UNKNOWN, false),
        (UNKNOWN, true),
        ("VK_ERROR_DEVICE_LOST", false),
    ] {
        let (device, mut queue) = device();
        let pools = || faults().alive(Kind::CommandPool);
        let before = pools();
        let [gate, done] = timelines(&device);
        let commands = commands(&device);
        plan(VulkanCall::QueueSubmit, ":done", error);
        let (waits, signal) = ((&gate, 1), (&done, 1));
        let told = if is_list {
            queue.submit(&[Submission {
                commands: &[&commands],
                waits: &[waits],
                signals: &[signal],
            }])
        } else {
            queue.submit_one(Some(&commands), Some(waits), signal)
        };
        let submissions = || faults().uses(VulkanCall::QueueSubmit);
        let uses = submissions();
        let again = queue.submit_one(None, None, signal);
        let uses_again = submissions();
        drop(commands);
        let kept = pools();
        // A test that fails waits for it as well.
        gate.signal(1).unwrap();

        let told = told.unwrap_err();
        assert!(told.to_string().contains("vkQueueSubmit"), "{told}");
        assert_eq!(told == SubmitError::DeviceLost, error != UNKNOWN);
        assert_eq!((again, uses_again), (Err(told), uses), "it is done twice");
        assert_eq!(kept, before + 1, "what may run is freed");
        assert_eq!(done.wait(1, Some(LONG)), Ok(WaitOutcome::Reached));
        drop(queue);
        assert_eq!(pools(), before, "what has run is kept");
        faults().lift();
    }
}

/// A signal that the driver has done and answered with an error that leaves that open is not done again: the next one asks
/// what the timeline has.
///
/// Kills `a-signal-believes-its-own-books`.
#[test]
fn a_signal_that_may_have_been_done_is_not_done_again() {
    let _turn = Turn::take();
    let (device, _queue) = device();
    let timeline = Timeline::new(&device, 0).unwrap();
    plan(VulkanCall::SignalSemaphore, ":done", UNKNOWN);
    let told = timeline.signal(1).unwrap_err().to_string();
    assert!(
        told.contains("vkSignalSemaphore answered ERROR_UNKNOWN"),
        "{told}"
    );
    assert_eq!(timeline.value(), Ok(1));
    let again = SignalError::NotForward {
        asked: 1,
        promised: 1,
    };
    assert_eq!(timeline.signal(1), Err(again));
    timeline.signal(2).unwrap();
    assert_eq!(timeline.value(), Ok(2));
}

/// Who cannot wait looks for the value again soon: that the driver has no memory to wait was found out once.
///
/// Kills `each-look-waits-for-a-second`.
#[test]
fn who_cannot_wait_looks_again_soon() {
    let _turn = Turn::take();
    let (device, mut queue) = device();
    let [gate, done] = timelines(&device);
    let waits = Some((&gate, 1));
    queue.submit_one(None, waits, (&done, 1)).unwrap();
    for call in [VulkanCall::QueueWaitIdle, VulkanCall::WaitSemaphores] {
        plan_from_now_on(call, NO_MEMORY);
    }
    let looks = || faults().uses(VulkanCall::GetSemaphoreCounterValue);
    let before = looks();
    let (tell, told) = mpsc::channel();
    let drops = thread::spawn(move || {
        drop(queue);
        tell.send(())
    });
    until("the drop looks", || looks() > before);
    let began = Instant::now();
    until("it looks again", || looks() > before + 10);
    let lasted = began.elapsed();
    // A test that fails ends its thread as well.
    gate.signal(1).unwrap();
    assert_eq!(told.recv_timeout(LONG), Ok(()), "the drop does not end");
    drops.join().unwrap().unwrap();
    // Ten looks, and not a second for each.
    assert!(lasted < Duration::from_secs(5), "{lasted:?}");
}

/// A submission that is answered with the loss of the device leaves open whether what was submitted before is over, and a wait
/// that does not say so either does: nothing of it is freed.
///
/// Kills `a-lost-submission-is-an-end`, `a-queue-ends-by-any-loss`.
#[test]
fn a_loss_that_a_submission_tells_of_is_no_end_of_what_runs() {
    let _turn = Turn::take();
    let (device, mut queue) = device();
    let pools = || faults().alive(Kind::CommandPool);
    let before = pools();
    let [gate, done] = timelines(&device);
    let commands = commands(&device);
    plan(VulkanCall::QueueSubmit, ":done", "VK_ERROR_DEVICE_LOST");
    let told = queue.submit_one(Some(&commands), Some((&gate, 1)), (&done, 1));
    faults().lift();
    assert_eq!(told, Err(SubmitError::DeviceLost));
    drop(commands);
    // Its drop asks by the end of a submission of its own.
    plan_from_now_on(VulkanCall::QueueWaitIdle, UNKNOWN);
    plan(VulkanCall::QueueSubmit, ":done", "VK_ERROR_DEVICE_LOST");
    ends("the drop", move || drop(queue));
    let kept = pools();
    faults().lift();
    // A test that fails waits for it as well.
    gate.signal(1).unwrap();
    assert_eq!(done.wait(1, Some(LONG)), Ok(WaitOutcome::Reached));
    assert_eq!(kept, before + 1, "what may run is freed");
}

/// A command buffer of which the driver does not say whether it is complete is not submitted again.
///
/// Kills `what-cannot-be-read-is-complete`.
#[test]
fn a_command_buffer_whose_end_cannot_be_read_is_in_flight() {
    let _turn = Turn::take();
    let (device, mut queue) = device();
    let [gate, done] = timelines(&device);
    let commands = commands(&device);
    let waits = Some((&gate, 1));
    queue
        .submit_one(Some(&commands), waits, (&done, 1))
        .unwrap();
    plan_from_now_on(VulkanCall::GetSemaphoreCounterValue, UNKNOWN);
    let again = queue.submit_one(Some(&commands), None, (&done, 2));
    faults().lift();
    gate.signal(1).unwrap();
    assert_eq!(again, Err(SubmitError::StillInFlight));
    assert_eq!(done.wait(1, Some(LONG)), Ok(WaitOutcome::Reached));
    queue.submit_one(Some(&commands), None, (&done, 2)).unwrap();
    assert_eq!(done.wait(2, Some(LONG)), Ok(WaitOutcome::Reached));
}

/// What a submission will signal that may have been made, and may not, the CPU does not signal: it would be signalled twice, or
/// back. When it has come, it goes on.
///
/// Kills `a-signal-overtakes-what-may-come`, `a-submission-in-doubt-promises-nothing`, `a-list-in-doubt-promises-nothing`.
#[test]
fn a_signal_does_not_overtake_what_may_have_been_submitted() {
    let _turn = Turn::take();
    for is_list in [false, true] {
        let (device, mut queue) = device();
        let [gate, done] = timelines(&device);
        plan(VulkanCall::QueueSubmit, ":done", UNKNOWN);
        let (waits, signal) = ((&gate, 1), (&done, 5));
        let told = if is_list {
            queue.submit(&[Submission {
                commands: &[],
                waits: &[waits],
                signals: &[signal],
            }])
        } else {
            queue.submit_one(None, Some(waits), signal)
        };
        faults().lift();
        let signals = [done.signal(4), done.raise_to(5), done.signal(6)];
        gate.signal(1).unwrap();
        assert!(matches!(told, Err(SubmitError::Unknown { .. })), "{told:?}");
        let pending = SignalError::StillPending { promised: 5 };
        assert_eq!(signals, [Err(pending); 3]);
        assert_eq!(done.wait(5, Some(LONG)), Ok(WaitOutcome::Reached));
        done.signal(6).unwrap();
        assert_eq!(done.value(), Ok(6));
    }
}

/// What is told to an engine, and what it tells.
#[derive(Debug, Default)]
struct Told {
    /// Its driver answers nothing any more.
    gives_up: AtomicBool,
    /// Then its device is lost for certain.
    is_surely_lost: bool,
    /// How often it was to be cut off from memory.
    cuts: AtomicU64,
    /// What is gone of it, in this order.
    gone: Mutex<Vec<&'static str>>,
}

impl Told {
    fn goes(&self, what: &'static str) {
        self.gone.lock().unwrap().push(what);
    }
}

/// A model whose memory it cannot be cut off from, as that which a GPU has pinned.
#[derive(Debug)]
struct Pinned {
    model: ModelEngine,
    told: Arc<Told>,
}

#[derive(Debug)]
struct PinnedMemory {
    _of: Box<dyn EngineMemory>,
    told: Arc<Told>,
}

impl Pinned {
    fn boxed(told: &Arc<Told>) -> Box<dyn Engine> {
        Box::new(Self {
            model: ModelEngine::new(ModelOptions::default()),
            told: Arc::clone(told),
        })
    }

    fn answer<T>(&self, answer: Result<T, EngineLost>) -> Result<T, EngineLost> {
        if self.told.gives_up.load(Ordering::Acquire) {
            return Err(EngineLost);
        }
        answer
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        self.told.goes("the engine");
    }
}

impl EngineMemory for PinnedMemory {
    fn can_be_cut_off(&self) -> bool {
        false
    }

    fn cut_off(&self, _: CutOff) -> Result<bool, RegionError> {
        self.told.cuts.fetch_add(1, Ordering::Relaxed);
        Ok(false)
    }
}

impl Drop for PinnedMemory {
    fn drop(&mut self) {
        self.told.goes("memory");
    }
}

impl AddressSpace for Pinned {
    fn providers(&self) -> &Arc<Providers> {
        self.model.providers()
    }

    fn map(&self, region: &Arc<Region>) -> Result<EngineAddress, MapError> {
        let EngineAddress { va, memory } = self.model.map(region)?;
        let told = Arc::clone(&self.told);
        let memory = Box::new(PinnedMemory { _of: memory, told });
        Ok(EngineAddress { va, memory })
    }
}

impl Engine for Pinned {
    fn is_surely_lost(&self) -> bool {
        self.told.is_surely_lost
    }

    forwards_to!(model);

    fn start(&self, slice: u64, work: SliceWork) -> Result<(), EngineLost> {
        self.answer(Ok(()))?;
        self.model.start(slice, work)
    }

    fn wait(&self, slice: u64, timeout: Option<Duration>) -> Result<bool, EngineLost> {
        let ended = self.model.wait(slice, timeout);
        self.answer(ended)
    }

    fn has_ended(&self, slice: u64) -> Result<bool, EngineLost> {
        self.answer(self.model.has_ended(slice))
    }
}

/// An adapter of such an engine, with a spare or without.
fn adapter_of(told: &Arc<Told>, has_spare: bool) -> Adapter {
    let (policy, crowd) = (NodePolicy::default(), Arc::new(Crowd::new(1)));
    let node = Node::new(0, Pinned::boxed(told), policy, crowd).unwrap();
    let spares = has_spare.then(|| {
        SpareEngines::new(SparePolicy::OnSuspicion, || {
            Ok(Box::new(ModelEngine::new(ModelOptions::default())))
        })
    });
    let driver = Driver::with_spares(vec![node], DriverOptions::default(), spares);
    // It is lost, and never late.
    let tdr = TdrPolicy {
        delay: Duration::from_secs(600),
        ..TdrPolicy::default()
    };
    Adapter::with_driver_watched(driver, Features::default(), tdr).unwrap()
}

/// TD-22, TD-23: an engine of which nobody knows whether it runs, and that cannot be cut off from its memory, has no successor,
/// which would execute the same packets beside it. One that is lost for certain has.
///
/// Kills `an-engine-in-doubt-has-a-successor`.
#[test]
fn an_engine_in_doubt_that_cannot_be_cut_off_has_no_successor() {
    for is_surely_lost in [true, false] {
        let told = Arc::new(Told {
            is_surely_lost,
            ..Told::default()
        });
        let adapter = adapter_of(&told, true);
        let device = adapter.create_device();
        let fence = device.create_fence(0).unwrap();
        let mut queue = device.create_hw_queue().unwrap();
        told.gives_up.store(true, Ordering::Release);
        // It may be found before.
        let _submitted = queue.submit(CommandList::new().nop());
        let resets = || adapter.node_counters().resets;
        if is_surely_lost {
            until("another has its place", || resets() == 1);
        } else {
            // Its waiters end, as of an adapter that stops.
            let ended = fence.wait(1, LONG);
            assert!(ended.is_err_and(|error| error != WaitError::TimedOut));
            assert_eq!(resets(), 0);
        }
    }
}

/// TD-23: an engine of which nobody knows whether it runs is cut off from what it can be cut off from also where none takes its
/// place: what it had is given out again. Of one that is lost for certain nothing comes any more.
///
/// Kills `an-engine-in-doubt-without-a-successor-is-not-cut-off`.
#[test]
fn an_engine_in_doubt_without_a_successor_is_cut_off() {
    for is_surely_lost in [true, false] {
        let told = Arc::new(Told {
            is_surely_lost,
            ..Told::default()
        });
        let adapter = adapter_of(&told, false);
        let device = adapter.create_device();
        let fence = device.create_fence(0).unwrap();
        let mut queue = device.create_hw_queue().unwrap();
        told.gives_up.store(true, Ordering::Release);
        let _submitted = queue.submit(CommandList::new().nop());
        let ended = fence.wait(1, LONG);
        assert!(ended.is_err_and(|error| error != WaitError::TimedOut));
        let cuts = told.cuts.load(Ordering::Relaxed);
        assert_eq!(cuts == 0, is_surely_lost, "{cuts}");
    }
}

/// A spare whose driver gives up while it is made may run: what it stores to is there until it has gone.
///
/// Kills `a-spare-loses-its-blocks-first`.
#[test]
fn a_spare_in_doubt_goes_before_what_it_may_store_to() {
    let told = Arc::<Told>::default();
    told.gives_up.store(true, Ordering::Release);
    let theirs = Arc::clone(&told);
    let spares = SpareEngines::new(SparePolicy::OnSuspicion, move || Ok(Pinned::boxed(&theirs)));
    let why = spares.take().unwrap_err();
    assert!(why.contains("a new engine executes nothing"), "{why}");
    let gone = told.gone.lock().unwrap().clone();
    assert_eq!(gone, ["the engine", "memory", "memory"]);
}
