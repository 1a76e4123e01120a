//! A lane and the queue that it has in its registers.
//!
//! As `shaders/engine/lane.glsl`: `g_…` is [`Globals`], `s_…` [`Shared`], and a lane's `q_…`,
//! `p_…`, `c_…` and `i_…` are the parts of [`Lane`].

use super::bounds::Bounds;
use super::clock::{ModelClock, Ticks};
use super::cross_doorbell::Rings;
use super::cut::Passes;
use super::dispatch_table::{DispatchTable, Job};
use super::epilogue::Between;
use super::kernel_signal::Finished;
use super::memory::ModelMemory;
use super::transfer;
use super::violation::Checked;
use crate::abi::{CrossDoorbellIndex, FaultCode, QueueStatus};
use crate::gpu::slice_layout::SliceLayout;
use crate::gpu::{ModelOptions, SliceWork};
use crate::sync::{Arc, AtomicU64, Ordering, plain};

/// No queue is in registers.
pub(super) const NO_QUEUE: u32 = u32::MAX;

/// A word that the lanes share. Who writes it when stands in `slice.rs`; the meetings of all lanes
/// order it, not its accesses.
#[derive(Debug, Default)]
pub(super) struct SharedWord(AtomicU64);

impl SharedWord {
    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    pub(super) fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    /// The greater of the two, by read-modify-write.
    pub(super) fn raise_to(&self, value: u64) {
        self.0.fetch_max(value, Ordering::Relaxed);
    }

    /// Adds by read-modify-write; gives the value before.
    pub(super) fn add(&self, value: u64) -> u64 {
        self.0.fetch_add(value, Ordering::Relaxed)
    }

    /// The same, which orders both ways.
    pub(super) fn meet(&self, value: u64) -> u64 {
        self.0.fetch_add(value, Ordering::AcqRel)
    }
}

/// A word that one lane alone touches, although it lies where all could, or that the lanes share for
/// transfers. loom does not explore it: its scenarios have no transfers, and each access would double
/// what there is to explore.
#[derive(Debug, Default)]
pub(super) struct PlainWord(plain::AtomicU64);

impl PlainWord {
    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    pub(super) fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    /// The lesser of the two, by read-modify-write.
    pub(super) fn lower_to(&self, value: u64) {
        self.0.fetch_min(value, Ordering::Relaxed);
    }

    /// Adds by read-modify-write; gives the value before.
    pub(super) fn add(&self, value: u64) -> u64 {
        self.0.fetch_add(value, Ordering::Relaxed)
    }

    /// The bits of both, by read-modify-write.
    pub(super) fn join(&self, bits: u64) {
        self.0.fetch_or(bits, Ordering::Relaxed);
    }

    /// `new` in the place of `old`, by read-modify-write; false where another value stood there.
    pub(super) fn replace(&self, old: u64, new: u64) -> bool {
        let order = Ordering::Relaxed;
        self.0.compare_exchange(old, new, order, order).is_ok()
    }
}

/// Votes, records and looks of one slice.
#[derive(Debug)]
pub(in crate::gpu) struct Shared {
    pub(super) look_va: Vec<PlainWord>,
    pub(super) look_value: Vec<PlainWord>,
    pub(super) end: SharedWord,
    pub(super) progress: SharedWord,
    pub(super) raised: SharedWord,
    pub(super) record_room: SharedWord,
    pub(super) record_base: SharedWord,
    pub(super) backward: SharedWord,
    /// Claims of executions, even and odd; who writes what when stands in `transfer.rs`.
    pub(super) claim: [PlainWord; 2],
    pub(super) job: plain::Mutex<transfer::Job>,
    pub(super) job_shares: PlainWord,
    /// The lane that is in a stall, see `stall.rs`.
    pub(super) staller: PlainWord,
    /// Where queues that are not in registers are looked at by the next round.
    pub(super) next_look: Vec<[PlainWord; 2]>,
    /// See `dispatch.rs`.
    pub(super) table: plain::Mutex<DispatchTable>,
    /// The same of an epilogue.
    pub(super) own_table: plain::Mutex<DispatchTable>,
    /// See `epilogue.rs`.
    pub(in crate::gpu) between: plain::Mutex<Between>,
    /// What the round has released.
    pub(in crate::gpu) released: plain::Mutex<Vec<Job>>,
    /// See `cross_doorbell.rs`.
    pub(super) rings: Rings,
    /// What their signals left for lane 0.
    pub(super) finished: plain::Mutex<Finished>,
}

impl Shared {
    pub(in crate::gpu) fn new() -> Self {
        let words = || -> Vec<PlainWord> {
            (0..crate::abi::MAX_HW_QUEUES)
                .map(|_| PlainWord::default())
                .collect()
        };
        Self {
            look_va: words(),
            look_value: words(),
            end: SharedWord::default(),
            progress: SharedWord::default(),
            raised: SharedWord::default(),
            record_room: SharedWord::default(),
            record_base: SharedWord::default(),
            backward: SharedWord::default(),
            claim: Default::default(),
            job: plain::Mutex::default(),
            job_shares: PlainWord::default(),
            staller: PlainWord::default(),
            next_look: words()
                .into_iter()
                .zip(words())
                .map(|(va, value)| [va, value])
                .collect(),
            table: plain::Mutex::default(),
            own_table: plain::Mutex::default(),
            between: plain::Mutex::default(),
            released: plain::Mutex::default(),
            rings: Rings::new(),
            finished: plain::Mutex::default(),
        }
    }
}

