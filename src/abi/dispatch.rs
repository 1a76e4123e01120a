//! Dispatch: a packet that runs a kernel of the process, and the block by which an engine releases it.
//!
//! A packet names the kernel by its handle, and has the counts of its workgroups, or names an allocation that
//! holds them. The parameters lie in an allocation of the process, in words: each is a value, or a reference to
//! another allocation, for which the kernel gets an address. So a packet means the same to every engine. The
//! engine checks all of it, copies it, and releases the kernel with the copy.
//!
//! The block is memory of the engine's own, of which the host reads when kernels were used, and writes nothing. It has
//! the table of the packets that run together, and what kernels that find their job themselves look at (`shaders/include/native_fence.glsl`).
//!
//! Mirrors `shaders/abi/dispatch.glsl`.

use super::{
    CrossDoorbellIndex, HandleAccess, LocalHandle, MAX_HW_QUEUES, Opcode, Packet, offsets,
};
use bytemuck::{Pod, Zeroable};

/// Kernels that an engine can have at a time.
pub const MAX_KERNELS: u64 = 64;
/// Packets that a round can run.
pub const MAX_JOBS: u64 = 64;
/// Signals that a packet's kernel can make by the shader library.
pub const MOST_KERNEL_SIGNALS: u64 = 256;

/// Where the operands of a DISPATCH stand in its packet, and what they may be.
#[derive(Clone, Copy, Debug)]
pub struct Dispatch;

impl Dispatch {
    /// Most bytes of parameters.
    pub const MOST_PARAMETER_BYTES: u64 = 256;
    /// Most workgroups in a dimension: what every Vulkan device runs.
    pub const MOST_GROUPS: u32 = 65_535;
    /// Bytes of counts in an allocation: three of 32 bits, and as many bits that are left unread.
    pub const COUNTS_BYTES: u64 = 16;
    /// What a saved state has in [`QueueState::transferred`](super::QueueState::transferred) once the dispatch
    /// at the head was released. No transfer is so long.
    pub const RELEASED: u64 = u64::MAX;
    /// Rounds of a slice: tables of dispatches that it can make one after another.
    pub const ROUNDS: u64 = 16;
    /// The same of a slice for kernels that schedule themselves.
    pub const LONG_ROUNDS: u64 = 8;
    /// How often kernels run between two rounds of such a slice.
    pub const DEPTH: u64 = 8;

    /// The packet without counts and parameters.
    const fn packet(kernel: LocalHandle) -> Packet {
        Packet::new(Opcode::Dispatch, kernel.raw(), 0, 0)
    }

    /// A packet that runs a kernel in `groups` workgroups: x and y stand in [`Packet::value`], z in the low half
    /// of [`Packet::destination_offset`].
    #[must_use]
    pub const fn direct(kernel: LocalHandle, groups: [u32; 3]) -> Packet {
        let mut packet = Self::packet(kernel);
        packet.value = groups[0] as u64 | (groups[1] as u64) << 32;
        packet.destination_offset = groups[2] as u64;
        packet
    }

    /// The workgroups that a packet of it says itself.
    #[must_use]
    pub const fn groups(packet: &Packet) -> Option<[u32; 3]> {
        if packet.source_handle >> 32 != 0 {
            return None;
        }
        let xy = packet.value;
        Some([
            xy as u32,
            (xy >> 32) as u32,
            packet.destination_offset as u32,
        ])
    }

    /// A packet whose counts lie in an allocation, from byte `offset` on, a multiple of 8:
    /// [`Dispatch::COUNTS_BYTES`], of which the first three words of 32 bits are x, y and z.
    #[must_use]
    pub const fn indirect(kernel: LocalHandle, (counts, offset): (LocalHandle, u64)) -> Packet {
        let mut packet = Self::packet(kernel);
        packet.source_handle = (counts.raw() as u64) << 32;
        packet.counts_offset = offset;
        packet
    }

