//! An engine that runs on while it is cut off, and afterwards: what it executes between two cuts takes effect once
//! (TD-22), and what it stores when another has taken its place changes nothing (TD-23).
//!
//! A model engine is held at a packet until its device is lost, and goes on, to the end of its slices, when it has
//! been cut off from so much of its memory; so each pair of cuts has all between them that can be there. Or it goes
//! on when the test says so.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod queue_of;
    pub(crate) mod until;
}

use native_fence::abi::{LogEntry, PACKET_BYTES, Packet, WordGroup};
use native_fence::gpu::{
    AddressSpace, Crowd, CutOff, Engine, EngineAddress, EngineCaps, EngineLost, EngineMemory,
    EngineState, GpuVa, MapError, MemoryAccess, MemoryObserver, ModelEngine, ModelOptions, Node,
    NodePolicy, SliceWork, SpareEngines, SparePolicy,
};
use native_fence::kmd::{Ddi, Driver, DriverOptions};
use native_fence::os::{Features, Record};
use native_fence::shared::{Providers, Region, RegionError};
use native_fence::{Adapter, Allocation, CommandList, Fence, HwQueue, TdrPolicy, WaitError};
use std::sync::{Arc, Condvar, Mutex, RwLock, RwLockReadGuard};
use std::time::{Duration, Instant};
use support::queue_of::queue_of;
use support::until::{LONG, until};

#[derive(Debug, Default)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "what a test sets and what it sees, one a name"
)]
struct State {
    /// The engine stops at whatever it touches, when it begins to run.
    begins_held: bool,
    /// It does.
    has_begun: bool,
    /// The engine stops when it reads a packet.
    holds: bool,
    /// So many others come before it.
    passes: u32,
    /// It has.
    is_held: bool,
    /// The last group of memory that it was cut off from.
    cut: &'static str,
    /// The last slice that it was given.
    started: u64,
    /// Its device is lost.
    is_lost: bool,
    /// Regions that it had mapped, and has no more.
    unmapped: u64,
}

/// Holds an engine at the next packet that it reads, until it has been cut off from all of a group of memory, if
/// one is named.
#[derive(Debug)]
struct Hold {
    until_cut: Option<WordGroup>,
    state: Mutex<State>,
    changed: Condvar,
}

impl Hold {
    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock().unwrap());
        self.changed.notify_all();
    }

    fn wait(&self, until: impl Fn(&State) -> bool) {
        let state = self.state.lock().unwrap();
        let is_open = |state: &mut State| !until(state);
        let waited = self.changed.wait_timeout_while(state, LONG, is_open);
        assert!(!waited.unwrap().1.timed_out());
    }
}

impl MemoryObserver for Hold {
    fn touched(&self, access: MemoryAccess, region: &'static str, offset: u64) {
        // After its control word, and nothing else of a ring that an engine reads lies there.
        let is_packet =
            region == WordGroup::Ring.name() && offset % PACKET_BYTES == Packet::LOG_NUMBER;
        let mut state = self.state.lock().unwrap();
        if state.begins_held {
            state.has_begun = true;
            self.changed.notify_all();
            let waited = self.changed.wait_while(state, |state| state.begins_held);
            state = waited.unwrap();
            state.has_begun = false;
        }
        if access == MemoryAccess::Load && is_packet && state.holds {
            if let Some(left) = state.passes.checked_sub(1) {
                state.passes = left;
                return;
            }
            state.is_held = true;
            self.changed.notify_all();
            let waited = self.changed.wait_while(state, |state| state.holds);
            waited.unwrap().is_held = false;
        }
    }
}

/// The model that is held.
#[derive(Debug)]
struct Held {
    /// Written when the node attaches it, and ended when the node lets go of it.
    model: RwLock<Option<ModelEngine>>,
    providers: Arc<Providers>,
    hold: Arc<Hold>,
}

impl Held {
    fn model(&self) -> RwLockReadGuard<'_, Option<ModelEngine>> {
        self.model.read().unwrap()
    }

    fn check_up(&self) -> Result<(), EngineLost> {
        let is_lost = self.hold.state.lock().unwrap().is_lost;
        (!is_lost).then_some(()).ok_or(EngineLost)
    }
}

/// Between two looks whether it is lost.
const LOOK: Duration = Duration::from_millis(20);

/// What the node owns: the model ends with it.
#[derive(Debug)]
struct Handle(Arc<Held>);

impl Drop for Handle {
    fn drop(&mut self) {
        // By itself: it waits for what still runs.
        let model = self.0.model.write().unwrap().take();
        drop(model);
    }
}

