//! Objects: the calls that make, ask, share and destroy.

use super::call::{Expected, HANDLE, PARAMETER, Pointer, fills, reads};
use super::course::{Course, NOT_SUPPORTED, play};
use super::events;
use super::ring::Ring;
use super::things::Kind;
use bytemuck::Zeroable;
use native_fence::abi::wddm::{self, KmtHandle, NtStatus};
use native_fence::capi;

/// How long a call waits at most for queues that never end.
const FEW_MILLISECONDS: u64 = 3;

impl Course {
    pub(super) fn open_adapter(&mut self, pointer: Pointer, is_empty: bool) {
        let name = if is_empty { c"" } else { c"\xff\xfe" };
        let args = capi::OpenAdapter {
            device_name: name.as_ptr().expose_provenance() as u64,
            ..capi::OpenAdapter::zeroed()
        };
        let _ = play!(self, fills!(NfOpenAdapter, pointer, args, PARAMETER));
    }

    pub(super) fn query_adapter(
        &mut self,
        pointer: Pointer,
        adapter: KmtHandle,
        (kind, place, bytes): (u32, Pointer, u32),
    ) {
        let mut answer = [u32::MAX; 2];
        let kind = if kind % 2 == 0 { 80 } else { kind };
        let args = wddm::QueryAdapterInfo {
            adapter,
            info_type: wddm::QueryAdapterInfoType(kind),
            private_driver_data: place.to(&raw mut answer[0]),
            private_driver_data_size: bytes,
            padding: 0,
        };
        let too_small = Expected::Exactly(NtStatus::BUFFER_TOO_SMALL);
        let handle = self.wants(adapter, Kind::Adapter);
        let is_good = place == Pointer::Good;
        // An address that cannot be is found before or after the rest.
        let expected = if is_good {
            let size = || too_small.when(bytes < 4);
            handle.or(|| NOT_SUPPORTED.when(kind != 80)).or(size)
        } else {
            handle.or(|| Expected::Refusal)
        };
        let left = play!(
            self,
            reads!(NfD3DKMTQueryAdapterInfo, pointer, args, expected)
        );
        let written = u32::from(left.is_some());
        let [answer, behind] = answer;
        assert_eq!(
            (answer, behind),
            (if written == 1 { 1 } else { u32::MAX }, u32::MAX)
        );
    }

    pub(super) fn close_adapter(&mut self, pointer: Pointer, adapter: KmtHandle) {
        let args = wddm::CloseAdapter { adapter };
        let expected = self.wants(adapter, Kind::Adapter);
        if play!(self, reads!(NfD3DKMTCloseAdapter, pointer, args, expected)).is_some() {
            self.things.remove(adapter);
        }
    }

    pub(super) fn create_device(
        &mut self,
        pointer: Pointer,
        adapter: KmtHandle,
        [flags, padding]: [u32; 2],
    ) {
        let args = wddm::CreateDevice {
            adapter,
            flags,
            padding,
            ..wddm::CreateDevice::zeroed()
        };
        let expected = self.wants(adapter, Kind::Adapter);
        let expected = expected.or(|| PARAMETER.when(flags != 0 || padding != 0));
        if let Some(left) = play!(self, fills!(NfD3DKMTCreateDevice, pointer, args, expected)) {
            self.things.add(Kind::Device, left.device, adapter);
        }
    }

    pub(super) fn end_device(
        &mut self,
        pointer: Pointer,
        device: KmtHandle,
        flags: u32,
        milliseconds: u64,
    ) {
        let kinds = [Kind::UserQueue, Kind::KernelQueue];
        let mut queues = kinds
            .iter()
            .map(|kind| self.things.under(device, *kind).len());
        // Its queues may stand at waits for ever.
        let waits = flags == 0 && queues.any(|queues| queues > 0);
        let milliseconds = if waits {
            milliseconds % FEW_MILLISECONDS
        } else {
            milliseconds
        };
        let args = capi::EndDevice {
            device,
            flags,
            timeout_in_milliseconds: milliseconds,
        };
        let expected = self.wants(device, Kind::Device);
        let expected = expected.or(|| PARAMETER.when(flags != 0));
        let _ = play!(self, reads!(NfEndDevice, pointer, args, expected));
    }

