//! What the end of a process leaves behind: nothing, in the engine's address space, in its tables,
//! and among the file descriptors of the program.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "support/engines.rs"]
mod engines;
#[path = "support/until.rs"]
mod until;

use engines::on_every_engine;
use native_fence::gpu::{
    AddressSpace, Engine, EngineAddress, EngineCaps, EngineLost, GpuVa, MapError, ModelEngine,
    ModelOptions, NodePolicy, SliceWork,
};
use native_fence::shared::{Providers, Region};
use native_fence::{Adapter, CommandList, CreateError, HwQueueOptions};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use until::{LONG, until};

/// Regions with an address, handle tables, open file descriptors.
fn held(adapter: &Adapter) -> (u64, u64, usize) {
    let counters = adapter.node_counters();
    let descriptors = std::fs::read_dir("/proc/self/fd").unwrap().count();
    (counters.mappings, counters.handle_tables, descriptors)
}

/// An interrupt that is still under way may hold a fence a moment longer, also at the start.
fn comes_back_to(adapter: &Adapter, start: (u64, u64, usize)) {
    let mut now = start;
    until("all is given back", || {
        let before = now;
        now = held(adapter);
        if now != before {
            println!("held: {now:?}, at the start: {start:?}");
        }
        now.0 <= start.0 && now.1 <= start.1 && now.2 <= start.2
    });
}

fn use_and_drop(adapter: &Adapter) -> Result<(), CreateError> {
    let device = adapter.create_device();
    let fences: Vec<_> = (0..3)
        .map(|_| device.create_fence(0))
        .collect::<Result<_, _>>()?;
    let mut queues = [device.create_hw_queue()?, device.create_hw_queue()?];
    queues[0]
        .submit(CommandList::new().wait(&fences[0], 1).signal(&fences[1], 1))
        .unwrap();
    queues[1]
        .submit(CommandList::new().signal(&fences[0], 1))
        .unwrap();
    fences[1].wait(1, LONG).unwrap();
    Ok(())
}

/// Mutants: `handle-tables-outlive-their-process`, `mappings-are-never-forgotten`.
#[test]
fn nothing_of_a_process_stays_when_it_ends() {
    on_every_engine(|adapter| {
        // What is made once for all, such as the leaves of the fence table, is made here.
        use_and_drop(adapter).unwrap();
        until("nothing is left of it", || {
            held(adapter).0 + held(adapter).1 == 0
        });
        let start = held(adapter);
        for _ in 0..100 {
            use_and_drop(adapter).unwrap();
        }
        comes_back_to(adapter, start);
    });
}

/// While a process lives, the fences and queues that it drops leave its others where they are, and
/// those that take their place find nothing of them.
///
/// Mutant: `used-places-keep-their-words`.
#[test]
fn what_is_in_use_stays() {
    on_every_engine(|adapter| {
        let device = adapter.create_device();
        let stays = device.create_fence(0).unwrap();
        let mut queue = device.create_hw_queue().unwrap();
        let start = held(adapter);
        for value in 1..=20 {
            drop(device.create_fence(0).unwrap());
            let mut passing = device.create_hw_queue().unwrap();
            passing.submit(CommandList::new().nop()).unwrap();
            passing.progress_fence().wait(1, LONG).unwrap();
            drop(passing);
            queue
                .submit(CommandList::new().signal(&stays, value))
                .unwrap();
            stays.wait(value, LONG).unwrap();
        }
        comes_back_to(adapter, start);
    });
}

#[test]
fn a_queue_that_is_refused_leaves_nothing() {
    on_every_engine(|adapter| {
        use_and_drop(adapter).unwrap();
        let start = held(adapter);
        let good = HwQueueOptions::default();
        for options in [
            HwQueueOptions {
                node_ordinal: 7,
                ..good
            },
            HwQueueOptions {
                engine_affinity: 3,
                ..good
            },
            HwQueueOptions {
                ring_capacity: 12,
                ..good
            },
        ] {
            let device = adapter.create_device();
            assert!(device.create_hw_queue_with(options).is_err());
        }
        comes_back_to(adapter, start);
    });
}

/// The model, which refuses one mapping when it is asked to.
#[derive(Debug)]
struct Refusing {
    model: ModelEngine,
    /// Mappings until the one that is refused; 0 for none.
    left: Arc<AtomicU64>,
}

impl AddressSpace for Refusing {
    fn providers(&self) -> &Arc<Providers> {
        self.model.providers()
    }

    fn map(&self, region: &Arc<Region>) -> Result<EngineAddress, MapError> {
        let left = self.left.load(Ordering::Relaxed);
        self.left.store(left.saturating_sub(1), Ordering::Relaxed);
        if left == 1 {
            return Err(MapError::Refused("by the test".into()));
        }
        self.model.map(region)
    }
}

impl Engine for Refusing {
    fn caps(&self) -> EngineCaps {
        self.model.caps()
    }

    fn prepare_doorbells(&self) -> Result<(), MapError> {
        self.model.prepare_doorbells()
    }

    fn prepare_verbose(&self) -> Result<(), MapError> {
        self.model.prepare_verbose()
    }

    fn attach(&mut self, control: GpuVa, before: u64) -> Result<(), MapError> {
        self.model.attach(control, before)
    }

    fn start(&self, slice: u64, work: SliceWork) -> Result<(), EngineLost> {
        self.model.start(slice, work)
    }

    fn wait(&self, slice: u64, timeout: Option<Duration>) -> Result<bool, EngineLost> {
        self.model.wait(slice, timeout)
    }

    fn has_ended(&self, slice: u64) -> Result<bool, EngineLost> {
        self.model.has_ended(slice)
    }

    fn abandon(&self, slice: u64) {
        self.model.abandon(slice);
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

/// Whichever mapping is refused, what was made before it goes, and the next attempt is as the first.
#[test]
fn a_creation_that_fails_half_way_leaves_nothing() {
    let model = ModelEngine::new(ModelOptions::default());
    let (memory, left) = (Arc::clone(model.memory()), Arc::new(AtomicU64::new(0)));
    let engine = Refusing {
        model,
        left: Arc::clone(&left),
    };
    let adapter = Adapter::with_engines(vec![Box::new(engine)], NodePolicy::default()).unwrap();
    use_and_drop(&adapter).unwrap();
    let start = held(&adapter);
    let mut refused = 0;
    loop {
        left.store(refused + 1, Ordering::Relaxed);
        let made = use_and_drop(&adapter);
        let spared = left.swap(0, Ordering::Relaxed) != 0;
        comes_back_to(&adapter, start);
        assert_eq!(made.is_ok(), spared);
        if spared {
            break;
        }
        refused += 1;
    }
    assert!(refused >= 4, "{refused} mappings were refused");
    drop(adapter);
    assert_eq!(memory.violations(), []);
}