/// What it has of a region.
#[derive(Debug)]
struct Memory {
    name: &'static str,
    of: Box<dyn EngineMemory>,
    engine: Arc<Held>,
}

impl EngineMemory for Memory {
    fn cut_off(&self, cut: CutOff) -> Result<bool, RegionError> {
        let hold = &self.engine.hold;
        let (before, started) = {
            let mut state = hold.state.lock().unwrap();
            let before = std::mem::replace(&mut state.cut, self.name);
            (before, state.started)
        };
        let is_due = |group: WordGroup| before == group.name() && before != self.name;
        if hold.until_cut.is_some_and(is_due) {
            hold.change(|state| state.holds = false);
            // To the end of what it finds.
            let ended = self
                .engine
                .model()
                .as_ref()
                .unwrap()
                .wait(started, Some(LONG));
            assert_eq!(ended, Ok(true));
        }
        self.of.cut_off(cut)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        self.engine.hold.change(|state| state.unmapped += 1);
    }
}

impl AddressSpace for Handle {
    fn providers(&self) -> &Arc<Providers> {
        &self.0.providers
    }

    fn map(&self, region: &Arc<Region>) -> Result<EngineAddress, MapError> {
        let EngineAddress { va, memory } = self.0.model().as_ref().unwrap().map(region)?;
        let memory = Memory {
            name: region.name(),
            of: memory,
            engine: Arc::clone(&self.0),
        };
        let memory = Box::new(memory);
        Ok(EngineAddress { va, memory })
    }
}

impl Engine for Handle {
    fn attach(&mut self, control: GpuVa, before: u64) -> Result<(), MapError> {
        let mut model = self.0.model.write().unwrap();
        model.as_mut().unwrap().attach(control, before)
    }

    fn start(&self, slice: u64, work: SliceWork) -> Result<(), EngineLost> {
        self.0.check_up()?;
        self.0.hold.change(|state| state.started = slice);
        self.0.model().as_ref().unwrap().start(slice, work)
    }

    fn wait(&self, slice: u64, timeout: Option<Duration>) -> Result<bool, EngineLost> {
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        loop {
            // Nobody tells that it is lost but its next call.
            let left = deadline.map(|end| end.saturating_duration_since(Instant::now()));
            let part = left.unwrap_or(LOOK).min(LOOK);
            let ended = self.0.model().as_ref().unwrap().wait(slice, Some(part))?;
            self.0.check_up()?;
            if ended || left == Some(Duration::ZERO) {
                return Ok(ended);
            }
        }
    }

    fn has_ended(&self, slice: u64) -> Result<bool, EngineLost> {
        self.0.check_up()?;
        self.0.model().as_ref().unwrap().has_ended(slice)
    }

    fn abandon(&self, slice: u64) {
        self.0.model().as_ref().unwrap().abandon(slice);
    }

    fn prepare_doorbells(&self) -> Result<(), MapError> {
        self.0.model().as_ref().unwrap().prepare_doorbells()
    }

    fn prepare_verbose(&self) -> Result<(), MapError> {
        self.0.model().as_ref().unwrap().prepare_verbose()
    }

    fn caps(&self) -> EngineCaps {
        self.0.model().as_ref().unwrap().caps()
    }

    fn base_ticks(&self) -> u64 {
        self.0.model().as_ref().unwrap().base_ticks()
    }

    fn clock_bits(&self) -> u64 {
        self.0.model().as_ref().unwrap().clock_bits()
    }

    fn ticks_in(&self, time: Duration) -> u64 {
        self.0.model().as_ref().unwrap().ticks_in(time)
    }
}

/// An adapter of one engine, which goes on when it was cut off from so much, and has a spare.
fn opened(until_cut: Option<WordGroup>) -> (Adapter, Arc<Driver>, Arc<Hold>) {
    let spares = SpareEngines::new(SparePolicy::OnSuspicion, || {
        Ok(Box::new(ModelEngine::new(ModelOptions::default())))
    });
    opened_with(until_cut, Some(spares))
}

