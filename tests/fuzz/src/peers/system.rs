//! System: an operating system over an engine of its own, and a fence that two of them have open.

use crate::unwatched;
use native_fence::abi::OpenerSlot;
use native_fence::conform::until;
use native_fence::gpu::ModelMemory;
use native_fence::os::NativeFence;
use native_fence::shared::Block;
use native_fence::{Adapter, Device, Fence, FenceOptions, HwQueue, SharedHandle};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

/// An operating system, with an engine of its own. The queues go before what they are of.
pub(super) struct System {
    pub(super) queue: HwQueue,
    /// Stands at waits.
    pub(super) waiting: HwQueue,
    pub(super) device: Device,
    adapter: Adapter,
    memory: Arc<ModelMemory>,
}

impl System {
    pub(super) fn new() -> Self {
        let (adapter, memory) = unwatched::adapter();
        let device = adapter.create_device();
        let queue = || device.create_hw_queue().expect("a queue");
        Self {
            queue: queue(),
            waiting: queue(),
            device,
            adapter,
            memory,
        }
    }

    /// All of it goes.
    ///
    /// # Panics
    /// Something has it still, or its engine did what none may.
    pub(super) fn end(self) {
        assert!(self.adapter.os().stopped().is_none(), "it was stopped");
        let system = Arc::downgrade(self.adapter.os());
        drop((self.queue, self.waiting, self.device, self.adapter));
        // Threads may be on their way out of it.
        let has_ended = || system.strong_count() == 0;
        until("nothing has the adapter", has_ended).expect("it goes");
        assert_eq!(self.memory.violations(), []);
    }
}

/// A fence that both have open.
pub(super) struct Shared {
    /// `None` where it could not be opened again.
    pub(super) fences: [Option<Fence>; 2],
    /// What whoever has it open opens it by again.
    pub(super) handle: SharedHandle,
    pub(super) current: Block,
    pub(super) page: Block,
    pub(super) files: [OwnedFd; 2],
}

impl Shared {
    pub(super) fn new(systems: &[System; 2], initial: u64, as_descriptor: bool) -> Self {
        let options = FenceOptions {
            initial,
            shared: true,
            ..FenceOptions::default()
        };
        let made = systems[0].device.create_fence_with(options);
        let made = made.expect("a fence");
        let handle = passed(&made, as_descriptor);
        let opened = systems[1].device.open_fence(&handle).expect("a slot");
        let native = made.object().fence();
        let places = [native.current_value_place(), native.monitored_value_place()];
        let [current, page] = places.map(|(region, _)| {
            let mapping = region.map().expect("memory");
            Block::whole(&mapping)
        });
        let files = places.map(|(region, _)| {
            let file = region.descriptor().expect("a file of memory");
            file.try_clone_to_owned().expect("a descriptor")
        });
        let at = places[0].1;
        Self {
            current: current.part(at, 8),
            page,
            files,
            fences: [Some(made), Some(opened)],
            handle,
        }
    }

    pub(super) fn current_value(&self) -> u64 {
        self.current.word(0).observe()
    }

    /// Both have looked at the page after this was called.
    ///
    /// # Panics
    /// One does not hear any more.
    pub(super) fn look(&self) {
        for fence in self.fences.iter().flatten() {
            let native = fence.object().fence();
            // One look may have begun before: the next begins when it has ended.
            for _ in 0..2 {
                self.call(native);
            }
            // Which the look has until it has ended.
            let _ = native.waits();
        }
    }

    fn call(&self, native: &NativeFence) {
        let (_, at) = native.monitored_value_place();
        let calls = self
            .page
            .word(at / OpenerSlot::BYTES * OpenerSlot::BYTES + OpenerSlot::CALLS);
        let heard = native.peer_counters().heard;
        let mut looks = 0_u32;
        let hears = || {
            // Once; again where a scribbled word was what it slept for by then.
            if looks.is_multiple_of(1024) {
                calls.call();
            }
            looks += 1;
            native.peer_counters().heard != heard
        };
        until("an operating system hears of the others", hears).expect("its thread goes on");
    }
}

fn passed(fence: &Fence, as_descriptor: bool) -> SharedHandle {
    let handle = fence.share().expect("it was created shared");
    if as_descriptor {
        let descriptor = handle.to_descriptor().expect("descriptors");
        return SharedHandle::of_descriptor(descriptor).expect("a fence");
    }
    let (here, there) = UnixStream::pair().expect("two sockets");
    handle.send(&here).expect("there is room");
    SharedHandle::receive(&there).expect("a fence")
}
