//! Values: the calls that wait and signal, and what a program writes to rings.

use super::arguments::{Event, Fences, ROOM};
use super::call::{Expected, HANDLE, PARAMETER, Pointer, reads};
use super::course::{Course, NOT_SUPPORTED, play};
use super::steps::{Signaller, What};
use super::things::Kind;
use bytemuck::Zeroable;
use native_fence::abi::wddm::{self, KmtHandle};
use native_fence::capi;

const MOST: u32 = wddm::MAX_OBJECT_WAITED_ON;

/// Arrays of fences and values, as calls take them.
pub(super) struct Arrays {
    handles: Vec<KmtHandle>,
    values: Vec<u64>,
    count: u32,
    /// Of the two.
    addresses: [u64; 2],
}

impl Course {
    /// The arrays of a call: they are whole whatever count it is told.
    pub(super) fn arrays(&self, fences: &Fences, of: KmtHandle) -> Arrays {
        let picked = fences.named.map(|pick| self.things.pick_beside(pick, of));
        let cycle = |at: u32| at as usize % picked.len();
        let handles: Vec<_> = (0..ROOM).map(|at| picked[cycle(at)]).collect();
        let values: Vec<_> = (0..ROOM).map(|at| fences.value[cycle(at)].0).collect();
        let addresses = [
            fences.handles.pointer.to(handles.as_ptr()),
            fences.values.to(values.as_ptr()),
        ];
        Arrays {
            handles,
            values,
            count: fences.handles.count(),
            addresses,
        }
    }

    /// What a call comes to that takes these arrays of fences of a device, which `owner` looks for after
    /// the arrays themselves.
    pub(super) fn wants_fences(
        &self,
        fences: &Fences,
        arrays: &Arrays,
        owner: impl FnOnce() -> (Expected, Option<KmtHandle>),
    ) -> Expected {
        let is_well = fences.handles.is_well(MOST) && fences.values == Pointer::Good;
        if !is_well {
            return PARAMETER;
        }
        let (expected, device) = owner();
        let named = &arrays.handles[..arrays.count as usize];
        let is_of_device = |fence: &KmtHandle| {
            let is_fence = self.things.is(*fence, Kind::Fence);
            is_fence && device.is_some() && self.things.above(*fence, Kind::Device) == device
        };
        match expected {
            Expected::Anything => HANDLE.when(!named.iter().all(is_of_device)),
            refused => refused,
        }
    }