    /// The packet with parameters: `bytes` of them from byte `offset` of an allocation on, of which the words
    /// whose bits are set in `references` are references. The bytes stand in the high half of
    /// [`Packet::destination_offset`], the references in [`Packet::bytes`].
    #[must_use]
    pub const fn with_parameters(
        mut packet: Packet,
        (parameters, offset): (LocalHandle, u64),
        bytes: u32,
        references: u32,
    ) -> Packet {
        packet.destination_offset |= (bytes as u64) << 32;
        packet.bytes = references as u64;
        packet.source_handle |= parameters.raw() as u64;
        packet.source_offset = offset;
        packet
    }

    /// Bytes of parameters of a packet.
    #[must_use]
    pub const fn parameter_bytes(packet: &Packet) -> u64 {
        packet.destination_offset >> 32
    }

    /// The word of a reference to a byte of an allocation.
    #[must_use]
    pub const fn reference(allocation: LocalHandle, offset: u32) -> u64 {
        allocation.raw() as u64 | (offset as u64) << 32
    }

    /// [`HandleEntry::detail`](super::HandleEntry::detail) of a kernel.
    #[must_use]
    pub const fn kernel_detail(kernel: KernelDetail) -> u64 {
        kernel.slot as u64
            | (kernel.schedules_itself as u64 * Self::SCHEDULES_ITSELF)
            | (kernel.finds_job as u64 * Self::FINDS_JOB)
            | (kernel.parameter_bytes as u64) << Self::BYTES_SHIFT
            | kernel.version << Self::VERSION_SHIFT
    }

    /// What a detail says.
    #[must_use]
    pub const fn kernel(detail: u64) -> KernelDetail {
        KernelDetail {
            slot: (detail & Self::SLOT_MASK) as u32,
            schedules_itself: detail & Self::SCHEDULES_ITSELF != 0,
            finds_job: detail & Self::FINDS_JOB != 0,
            parameter_bytes: (detail >> Self::BYTES_SHIFT & Self::BYTES_MASK) as u32,
            version: detail >> Self::VERSION_SHIFT,
        }
    }

    /// Of a kernel's detail: its slot.
    pub const SLOT_MASK: u64 = 0x3f;
    /// Of a kernel's detail: it schedules itself.
    pub const SCHEDULES_ITSELF: u64 = 0x40;
    /// Of a kernel's detail: it finds its job itself.
    pub const FINDS_JOB: u64 = 0x80;
    /// Of a kernel's detail: where the bytes of its parameters begin.
    pub const BYTES_SHIFT: u64 = 8;
    /// Of a kernel's detail: the bytes of its parameters, shifted.
    pub const BYTES_MASK: u64 = 0xfff;
    /// Of a kernel's detail: where its version begins.
    pub const VERSION_SHIFT: u64 = 20;
}

/// What an engine has of a kernel, as its handle's entry says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelDetail {
    /// Where the engine has it.
    pub slot: u32,
    /// The last of its workgroups does the engine's step.
    pub schedules_itself: bool,
    /// Its workgroups ask which packet they are of: those of several can run together.
    pub finds_job: bool,
    /// Bytes of parameters that it takes.
    pub parameter_bytes: u32,
    /// Of the engine's kernels, since which it has it: a slice that was started with an earlier one leaves the kernel
    /// to those that follow.
    pub version: u64,
}