fn opened_with(
    until_cut: Option<WordGroup>,
    spares: Option<Arc<SpareEngines>>,
) -> (Adapter, Arc<Driver>, Arc<Hold>) {
    let hold = Arc::new(Hold {
        until_cut,
        state: Mutex::default(),
        changed: Condvar::new(),
    });
    let model = ModelEngine::new(ModelOptions {
        // Its queues side by side.
        lanes: 2,
        observer: Some(Arc::clone(&hold) as Arc<dyn MemoryObserver>),
        ..ModelOptions::default()
    });
    let engine = Handle(Arc::new(Held {
        providers: Arc::clone(model.providers()),
        model: RwLock::new(Some(model)),
        hold: Arc::clone(&hold),
    }));
    let crowd = Arc::new(Crowd::new(1));
    let node = Node::new(0, Box::new(engine), NodePolicy::default(), crowd).unwrap();
    let driver = Driver::with_spares(vec![node], DriverOptions::default(), spares);
    // It is lost, and never late.
    let tdr = TdrPolicy {
        delay: Duration::from_secs(600),
        ..TdrPolicy::default()
    };
    let features = Features::default();
    let adapter = Adapter::with_driver_watched(driver.clone(), features, tdr).unwrap();
    (adapter, driver, hold)
}

/// A queue of a device of its own, which waits for `begin` to go on.
struct Player {
    begin: Fence,
    queue: HwQueue,
    fences: [Fence; 2],
    memory: Allocation,
}

impl Player {
    fn new(adapter: &Adapter) -> Self {
        let device = adapter.create_device();
        let fence = || device.create_fence(0).unwrap();
        let mut player = Self {
            begin: fence(),
            queue: queue_of(&device, 0),
            fences: [fence(), fence()],
            memory: device.create_allocation(4096).unwrap(),
        };
        let mut list = CommandList::new();
        let ([one, two], memory) = (&player.fences, &player.memory);
        list.wait(&player.begin, 1).nop().nop().nop().signal(one, 1);
        list.wait(one, 1).signal(two, 7).nop().nop().signal(two, 8);
        player.queue.submit(&list).unwrap();
        let mut list = CommandList::new();
        list.fill(memory, 0..memory.bytes(), 5).signal(one, 2);
        player.queue.submit(&list).unwrap();
        player
    }

    fn stands(&self, driver: &Driver) -> bool {
        let queue = self.queue.os().handle();
        driver.hw_queue_wait(queue).is_some()
    }

    /// Every packet took effect once, and the queue goes on.
    fn expect_all_once(&mut self) {
        let Self {
            queue,
            fences: [one, two],
            memory,
            ..
        } = self;
        assert_eq!(queue.progress_fence().wait(2, LONG), Ok(()));
        assert_eq!((one.current_value(), two.current_value()), (2, 8));
        let mut words = [0; 512];
        memory.read(0, &mut words);
        assert_eq!(words, [5; 512]);
        let (signals, waits) = (queue.read_signal_log(), queue.read_wait_log());
        let (signals, waits) = (signals.unwrap(), waits.unwrap());
        assert_eq!((signals.lost, waits.lost), (0, 0));
        let values = |entries: &[LogEntry]| -> Vec<u64> {
            entries.iter().map(|entry| entry.fence_value).collect()
        };
        // With the progress of each submission behind it.
        assert_eq!(values(&signals.entries), [1, 7, 8, 1, 2, 2]);
        assert_eq!(values(&waits.entries), [1, 1]);
        let next = queue.submit(CommandList::new().signal(two, 9)).unwrap();
        assert_eq!(queue.progress_fence().wait(next, LONG), Ok(()));
        assert_eq!(queue.error(), None);
    }
}

/// TD-22: at whatever packet an engine is lost, and wherever its cuts find it when it runs on, every packet of a
/// queue that is not blamed takes effect once, with one log entry if it is one that is logged, whether or not it
/// leaves a mark of its own.
///
/// Kills `a-cut-engine-keeps-its-packets`, `rings-are-cut-after-logs`, `rings-are-cut-before-saved-states`,
/// `values-are-cut-before-logs` and `a-ring-loses-the-operands-too`.
#[test]
fn td_22_what_is_executed_between_two_cuts_takes_effect_once() {
    const GROUPS: [WordGroup; 6] = [
        WordGroup::SaveArea,
        WordGroup::EngineReport,
        WordGroup::Ring,
        WordGroup::Progress,
        WordGroup::Log,
        WordGroup::CurrentValues,
    ];
    let cases = GROUPS
        .into_iter()
        .flat_map(|group| (0..20).map(move |passes| (group, passes)));
    for (until_cut, passes) in cases {
        let name = until_cut.name();
        println!("held after {passes} packets, goes on when it was cut off from {name}");
        let (adapter, driver, hold) = opened(Some(until_cut));
        let mut players = [(); 3].map(|()| Player::new(&adapter));
        until("the engine rests at waits", || {
            let is_parked = driver.engine_state(0) == Some(EngineState::Parked);
            is_parked && players.iter().all(|player| player.stands(&driver))
        });
        // It finds all of them able to go on, whenever the machine runs it: its lanes step by turns, so each case holds
        // the same queues at the same packets.
        hold.change(|state| state.begins_held = true);
        for player in &players {
            player.begin.signal(1).unwrap();
        }
        hold.wait(|state| state.has_begun);
        hold.change(|state| {
            (state.begins_held, state.holds, state.passes) = (false, true, passes);
        });
        hold.wait(|state| state.is_held);
        hold.change(|state| state.is_lost = true);

        until("another has its place", || {
            !adapter.os().records().is_empty() && driver.engine_state(0).is_some()
        });
        // Whether values are the last that it is cut off from is nobody's rule.
        let is_due = !hold.state.lock().unwrap().holds;
        assert!(is_due || until_cut == WordGroup::CurrentValues);
        hold.change(|state| state.holds = false);
        // The first whose packet may have been under way.
        let blamed = |player: &Player| player.queue.error().is_some();
        let blamed_one = players.iter().position(blamed);
        assert!(passes > 0 || blamed_one.is_none(), "it stood at a wait");
        for (number, player) in players.iter_mut().enumerate() {
            if Some(number) != blamed_one {
                player.expect_all_once();
            }
        }
        let codes = adapter.os().records().into_iter().map(|of| of.code);
        let codes: Vec<_> = codes.collect();
        assert_eq!(codes, [Record::VIDEO_ENGINE_TIMEOUT_DETECTED]);
    }
}

