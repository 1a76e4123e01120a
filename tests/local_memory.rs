//! Fences in local memory: exported by a device of their own, imported by every engine.
//!
//! Local memory is forced, so that all of it runs where local memory is system memory under another
//! name, through real export and import.
//!
//! Open, here and on every machine without a GPU: that the fences of `shared::Word` drain the
//! write-combining buffers of a core; that words stored by one side of a bus are seen by the other.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
}

use native_fence::abi::{Home, WordGroup};
use native_fence::gpu::EngineUnit;
use native_fence::shared::{Block, NoLocalMemory, Providers, Region, RegionError};
use native_fence::vulkan::{LocalMemory, MemoryType, validation};
use native_fence::{
    Adapter, AdapterOptions, CommandList, Device, Fence, FenceMemory, FenceOptions, HwQueue,
    HwQueueOptions, MemoryOptions, TdrLevel, TdrPolicy, WaitError,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use support::bench::memory::{EXPORTED, LOCAL};
use support::bench::{Bench, Ended, LONG, complete, monitored_value, native, until};

const NONE: u64 = u64::MAX;

fn bench(engines: u32) -> Bench {
    Bench::with_memory(engines, LOCAL, FenceMemory::Local)
}

/// Region and byte offset of CurrentValue, then of MonitoredValue.
fn places(fence: &Fence) -> [(Arc<Region>, u64); 2] {
    let own = |(region, offset): (&Arc<Region>, u64)| (Arc::clone(region), offset);
    [
        own(native(fence).current_value_place()),
        own(native(fence).monitored_value_place()),
    ]
}

/// The type of memory that a region was allocated of, as the driver lists it.
fn memory_type(bench: &Bench, region: &Arc<Region>) -> Option<MemoryType> {
    let memory_type = region.device_memory()?.memory_type();
    Some(bench.info().memory_types[memory_type as usize])
}

/// NF-12: a fence that asks for local memory has both values there, one that does not has its
/// CurrentValue in system memory, beside the other on one adapter; what each reports is what its
/// allocation shows: a type of memory that is the device's own and that the host sees, or a file of
/// memory that no device allocated.
///
/// INTRA_GPU is in `intra_gpu`. Open: cross-adapter fences.
///
/// Kills `local-fences-lie-in-system-memory` and `exported-memory-is-called-system`.
#[test]
fn nf_12_a_fence_reports_the_memory_that_its_allocation_shows() {
    let bench = bench(1);
    let (local, cached) = (Home::LocalHostVisible, Home::CachedSystem);
    for (memory, homes) in [
        (FenceMemory::Local, (local, local)),
        // The table has MonitoredValues where engines poll them.
        (FenceMemory::System, (cached, local)),
    ] {
        let options = FenceOptions {
            memory,
            ..FenceOptions::default()
        };
        let fence = bench.device.create_fence_with(options).unwrap();
        assert_eq!(fence.memory(), homes, "{memory:?}");
        for ((region, _), home) in places(&fence).iter().zip([homes.0, homes.1]) {
            let shown = memory_type(&bench, region);
            let is_local = shown.is_some_and(|kind| kind.device_local && kind.host_visible);
            assert_eq!(is_local, home == local, "{memory:?}: {shown:?}");
            assert!(shown.is_none_or(|kind| kind.host_coherent), "{shown:?}");
        }
    }
    // Progress fences, which their users read at every submission, stay in system memory.
    let queue = bench.queue();
    assert_eq!(queue.progress_fence().memory().0, cached);
}

/// NF-02, NF-12: there is no mapping of local memory that could not be written, so no address is
/// handed out and the attempt to map it so is an error, not a mapping of another kind. Fences in
/// system memory beside it keep theirs.
///
/// Kills `address-of-unprotected-memory-is-handed-out`.
#[test]
fn nf_02_local_memory_has_no_read_only_alias_and_says_so() {
    let bench = bench(1);
    let fence = bench.fence(7);
    assert_eq!(fence.current_value_address(), None);
    assert_eq!(fence.current_value(), 7, "through the API");
    let [(region, _), _] = places(&fence);
    let refused = region.map_read_only().unwrap_err().to_string();
    assert!(refused.contains("fence-cv"), "{refused}");
    let providers = bench.adapter.providers();
    assert!(!providers.local().unwrap().has_read_only_alias());
    assert!(providers.system().has_read_only_alias());
    let system = FenceOptions {
        initial: 8,
        memory: FenceMemory::System,
        ..FenceOptions::default()
    };
    let fence = bench.device.create_fence_with(system).unwrap();
    let address = fence.current_value_address().unwrap();
    // SAFETY: valid while the fence lives; nobody stores to it.
    assert_eq!(unsafe { address.read_volatile() }, 8);
}

/// NF-28: a local fence starts at its value on every mapping: the user's, the OS's, those of the
/// engines of two instances.
///
/// Kills `exported-memory-is-not-shared`.
#[test]
fn nf_28_a_local_fence_starts_at_its_value_on_every_mapping() {
    let bench = bench(2);
    for initial in [0, 1, 41, 1 << 32, u64::MAX] {
        let fence = bench.fence(initial);
        let done = bench.fence(0);
        assert_eq!(fence.current_value(), initial);
        assert_eq!(native(&fence).current_value(), initial);
        let [(region, offset), _] = places(&fence);
        let another = Block::whole(&region.map().unwrap());
        assert_eq!(another.word(offset).observe(), initial);
        fence.wait(initial, Duration::ZERO).unwrap();
        for (node, value) in [(0, 1), (1, 2)] {
            let mut queue = bench.queue_on(node);
            let list = &mut CommandList::new();
            queue
                .submit(list.wait(&fence, initial).signal(&done, value))
                .unwrap();
            done.wait(value, LONG).unwrap();
        }
        assert_eq!(fence.current_value(), initial);
    }
}

/// NF-27: a thread that only reads sees every CPU signal at once and every GPU signal when its slice
/// has ended, and nothing that goes back.
///
/// Kills `exported-memory-is-not-shared`.
#[test]
fn nf_27_a_reader_of_a_local_fence_sees_every_signal_and_none_go_back() {
    let bench = bench(1);
    let fence = bench.fence(0);
    let mut queue = bench.queue();
    let (seen, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let _stop = Ended(&stop);
        scope.spawn(|| {
            let mut last = 0;
            while !stop.load(Ordering::Acquire) {
                let value = fence.current_value();
                assert!(value >= last, "{value} after {last}");
                last = value;
                seen.store(value, Ordering::Release);
                std::thread::yield_now();
            }
        });
        let until_seen = |value| {
            until("the value is seen", || {
                seen.load(Ordering::Acquire) >= value
            });
        };
        for value in 1..=500 {
            fence.signal(2 * value - 1).unwrap();
            until_seen(2 * value - 1);
            complete(&mut queue, CommandList::new().signal(&fence, 2 * value));
            until_seen(2 * value);
        }
    });
    assert_eq!(monitored_value(&fence), NONE);
}