/// What a round leaves to the next; its first words are operands of the indirect dispatch of the engine itself. Writers:
/// the engine; and the last workgroup of a table whose kernel schedules itself, while the engine does not run.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct DispatchRound {
    /// The engine's workgroups in a round that is not the last: 1; 0 once the slice has ended, or while kernels go on
    /// without the engine.
    pub x: u32,
    /// 1.
    pub y: u32,
    /// 1.
    pub z: u32,
    /// Jobs of the table that the round released: done when the next begins.
    pub jobs: u32,
    /// The queue whose turn it is, as its ordinal in the run list + 1; 0 for none.
    pub favours: u64,
    /// Its descriptor, by which the next slice knows it.
    pub favours_va: u64,
    /// When the table was released, in ticks.
    pub released_at: u64,
    /// 1: a slice ended before it had released what was ready.
    pub kept_back: u64,
    /// 1: the slice ends for an interrupt, after this table.
    pub interrupts: u64,
    /// Signals of kernels that raise, while the round begins: low half records, high half those that had no room.
    pub raised: u64,
    /// Signals of kernels that the round has logged.
    pub logged: u64,
    /// What the last workgroup of the table does: one of [`Scheduling`].
    pub scheduling: u64,
    /// The engine's workgroups in the slice's last round: 1, or 0 once the slice has ended.
    pub last_x: u32,
    /// 1.
    pub last_y: u32,
    /// 1.
    pub last_z: u32,
    /// How many tables have run since the engine's place in the command buffer, which tells the record that the kernel of
    /// this one runs by.
    pub turn: u32,
    /// Workgroups of the table that have not ended.
    pub left: u64,
    /// 1: the last table that was made has run.
    pub ran: u64,
    /// The table's one kernel, where it schedules itself.
    pub kernel: u32,
    /// Its jobs that came to something.
    pub ready: u32,
    /// Dispatches that kernels have put into tables since the engine's last round.
    pub scheduled: u64,
    /// Of the engine, as its last round knew it, like all that follows: its control block.
    pub control_va: u64,
    /// Its run list.
    pub run_list_va: u64,
    /// Queues of that.
    pub queue_count: u64,
    /// The handle table of the table's process.
    pub handle_directory_va: u64,
    /// Version of the kernels that the slice has.
    pub version: u64,
    /// Which it has.
    pub in_slice: u64,
    /// The slice's number.
    pub slice: u64,
    /// Its time, in ticks.
    pub time_budget: u64,
    /// When it began.
    pub began: u64,
    /// The request that has been answered.
    pub request: u64,
    /// Posts that were taken.
    pub mailbox_read: u64,
    /// The rescan that was made.
    pub rescan_seen: u64,
}

offsets!(DispatchRound, size 224, {
    X = x @ 0,
    Y = y @ 4,
    Z = z @ 8,
    JOBS = jobs @ 12,
    FAVOURS = favours @ 16,
    FAVOURS_VA = favours_va @ 24,
    RELEASED_AT = released_at @ 32,
    KEPT_BACK = kept_back @ 40,
    INTERRUPTS = interrupts @ 48,
    RAISED = raised @ 56,
    LOGGED = logged @ 64,
    SCHEDULING = scheduling @ 72,
    LAST_X = last_x @ 80,
    LAST_Y = last_y @ 84,
    LAST_Z = last_z @ 88,
    TURN = turn @ 92,
    LEFT = left @ 96,
    RAN = ran @ 104,
    KERNEL = kernel @ 112,
    READY = ready @ 116,
    SCHEDULED = scheduled @ 120,
    CONTROL_VA = control_va @ 128,
    RUN_LIST_VA = run_list_va @ 136,
    QUEUE_COUNT = queue_count @ 144,
    HANDLE_DIRECTORY_VA = handle_directory_va @ 152,
    VERSION = version @ 160,
    IN_SLICE = in_slice @ 168,
    SLICE = slice @ 176,
    TIME_BUDGET = time_budget @ 184,
    BEGAN = began @ 192,
    REQUEST = request @ 200,
    MAILBOX_READ = mailbox_read @ 208,
    RESCAN_SEEN = rescan_seen @ 216,
});

/// What the last workgroup of a table does ([`DispatchRound::scheduling`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Scheduling {
    /// Nothing.
    None = 0,
    /// The engine's step for the queues that go on, and the next table.
    On = 1,
    /// It marks its jobs as done, and the engine goes on.
    Ends = 2,
}

/// Operand of an indirect dispatch of a kernel. It has three, for tables that follow each other without the engine. Writers:
/// as [`DispatchRound`]'s.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct DispatchRecord {
    /// Workgroups in x.
    pub x: u32,
    /// Workgroups in y.
    pub y: u32,
    /// Workgroups in z.
    pub z: u32,
    /// Jobs of the kernel's list; in the first of the three.
    pub jobs: u32,
}