/// TD-23: an engine that was lost in a signal, and goes on when another has taken its place, stores the value and
/// logs it where nobody looks.
///
/// Kills `only-tables-are-cut-off`.
#[test]
fn td_23_what_an_engine_stores_after_its_loss_changes_nothing() {
    let (adapter, driver, hold) = opened(None);
    let (blamed, innocent) = (adapter.create_device(), adapter.create_device());
    let (mut queue, fence) = (queue_of(&blamed, 0), blamed.create_fence(0).unwrap());
    let mut other = queue_of(&innocent, 0);
    let mut goes_on = || {
        let value = other.submit(CommandList::new().nop()).unwrap();
        assert_eq!(other.progress_fence().wait(value, LONG), Ok(()));
    };
    goes_on();
    // At the second signal, which is executed in the step of the NOP: its handle is known.
    hold.change(|state| (state.holds, state.passes) = (true, 2));
    let mut list = CommandList::new();
    list.signal(&fence, 1).nop().signal(&fence, 2);
    queue.submit(&list).unwrap();
    hold.wait(|state| state.is_held);
    hold.change(|state| state.is_lost = true);

    goes_on();
    assert_eq!(queue.error(), Some(WaitError::DeviceLost));
    let seen = || {
        let log = queue.read_signal_log().unwrap();
        (fence.current_value(), log.entries.len())
    };
    assert_eq!(seen(), (1, 1));
    assert_eq!(driver.given_up(), 1, "it is held");
    hold.change(|state| state.holds = false);
    until("it has come to its end", || driver.given_up() == 0);
    assert_eq!(seen(), (1, 0), "no other entry");
    goes_on();
}

/// TD-12: an engine that is lost, and that none follows, may go on with what it was given. So what it has mapped stays
/// mapped as long as the adapter has it, though the program that it was of closes all that it has.
///
/// Kills `a-lost-engine-loses-its-tables`.
#[test]
fn td_12_what_a_lost_engine_may_look_at_stays_mapped() {
    let (adapter, driver, hold) = opened_with(None, None);
    let device = adapter.create_device();
    let (mut queue, fence) = (queue_of(&device, 0), device.create_fence(0).unwrap());
    let memory = device.create_allocation(4096).unwrap();
    let mut list = CommandList::new();
    list.fill(&memory, 0..memory.bytes(), 5).signal(&fence, 1);
    let value = queue.submit(&list).unwrap();
    assert_eq!(queue.progress_fence().wait(value, LONG), Ok(()));
    until("the engine has nothing to do", || {
        driver.engine_state(0) == Some(EngineState::Parked)
    });
    hold.change(|state| state.is_lost = true);
    // Found by this, at the latest.
    let _ = queue.submit(&list);
    let lost = queue.progress_fence().wait(value + 1, LONG);
    assert_eq!(lost, Err(WaitError::DeviceLost));

    let unmapped = || hold.state.lock().unwrap().unmapped;
    let before = unmapped();
    drop((queue, fence, memory, device));
    assert_eq!(unmapped(), before, "the engine may look at it");
    drop(adapter);
    drop(driver);
    until("the engine has ended", || unmapped() > before);
}
