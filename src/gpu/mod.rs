//! The hardware that we are: engines, and the node that keeps one supplied with slices.
//!
//! An [`Engine`] executes one slice after another and knows nothing but addresses. A [`Node`] is
//! the engine's host half, as a GPU's firmware would be: run list, mailbox, tables, slices in
//! flight, parking. Nothing here knows a waiter; what a slice reported goes up as a
//! [`SliceReport`].
#![forbid(unsafe_code)]

mod activity;
mod choice;
#[cfg(not(loom))]
mod command_engine;
#[cfg(not(loom))]
mod compiled_aside;
mod context_kind;
mod crowd;
mod ended_slice;
mod engine;
mod engine_caps;
#[cfg(not(loom))]
mod engine_ledger;
#[cfg(not(loom))]
mod engine_link;
mod engine_mapping;
#[cfg(not(loom))]
mod engine_process;
#[cfg(not(loom))]
mod engine_program;
#[cfg(not(loom))]
mod engine_protocol;
#[cfg(not(loom))]
mod engine_unit;
mod engine_word;
#[cfg(loom)]
mod explored_activity;
#[cfg(not(loom))]
mod fed_child;
mod fence_table;
mod handle_table;
mod held_engine;
#[cfg(not(loom))]
mod host_stores;
#[cfg(not(loom))]
mod injection;
mod kernel_capability;
mod kernel_code;
#[cfg(not(loom))]
mod kernel_file;
mod kernel_push;
mod kernel_spirv;
mod kernel_stores;
#[cfg(not(loom))]
mod kernels_in_use;
#[cfg(not(loom))]
mod long_kernels;
mod mailbox;
mod model;
mod model_engine;
mod node;
#[cfg(not(loom))]
mod process_engine;
mod queue_scan;
mod queue_slot;
mod recovery;
mod report;
mod run_list;
mod save_area;
#[cfg(not(loom))]
mod shader_caps;
#[cfg(not(loom))]
mod shader_clock;
#[cfg(not(loom))]
mod shader_dispatches;
#[cfg(not(loom))]
mod shader_engine;
#[cfg(not(loom))]
mod shader_tuning;
#[cfg(not(loom))]
mod slice_kind;
mod slice_layout;
mod spare_engines;
mod table;

// What a crowd tells its watch by: under loom no place to stop at, which is explored by itself.
use crate::sync::plain as guards;

pub use activity::Activity;
#[cfg(not(loom))]
pub use command_engine::{CommandEngine, CommandError, CommandMemory, Step, StoredValue};
pub use context_kind::ContextKind;
pub use crowd::Crowd;
pub use ended_slice::{ClockReading, EndedSlice, EndedSlices};
pub use engine::{AddressSpace, Engine, EngineLost, MapError, SliceWork};
pub use engine_caps::EngineCaps;
pub use engine_mapping::{CutOff, EngineAddress, EngineBlock, EngineMapping, EngineMemory, GpuVa};
// For `tests/fuzz`, which feeds it whatever a child may say.
#[cfg(not(loom))]
#[doc(hidden)]
pub use engine_ledger::{EngineLedger, EngineNews};
#[cfg(not(loom))]
pub use engine_process::{serve_engine, serve_engine_made_by};
#[cfg(not(loom))]
pub(crate) use engine_program::STARTER_THREAD;
#[cfg(not(loom))]
pub use engine_program::{ENGINE_COMMAND, NoEngineProgram, engine_program};
#[cfg(not(loom))]
#[doc(hidden)]
pub use engine_protocol::{ProtocolError as EngineProtocolError, Reply as EngineReply};
#[cfg(not(loom))]
pub use engine_unit::{EngineUnit, EngineUnitError, SharedQueue};
pub use engine_word::{EngineState, EngineWord, Taken, Wake};
#[cfg(loom)]
pub use explored_activity::ExploredActivity;
// For `tests/fuzz`, as the ledger.
#[cfg(not(loom))]
#[doc(hidden)]
pub use fed_child::HeardRequest;
#[cfg(not(loom))]
pub(crate) use held_engine::REAPER_THREAD;
pub use held_engine::{HeldEngine, Reaper};
#[cfg(not(loom))]
pub use host_stores::{HOST_STORES_BYTES, sees_host_stores, with_host_stores_tried};
#[cfg(not(loom))]
pub use injection::{Injection, LongKernel};
pub use kernel_capability::KernelCapability;
pub use kernel_code::{KernelCode, KernelError, Kernels};
#[cfg(not(loom))]
pub(crate) use kernel_file::KERNEL_FILE;
pub use model::{
    Arrival, CutPlan, MemoryAccess, MemoryObserver, ModelClock, ModelDispatch, ModelFence,
    ModelKernel, ModelMemory, MonotonicClock, Violation,
};
#[cfg(loom)]
pub use model::{
    ExploredDoorbells, ExploredEngine, ExploredHandles, ExploredHost, ExploredLog, ExploredQueue,
    ExploredResolving, ExploredStand, Resolution,
};
pub use model_engine::{ModelEngine, ModelOptions, ModelThreads};
pub(crate) use node::FencePlaces;
pub use node::{
    Node, NodeCounters, NodeError, NodePolicy, ReplaceError, Replaced, SaveAreaMove, SliceInFlight,
    StalledAt, Suspension,
};
#[cfg(not(loom))]
pub use process_engine::{ProcessEngine, ProcessError};
pub use queue_scan::{QueueScan, QueueStanding};
pub use queue_slot::{QueueFault, QueuePlaces, QueueSlot, RingPlaces};
pub use report::{Departure, EngineWait, Parking, RaisedFence, SliceReport};
pub use save_area::{NotTheSame, SaveArea, StateSlot};
#[cfg(not(loom))]
pub use shader_dispatches::epilogues_order;
#[cfg(not(loom))]
pub use shader_engine::ShaderEngine;
#[cfg(not(loom))]
pub use shader_tuning::{ShaderTuning, TuningError};
#[cfg(not(loom))]
pub(crate) use spare_engines::SPARE_THREAD;
pub use spare_engines::{SpareEngines, SparePolicy};

pub use crate::shared::LocalMemory;
#[cfg(not(loom))]
pub use crate::vulkan::{Alive, EndsAtExit, at_exit};
