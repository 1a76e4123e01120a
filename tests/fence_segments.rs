//! In which segments values of fences lie: what the OS asks the driver, and what it makes of the answer
//! (NF-29).

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
}

use native_fence::abi::wddm::{FenceStorageSurfaceData, FenceStorageValueType, NativeFenceType};
use native_fence::abi::{Home, WordGroup};
use native_fence::gpu::{Crowd, Engine, EngineUnit, Node, NodePolicy, ShaderEngine, ShaderTuning};
use native_fence::kmd::{Driver, Segment};
use native_fence::os::OsError;
use native_fence::shared::{Provider, Providers, Region, RegionError};
use native_fence::vulkan::{
    Instance, InstanceOptions, Sharers, choose, memory_providers, validation,
};
use native_fence::{
    Adapter, CommandList, CreateError, Device, Fence, FenceMemory, FenceOptions, WaitError,
};
use std::sync::{Arc, Mutex, Weak};
use support::bench::memory::LOCAL;
use support::bench::{Bench, Call, LONG, complete, on_every_bench, until};

const CURRENT: FenceStorageValueType = FenceStorageValueType::CURRENT_VALUE;
const MONITORED: FenceStorageValueType = FenceStorageValueType::MONITORED_VALUE;
const DEFAULT: NativeFenceType = NativeFenceType::DEFAULT;
const INTRA_GPU: NativeFenceType = NativeFenceType::INTRA_GPU;

fn options(memory: FenceMemory, shared: bool, intra_gpu: bool) -> FenceOptions {
    FenceOptions {
        memory,
        shared,
        intra_gpu,
        ..FenceOptions::default()
    }
}

/// What the driver was asked since this was last called.
fn asked(bench: &Bench) -> Vec<(FenceStorageValueType, NativeFenceType)> {
    let asked = |call| match call {
        Call::FenceStorage(value_type, fence_type) => Some((value_type, fence_type)),
        _ => None,
    };
    bench.spy.take().into_iter().filter_map(asked).collect()
}

fn create(bench: &Bench, options: FenceOptions) -> Fence {
    bench.device.create_fence_with(options).unwrap()
}

/// NF-29: the driver is asked once for CurrentValues and once for MonitoredValues, with the fence's type,
/// before the first such fence is made; not for values in system memory, which are the OS's own. Of a
/// DEFAULT fence in system memory the MonitoredValue is asked for where engines have memory of their own.
///
/// Kills `segments-are-asked-of-one-type`, `segments-are-asked-of-one-value`,
/// `segments-are-asked-each-time`, `system-values-are-asked-for`.
#[test]
fn nf_29_the_driver_is_asked_once_for_each_value_and_type() {
    let bench = Bench::with_memory(1, LOCAL, FenceMemory::System);
    let (system, local) = (FenceMemory::System, FenceMemory::Local);
    create(&bench, options(system, true, false));
    assert_eq!(
        asked(&bench),
        [],
        "files of system memory, for processes to share"
    );
    create(&bench, options(system, false, false));
    assert_eq!(asked(&bench), [(MONITORED, DEFAULT)]);
    create(&bench, options(local, false, false));
    assert_eq!(asked(&bench), [(CURRENT, DEFAULT)]);
    create(&bench, options(system, false, true));
    assert_eq!(
        asked(&bench),
        [(CURRENT, INTRA_GPU), (MONITORED, INTRA_GPU)]
    );
    for shared in [false, true] {
        create(&bench, options(local, shared, false));
        create(&bench, options(system, shared, true));
        create(&bench, options(system, shared, false));
    }
    let other = bench.adapter.create_device();
    other
        .create_fence_with(options(local, false, false))
        .unwrap();
    assert_eq!(asked(&bench), [], "it has answered");
}

/// NF-29: where there is one memory, DEFAULT asks nothing, and INTRA_GPU is demoted to it by the driver's
/// answer.
///
/// Kills `system-values-are-asked-for`.
#[test]
fn nf_29_values_in_system_memory_are_the_oses_own() {
    on_every_bench(NodePolicy::default(), |bench| {
        if bench.adapter.providers().local().is_ok() {
            return;
        }
        let _queue = bench.queue();
        for shared in [false, true] {
            create(bench, options(FenceMemory::System, shared, false));
        }
        assert_eq!(asked(bench), []);
        let fence = create(bench, options(FenceMemory::System, false, true));
        assert_eq!(asked(bench), [(CURRENT, INTRA_GPU), (MONITORED, INTRA_GPU)]);
        assert_eq!(fence.memory().1, Home::CachedSystem);
    });
}

/// NF-29: the values lie where the driver says, each where it says of it; an answer that cannot be makes
/// no fence.
///
/// Kills `the-answered-segment-is-not-used`, `an-answer-that-cannot-be-is-used`.
#[test]
fn nf_29_values_lie_where_the_driver_answers() {
    let prefer = |segment: Segment| {
        move |data: &mut FenceStorageSurfaceData| {
            if data.value_type == MONITORED {
                data.allocation_info.preferred_segment = segment as u32;
            }
        }
    };
    let (local, cached) = (Home::LocalHostVisible, Home::CachedSystem);
    for (segment, home) in [(Segment::System, cached), (Segment::Local, local)] {
        for intra_gpu in [false, true] {
            let bench = Bench::with_memory(1, LOCAL, FenceMemory::Local);
            bench.spy.answer_segments(prefer(segment));
            let fence = create(&bench, options(FenceMemory::Local, false, intra_gpu));
            assert_eq!(fence.memory(), (local, home));
            let mut queue = bench.queue();
            complete(
                &mut queue,
                CommandList::new().signal(&fence, 1).wait(&fence, 1),
            );
        }
    }
    let bench = Bench::with_memory(1, LOCAL, FenceMemory::Local);
    bench
        .spy
        .answer_segments(|data| data.allocation_info.supported_write_segment_set = 0);
    for intra_gpu in [false, true] {
        let made = bench
            .device
            .create_fence_with(options(FenceMemory::Local, false, intra_gpu));
        assert!(matches!(
            made,
            Err(CreateError::Os(OsError::NoFenceSegments))
        ));
    }
}

