//! Native fence logs: where they lie, and when they are flushed. What stands in them is
//! [`LogHeader`](crate::abi::LogHeader) and [`LogEntry`](crate::abi::LogEntry).

use super::published::structure;
use super::{GpuVirtualAddress, Handle, KmtHandle};
use bytemuck::{Pod, Zeroable};

/// `DXGKARG_SETNATIVEFENCELOGBUFFER`.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct SetNativeFenceLogBuffer {
    /// \[in\] The driver's handle of the queue.
    pub hw_queue: Handle,
    /// \[in\] Entries of the log; which of the two it is says its header.
    pub number_of_entries: u32,
    /// Padding of the published structure.
    pub padding: u32,
    /// \[in\] Where the OS reads it.
    pub log_buffer_cpu_va: u64,
    /// \[in\] Where the process's GPU address space has it.
    pub log_buffer_gpu_va: GpuVirtualAddress,
    /// \[in\] Where the GPU's system process has it.
    pub log_buffer_system_process_gpu_va: GpuVirtualAddress,
    /// \[in\] Zero.
    pub flags: u32,
    /// Reserved.
    pub reserved: [u8; 32],
    /// Padding of the published structure.
    pub padding1: u32,
}

structure!(SetNativeFenceLogBuffer is "DXGKARG_SETNATIVEFENCELOGBUFFER", 80 bytes {
    hw_queue "hHwQueue" @ 0,
    number_of_entries "NumberOfEntries" @ 8,
    log_buffer_cpu_va "LogBufferCpuVa" @ 16,
    log_buffer_gpu_va "LogBufferGpuVa" @ 24,
    log_buffer_system_process_gpu_va "LogBufferSystemProcessGpuVa" @ 32,
    flags "Flags" @ 40,
    reserved "Reserved" @ 44,
});

/// `DXGKARG_UPDATENATIVEFENCELOGS`.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct UpdateNativeFenceLogs {
    /// \[in\] Queues of the array.
    pub number_of_queues: u32,
    /// Padding of the published structure.
    pub padding: u32,
    /// \[in\] Address of the driver's handles of the queues.
    pub hw_queue: u64,
    /// \[in\] Zero.
    pub flags: u32,
    /// Reserved.
    pub reserved: [u8; 32],
    /// Padding of the published structure.
    pub padding1: u32,
}

structure!(UpdateNativeFenceLogs is "DXGKARG_UPDATENATIVEFENCELOGS", 56 bytes {
    number_of_queues "NumberOfQueues" @ 0,
    hw_queue "hHWQueue" @ 8,
    flags "Flags" @ 16,
    reserved "Reserved" @ 20,
});

/// `D3DKMT_GETNATIVEFENCELOGDETAIL` (deprecated).
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct GetNativeFenceLogDetail {
    /// \[in\] The queue.
    pub hw_queue: KmtHandle,
    /// \[in\] Not published; zero.
    pub flags: u32,
    /// \[out\] Entries of the log of waits.
    pub wait_log_number_of_entries: u32,
    /// \[out\] Entries of the log of signals.
    pub signal_log_number_of_entries: u32,
    /// \[out\] Address of the log of waits.
    pub wait_log_gpu_base_address: GpuVirtualAddress,
    /// \[out\] Address of the log of signals.
    pub signal_log_gpu_base_address: GpuVirtualAddress,
    /// Reserved.
    pub reserved: [u8; 64],
}

structure!(GetNativeFenceLogDetail is "D3DKMT_GETNATIVEFENCELOGDETAIL", 96 bytes {
    hw_queue "hHwQueue" @ 0,
    flags "Flags" @ 4,
    wait_log_number_of_entries "WaitLogNumberOfEntries" @ 8,
    signal_log_number_of_entries "SignalLogNumberOfEntries" @ 12,
    wait_log_gpu_base_address "WaitLogGpuBaseAddress" @ 16,
    signal_log_gpu_base_address "SignalLogGpuBaseAddress" @ 24,
    reserved "Reserved" @ 32,
});