/// NF-05, with the article's numbers: CurrentValue 41, a waiter for 42 makes MonitoredValue 41;
/// without a waiter nothing interrupts; storing 42 raises, and the next waiter, for 43, makes it 42.
///
/// Kills `local-fences-lie-in-system-memory`.
#[test]
fn nf_05_a_local_fence_notifies_the_waiter_and_nobody_else() {
    let bench = bench(1);
    let fence = bench.fence(41);
    let local = Home::LocalHostVisible;
    assert_eq!(fence.memory(), (local, local));
    let mut queue = bench.queue();
    let (first, second) = (bench.waiter(&fence, 42), bench.waiter(&fence, 43));
    until("both waits stand", || native(&fence).waits() == 2);
    assert_eq!(monitored_value(&fence), 41);
    complete(&mut queue, CommandList::new().signal(&fence, 42));
    assert_eq!(first.join(), Ok(()));
    bench.until_told();
    assert_eq!(bench.spy.raised(native(&fence).id()), [42]);
    assert_eq!(monitored_value(&fence), 42);
    complete(&mut queue, CommandList::new().signal(&fence, 43));
    assert_eq!(second.join(), Ok(()));
    bench.until_told();
    assert_eq!(monitored_value(&fence), NONE);
    let mut list = CommandList::new();
    for value in 44..144 {
        list.signal(&fence, value);
    }
    complete(&mut queue, &list);
    bench.until_told();
    assert_eq!(bench.spy.raised(native(&fence).id()), [42, 43]);
}