/// System memory of an adapter.
#[derive(Debug)]
struct System(Arc<Providers>);

impl Provider for System {
    fn name(&self) -> &'static str {
        self.0.system().name()
    }

    fn home(&self) -> Home {
        self.0.system().home()
    }

    fn has_read_only_alias(&self) -> bool {
        self.0.system().has_read_only_alias()
    }

    fn region(&self, group: WordGroup, bytes: u64) -> Result<Arc<Region>, RegionError> {
        self.0.system().region(group, bytes)
    }
}

/// Local memory with room for so many regions of fence values.
#[derive(Debug)]
struct Small {
    memory: Arc<Providers>,
    room: usize,
    given: Mutex<Vec<Weak<Region>>>,
}

impl Provider for Small {
    fn name(&self) -> &'static str {
        "small"
    }

    fn home(&self) -> Home {
        Home::LocalHostVisible
    }

    fn has_read_only_alias(&self) -> bool {
        false
    }

    fn region(&self, group: WordGroup, bytes: u64) -> Result<Arc<Region>, RegionError> {
        let of_fences = [WordGroup::CurrentValues, WordGroup::MonitoredValues].contains(&group);
        let mut given = self.given.lock().unwrap();
        given.retain(|region| region.strong_count() > 0);
        if of_fences && given.len() == self.room {
            return Err(RegionError::Device {
                name: group.name(),
                len: bytes as usize,
                reason: "the segment is full".into(),
            });
        }
        let region = self.memory.local_for_words(group, bytes)?;
        if of_fences {
            given.push(Arc::downgrade(&region));
        }
        Ok(region)
    }
}

/// An adapter whose local memory has room for so many regions of fence values.
fn with_room_for(room: usize) -> Adapter {
    let validation = validation::asked_for_by_environment();
    let instance = Instance::new(InstanceOptions { validation }).unwrap();
    let adapters = instance.adapters();
    let info = choose(&adapters, None).unwrap();
    let unit = EngineUnit::default_for(info);
    let queue = unit
        .open_queues(&instance, info, 1, validation)
        .unwrap()
        .remove(0);
    let device = Arc::clone(queue.lock().unwrap().device());
    let memory = Arc::new(memory_providers(&instance, &device, Sharers::Several, LOCAL).unwrap());
    let small = Small {
        memory: Arc::clone(&memory),
        room,
        given: Mutex::default(),
    };
    let providers = Arc::new(Providers::new(
        Arc::new(System(memory)),
        Ok(Arc::new(small)),
    ));
    let engine = ShaderEngine::new(queue, ShaderTuning::default()).unwrap();
    let engine: Box<dyn Engine> = Box::new(engine.with_providers(&providers));
    let crowd = Arc::new(Crowd::new(1));
    let node = Node::new(0, engine, NodePolicy::default(), crowd).unwrap();
    Adapter::with_driver(Driver::new(vec![node])).unwrap()
}

fn work(device: &Device, fence: &Fence) {
    let mut queue = device.create_hw_queue().unwrap();
    complete(&mut queue, CommandList::new().signal(fence, 1));
    complete(&mut queue, CommandList::new().wait(fence, 1));
    let waited = fence.wait(1, LONG);
    let expected = if fence.is_intra_gpu() {
        Err(WaitError::IntraGpu)
    } else {
        Ok(())
    };
    assert_eq!(waited, expected);
}

/// NF-29: the preferred segment is used while it has room, then the eviction segment; when there is room
/// again, the preferred one. Each fence reports where it lies, and works there.
///
/// Kills `a-full-segment-is-the-end`, `the-eviction-segment-comes-first`.
#[test]
fn nf_29_a_full_segment_spills_to_the_eviction_segment() {
    let (local, cached) = (Home::LocalHostVisible, Home::CachedSystem);
    for intra_gpu in [false, true] {
        // Five, beside the OS's own: of the third fence the one value finds room and the other does not.
        let adapter = with_room_for(6);
        let device = adapter.create_device();
        drop(device.create_hw_queue().unwrap());
        let options = options(FenceMemory::Local, true, intra_gpu);
        let mut fences = Vec::new();
        for homes in [
            (local, local),
            (local, local),
            (local, cached),
            (cached, cached),
        ] {
            let fence = device.create_fence_with(options).unwrap();
            assert_eq!(fence.memory(), homes, "fence {}", fences.len());
            work(&device, &fence);
            fences.push(fence);
        }
        drop(fences.remove(0));
        let mut fence = None;
        until("the memory of a dropped fence is there again", || {
            fence = None;
            fence = Some(device.create_fence_with(options).unwrap());
            fence.as_ref().map(Fence::memory) == Some((local, local))
        });
        let fence = fence.unwrap();
        work(&device, &fence);
        // Those that share a page do the same.
        let pooled = FenceOptions {
            shared: false,
            ..options
        };
        let pooled = device.create_fence_with(pooled).unwrap();
        assert_eq!(pooled.memory(), (cached, cached));
        work(&device, &pooled);
    }
    assert_eq!(validation::messages(), Vec::<String>::new());
}