offsets!(DispatchRecord, size 16, {
    X = x @ 0,
    Y = y @ 4,
    Z = z @ 8,
    JOBS = jobs @ 12,
});

/// When a kernel was asked for and run last, as numbers of slices, and what it was found to be like. Writer: the engine.
/// Reader of the first two: the host side of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct KernelUse {
    /// Asked for in a slice that had it not.
    pub wanted: u64,
    /// Run.
    pub used: u64,
    /// Jobs of a table that it is in, besides the first.
    pub most_jobs: u64,
    /// Of the kernel that this is of.
    pub version: u64,
}

offsets!(KernelUse, size 32, {
    WANTED = wanted @ 0,
    USED = used @ 8,
    MOST_JOBS = most_jobs @ 16,
    VERSION = version @ 24,
});

/// A job of a kernel: its workgroups among those that run together. Writer: the engine. Reader: the kernel.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct KernelJob {
    /// Where the job lies.
    pub job_va: u64,
    /// The first of its workgroups.
    pub first: u32,
    /// The first that is not its.
    pub end: u32,
}

offsets!(KernelJob, size 16, {
    JOB_VA = job_va @ 0,
    FIRST = first @ 8,
    END = end @ 12,
});

/// What one packet runs; its parameters follow, and its list of signals. Writer: the engine. Reader: the kernel.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct DispatchJob {
    /// The saved state of its queue; 0 where the job came to nothing.
    pub state_va: u64,
    /// The queue's descriptor.
    pub descriptor_va: u64,
    /// Running index of the packet.
    pub packet: u64,
    /// Workgroups in x.
    pub x: u32,
    /// Workgroups in y.
    pub y: u32,
    /// Workgroups in z.
    pub z: u32,
    /// Bits of the device's clock that are real: 64 or 32.
    pub clock_bits: u32,
    /// The engine's clock when the job was written.
    pub ticks: u64,
    /// Signals that its invocations have asked for: places of its list, and more where some found no room. Writers:
    /// the engine, 0; the kernel.
    pub signals: u64,
    /// The kernel's slot.
    pub kernel: u32,
    /// Which job of the block it is.
    pub place: u32,
}

offsets!(DispatchJob, size 64, {
    STATE_VA = state_va @ 0,
    DESCRIPTOR_VA = descriptor_va @ 8,
    PACKET = packet @ 16,
    X = x @ 24,
    Y = y @ 28,
    Z = z @ 32,
    CLOCK_BITS = clock_bits @ 36,
    TICKS = ticks @ 40,
    SIGNALS = signals @ 48,
    KERNEL = kernel @ 56,
    PLACE = place @ 60,
});

/// A signal that an invocation of a job has stored; the engine logs it and compares when the kernel has ended. Writer:
/// the kernel. Reader: the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct KernelSignal {
    /// The fence's [`FenceEntry`](super::FenceEntry); 0 where nothing was stored, of a fence that is AlwaysSignaled.
    pub fence_entry_va: u64,
    /// The value.
    pub value: u64,
    /// Low half the user's handle; bit 32 where a greater value stood there; from bit 48 on one more than the index of
    /// the fence's cross-adapter doorbell, where it has one.
    pub handle_and_marks: u64,
    /// GPU time of the store, in engine ticks.
    pub ticks: u64,
}

offsets!(KernelSignal, size 32, {
    FENCE_ENTRY_VA = fence_entry_va @ 0,
    VALUE = value @ 8,
    HANDLE_AND_MARKS = handle_and_marks @ 16,
    TICKS = ticks @ 24,
});

impl KernelSignal {
    /// The word of handle and marks; `access` is what the handle's entry says.
    #[must_use]
    pub const fn marked(handle: u32, is_backward: bool, access: HandleAccess) -> u64 {
        let doorbell = CrossDoorbellIndex::mark(CrossDoorbellIndex::of_access(access));
        handle as u64 | (is_backward as u64) << 32 | (doorbell as u64) << 48
    }