    pub(super) fn destroy_device(&mut self, pointer: Pointer, device: KmtHandle) {
        let args = wddm::DestroyDevice { device };
        let expected = self.wants(device, Kind::Device);
        if play!(self, reads!(NfD3DKMTDestroyDevice, pointer, args, expected)).is_some() {
            self.things.remove(device);
        }
    }

    pub(super) fn get_device_state(&mut self, pointer: Pointer, device: KmtHandle, state: u32) {
        let state_type = wddm::DeviceStateType(state);
        let args = wddm::GetDeviceState {
            device,
            state_type,
            ..wddm::GetDeviceState::zeroed()
        };
        let is_offered = state_type == wddm::DeviceStateType::EXECUTION;
        let expected = self.wants(device, Kind::Device);
        let expected = expected.or(|| NOT_SUPPORTED.when(!is_offered));
        let _ = play!(
            self,
            fills!(NfD3DKMTGetDeviceState, pointer, args, expected)
        );
    }

    pub(super) fn create_native_fence(
        &mut self,
        pointer: Pointer,
        device: KmtHandle,
        info: wddm::NativeFenceInfo,
        flags: u32,
    ) {
        let args = wddm::CreateNativeFence {
            device,
            info,
            flags,
            ..wddm::CreateNativeFence::zeroed()
        };
        let expected = self.wants(device, Kind::Device);
        let expected = expected.or(|| PARAMETER.when(flags != 0));
        let expected = expected.or(|| self.fence_flags(info.flags.0, info.engine_affinity));
        let left = play!(
            self,
            fills!(NfD3DKMTCreateNativeFence, pointer, args, expected)
        );
        if let Some(left) = left {
            let private: capi::NativeFencePrivateData = bytemuck::cast(left.private_driver_data);
            let fence = self.things.add(Kind::Fence, left.sync_object, device);
            fence.packet_handle = private.packet_handle;
        }
    }

    /// Some bits make no fence.
    #[allow(clippy::unused_self, reason = "as its neighbours")]
    pub(super) fn fence_flags(&self, flags: u32, affinity: u32) -> Expected {
        type Flags = wddm::SynchronizationObjectFlags;
        let neither = Flags::NO_SIGNAL.with(Flags::NO_WAIT);
        let flags = wddm::SynchronizationObjectFlags(flags);
        let is_none = flags.unknown() != 0 || flags.has(Flags::RESERVED0) || flags.has(neither);
        if is_none || affinity > 1 {
            Expected::Refusal
        } else {
            Expected::Anything
        }
    }

    pub(super) fn create_monitored_fence(
        &mut self,
        pointer: Pointer,
        device: KmtHandle,
        info: wddm::SynchronizationObjectInfo2,
    ) {
        let args = wddm::CreateSynchronizationObject2 {
            device,
            info,
            ..wddm::CreateSynchronizationObject2::zeroed()
        };
        let is_monitored = info.object_type == wddm::SynchronizationObjectType::MONITORED_FENCE;
        let expected = self.wants(device, Kind::Device);
        let expected = expected.or(|| Expected::Refusal.when(!is_monitored));
        let expected = expected.or(|| self.fence_flags(info.flags.0, info.engine_affinity));
        let left = play!(
            self,
            fills!(
                NfD3DKMTCreateSynchronizationObject2,
                pointer,
                args,
                expected
            )
        );
        if let Some(left) = left {
            self.things.add(Kind::Fence, left.sync_object, device);
        }
    }

