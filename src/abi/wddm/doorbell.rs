//! Doorbell: how a program makes, connects and uses one, and what the driver is asked for.

use super::published::{bit_field, enumeration, structure};
use super::{Handle, KmtHandle};
use bytemuck::{Pod, Zeroable};

enumeration! {
    /// `D3DDDI_DOORBELLSTATUS`: what stands in a doorbell's status word of 64 bits.
    DoorbellStatus is "D3DDDI_DOORBELLSTATUS" {
        /// The engine looks at the ring by itself.
        CONNECTED "D3DDDI_DOORBELLSTATUS_CONNECTED" = 0,
        /// The driver must be told ([`NotifyWorkSubmission`]).
        CONNECTED_NOTIFY_KMD "D3DDDI_DOORBELLSTATUS_CONNECTED_NOTIFY_KMD" = 1,
        /// Connect and ring again.
        DISCONNECTED_RETRY "D3DDDI_DOORBELLSTATUS_DISCONNECTED_RETRY" = 2,
        /// The queue is lost: destroy it and make it anew.
        DISCONNECTED_ABORT "D3DDDI_DOORBELLSTATUS_DISCONNECTED_ABORT" = 3,
    }
}

bit_field! {
    /// The flags of `D3DKMT_CREATE_DOORBELL`.
    CreateDoorbellFlags is "D3DKMT_CREATE_DOORBELL_FLAGS" {
        /// A second address is wanted.
        REQUIRE_SECONDARY_CPU_VA "RequireSecondaryCpuVA" @ 0,
        /// The ring of a queue that has a doorbell is made anew with another size.
        RESIZE_RING_BUFFER_OPERATION "ResizeRingBufferOperation" @ 1,
    }
}

/// `D3DKMT_CREATE_DOORBELL`.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct CreateDoorbell {
    /// \[in\] The queue.
    pub hw_queue: KmtHandle,
    /// \[in\] Allocation of the ring.
    pub ring_buffer: KmtHandle,
    /// \[in\] Allocation of the ring's control words.
    pub ring_buffer_control: KmtHandle,
    /// \[in\] How.
    pub flags: CreateDoorbellFlags,
    /// \[in\] Bytes of private data.
    pub private_driver_data_size: u32,
    /// Padding of the published structure.
    pub padding: u32,
    /// \[in\] Address of the private data.
    pub private_driver_data: u64,
    /// \[out\] Where the program rings.
    pub doorbell_cpu_virtual_address: u64,
    /// \[out\] The second address.
    pub doorbell_secondary_cpu_virtual_address: u64,
    /// \[out\] Where the program reads the status, 64 bits.
    pub doorbell_status_cpu_virtual_address: u64,
    /// \[out\] Where the program publishes the last queued value.
    pub last_queued_value_cpu_virtual_address: u64,
    /// \[out\] The doorbell.
    pub doorbell: KmtHandle,
    /// Padding of the published structure.
    pub padding1: u32,
}

structure!(CreateDoorbell is "D3DKMT_CREATE_DOORBELL", 72 bytes {
    hw_queue "hHwQueue" @ 0,
    ring_buffer "hRingBuffer" @ 4,
    ring_buffer_control "hRingBufferControl" @ 8,
    flags "Flags" @ 12,
    private_driver_data_size "PrivateDriverDataSize" @ 16,
    private_driver_data "PrivateDriverData" as "void *" @ 24,
    doorbell_cpu_virtual_address "DoorbellCPUVirtualAddress" as "void *" @ 32,
    doorbell_secondary_cpu_virtual_address "DoorbellSecondaryCPUVirtualAddress" as "void *" @ 40,
    doorbell_status_cpu_virtual_address "DoorbellStatusCPUVirtualAddress" as "const void *" @ 48,
    last_queued_value_cpu_virtual_address
        "HwQueueProgressFenceLastQueuedValueCPUVirtualAddress" as "void *" @ 56,
    doorbell "hDoorbell" @ 64,
});

/// `D3DKMT_CONNECT_DOORBELL`, as SDK 26100 has it.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct ConnectDoorbell {
    /// \[in\] The doorbell.
    pub doorbell: KmtHandle,
    /// \[in\] Zero.
    pub flags: u32,
}

structure!(ConnectDoorbell is "D3DKMT_CONNECT_DOORBELL", 8 bytes {
    doorbell "hDoorbell" @ 0,
    flags "Flags" @ 4,
});