/// NF-20: a CPU signal of a local fence releases a queue that stands at a wait, on a parked engine
/// too, and a thread that sleeps.
///
/// Kills `exported-memory-is-not-shared`.
#[test]
fn nf_20_a_cpu_signal_of_a_local_fence_releases_queues_and_threads() {
    let bench = bench(1);
    let (fence, done) = (bench.fence(0), bench.fence(0));
    let mut queue = bench.queue();
    for value in 1..=20 {
        queue
            .submit(CommandList::new().wait(&fence, value).signal(&done, value))
            .unwrap();
        let waiter = bench.waiter(&fence, value);
        if value % 2 == 0 {
            bench.until_parked();
        }
        fence.signal(value).unwrap();
        assert_eq!(waiter.join(), Ok(()));
        done.wait(value, LONG).unwrap();
    }
}

fn ping_pong(bench: &Bench, rounds: u64) {
    let (there, back) = (bench.fence(0), bench.fence(0));
    let (mut one, mut other) = (bench.queue_on(0), bench.queue_on(1));
    let mut end = 0;
    for first in (1..=rounds).step_by(100) {
        let (mut serve, mut answer) = (CommandList::new(), CommandList::new());
        for value in first..first + 100 {
            serve.signal(&there, value).wait(&back, value);
            answer.wait(&there, value).signal(&back, value);
        }
        other.submit_blocking(&answer, LONG).unwrap();
        end = one.submit_blocking(&serve, LONG).unwrap();
    }
    one.progress_fence().wait(end, LONG).unwrap();
    assert_eq!(
        (there.current_value(), back.current_value()),
        (rounds, rounds)
    );
}

/// NF-09: two engines, of an instance and a device each, pass local fences to and fro: the memory of
/// a third device, imported into both.
///
/// Kills `exported-memory-is-not-shared`.
#[test]
fn nf_09_engines_of_two_instances_hand_over_through_local_fences() {
    let bench = bench(2);
    println!("engines: {:?}", EngineUnit::default_for(bench.info()));
    ping_pong(&bench, 1000);
}

/// Decision 19: an engine that is lost takes no memory of a fence along. Values of a lost device's fences
/// stay readable, and another device that has one open stores to it; another device's own can be signalled, and the
/// other engine and the CPU go on with them.
///
/// Open: a device that the driver loses by itself, which lavapipe never does.
///
/// Kills `a-failed-fence-takes-no-signal`.
#[test]
fn a_local_fence_outlives_an_engine_that_is_lost() {
    let bench = bench(2);
    let well = Device::with_fences_in(bench.adapter.os(), FenceMemory::Local);
    let fence = well.create_fence(0).unwrap();
    let shared = FenceOptions {
        memory: FenceMemory::Local,
        shared: true,
        ..FenceOptions::default()
    };
    let of_lost = bench.device.create_fence_with(shared).unwrap();
    let opened = well.open_fence(&of_lost.share().unwrap()).unwrap();
    let mut dies = bench.queue_on(0);
    let on_other = HwQueueOptions {
        node_ordinal: 1,
        ..HwQueueOptions::default()
    };
    let mut lives = well.create_hw_queue_with(on_other).unwrap();
    complete(&mut dies, CommandList::new().signal(&of_lost, 5));
    complete(&mut lives, CommandList::new().signal(&fence, 6));
    bench.until_parked();
    bench.engines[0].lose();
    dies.submit(CommandList::new().signal(&of_lost, 99)).ok();
    let lost = dies.progress_fence().wait(2, LONG);
    assert_eq!(lost, Err(WaitError::DeviceLost));
    assert_eq!(of_lost.current_value(), 5, "the last good value");
    // The fence has failed, and a handle of the other device's stores as ever.
    assert_eq!(opened.wait(9, LONG), Err(WaitError::DeviceLost));
    opened.signal(6).unwrap();
    assert_eq!(of_lost.current_value(), 6);
    fence.signal(7).unwrap();
    assert_eq!(fence.current_value(), 7);
    complete(
        &mut lives,
        CommandList::new().wait(&fence, 7).signal(&fence, 8),
    );
    assert_eq!(fence.current_value(), 8);
    let fresh = well.create_fence(30).unwrap();
    complete(
        &mut lives,
        CommandList::new().wait(&fresh, 30).signal(&fresh, 31),
    );
    assert_eq!(fresh.current_value(), 31);
}