    pub(super) fn wait(
        &mut self,
        pointer: Pointer,
        device: KmtHandle,
        fences: &Fences,
        (event, flags): (Event, u32),
    ) {
        let arrays = self.arrays(fences, device);
        let flags = wddm::WaitFromCpuFlags(flags);
        let [object_handle_array, fence_value_array] = arrays.addresses;
        let args = wddm::WaitForSynchronizationObjectFromCpu {
            device,
            object_count: arrays.count,
            object_handle_array,
            fence_value_array,
            async_event: self.events.number(event),
            flags,
            padding: 0,
        };
        let of_device = || (self.wants(device, Kind::Device), Some(device));
        let expected = self.wants_fences(fences, &arrays, of_device);
        let expected = expected.or(|| PARAMETER.when(flags.unknown() != 0));
        let expected = expected.or(|| match event {
            Event::None | Event::Own(_) => Expected::Anything,
            Event::Blocking => PARAMETER,
            Event::Pipe | Event::Wild(_) => HANDLE,
        });
        let ends = pointer != Pointer::Good
            || expected != Expected::Anything
            || arrays.values.iter().all(|value| *value == 0);
        let wait = || {
            reads!(
                NfD3DKMTWaitForSynchronizationObjectFromCpu,
                pointer,
                args,
                expected
            )
            .is_some()
        };
        if ends || args.async_event != 0 {
            let is_taken = wait();
            self.count(is_taken);
            if is_taken {
                self.events.waits(event);
            }
            return;
        }
        let is_taken = std::thread::scope(|scope| {
            let waiter = scope.spawn(wait);
            self.end_wait(device, fences, &arrays);
            waiter.join()
        });
        self.count(is_taken.unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
    }

    /// Has a wait end: by its values, if nobody can store others, or with its device.
    pub(super) fn end_wait(&mut self, device: KmtHandle, fences: &Fences, arrays: &Arrays) {
        let before = self.played.taken;
        let rewind = wddm::SignalFlags::ALLOW_FENCE_REWIND;
        self.signal(Pointer::Good, device, fences, arrays, rewind.0);
        if self.played.taken == before || self.has_submitted {
            self.destroy_device(Pointer::Good, device);
        }
    }

    pub(super) fn signal(
        &mut self,
        pointer: Pointer,
        device: KmtHandle,
        fences: &Fences,
        arrays: &Arrays,
        flags: u32,
    ) {
        let flags = wddm::SignalFlags(flags);
        let [object_handle_array, fence_value_array] = arrays.addresses;
        let args = wddm::SignalSynchronizationObjectFromCpu {
            device,
            object_count: arrays.count,
            object_handle_array,
            fence_value_array,
            flags,
            padding: 0,
        };
        let of_device = || (self.wants(device, Kind::Device), Some(device));
        let expected = self.wants_fences(fences, arrays, of_device);
        let others = flags.0 & !wddm::SignalFlags::ALLOW_FENCE_REWIND.0;
        let expected = expected.or(|| PARAMETER.when(others != 0));
        let _ = play!(
            self,
            reads!(
                NfD3DKMTSignalSynchronizationObjectFromCpu,
                pointer,
                args,
                expected
            )
        );
    }

    /// What a call comes to that names a kernel-mode queue, by itself or by its context; and its device.
    pub(super) fn wants_queue(
        &self,
        of: KmtHandle,
        is_context: bool,
    ) -> (Expected, Option<KmtHandle>) {
        let expected = if !is_context {
            self.wants(of, Kind::KernelQueue)
        } else if self.things.under(of, Kind::KernelQueue).len() == 1 {
            self.wants(of, Kind::Context)
        } else {
            self.wants(of, Kind::Context).or(|| Expected::Refusal)
        };
        (expected, self.things.above(of, Kind::Device))
    }

    pub(super) fn queue_wait(
        &mut self,
        pointer: Pointer,
        of: KmtHandle,
        fences: &Fences,
        is_context: bool,
    ) {
        let arrays = self.arrays(fences, of);
        let expected = self.wants_fences(fences, &arrays, || self.wants_queue(of, is_context));
        let [object_handle_array, values] = arrays.addresses;
        let _ = if is_context {
            let args = wddm::WaitForSynchronizationObjectFromGpu {
                context: of,
                object_count: arrays.count,
                object_handle_array,
                monitored_fence_value_array: values,
                union_rest: [0; 7],
            };
            play!(
                self,
                reads!(
                    NfD3DKMTWaitForSynchronizationObjectFromGpu,
                    pointer,
                    args,
                    expected
                )
            )
            .is_some()
        } else {
            let args = wddm::SubmitWaitForSyncObjectsToHwQueue {
                hw_queue: of,
                object_count: arrays.count,
                object_handle_array,
                fence_value_array: values,
            };
            play!(
                self,
                reads!(
                    NfD3DKMTSubmitWaitForSyncObjectsToHwQueue,
                    pointer,
                    args,
                    expected
                )
            )
            .is_some()
        };
    }

    pub(super) fn queue_signal(
        &mut self,
        pointer: Pointer,
        of: KmtHandle,
        fences: &Fences,
        (by, flags): (Signaller, u32),
        (count, named): (u32, Pointer),
    ) {
        self.has_submitted = true;
        let arrays = self.arrays(fences, of);
        let (is_context, is_broadcast) = match by {
            Signaller::Queue => (false, true),
            Signaller::Context => (true, false),
            Signaller::Contexts => (true, true),
        };
        let flags = wddm::SignalFlags(if matches!(by, Signaller::Context) {
            0
        } else {
            flags
        });
        let who = vec![of; ROOM as usize];
        let broadcast = named.to(who.as_ptr());
        let expected = self.wants_fences(fences, &arrays, || {
            let (queue, device) = self.wants_queue(of, is_context);
            if !is_broadcast || (count == 1 && named == Pointer::Good) {
                return (queue, device);
            }
            let is_count = (1..=wddm::MAX_BROADCAST_CONTEXT).contains(&count);
            let other = match (is_count, count) {
                (false, _) | (true, 1) => PARAMETER,
                (true, _) => NOT_SUPPORTED,
            };
            (other, device)
        });
        let is_flag = flags.unknown() == 0 && !flags.has(wddm::SignalFlags::INTERNAL0);
        let expected = expected.or(|| PARAMETER.when(!is_flag));
        let [object_handle_array, values] = arrays.addresses;
        let object_count = arrays.count;
        let _ = match by {
            Signaller::Queue => {
                let args = wddm::SubmitSignalSyncObjectsToHwQueue {
                    flags,
                    broadcast_hw_queue_count: count,
                    broadcast_hw_queue_array: broadcast,
                    object_count,
                    object_handle_array,
                    fence_value_array: values,
                    ..wddm::SubmitSignalSyncObjectsToHwQueue::zeroed()
                };
                play!(
                    self,
                    reads!(
                        NfD3DKMTSubmitSignalSyncObjectsToHwQueue,
                        pointer,
                        args,
                        expected
                    )
                )
                .is_some()
            }
            Signaller::Context => {
                let args = wddm::SignalSynchronizationObjectFromGpu {
                    context: of,
                    object_count,
                    object_handle_array,
                    monitored_fence_value_array: values,
                    ..wddm::SignalSynchronizationObjectFromGpu::zeroed()
                };
                play!(
                    self,
                    reads!(
                        NfD3DKMTSignalSynchronizationObjectFromGpu,
                        pointer,
                        args,
                        expected
                    )
                )
                .is_some()
            }
            Signaller::Contexts => {
                let args = wddm::SignalSynchronizationObjectFromGpu2 {
                    flags,
                    broadcast_context_count: count,
                    broadcast_context_array: broadcast,
                    object_count,
                    object_handle_array,
                    monitored_fence_value_array: values,
                    ..wddm::SignalSynchronizationObjectFromGpu2::zeroed()
                };
                play!(
                    self,
                    reads!(
                        NfD3DKMTSignalSynchronizationObjectFromGpu2,
                        pointer,
                        args,
                        expected
                    )
                )
                .is_some()
            }
        };
    }

    pub(super) fn submit_command(&mut self, pointer: Pointer, queue: KmtHandle, command: &What) {
        let What::SubmitCommand {
            commands,
            bytes,
            opcodes,
            fence,
            value,
            progress,
            rest: [buffer, primaries],
        } = command
        else {
            return;
        };
        self.has_submitted = true;
        const SIZE: u32 = size_of::<capi::HwQueueCommand>() as u32;
        let fence = self.things.pick_beside(*fence, queue);
        let of = |at: u32| {
            // Those that do nothing and signals mostly.
            let opcode = u32::from(opcodes[at as usize % opcodes.len()]);
            let opcode = if opcode < 192 {
                1 + opcode % 2 * 2
            } else {
                opcode
            };
            let is_nop = opcode == 1;
            capi::HwQueueCommand {
                opcode,
                sync_object: if is_nop { 0 } else { fence },
                fence_value: if is_nop { 0 } else { value.0 },
            }
        };
        let given: Vec<_> = (0..ROOM).map(of).collect();
        let size = commands.count().wrapping_mul(SIZE).wrapping_add(bytes.0);
        let count = size / SIZE;
        let most = ROOM - 1;
        let is_size = size.is_multiple_of(SIZE) && (1..=most).contains(&count);
        let told = &given[..count.min(most) as usize];
        let signals = told.iter().filter(|command| command.opcode == 3).count() as u64;
        let last = self
            .things
            .get(queue, Kind::KernelQueue)
            .map(|queue| queue.progress);
        let next = last.unwrap_or(0) + 1 + signals;
        let args = wddm::SubmitCommandToHwQueue {
            hw_queue: queue,
            progress_fence_id: next.wrapping_add(progress.0.into()),
            command_buffer: buffer.0.into(),
            private_driver_data_size: size,
            private_driver_data: commands.pointer.to(given.as_ptr()),
            num_primaries: primaries.0,
            ..wddm::SubmitCommandToHwQueue::zeroed()
        };
        let is_known = |opcode: u32| opcode == 1 || opcode == 3;
        let is_fence = self.things.is(fence, Kind::Fence)
            && self.things.above(fence, Kind::Device) == self.things.above(queue, Kind::Device);
        let is_well = told.iter().all(|command| is_known(command.opcode))
            && (signals == 0 || is_fence)
            && progress.0 == 0;
        let expected = PARAMETER.when(!is_size || commands.pointer != Pointer::Good);
        let expected = expected.or(|| self.wants(queue, Kind::KernelQueue));
        let expected = expected.or(|| NOT_SUPPORTED.when(buffer.0 != 0 || primaries.0 != 0));
        let expected = expected.or(|| Expected::Refusal.when(!is_well));
        let left = play!(
            self,
            reads!(NfD3DKMTSubmitCommandToHwQueue, pointer, args, expected)
        );
        if let (Some(_), Some(queue)) = (left, self.things.get_mut(queue, Kind::KernelQueue)) {
            queue.progress = next;
        }
    }

    /// Puts packets into a queue's ring and rings, as the header for that does.
    pub(super) fn packets(
        &mut self,
        queue: KmtHandle,
        packets: [(u8, u32, u64); 2],
        number: u32,
        off: i8,
    ) {
        let doorbell = self.things.under(queue, Kind::Doorbell).first().copied();
        let thing = self.things.get_mut(queue, Kind::UserQueue);
        let Some(ring) = thing.and_then(|queue| queue.ring.as_mut()) else {
            return;
        };
        for (opcode, handle, value) in packets {
            ring.packet(opcode, handle, number.into(), value);
        }
        let status = ring.submit(off);
        self.has_submitted = true;
        let Some(doorbell) = doorbell else { return };
        match status {
            Some(wddm::DoorbellStatus::CONNECTED_NOTIFY_KMD) => {
                self.notify(Pointer::Good, doorbell, 0);
            }
            Some(wddm::DoorbellStatus::DISCONNECTED_RETRY) => {
                self.connect_doorbell(Pointer::Good, doorbell, 0);
            }
            _ => {}
        }
    }
}