/// `D3DKMT_DESTROY_DOORBELL`.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct DestroyDoorbell {
    /// \[in\] The doorbell.
    pub doorbell: KmtHandle,
}

structure!(DestroyDoorbell is "D3DKMT_DESTROY_DOORBELL", 4 bytes { doorbell "hDoorbell" @ 0 });

/// `D3DKMT_NOTIFY_WORK_SUBMISSION`.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct NotifyWorkSubmission {
    /// \[in\] The doorbell that was rung.
    pub doorbell: KmtHandle,
    /// \[in\] Zero.
    pub flags: u32,
}

structure!(NotifyWorkSubmission is "D3DKMT_NOTIFY_WORK_SUBMISSION", 8 bytes {
    doorbell "hDoorbell" @ 0,
    flags "Flags" @ 4,
});

/// `DXGKARG_CREATEDOORBELL`.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct DriverCreateDoorbell {
    /// \[in\] The driver's handle of the queue.
    pub hw_queue: Handle,
    /// \[in\] The doorbell.
    pub doorbell: Handle,
    /// \[in\] Bytes of private data.
    pub private_driver_data_size: u32,
    /// Padding of the published structure.
    pub padding: u32,
    /// \[in\] Address of the private data.
    pub private_driver_data: u64,
    /// \[in\] Allocation of the ring.
    pub ring_buffer: Handle,
    /// \[in\] Allocation of the ring's control words.
    pub ring_buffer_control: Handle,
    /// \[in\] How.
    pub flags: CreateDoorbellFlags,
    /// Padding of the published structure.
    pub padding1: u32,
}

structure!(DriverCreateDoorbell is "DXGKARG_CREATEDOORBELL", 56 bytes {
    hw_queue "hHwQueue" @ 0,
    doorbell "hDoorbell" @ 8,
    private_driver_data_size "PrivateDriverDataSize" @ 16,
    private_driver_data "PrivateDriverData" @ 24,
    ring_buffer "hRingBuffer" @ 32,
    ring_buffer_control "hRingBufferControl" @ 40,
    flags "Flags" @ 48,
});

bit_field! {
    /// The flags of `DXGKARG_CONNECTDOORBELL`.
    DriverConnectDoorbellFlags is "DXGK_CONNECTDOORBELL_FLAGS" {
        /// A second address is wanted.
        REQUIRE_SECONDARY_ADDRESS "RequireSecondaryAddress" @ 0,
    }
}

/// `DXGKARG_CONNECTDOORBELL`.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct DriverConnectDoorbell {
    /// \[in\] The doorbell.
    pub doorbell: Handle,
    /// \[in\] How.
    pub flags: DriverConnectDoorbellFlags,
    /// Padding of the published structure.
    pub padding: u32,
    /// \[out\] The doorbell's address.
    pub kernel_cpu_virtual_address: u64,
    /// \[out\] Its second address.
    pub secondary_kernel_cpu_virtual_address: u64,
    /// \[out\] How it is connected.
    pub status: DoorbellStatus,
    /// Padding of the published structure.
    pub padding1: u32,
}

structure!(DriverConnectDoorbell is "DXGKARG_CONNECTDOORBELL", 40 bytes {
    doorbell "hDoorbell" @ 0,
    flags "Flags" @ 8,
    kernel_cpu_virtual_address "KernelCpuVirtualAddress" @ 16,
    secondary_kernel_cpu_virtual_address "SecondaryKernelCpuVirtualAddress" @ 24,
    status "Status" @ 32,
});

/// `DXGKARGCB_DISCONNECTDOORBELL`.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct DriverDisconnectDoorbell {
    /// \[in\] The OS's handle of the queue.
    pub hw_queue: Handle,
    /// \[in\] The doorbell.
    pub doorbell: Handle,
    /// \[in\] Zero.
    pub flags: u32,
    /// \[in\] The status that the program is to read.
    pub disconnect_reason: DoorbellStatus,
}

structure!(DriverDisconnectDoorbell is "DXGKARGCB_DISCONNECTDOORBELL", 24 bytes {
    hw_queue "hHwQueue" @ 0,
    doorbell "hDoorbell" @ 8,
    flags "Flags" @ 16,
    disconnect_reason "DisconnectReason" @ 20,
});