/// The engine, as every lane of one slice knows it.
#[derive(Debug)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "the shader's constants, one a name"
)]
pub(in crate::gpu) struct Globals<'a> {
    pub(in crate::gpu) memory: &'a ModelMemory,
    pub(in crate::gpu) clock: &'a dyn ModelClock,
    pub(in crate::gpu) passes: Passes,
    /// `gl_WorkGroupSize.x`.
    pub(in crate::gpu) lanes: u32,
    /// `ROUNDS`.
    pub(in crate::gpu) rounds: u32,
    /// `QUANTUM`.
    pub(in crate::gpu) quantum: u32,
    /// `TRANSFERS`.
    pub(super) transfers: bool,
    /// `VERBOSE`.
    pub(super) verbose: bool,
    /// `STALLS`.
    pub(super) stalls: bool,
    /// `DISPATCHES`.
    pub(super) dispatches: bool,
    /// `EPILOGUE`.
    pub(super) epilogue: bool,
    /// `push.round`.
    pub(super) round: u64,
    /// `push.rounds` and `push.depth`.
    pub(super) layout: SliceLayout,
    /// `push.version`.
    pub(super) version: u64,
    pub(in crate::gpu) control_va: u64,
    pub(super) report_va: u64,
    pub(super) run_list_va: u64,
    pub(super) queue_count: u32,
    pub(super) clock_is_short: bool,
    /// `DOORBELLS`.
    pub(super) doorbells: bool,
    /// The page of cross-adapter doorbells.
    pub(super) doorbells_va: u64,
}

impl<'a> Globals<'a> {
    pub(in crate::gpu) fn new(
        memory: &'a ModelMemory,
        clock: &'a dyn ModelClock,
        passes: Passes,
        control_va: u64,
        options: &ModelOptions,
        work: SliceWork,
        (round, version): (u64, u64),
    ) -> Self {
        Self {
            memory,
            clock,
            passes,
            lanes: options.lanes,
            rounds: options.rounds,
            quantum: options.quantum,
            transfers: work.transfers,
            verbose: work.verbose,
            stalls: options.stalls,
            dispatches: work.dispatches,
            epilogue: false,
            round,
            layout: SliceLayout::of(work.schedules_itself),
            version,
            control_va,
            report_va: 0,
            run_list_va: 0,
            queue_count: 0,
            clock_is_short: false,
            doorbells: work.doorbells,
            doorbells_va: 0,
        }
    }

    // The control part's accesses, for no queue.

    pub(super) fn peek(&self, va: u64) -> Checked<u64> {
        self.memory.peek(va, None)
    }

    pub(super) fn observe(&self, va: u64) -> Checked<u64> {
        self.memory.observe(va, None)
    }

    pub(super) fn put(&self, va: u64, value: u64) -> Checked<()> {
        self.memory.put(va, value, None)
    }

    pub(super) fn publish(&self, va: u64, value: u64) -> Checked<()> {
        self.memory.publish(va, value, None)
    }
}

/// `q_…`: what the descriptor and the state of the queue say.
#[derive(Clone, Copy, Debug)]
pub(super) struct QueueRegisters {
    pub(super) ordinal: u32,
    pub(super) descriptor_va: u64,
    pub(super) ring_va: u64,
    pub(super) ring_control_va: u64,
    pub(super) ring_capacity: u64,
    pub(super) wait_log_va: u64,
    pub(super) signal_log_va: u64,
    pub(super) wait_log_entries: u32,
    pub(super) signal_log_entries: u32,
    pub(super) handle_directory_va: u64,
    pub(super) state_va: u64,
    pub(super) progress_va: u64,
    pub(super) progress_handle: u32,
    /// 0: none.
    pub(super) verbose_log_va: u64,
    pub(super) verbose_log_entries: u32,

    pub(super) sequence: u64,
    pub(super) read: u64,
    /// Last write index that was seen and can be.
    pub(super) write: u64,
    pub(super) wait_number: u64,
    pub(super) signal_number: u64,
    pub(super) wait_log_index: u64,
    pub(super) signal_log_index: u64,
    pub(super) verbose_log_index: u64,
    pub(super) observed: u64,
    pub(super) progress_value: u64,
    /// What is done of the head: bytes of a transfer, passes of a stall, or `RELEASED`.
    pub(super) transferred: u64,
    /// What ABORT was when it went into the stall at the head, + 1; 0: it did not.
    pub(super) stall_abort: u64,
    pub(super) status: QueueStatus,
    pub(super) fault: Option<FaultCode>,
    /// It stands at a wait, and is looked at again when this doorbell was rung.
    pub(super) closed: Option<CrossDoorbellIndex>,
    /// It stands at a dispatch that goes or waits: nothing more is done for it in this round.
    pub(super) stands: bool,
}

