//! Hardware context: what the OS suspends and resumes; a hardware queue belongs to one.

use super::published::structure;
use super::{Handle, KmtHandle};
use bytemuck::{Pod, Zeroable};

/// `D3DKMT_CREATEHWCONTEXT`.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct CreateHwContext {
    /// \[in\] The device.
    pub device: KmtHandle,
    /// \[in\] Node of the adapter.
    pub node_ordinal: u32,
    /// \[in\] Exactly one bit, 1 << EngineOrdinal (HQ-11).
    pub engine_affinity: u32,
    /// \[in\] `D3DDDI_CREATEHWCONTEXTFLAGS`; zero.
    pub flags: u32,
    /// \[in\] Bytes of private data.
    pub private_driver_data_size: u32,
    /// Padding of the published structure.
    pub padding: u32,
    /// \[in\] Address of the private data.
    pub private_driver_data: u64,
    /// \[out\] The context.
    pub hw_context: KmtHandle,
    /// Padding of the published structure.
    pub padding1: u32,
}

structure!(CreateHwContext is "D3DKMT_CREATEHWCONTEXT", 40 bytes {
    device "hDevice" @ 0,
    node_ordinal "NodeOrdinal" @ 4,
    engine_affinity "EngineAffinity" @ 8,
    flags "Flags" @ 12,
    private_driver_data_size "PrivateDriverDataSize" @ 16,
    private_driver_data "pPrivateDriverData" as "void *" @ 24,
    hw_context "hHwContext" @ 32,
});

/// `D3DKMT_DESTROYHWCONTEXT`.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct DestroyHwContext {
    /// \[in\] The context.
    pub hw_context: KmtHandle,
}

structure!(DestroyHwContext is "D3DKMT_DESTROYHWCONTEXT", 4 bytes { hw_context "hHwContext" @ 0 });

/// `DXGKARG_SUSPENDCONTEXT`.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct DriverSuspendContext {
    /// \[in\] The driver's handle of the context.
    pub context: Handle,
    /// \[in\] What the interrupt carries that tells of it.
    pub context_suspend_fence: u64,
}

structure!(DriverSuspendContext is "DXGKARG_SUSPENDCONTEXT", 16 bytes {
    context "hContext" @ 0,
    context_suspend_fence "contextSuspendFence" @ 8,
});
