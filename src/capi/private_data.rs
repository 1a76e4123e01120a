//! What this library and the user side tell each other in the published structures' private bytes,
//! and the structures that have no published counterpart.

use crate::abi::wddm::published::structure;
use crate::abi::wddm::{Handle, KmtHandle, Structure};
use bytemuck::{Pod, Zeroable};

/// `NF_OPENADAPTER`.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct OpenAdapter {
    /// \[in\] Part of the name of the wanted Vulkan device or its driver, UTF-8; NULL: the best one.
    pub device_name: u64,
    /// \[out\] The adapter.
    pub adapter: KmtHandle,
    /// Padding.
    pub padding: u32,
}

structure!(OpenAdapter is "NF_OPENADAPTER", 16 bytes {
    device_name "DeviceName" as "const char *" @ 0,
    adapter "hAdapter" @ 8,
});

/// `NF_SHAREOBJECT`.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct ShareObject {
    /// \[in\] The fence, created with Shared.
    pub sync_object: KmtHandle,
    /// Padding.
    pub padding: u32,
    /// \[out\] A file descriptor, the caller's to close.
    pub nt_handle: Handle,
}

structure!(ShareObject is "NF_SHAREOBJECT", 16 bytes {
    sync_object "hSyncObject" @ 0,
    nt_handle "hNtHandle" @ 8,
});

/// `NF_ENDDEVICE`.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct EndDevice {
    /// \[in\] The device whose queues end.
    pub device: KmtHandle,
    /// \[in\] 0.
    pub flags: u32,
    /// \[in\] How long the call waits for its queues; `UINT64_MAX`: until they are done.
    pub timeout_in_milliseconds: u64,
}

structure!(EndDevice is "NF_ENDDEVICE", 16 bytes {
    device "hDevice" @ 0,
    flags "Flags" @ 4,
    timeout_in_milliseconds "TimeoutInMilliseconds" @ 8,
});

/// `NF_NATIVEFENCE_PRIVATEDATA`: the private bytes of `D3DKMT_CREATENATIVEFENCE`.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct NativeFencePrivateData {
    /// \[out\] The handle by which packets of the device's queues name the fence.
    pub packet_handle: u32,
    /// Zero.
    pub reserved: [u32; 15],
}

structure!(NativeFencePrivateData is "NF_NATIVEFENCE_PRIVATEDATA", 64 bytes {
    packet_handle "PacketHandle" @ 0,
    reserved "Reserved" @ 4,
});

/// `NF_HWQUEUE_PRIVATEDATA`: the private bytes of `D3DKMT_CREATEHWQUEUEFORUSERMODESUBMISSION`.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct HwQueuePrivateData {
    /// \[in, out\] Packets of the ring, a power of two of 2 to 2^20; 0 asks for 1,024.
    pub ring_capacity: u64,
    /// \[out\] Where the program stores the write index: packets written since the queue was made.
    pub write_index_cpu_va: u64,
    /// \[out\] First packet of the ring; each is 64 bytes.
    pub ring_cpu_va: u64,
    /// \[out\] Where the program reads how many packets were executed.
    pub read_index_cpu_va: u64,
    /// \[out\] The handle by which packets name the progress fence.
    pub progress_packet_handle: u32,
    /// Zero.
    pub reserved: [u32; 7],
}

structure!(HwQueuePrivateData is "NF_HWQUEUE_PRIVATEDATA", 64 bytes {
    ring_capacity "RingCapacity" @ 0,
    write_index_cpu_va "WriteIndexCpuVa" as "void *" @ 8,
    ring_cpu_va "RingCpuVa" as "void *" @ 16,
    read_index_cpu_va "ReadIndexCpuVa" as "const void *" @ 24,
    progress_packet_handle "ProgressPacketHandle" @ 32,
    reserved "Reserved" @ 36,
});

/// `NF_HWQUEUE_COMMAND`: one command of `D3DKMT_SUBMITCOMMANDTOHWQUEUE`; its private bytes are an array
/// of them.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct HwQueueCommand {
    /// \[in\] `NF_OPCODE_NOP`, which does nothing, or `NF_OPCODE_SIGNAL`: the engine stores the value.
    pub opcode: u32,
    /// \[in\] The monitored fence to signal; 0 of one that does nothing, as is the value.
    pub sync_object: KmtHandle,
    /// \[in\] The value to store.
    pub fence_value: u64,
}

structure!(HwQueueCommand is "NF_HWQUEUE_COMMAND", 16 bytes {
    opcode "Opcode" @ 0,
    sync_object "hSyncObject" @ 4,
    fence_value "FenceValue" @ 8,
});

/// The structures above, as they stand in the header.
pub const STRUCTURES: &[Structure] = &[
    OpenAdapter::LAYOUT,
    ShareObject::LAYOUT,
    EndDevice::LAYOUT,
    NativeFencePrivateData::LAYOUT,
    HwQueuePrivateData::LAYOUT,
    HwQueueCommand::LAYOUT,
];
