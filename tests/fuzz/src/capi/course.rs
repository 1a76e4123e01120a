//! Course: calls one after the other, each with what it must come to by what those before it made.

use super::Played;
use super::arguments::Seldom;
use super::call::{Expected, HANDLE, Pointer, check_last_error, reads};
use super::events::Events;
use super::steps::{Signaller, Step, What};
use super::things::{Kind, Pick, Things};
use crate::unwatched;
use bytemuck::Zeroable;
use native_fence::Adapter;
use native_fence::abi::wddm::{self, KmtHandle, NtStatus};
use native_fence::capi;
use native_fence::gpu::ModelMemory;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(super) const NOT_SUPPORTED: Expected = Expected::Exactly(NtStatus::NOT_SUPPORTED);

const LONG: Duration = Duration::from_secs(20);

/// See the file's head.
pub(super) struct Course {
    pub(super) things: Things,
    pub(super) events: Events,
    adapter: Adapter,
    memory: Arc<ModelMemory>,
    pub(super) played: Played,
    /// A queue may store values at any time.
    pub(super) has_submitted: bool,
}

/// A step's call, with this pointer; what it has left is kept.
macro_rules! play {
    ($course:ident, $calls:ident!($function:ident, $pointer:expr, $args:expr, $expected:expr)) => {{
        let left = $calls!($function, $pointer, $args, $expected);
        $course.count(left.is_some());
        left
    }};
}
pub(super) use play;

impl Course {
    /// One that has an adapter, two devices, and on each of them a few things.
    pub(super) fn new() -> Self {
        let (adapter, memory) = unwatched::adapter();
        let mut course = Self {
            things: Things::default(),
            events: Events::new(),
            adapter,
            memory,
            played: Played::default(),
            has_submitted: false,
        };
        course.furnish();
        course
    }

    /// Makes anew what a course cannot do without: an adapter, two devices, and on each of them a few things.
    fn furnish(&mut self) {
        if self.things.first(Kind::Adapter).is_none() {
            self.open();
        }
        let adapter = self.things.pick(Pick::Live(0), Kind::Adapter);
        while self.things.all_of(Kind::Device).len() < 2 {
            self.create_device(Pointer::Good, adapter, [0; 2]);
        }
        for device in self.things.all_of(Kind::Device) {
            if !self.things.under(device, Kind::Context).is_empty() {
                continue;
            }
            for flags in [0, 0, 3] {
                let info = wddm::NativeFenceInfo {
                    flags: wddm::SynchronizationObjectFlags(flags),
                    ..wddm::NativeFenceInfo::zeroed()
                };
                self.create_native_fence(Pointer::Good, device, info, 0);
            }
            self.create_context(Pointer::Good, device, [0, 1, 0, 0]);
            for context in self.things.under(device, Kind::Context) {
                self.create_user_queue(Pointer::Good, context, [0; 3], 0);
                self.create_kernel_queue(Pointer::Good, context, [0; 2]);
            }
            for queue in self.things.under(device, Kind::UserQueue) {
                self.create_doorbell(Pointer::Good, queue, [0; 4]);
            }
        }
    }

    /// A handle for the adapter: the one call that is none of C's.
    fn open(&mut self) {
        let handle = capi::adapter_handle(self.adapter.clone()).expect("a handle");
        self.things.add(Kind::Adapter, handle, 0);
    }

    pub(super) fn count(&mut self, is_taken: bool) {
        self.played.taken += u64::from(is_taken);
        self.played.refused += u64::from(!is_taken);
    }

    /// What a call comes to that wants a thing of this kind.
    pub(super) fn wants(&self, handle: KmtHandle, kind: Kind) -> Expected {
        HANDLE.when(!self.things.is(handle, kind))
    }