/// NF-31: storage and handles of local fences are used again, with values of their own, and old
/// regions go: a thousand fences leave no descriptor and no mapping behind.
///
/// Kills `imports-leak-descriptors`.
#[test]
fn nf_31_storage_of_local_fences_is_used_again() {
    let descriptors = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    // Not the bench, whose spy keeps the host's view of every region.
    let options = AdapterOptions {
        memory: LOCAL,
        fence_memory: Some(FenceMemory::Local),
        // It is well, and may have no core for seconds.
        tdr: TdrPolicy {
            level: TdrLevel::Off,
            ..TdrPolicy::default()
        },
        ..AdapterOptions::default()
    };
    let adapter = Adapter::open(&options).unwrap();
    let device = adapter.create_device();
    let mut queue = device.create_hw_queue().unwrap();
    let mappings = adapter.node_counters().mappings;
    // The first fences make tables that stay.
    let mut after_the_first = usize::MAX;
    for round in 0..50 {
        let fences: Vec<Fence> = (0..20)
            .map(|number| device.create_fence(number).unwrap())
            .collect();
        let mut list = CommandList::new();
        for (number, fence) in (0..).zip(&fences) {
            assert_eq!(fence.current_value(), number, "round {round}");
            list.wait(fence, number).signal(fence, number + 100);
        }
        complete(&mut queue, &list);
        for (number, fence) in (0..).zip(&fences) {
            assert_eq!(fence.current_value(), number + 100, "round {round}");
        }
        drop(fences);
        until("they are retired and their regions gone", || {
            adapter.node_counters().mappings == mappings && descriptors() <= after_the_first
        });
        if round == 0 {
            // What the last region held is closed a moment after its mapping is gone.
            after_the_first = descriptors();
        }
    }
    drop((queue, device, adapter));
    assert_eq!(validation::messages(), Vec::<String>::new());
}

/// Where each kind of words lies (decision 18), written out: what engines poll in local memory; what
/// the CPU polls or changes by read-modify-write, and what outlives an engine, in system memory.
///
/// Kills `doorbells-lie-in-local-memory` and `states-lie-in-local-memory`.
#[test]
fn what_the_gpu_polls_lies_in_local_memory_and_what_outlives_it_does_not() {
    let bench = bench(1);
    let _fence = bench.fence(0);
    let mut queue = bench.queue();
    complete(&mut queue, &CommandList::new());
    let (local, system) = (Home::LocalHostVisible, Home::CachedSystem);
    let homes: BTreeMap<&str, Vec<Home>> =
        bench
            .engine
            .mapped()
            .iter()
            .fold(BTreeMap::new(), |mut homes, region| {
                homes.entry(region.name).or_default().push(region.home);
                homes
            });
    let only = |name: &str, home| {
        let found = &homes[name];
        assert!(found.iter().all(|one| *one == home), "{name}: {found:?}");
    };
    for name in [
        "hw-queue-ring",
        "engine-control",
        "fence-table",
        "handle-table",
        "fence-mv",
    ] {
        only(name, local);
    }
    for name in [
        "hw-queue",
        "save-area",
        "hw-queue-progress",
        "fence-log",
        "engine-report",
    ] {
        only(name, system);
    }
    // The fence asked for local memory, the progress fences of the queue and of the OS's own did not.
    let values = homes["fence-cv"].iter();
    assert_eq!(values.filter(|home| **home == local).count(), 1);
    assert!(homes["fence-cv"].contains(&system));
    assert!(
        !homes.contains_key("hw-queue-doorbell"),
        "no engine reads it"
    );
}

/// Read-modify-write of a GPU's memory is a bug, found on every machine: the ring's words refuse it,
/// and those by which the user and the OS meet lie elsewhere.
///
/// Kills `meeting-over-the-bus`.
#[test]
fn no_read_modify_write_reaches_local_memory() {
    let bench = bench(1);
    let queue = bench.queue();
    let word = std::panic::AssertUnwindSafe(queue.raw_memory().0.word(0));
    let before = word.observe();
    let met = std::panic::catch_unwind(|| word.meet(1));
    assert!(met.is_err(), "it was done over the bus");
    assert_eq!(word.observe(), before, "and nothing was stored");
    let doorbell = queue.raw_doorbell();
    doorbell.word(0).publish(0);
    doorbell.word(0).meet(0);
}

