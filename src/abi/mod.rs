//! The bytes that both sides agree on: plain data, constants, compile-time layout assertions.
//!
//! Every file here has a twin of the same name under `shaders/abi/`; a test reads the shipped
//! SPIR-V and compares the offsets. [`wddm`] is apart: what programs, OS and drivers tell each other
//! in the published structures, which no shader reads. Nothing here touches memory: rooms that do
//! are handed offsets.
#![forbid(unsafe_code)]

mod cross_doorbell;
mod dispatch;
mod doorbell;
mod engine_control;
mod engine_report;
mod fault;
mod fence_entry;
mod fence_page;
mod handle;
mod handle_entry;
mod hw_queue;
mod interrupt_record;
mod kernel_result;
mod layout;
mod log_buffer;
mod log_types;
mod mailbox;
mod object;
mod packet;
mod placement;
mod ring;
mod slice;
pub mod wddm;

pub use cross_doorbell::{CrossDoorbellIndex, CrossDoorbellLine, CrossDoorbells};
pub use dispatch::{
    Dispatch, DispatchBlock, DispatchJob, DispatchRecord, DispatchRound, KernelDetail, KernelJob,
    KernelSignal, KernelUse, MAX_JOBS, MAX_KERNELS, MOST_KERNEL_SIGNALS, QueueLook, Scheduling,
};
pub use doorbell::{Doorbell, DoorbellStatus};
pub use engine_control::EngineControl;
pub use engine_report::EngineReport;
pub use fault::FaultCode;
pub use fence_entry::{FenceEntry, FenceId};
pub use fence_page::{
    CURRENT_VALUE_STRIDE, MONITORED_VALUE_STRIDE, NO_CPU_WAITER, OpenerSlot, PAGE_BYTES,
    SharedFenceHeader,
};
pub use handle::{HandleError, LocalHandle};
pub use handle_entry::{HandleAccess, HandleEntry};
pub use hw_queue::{
    MAX_HW_QUEUES, QueueDescriptor, QueueProgress, QueueState, QueueStatus, STATE_COPIES,
};
pub use interrupt_record::{InterruptRecord, RECORD_RING_CAPACITY};
pub use kernel_result::KernelResult;
pub(crate) use layout::offsets;
pub use log_buffer::{
    LOG_BUFFER_BYTES, LOG_BUFFER_ENTRIES, LogEntry, LogHeader, LogIndex, LogOperation, LogType,
    MOST_LOG_ENTRIES, TRACED_LOG_BYTES, TRACED_LOG_ENTRIES,
};
pub use log_types::LogTypes;
pub use mailbox::MAILBOX_CAPACITY;
pub use object::{AllocationId, KernelId, ObjectId};
pub use packet::{Opcode, PACKET_BYTES, Packet, StallKind};
pub use placement::{Home, Party, Placement, WordGroup};
pub use ring::{RingControl, RingIndex};
pub use slice::{Delivery, SLICE_SLOTS, SliceArgs, SliceReason, SliceResult};