    /// All is closed, and nothing is left.
    ///
    /// # Panics
    /// If something is.
    pub(super) fn end(mut self) -> Played {
        while let Some(adapter) = self.things.first(Kind::Adapter) {
            self.close_adapter(Pointer::Good, adapter);
        }
        assert_eq!(capi::open_handles(), 0);
        self.events.end();
        assert!(self.adapter.os().stopped().is_none());
        let system = Arc::downgrade(self.adapter.os());
        drop(self.adapter);
        // Threads of the driver's and the system's may be on their way out of it.
        let begin = Instant::now();
        while system.strong_count() > 0 {
            assert!(begin.elapsed() < LONG, "something has the adapter still");
            std::thread::yield_now();
        }
        assert_eq!(self.memory.violations(), []);
        self.played
    }

    /// # Panics
    /// If a call does what it may not.
    pub(super) fn step(&mut self, Step { pointer, of, what }: Step) {
        let pick = |kind| self.things.pick(of, kind);
        match what {
            What::OpenAdapter(is_empty) => self.open_adapter(pointer, is_empty),
            What::QueryAdapter { kind, place, bytes } => {
                let adapter = pick(Kind::Adapter);
                self.query_adapter(pointer, adapter, (kind.0, place, bytes.0));
            }
            What::CloseAdapter(Seldom(true)) => self.close_adapter(pointer, pick(Kind::Adapter)),
            What::CloseAdapter(_) | What::DestroyContext(Seldom(false)) => {}
            What::CreateDevice { flags, padding } => {
                let adapter = pick(Kind::Adapter);
                self.create_device(pointer, adapter, [flags.0, padding.0]);
            }
            What::EndDevice {
                flags,
                milliseconds,
            } => self.end_device(pointer, pick(Kind::Device), flags.0, milliseconds.0),
            What::DestroyDevice(Seldom(true)) => self.destroy_device(pointer, pick(Kind::Device)),
            What::DestroyDevice(_) | What::GetDeviceState(_) => {
                let state = match what {
                    What::GetDeviceState(state) => state.0,
                    _ => 1,
                };
                self.get_device_state(pointer, pick(Kind::Device), state);
            }
            What::CreateNativeFence {
                kind,
                flags,
                affinity,
                initial,
                flags_of_call,
            } => {
                let info = wddm::NativeFenceInfo {
                    initial_fence_value: initial.0,
                    engine_affinity: affinity.0,
                    fence_type: wddm::NativeFenceType(kind.0),
                    flags: wddm::SynchronizationObjectFlags(flags.0),
                    ..wddm::NativeFenceInfo::zeroed()
                };
                self.create_native_fence(pointer, pick(Kind::Device), info, flags_of_call.0);
            }
            What::CreateMonitoredFence {
                kind,
                flags,
                affinity,
                initial,
            } => {
                let monitored = wddm::SynchronizationObjectType::MONITORED_FENCE.0;
                let info = wddm::SynchronizationObjectInfo2 {
                    object_type: wddm::SynchronizationObjectType(monitored ^ kind.0),
                    flags: wddm::SynchronizationObjectFlags(flags.0),
                    initial_fence_value: initial.0,
                    engine_affinity: affinity.0,
                    ..wddm::SynchronizationObjectInfo2::zeroed()
                };
                self.create_monitored_fence(pointer, pick(Kind::Device), info);
            }
            What::DestroyFence => self.destroy_fence(pointer, pick(Kind::Fence)),
            What::ShareObject => self.share(pointer, pick(Kind::Fence)),
            What::OpenShared {
                handle,
                flags,
                affinity,
            } => {
                let device = pick(Kind::Device);
                let number = self.events.shared(handle);
                let expected = HANDLE.when(!self.events.is_shared(handle));
                self.open_shared(pointer, device, (number, expected), [flags.0, affinity.0]);
            }
            What::CreateContext {
                node,
                affinity,
                flags,
                private,
            } => {
                let rest = [node.0, 1 ^ affinity.0, flags.0, private.0];
                self.create_context(pointer, pick(Kind::Device), rest);
            }
            What::DestroyContext(Seldom(true)) => {
                let context = pick(Kind::Context);
                let args = wddm::DestroyHwContext {
                    hw_context: context,
                };
                let expected = self.wants(context, Kind::Context);
                if play!(
                    self,
                    reads!(NfD3DKMTDestroyHwContext, pointer, args, expected)
                )
                .is_some()
                {
                    self.things.remove(context);
                }
            }
            What::CreateUserQueue {
                flags,
                rings,
                capacity,
            } => {
                let rest = [flags.0, rings[0].0, rings[1].0];
                self.create_user_queue(pointer, pick(Kind::Context), rest, capacity.0);
            }
            What::CreateKernelQueue { flags, private } => {
                let rest = [flags.0, private.0];
                self.create_kernel_queue(pointer, pick(Kind::Context), rest);
            }
            What::DestroyQueue => {
                let kinds = [Kind::UserQueue, Kind::KernelQueue];
                let hw_queue = pick(kinds[self.played.taken as usize % 2]);
                let args = wddm::DestroyHwQueue { hw_queue };
                let expected = HANDLE.when(!self.things.is_queue(hw_queue));
                if play!(
                    self,
                    reads!(NfD3DKMTDestroyHwQueue, pointer, args, expected)
                )
                .is_some()
                {
                    self.things.remove(hw_queue);
                }
            }
            What::CreateDoorbell {
                flags,
                rings,
                private,
            } => {
                let rest = [flags.0, rings[0].0, rings[1].0, private.0];
                self.create_doorbell(pointer, pick(Kind::UserQueue), rest);
            }
            What::ConnectDoorbell(flags) => {
                let doorbell = pick(Kind::Doorbell);
                self.connect_doorbell(pointer, doorbell, flags.0);
            }
            What::NotifyWorkSubmission(flags) => {
                let doorbell = pick(Kind::Doorbell);
                self.notify(pointer, doorbell, flags.0);
            }
            What::DestroyDoorbell => {
                let doorbell = pick(Kind::Doorbell);
                let args = wddm::DestroyDoorbell { doorbell };
                let expected = self.wants(doorbell, Kind::Doorbell);
                if play!(
                    self,
                    reads!(NfD3DKMTDestroyDoorbell, pointer, args, expected)
                )
                .is_some()
                {
                    self.things.remove(doorbell);
                }
            }
            What::WaitFromCpu {
                fences,
                event,
                flags,
            } => self.wait(pointer, pick(Kind::Device), &fences, (event, flags.0)),
            What::SignalFromCpu { fences, flags } => {
                let device = pick(Kind::Device);
                let arrays = self.arrays(&fences, device);
                self.signal(pointer, device, &fences, &arrays, flags.0);
            }
            What::QueueWait { fences, of_context } => {
                let kind = if of_context {
                    Kind::Context
                } else {
                    Kind::KernelQueue
                };
                self.queue_wait(pointer, pick(kind), &fences, of_context);
            }
            What::QueueSignal {
                fences,
                by,
                flags,
                count,
                named,
            } => {
                let kind = match by {
                    Signaller::Queue => Kind::KernelQueue,
                    Signaller::Context | Signaller::Contexts => Kind::Context,
                };
                let signaller = (by, flags.0);
                self.queue_signal(
                    pointer,
                    pick(kind),
                    &fences,
                    signaller,
                    (1 ^ count.0, named),
                );
            }
            command @ What::SubmitCommand { .. } => {
                self.submit_command(pointer, pick(Kind::KernelQueue), &command);
            }
            What::Packets {
                packets,
                number,
                off,
            } => {
                let queue = pick(Kind::UserQueue);
                let packets = packets.map(|(opcode, fence, value)| {
                    let fence = self.things.pick_beside(fence, queue);
                    let fence = self.things.get(fence, Kind::Fence);
                    (
                        opcode % 6,
                        fence.map_or(77, |fence| fence.packet_handle),
                        value.0,
                    )
                });
                self.packets(queue, packets, number.0, off.0 as i8);
            }
            What::LastErrorText(bytes) => check_last_error(bytes.into()),
        }
        self.things.check();
        self.furnish();
    }
}