    pub(super) fn destroy_fence(&mut self, pointer: Pointer, fence: KmtHandle) {
        let args = wddm::DestroySynchronizationObject { sync_object: fence };
        let thing = self.things.get(fence, Kind::Fence);
        let is_progress = thing.is_some_and(|fence| fence.is_progress);
        let expected = self
            .wants(fence, Kind::Fence)
            .or(|| PARAMETER.when(is_progress));
        let left = play!(
            self,
            reads!(
                NfD3DKMTDestroySynchronizationObject,
                pointer,
                args,
                expected
            )
        );
        if left.is_some() {
            self.things.remove(fence);
        }
    }

    pub(super) fn share(&mut self, pointer: Pointer, fence: KmtHandle) {
        let args = capi::ShareObject {
            sync_object: fence,
            ..capi::ShareObject::zeroed()
        };
        let expected = self.wants(fence, Kind::Fence);
        if let Some(left) = play!(self, fills!(NfShareObject, pointer, args, expected)) {
            self.events.keep(events::given(left.nt_handle));
        }
    }

    pub(super) fn open_shared(
        &mut self,
        pointer: Pointer,
        device: KmtHandle,
        (nt_handle, of_handle): (u64, Expected),
        [flags, affinity]: [u32; 2],
    ) {
        let args = wddm::OpenNativeFenceFromNtHandle {
            nt_handle,
            device,
            engine_affinity: affinity,
            flags: wddm::SynchronizationObjectFlags(flags),
            ..wddm::OpenNativeFenceFromNtHandle::zeroed()
        };
        // What is behind a descriptor is looked at last.
        let is_number = nt_handle < 1 << 30;
        let expected = HANDLE
            .when(!is_number)
            .or(|| self.wants(device, Kind::Device));
        let expected = expected.or(|| PARAMETER.when(flags != 0 || affinity > 1));
        let expected = expected.or(|| of_handle);
        let left = play!(
            self,
            fills!(NfD3DKMTOpenNativeFenceFromNtHandle, pointer, args, expected)
        );
        if let Some(left) = left {
            let [a, b, c, d, ..] = left.reserved;
            let fence = self.things.add(Kind::Fence, left.sync_object, device);
            fence.packet_handle = u32::from_ne_bytes([a, b, c, d]);
        }
    }

    pub(super) fn create_context(
        &mut self,
        pointer: Pointer,
        device: KmtHandle,
        [node, affinity, flags, private]: [u32; 4],
    ) {
        let args = wddm::CreateHwContext {
            device,
            node_ordinal: node,
            engine_affinity: affinity,
            flags,
            private_driver_data_size: private,
            ..wddm::CreateHwContext::zeroed()
        };
        let is_well = [node, affinity, flags, private] == [0, 1, 0, 0];
        let expected = self.wants(device, Kind::Device);
        let expected = expected.or(|| PARAMETER.when(!is_well));
        if let Some(left) = play!(
            self,
            fills!(NfD3DKMTCreateHwContext, pointer, args, expected)
        ) {
            self.things.add(Kind::Context, left.hw_context, device);
        }
    }

    pub(super) fn create_user_queue(
        &mut self,
        pointer: Pointer,
        context: KmtHandle,
        [flags, buffer, control]: [u32; 3],
        capacity: u32,
    ) {
        // Small ones: there are many.
        let capacity = if capacity == 0 { 16 } else { capacity };
        let private = capi::HwQueuePrivateData {
            ring_capacity: capacity.into(),
            ..capi::HwQueuePrivateData::zeroed()
        };
        let args = wddm::CreateHwQueueForUserModeSubmission {
            hw_context: context,
            flags,
            ring_buffer: buffer,
            ring_buffer_control: control,
            private_driver_data: bytemuck::cast(private),
            ..wddm::CreateHwQueueForUserModeSubmission::zeroed()
        };
        let is_capacity = capacity.is_power_of_two() && (2..=1 << 20).contains(&capacity);
        let expected = self.wants(context, Kind::Context);
        let expected = expected.or(|| PARAMETER.when(flags != 0));
        let expected = expected.or(|| NOT_SUPPORTED.when(buffer != 0 || control != 0));
        let expected = expected.or(|| Expected::Refusal.when(!is_capacity));
        let left = play!(
            self,
            fills!(
                NfD3DKMTCreateHwQueueForUserModeSubmission,
                pointer,
                args,
                expected
            )
        );
        if let Some(left) = left {
            let ring = Ring::of(&left);
            let queue = self.things.add(Kind::UserQueue, left.hw_queue, context);
            queue.ring = Some(ring);
            let fence = self
                .things
                .add(Kind::Fence, left.progress_fence, left.hw_queue);
            fence.packet_handle = ring.progress_packet_handle();
            fence.is_progress = true;
        }
    }

