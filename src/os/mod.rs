//! The operating system: Dxgkrnl and VidSch.
//!
//! Handles and lifetimes, CPU waiters, interrupts, log reading. It calls the driver through
//! [`Ddi`](crate::kmd::Ddi) and never an engine; the user side is not trusted.
//!
//! Locks, in the order in which they are taken: a process's handles, a fence's waiters (several in
//! the order of their ids, native ones before monitored ones, after the turns of those that are cross-adapter), then the driver's or that of a wait's
//! cell, or the book of the monitored fences that are waited for, or what is known of a shared fence's
//! other operating systems: under that the system is asked about their processes, and nothing that they
//! could keep from returning. A reader's place in a log is locked while the driver commits its entries,
//! under the lock that keeps what is read in order until it is noted, and no fence's lock is taken under
//! either. The locks of a kernel-mode queue, of its engine's ids and of who is inside the driver
//! (`level_one`) are each taken alone; who collects the
//! waits of queues (`verdict`) takes one lock after the other, and has none when he acts. Whether a device
//! is lost is a word, and the book of these words is locked last. Nothing is held
//! while a thread sleeps, a callback of the driver runs, or a waker, which is foreign code, is woken,
//! cloned or dropped. Who moves a log, or switches tracing, has a turn and no lock (`turn`), since the
//! driver waits for slices then and calls back: a turn is had while wakers run, and these are refused
//! one that they would have to sleep for.
#![forbid(unsafe_code)]

mod abnormal_end;
mod adapter;
mod adapter_life;
mod adapter_state;
mod allocation;
mod allocation_storage;
mod always_signaled;
mod armed_wait;
mod async_wait;
mod bring_up;
mod carry;
mod context_allocations;
mod cpu_signal;
mod cpu_wait;
mod cross_adapter;
mod cross_doorbells;
mod cross_open;
mod cross_side;
mod crossing;
mod device_loss;
mod device_state;
mod elsewhere;
mod event_handle;
mod event_wait;
#[cfg(loom)]
mod explored_low_half;
#[cfg(loom)]
mod explored_moving_log;
#[cfg(loom)]
mod explored_opener;
#[cfg(loom)]
mod explored_processes;
#[cfg(loom)]
mod explored_telling;
mod features;
mod fence_end;
mod fence_options;
mod fence_peers;
mod fence_segments;
mod fence_slots;
mod fence_storage;
mod global_fence;
mod handle_numbers;
mod handle_rights;
mod hw_context;
mod hw_queue;
mod init_context_resource;
mod interrupt;
mod intra_gpu;
mod joint_wait;
mod kernel;
mod kernel_engine;
mod kernel_queue;
mod kernel_queue_error;
mod kernel_queues;
mod kernel_side;
mod level_one;
mod listener;
mod log_buffer;
mod log_cursor;
mod log_places;
mod log_pools;
mod losses;
#[cfg(any(test, loom))]
mod low_half_fence;
mod monitored_fence;
mod monitored_fences;
#[cfg(all(test, not(loom)))]
mod monitored_lag;
mod monitored_object;
mod monitored_signal;
mod native_fence;
mod open_passed;
mod opener_page;
mod openers;
mod os_log;
mod outstanding;
mod paged_allocations;
mod parked_engines;
mod passed_fences;
mod peer_ear;
mod peer_link;
#[cfg(not(loom))]
mod peer_watch;
mod peers;
mod preemption;
mod process;
mod process_end;
#[cfg(not(loom))]
mod process_identity;
mod queue_core;
mod queue_door;
mod queue_log;
mod queue_record;
mod queue_stop;
mod queue_storage;
mod reached_words;
mod record;
mod recording;
mod save_areas;
mod settling;
mod shared_handle;
mod shared_memory;
mod shared_pages;
mod signal_log;
mod signaller;
mod software_queue;
mod standing_wait;
mod switched;
mod sync_object;
mod system_device;
mod system_process;
mod tdr;
mod telling_words;
mod tracing;
mod turn;
mod verdict;
mod wait_cell;
mod wait_list;
mod wait_note;
mod wait_tally;
mod waitable;
mod waiter;
mod waiter_list;
mod witness;

// Processes are numbers under loom.
#[cfg(loom)]
use explored_processes as peer_watch;
#[cfg(loom)]
use explored_processes as process_identity;

pub use crate::kmd::{KernelCapability, KernelCode, KernelError};
pub use adapter::{Adapter, OsError};
pub use adapter_state::AdapterState;
pub use allocation::Allocation;
pub use allocation_storage::AllocationMemory;
pub use armed_wait::ArmedWait;
pub use async_wait::AsyncWait;
pub use bring_up::StartError;
pub use cpu_signal::{CpuSignal, SignalError};
pub use cpu_wait::{CpuWait, WaitManyError};
pub use cross_open::CrossAdapter;
pub use elsewhere::SignalsElsewhere;
pub use event_handle::{EventError, EventHandle};
pub use event_wait::EventWait;
#[cfg(loom)]
pub use explored_low_half::{ExploredLowHalf, ExploredSignal};
#[cfg(loom)]
pub use explored_moving_log::ExploredMovingLog;
#[cfg(loom)]
pub use explored_opener::ExploredOpener;
#[cfg(loom)]
pub use explored_telling::{ExploredTelling, ExploredTold};
pub use features::Features;
pub use fence_options::FenceTerms;
pub use fence_storage::FenceMemory;
#[cfg(all(feature = "capi", not(loom)))]
pub(crate) use handle_numbers::HandleNumbers;
pub use hw_context::{HwContext, SuspendError};
pub use hw_queue::{HwQueue, HwQueueMemory};
pub use interrupt::InterruptCounters;
pub use kernel::Kernel;
pub use kernel_queue::{CommandError, KernelQueue};
pub use kernel_queue_error::KernelQueueError;
pub use log_buffer::{LogRead, LogReader};
pub use monitored_fence::MonitoredFence;
pub use monitored_object::{CreateMonitoredFence, MonitoredFenceObject};
pub use native_fence::NativeFence;
pub use peers::PeerCounters;
pub use process::{FenceObject, Process};
pub use process_end::{EndError, UnfinishedQueue};
pub use queue_stop::QueueStop;
pub use record::Record;
#[cfg(not(loom))]
pub use recording::Recordings;
pub use recording::{QueuedNotes, RecordError, Recording, RecordingOptions};
pub use save_areas::MoveError;
pub use shared_handle::{ShareError, SharedHandle};
pub use shared_memory::{PassMemoryError, ShareMemoryError, SharedMemory};
pub use shared_pages::PassFenceError;
pub use signal_log::{Attributions, SignalAttribution};
pub use software_queue::{QueuedSignal, SignalAt};
pub use sync_object::SyncObject;
pub use system_device::{PagedAllocation, SystemDevice};
#[cfg(loom)]
pub use tdr::ExploredDeferral;
pub use tdr::{TdrDebugMode, TdrLevel, TdrPolicy, TdrReport, TdrStep};
pub use tracing::Tracing;
pub use verdict::{Cycle, CycleLink, QueueVerdict, Signallers, Verdict};
pub use wait_cell::WaitError;
pub use wait_list::WaitList;
pub use waitable::Waitable;
pub use witness::{CrossStep, Witness};

pub use crate::kmd::DdiError;
pub use crate::kmd::{EngineLost, NodeError};
pub use crate::kmd::{NodeCounters, QueueFault};
pub use crate::shared::PassError;
