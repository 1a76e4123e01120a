//! Memory of a real device: what a shader writes into it arrives.

#![allow(clippy::unwrap_used, reason = "tests, and their helpers")]

mod vulkan_support;

use native_fence::abi::WordGroup;
use native_fence::shared::{Block, DeviceMemory, Exported, Provider, Region};
use native_fence::vulkan::{
    Buffer, Exporter, FdImport, Home, HostImport, HostPages, ImportError, LocalMemory, Reuse,
    Timeline,
};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use vulkan_support::{Bench, Memfd, PAGE, adds, queue, reached, word};

#[test]
fn a_shader_writes_into_an_imported_page() {
    let bench = Bench::new();
    let memory = Arc::new(Memfd::new(2 * PAGE));
    let import = HostImport::new(&bench.device, Arc::clone(&memory)).unwrap();
    memory.word(3).store(40, Ordering::Relaxed);
    let commands = adds(&bench, 2, import.gpu_va() + 12, Reuse::OneAtATime);
    let done = Timeline::new(&bench.device, 0).unwrap();
    let mut queue = queue(&bench.device);

    queue.submit_one(Some(&commands), None, (&done, 1)).unwrap();
    reached(&done, 1);

    assert_eq!(memory.word(3).load(Ordering::Relaxed), 42);
    assert_eq!(import.bytes(), 2 * PAGE as u64);
}

#[test]
fn an_import_keeps_its_pages_mapped() {
    let bench = Bench::new();
    let memory = Arc::new(Memfd::new(PAGE));
    let weak = Arc::downgrade(&memory);
    let import = HostImport::new(&bench.device, memory).unwrap();
    assert!(weak.upgrade().is_some());
    drop(import);
    assert!(weak.upgrade().is_none());
}

#[test]
fn a_page_may_be_imported_into_two_devices_and_both_write() {
    let benches = [Bench::new(), Bench::new()];
    let memory = Arc::new(Memfd::new(PAGE));
    for (bench, value) in benches.iter().zip([1, 10]) {
        let import = HostImport::new(&bench.device, Arc::clone(&memory)).unwrap();
        let commands = adds(bench, value, import.gpu_va(), Reuse::OneAtATime);
        let done = Timeline::new(&bench.device, 0).unwrap();
        queue(&bench.device)
            .submit_one(Some(&commands), None, (&done, 1))
            .unwrap();
        reached(&done, 1);
    }
    assert_eq!(memory.word(0).load(Ordering::Relaxed), 11);
}

#[test]
fn half_a_page_is_not_imported() {
    let bench = Bench::new();
    let memory = Arc::new(Memfd::new(PAGE));
    let (start, keep) = (memory.pages().0, memory);
    // SAFETY: part of a mapping that `keep` holds.
    let refused = unsafe { HostImport::from_raw(&bench.device, start, PAGE / 2, keep) };
    assert_eq!(
        refused.unwrap_err(),
        ImportError::Misaligned {
            alignment: PAGE as u64
        }
    );
}

#[test]
fn a_buffer_is_zero_in_every_home_and_takes_what_a_shader_writes() {
    let bench = Bench::new();
    let mut queue = queue(&bench.device);
    let done = Timeline::new(&bench.device, 0).unwrap();
    let homes = [
        Home::DeviceLocal,
        Home::DeviceLocalHostVisible,
        Home::CachedSystem,
    ];
    for (turn, home) in (1..).zip(homes) {
        let buffer = Arc::new(Buffer::new(&bench.device, 256, home, "test").unwrap());
        assert_ne!(buffer.gpu_va(), 0);
        if bench.device.adapter().features.local_memory == LocalMemory::SameAsSystem {
            assert_eq!(buffer.home(), home);
        }
        let commands = adds(&bench, 7, buffer.gpu_va() + 4, Reuse::OneAtATime);
        queue
            .submit_one(Some(&commands), None, (&done, turn))
            .unwrap();
        reached(&done, turn);
        if let Some(start) = buffer.mapped() {
            let words = [0, 1, 2].map(|i| word(start, i).load(Ordering::Relaxed));
            assert_eq!(words, [0, 7, 0]);
        }
        buffer.zero(&mut queue).unwrap();
        if let Some(start) = buffer.mapped() {
            assert_eq!(word(start, 1).load(Ordering::Relaxed), 0);
        }
    }
}

/// Memory of a device that runs nothing is imported by two others, by turns: what one stored the
/// other finds and the host reads, after the first and its device are gone.
///
/// Kills `exported-memory-is-not-shared`.
#[test]
fn exported_memory_outlives_the_devices_that_imported_it() {
    let exporter = Bench::new();
    let adapter = exporter.device.adapter();
    let provider = Exporter::of_local_memory(exporter.device.instance(), adapter).unwrap();
    let region = provider.region(WordGroup::CurrentValues, 1).unwrap();
    assert_eq!((region.len(), region.home()), (PAGE, provider.home()));
    let host = Block::whole(&region.map().unwrap());
    assert_eq!(host.word(0).observe(), 0, "it begins with zeros");
    for (increment, sum) in [(5, 5), (30, 35)] {
        let bench = Bench::new();
        let import = FdImport::new(&bench.device, &region).unwrap();
        let commands = adds(&bench, increment, import.gpu_va(), Reuse::OneAtATime);
        let done = Timeline::new(&bench.device, 0).unwrap();
        let mut queue = queue(&bench.device);
        queue.submit_one(Some(&commands), None, (&done, 1)).unwrap();
        reached(&done, 1);
        drop((queue, commands, import, bench));
        assert_eq!(host.word(0).observe(), sum);
    }
    drop(provider);
    host.word(0).publish(7);
    assert_eq!(host.word(0).observe(), 7, "the region keeps its device");
}

/// What was not exported, or by another device, is refused before the driver is asked: it could not
/// tell.
///
/// Kills `descriptors-of-any-device`.
#[test]
fn only_what_the_same_device_exported_is_imported() {
    let bench = Bench::new();
    let pages = Region::for_words(WordGroup::CurrentValues, 8).unwrap();
    let refused = FdImport::new(&bench.device, &pages).unwrap_err();
    assert_eq!(refused, ImportError::NotExported);

    let adapter = bench.device.adapter();
    let provider = Exporter::of_local_memory(bench.device.instance(), adapter).unwrap();
    let region = provider.region(WordGroup::CurrentValues, 8).unwrap();
    let identity = region.exported().unwrap().identity;
    let own = (adapter.uuid, adapter.driver_uuid);
    assert_eq!((identity.device, identity.driver), own);
    let (group, home) = (WordGroup::CurrentValues, region.home());
    let foreign = Region::of_device(group, home, true, Box::new(Foreign(region)));
    let refused = FdImport::new(&bench.device, &foreign).unwrap_err();
    assert_eq!(refused, ImportError::OtherDevice);
}

/// Memory that says that another driver exported it.
#[derive(Debug)]
struct Foreign(Arc<Region>);

// SAFETY: the mapping of the region that it keeps.
unsafe impl DeviceMemory for Foreign {
    fn pages(&self) -> (std::ptr::NonNull<u8>, usize) {
        (self.0.map().unwrap().start(), self.0.len())
    }

    fn memory_type(&self) -> u32 {
        self.0.exported().unwrap().memory_type
    }

    fn exported(&self) -> Option<Exported<'_>> {
        let mut exported = self.0.exported().unwrap();
        exported.identity.driver[0] ^= 1;
        Some(exported)
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}