    pub(super) fn create_kernel_queue(
        &mut self,
        pointer: Pointer,
        context: KmtHandle,
        [flags, private]: [u32; 2],
    ) {
        let flags = wddm::CreateHwQueueFlags(flags);
        let args = wddm::CreateHwQueue {
            hw_context: context,
            flags,
            private_driver_data_size: private,
            ..wddm::CreateHwQueue::zeroed()
        };
        let expected = self.wants(context, Kind::Context);
        let expected = expected.or(|| PARAMETER.when(flags.unknown() != 0));
        let expected = expected.or(|| Expected::Refusal.when(private != 0));
        if let Some(left) = play!(self, fills!(NfD3DKMTCreateHwQueue, pointer, args, expected)) {
            self.things.add(Kind::KernelQueue, left.hw_queue, context);
            let fence = self
                .things
                .add(Kind::Fence, left.progress_fence, left.hw_queue);
            fence.is_progress = true;
        }
    }

    pub(super) fn create_doorbell(
        &mut self,
        pointer: Pointer,
        queue: KmtHandle,
        [flags, buffer, control, private]: [u32; 4],
    ) {
        let flags = wddm::CreateDoorbellFlags(flags);
        let args = wddm::CreateDoorbell {
            hw_queue: queue,
            flags,
            ring_buffer: buffer,
            ring_buffer_control: control,
            private_driver_data_size: private,
            ..wddm::CreateDoorbell::zeroed()
        };
        let is_offered = flags.0 == 0 && buffer == 0 && control == 0;
        let has_one = !self.things.under(queue, Kind::Doorbell).is_empty();
        let expected = self.wants(queue, Kind::UserQueue);
        let expected = expected.or(|| PARAMETER.when(flags.unknown() != 0));
        let expected = expected.or(|| NOT_SUPPORTED.when(!is_offered));
        let expected = expected.or(|| PARAMETER.when(private != 0));
        let expected = expected.or(|| Expected::Refusal.when(has_one));
        if let Some(left) = play!(
            self,
            fills!(NfD3DKMTCreateDoorbell, pointer, args, expected)
        ) {
            self.things.add(Kind::Doorbell, left.doorbell, queue);
            let queue = self.things.get_mut(queue, Kind::UserQueue);
            if let Some(ring) = queue.and_then(|queue| queue.ring.as_mut()) {
                ring.set_doorbell(&left);
            }
        }
    }

    pub(super) fn connect_doorbell(&mut self, pointer: Pointer, doorbell: KmtHandle, flags: u32) {
        let args = wddm::ConnectDoorbell { doorbell, flags };
        let expected = self.wants(doorbell, Kind::Doorbell);
        let expected = expected.or(|| PARAMETER.when(flags != 0));
        let _ = play!(
            self,
            reads!(NfD3DKMTConnectDoorbell, pointer, args, expected)
        );
    }

    pub(super) fn notify(&mut self, pointer: Pointer, doorbell: KmtHandle, flags: u32) {
        let args = wddm::NotifyWorkSubmission { doorbell, flags };
        let expected = self.wants(doorbell, Kind::Doorbell);
        let expected = expected.or(|| PARAMETER.when(flags != 0));
        let _ = play!(
            self,
            reads!(NfD3DKMTNotifyWorkSubmission, pointer, args, expected)
        );
    }
}