fn small_story(bench: &Bench) {
    let (between, done) = (bench.fence(0), bench.fence(0));
    let (mut producer, mut consumer): (HwQueue, HwQueue) = (bench.queue_on(0), bench.queue_on(1));
    for value in 1..=50 {
        let mut list = CommandList::new();
        consumer
            .submit(list.wait(&between, value).signal(&done, value))
            .unwrap();
        let waiter = bench.waiter(&done, value);
        producer
            .submit(CommandList::new().signal(&between, value))
            .unwrap();
        assert_eq!(waiter.join(), Ok(()));
        assert_eq!(
            (between.current_value(), done.current_value()),
            (value, value)
        );
    }
    let logged = producer.read_signal_log().unwrap();
    assert_eq!(
        logged.entries.len() as u64 + logged.lost,
        100,
        "with its progress"
    );
}

/// Rings, mailboxes, tables, fences: all in local memory, over two engines.
#[test]
fn the_small_story_runs_in_local_memory() {
    small_story(&bench(2));
}

/// Decision 17: system memory that Vulkan allocates does all that the other does, but for read-only
/// mappings, and that is said: by the provider, by each queue's progress words, by each fence.
///
/// Kills `exported-memory-is-called-protected`.
#[test]
fn the_small_story_runs_in_system_memory_that_vulkan_allocates() {
    let bench = Bench::with_memory(2, EXPORTED, FenceMemory::System);
    let providers = bench.adapter.providers();
    assert_eq!(providers.system().name(), "vulkan-system");
    assert!(!providers.system().has_read_only_alias());
    let fence = bench.fence(3);
    let cached = Home::CachedSystem;
    assert_eq!(fence.memory(), (cached, cached));
    for (region, _) in places(&fence) {
        let shown = memory_type(&bench, &region).unwrap();
        assert!(shown.host_cached && shown.host_coherent, "{shown:?}");
        let is_system = bench.info().features.local_memory == LocalMemory::SameAsSystem;
        assert!(is_system || !shown.device_local, "{shown:?}");
    }
    assert_eq!(
        (fence.current_value_address(), fence.current_value()),
        (None, 3)
    );
    let queue = bench.queue();
    assert!(!queue.os().memory().progress.is_protected());
    drop(queue);
    for region in bench.engine.mapped() {
        assert_eq!(region.home, cached, "{}", region.name);
    }
    small_story(&bench);
    let refused = bench.device.create_fence_with(FenceOptions {
        memory: FenceMemory::Local,
        ..FenceOptions::default()
    });
    let refused = refused.unwrap_err().to_string();
    assert!(
        refused.contains("MemoryPlacement::ByTable"),
        "what to do: {refused}"
    );
}

/// Where local memory is not offered the fence is refused, with the reason and what to do; nothing
/// is put elsewhere in silence.
///
/// Kills `a-refusal-of-local-memory-has-no-reason`.
#[test]
fn nf_12_local_memory_that_is_not_offered_is_refused_with_what_to_do() {
    let bench = Bench::with_memory(1, MemoryOptions::default(), FenceMemory::System);
    let options = FenceOptions {
        memory: FenceMemory::Local,
        ..FenceOptions::default()
    };
    if let LocalMemory::Separate { .. } = bench.info().features.local_memory {
        println!("left out: the device has local memory");
        return;
    }
    let why = bench.adapter.providers().local().unwrap_err().to_string();
    let refused = bench
        .device
        .create_fence_with(options)
        .unwrap_err()
        .to_string();
    assert!(
        refused.contains(&why) && why.contains("LocalForced"),
        "{refused}"
    );
    assert_eq!(
        bench.device.create_fence(0).unwrap().memory().0,
        Home::CachedSystem
    );
}

/// NF-12: nor do those who provide memory give other memory than local memory.
///
/// Kills `local-fences-fall-back`.
#[test]
fn nf_12_who_has_no_local_memory_gives_none() {
    let given = Providers::default().local_for_words(WordGroup::CurrentValues, 4096);
    assert!(matches!(
        given,
        Err(RegionError::NoLocalMemory(NoLocalMemory::NoDevice))
    ));
}

/// FQ-03: the caps tell of the local memory that the device has, however things are placed.
///
/// Kills `local-storage-of-the-placement`.
#[test]
fn fq_03_the_caps_tell_of_the_devices_local_memory() {
    for bench in [
        bench(1),
        Bench::with_memory(1, EXPORTED, FenceMemory::System),
    ] {
        let has = bench.info().features.local_memory;
        assert_eq!(
            bench.adapter.os().ddi().native_fence_caps().local_storage,
            has
        );
    }
}