    /// The user's handle.
    #[must_use]
    pub const fn handle(self) -> u32 {
        self.handle_and_marks as u32
    }

    /// A greater value stood there.
    #[must_use]
    pub const fn is_backward(self) -> bool {
        self.handle_and_marks >> 32 & 1 != 0
    }

    /// The fence's cross-adapter doorbell.
    #[must_use]
    pub const fn doorbell(self) -> Option<CrossDoorbellIndex> {
        CrossDoorbellIndex::of_mark((self.handle_and_marks >> 48) as u16)
    }
}

/// Where a queue that is not in registers is looked at: it can go on when the word is at least the value. Writer and
/// reader: the engine.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct QueueLook {
    /// The word.
    pub va: u64,
    /// The value.
    pub value: u64,
}

offsets!(QueueLook, size 16, {
    VA = va @ 0,
    VALUE = value @ 8,
});

/// Where things lie in an engine's dispatch block.
#[derive(Clone, Copy, Debug)]
pub struct DispatchBlock;

impl DispatchBlock {
    /// What a round leaves to the next: a [`DispatchRound`].
    pub const NEXT_ROUND: u64 = 0;
    /// The engine's workgroups in a slice's last round.
    pub const LAST_ROUND: u64 = Self::NEXT_ROUND + DispatchRound::LAST_X;
    /// Of the first kernel: its [`DispatchRecord`]s and, behind them, its [`KernelUse`] and its list of [`KernelJob`]s.
    pub const KERNELS: u64 = DispatchRound::BYTES;
    /// Of a kernel: how many records it has.
    pub const RECORDS: u64 = 3;
    /// Of a kernel: its [`KernelUse`].
    pub const KERNEL_USE: u64 = Self::RECORDS * DispatchRecord::BYTES;
    /// Of a kernel: the first of its [`KernelJob`]s.
    pub const KERNEL_JOBS: u64 = Self::KERNEL_USE + KernelUse::BYTES;
    /// Bytes of a kernel.
    pub const KERNEL_BYTES: u64 = Self::KERNEL_JOBS + MAX_JOBS * KernelJob::BYTES;
    /// The first [`DispatchJob`], with its parameters behind it.
    pub const JOBS: u64 = Self::KERNELS + MAX_KERNELS * Self::KERNEL_BYTES;
    /// Of a job: where its parameters lie.
    pub const JOB_PARAMETERS: u64 = DispatchJob::BYTES;
    /// Of a job: where its [`KernelSignal`]s lie.
    pub const JOB_SIGNALS: u64 = Self::JOB_PARAMETERS + Dispatch::MOST_PARAMETER_BYTES;
    /// Bytes of a job.
    pub const JOB_BYTES: u64 = Self::JOB_SIGNALS + MOST_KERNEL_SIGNALS * KernelSignal::BYTES;
    /// The first [`QueueLook`]: one a place of the run list.
    pub const LOOKS: u64 = Self::JOBS + MAX_JOBS * Self::JOB_BYTES;
    /// Bytes of the whole block.
    pub const BYTES: u64 = Self::LOOKS + MAX_HW_QUEUES * QueueLook::BYTES;

    /// By which record of its own a kernel runs, when its turn has come so often since the engine's. Its first is read once
    /// between two turns of the engine, the others by turns.
    #[must_use]
    pub const fn record(slot: u64, turn: u64) -> u64 {
        let record = if turn == 0 { 0 } else { 2 - turn % 2 };
        Self::kernel(slot) + record * DispatchRecord::BYTES
    }

    /// The first record of a kernel.
    #[must_use]
    pub const fn kernel(slot: u64) -> u64 {
        Self::KERNELS + slot * Self::KERNEL_BYTES
    }

    /// The parameters of the first job, which are those of a kernel that runs alone.
    pub const PARAMETERS: u64 = Self::JOBS + Self::JOB_PARAMETERS;
}