/// `p_…`: the packet at the queue's head, copied once: what is checked is what is executed (HQ-04).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PacketRegisters {
    pub(super) fetched: bool,
    /// Its handle names nothing that it may; or the transfer is refused.
    pub(super) handle_fault: Option<FaultCode>,
    pub(super) control: u64,
    pub(super) log_number: u64,
    pub(super) value: u64,
}

/// `c_wait_…`, `c_signal_…` or `c_progress_…`: the handle resolved last; the progress fence is
/// always known. A shadow is read once an iteration.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Resolved {
    pub(super) handle: u32,
    pub(super) access: u32,
    pub(super) cv: u64,
    pub(super) entry: u64,
    pub(super) shadow: u64,
}

/// Notes after which a lane holds.
pub(super) const RAISES: usize = 2;

/// `i_…`: what the lane raised in this iteration.
#[derive(Clone, Copy, Debug)]
pub(super) struct Raised {
    pub(super) faults: bool,
    /// The raise leaves the fence armed.
    pub(super) keeps_armed: bool,
    pub(super) fence_entry: u64,
    pub(super) value: u64,
    pub(super) log_number: u64,
}

/// One invocation.
#[derive(Debug)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "the shader's registers, one a name"
)]
pub(super) struct Lane<'a> {
    pub(super) g: &'a Globals<'a>,
    pub(super) s: &'a Shared,
    /// `gl_LocalInvocationID.x`.
    pub(super) id: u32,
    /// Queues of this lane.
    pub(super) places: u32,
    /// Which of them is in registers.
    pub(super) cursor: u32,
    /// Iterations that it has had.
    pub(super) quantum: u32,
    pub(super) ticks: Ticks,
    /// `l_began`: the clock when the round began.
    pub(super) began: u64,
    /// Executions of the slice so far.
    pub(super) iterations: u64,
    /// The lane that comes first of those which claim; the same in all.
    pub(super) turn: u32,
    /// `t_bytes`: of the transfer whose part the lane prepared.
    pub(super) transfer_bytes: u64,
    /// `d_is_here`: whether the slice has the kernel of the dispatch that it prepared.
    pub(super) is_here: bool,
    /// The lane took a step in this iteration.
    pub(super) stepped: bool,
    /// Whole rounds that it has had in this iteration, before the one it left in.
    pub(super) rounds: u64,
    /// It can do no more in this iteration.
    pub(super) holding: bool,
    /// It has left the loop of this iteration's steps.
    pub(super) leaves: bool,
    /// Looks in a row that found nothing.
    pub(super) fruitless: u32,
    /// `l_ordered`: a barrier stands behind the last log index of its step.
    pub(super) ordered: bool,
    /// It has stored a CurrentValue.
    pub(super) stored: bool,
    /// In an epilogue: what the queue stands at is the engine's to do.
    pub(super) for_engine: bool,
    /// Signals below the value before, in this iteration.
    pub(super) backward: u64,
    pub(super) q: QueueRegisters,
    pub(super) p: PacketRegisters,
    pub(super) c_wait: Resolved,
    pub(super) c_signal: Resolved,
    pub(super) c_progress: Resolved,
    /// At most [`RAISES`].
    pub(super) i: Vec<Raised>,
    /// `l_line`: of doorbells, that it reads next.
    pub(super) line: u64,
    /// What the queue in registers may touch.
    pub(super) bounds: Option<Arc<Bounds>>,
}

impl Lane<'_> {
    // Accesses for the queue in registers.

    pub(super) fn peek(&self, va: u64) -> Checked<u64> {
        self.g.memory.peek(va, self.bounds.as_deref())
    }

    pub(super) fn observe(&self, va: u64) -> Checked<u64> {
        self.g.memory.observe(va, self.bounds.as_deref())
    }

    pub(super) fn put(&self, va: u64, value: u64) -> Checked<()> {
        self.g.memory.put(va, value, self.bounds.as_deref())
    }

    pub(super) fn publish(&self, va: u64, value: u64) -> Checked<()> {
        self.g.memory.publish(va, value, self.bounds.as_deref())
    }
}

impl QueueRegisters {
    /// No queue. The shader's registers hold anything then; nothing reads them.
    pub(super) const NONE: Self = Self {
        ordinal: NO_QUEUE,
        descriptor_va: 0,
        ring_va: 0,
        ring_control_va: 0,
        ring_capacity: 0,
        wait_log_va: 0,
        signal_log_va: 0,
        wait_log_entries: 0,
        signal_log_entries: 0,
        handle_directory_va: 0,
        state_va: 0,
        progress_va: 0,
        progress_handle: 0,
        verbose_log_va: 0,
        verbose_log_entries: 0,
        sequence: 0,
        read: 0,
        write: 0,
        wait_number: 0,
        signal_number: 0,
        wait_log_index: 0,
        signal_log_index: 0,
        verbose_log_index: 0,
        observed: 0,
        progress_value: 0,
        transferred: 0,
        stall_abort: 0,
        status: QueueStatus::Empty,
        fault: None,
        closed: None,
        stands: false,
    };
}
