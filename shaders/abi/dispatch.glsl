// Dispatch: operands of the packet, and the block by which kernels are released. Twin of src/abi/dispatch.rs.

#ifndef NF_ABI_DISPATCH
#define NF_ABI_DISPATCH

// Operand of an indirect dispatch of a kernel. It has three, for tables that follow each other without the engine.
layout(buffer_reference, scalar, buffer_reference_align = 16) buffer DispatchRecord {
    uint x;
    uint y;
    uint z;
    uint jobs; // of the kernel's list; in the first one
};

// What a round leaves to the next.
layout(buffer_reference, scalar, buffer_reference_align = 16) buffer DispatchRound {
    uint x; // the engine's own workgroups between others, 1 or 0
    uint y;
    uint z;
    uint jobs;
    uint64_t favours; // ordinal + 1 of the queue whose turn it is; 0: none
    uint64_t favours_va; // its descriptor, by which the next slice knows it
    uint64_t released_at; // ticks
    uint64_t kept_back; // 1: a slice ended before it had released what was ready
    uint64_t interrupts; // 1: the slice ends for an interrupt, after this table
    uint64_t raised; // signals of kernels that raise: low half records, high half those that had no room
    uint64_t logged; // signals of kernels that the round has logged
    uint64_t scheduling; // what the kernel of the table does when it has ended: SCHEDULING_*
    uint last_x; // the engine's own workgroups in the slice's last round, 1 or 0
    uint last_y;
    uint last_z;
    uint turn; // how many tables have run since the engine's place in the command buffer
    uint64_t left; // workgroups of the table that have not ended
    uint64_t ran; // 1: all of them have
    uint kernel; // the table's one, where it schedules itself
    uint ready; // its jobs that came to something
    uint64_t scheduled; // dispatches that kernels have put into tables since the engine's last round
    uint64_t control_va; // of the engine, as the rest: what its last round knew
    uint64_t run_list_va;
    uint64_t queue_count;
    uint64_t handle_directory_va; // the table's process
    uint64_t version;
    uint64_t in_slice;
    uint64_t slice;
    uint64_t time_budget;
    uint64_t began; // ticks
    uint64_t request;
    uint64_t mailbox_read;
    uint64_t rescan_seen;
};

// When a kernel was asked for and run last, as numbers of slices, and what it was found to be like.
layout(buffer_reference, scalar, buffer_reference_align = 16) buffer KernelUse {
    uint64_t wanted; // in a slice that had it not
    uint64_t used;
    uint64_t most_jobs; // of a table that it is in, besides the first; the engine's own
    uint64_t version; // of the kernel that this is of
};

// A job of a kernel: its workgroups among those that run together.
layout(buffer_reference, scalar, buffer_reference_align = 16) buffer KernelJob {
    uint64_t job_va;
    uint first;
    uint end;
};

// What one packet runs; its parameters follow, and its list of signals.
layout(buffer_reference, scalar, buffer_reference_align = 16) buffer DispatchJob {
    uint64_t state_va; // of its queue; 0: it came to nothing
    uint64_t descriptor_va;
    uint64_t packet; // running index
    uint x;
    uint y;
    uint z;
    uint clock_bits;
    uint64_t ticks; // the engine's clock when it was written
    uint64_t signals; // asked for by its invocations: places of its list, and more where some found no room
    uint kernel;
    uint place; // which job of the block it is
};

// A signal that an invocation of a job has stored.
layout(buffer_reference, scalar, buffer_reference_align = 16) buffer KernelSignal {
    uint64_t fence_entry_va; // 0: nothing was stored, the fence is AlwaysSignaled
    uint64_t value;
    // Low half the user's handle; bit 32: a greater value stood there; from bit 48 on one more than the doorbell's index.
    uint64_t handle_and_marks;
    uint64_t ticks;
};

// Where a queue that is not in registers is looked at.
layout(buffer_reference, scalar, buffer_reference_align = 16) buffer QueueLook {
    uint64_t va;
    uint64_t value;
};

const uint MAX_KERNELS = 64u;
const uint MAX_JOBS = 64u;
const uint64_t DISPATCH_ROUND_BYTES = 224ul;
const uint64_t DISPATCH_RECORD_BYTES = 16ul;
const uint64_t DISPATCH_RECORDS = 3ul;
const uint64_t KERNEL_USE_BYTES = 32ul;
const uint64_t KERNEL_JOB_BYTES = 16ul;
const uint64_t KERNEL_USE = DISPATCH_RECORDS * DISPATCH_RECORD_BYTES;
const uint64_t KERNEL_JOBS = KERNEL_USE + KERNEL_USE_BYTES;
const uint64_t DISPATCH_KERNELS = DISPATCH_ROUND_BYTES;
const uint64_t DISPATCH_KERNEL_BYTES = KERNEL_JOBS + uint64_t(MAX_JOBS) * KERNEL_JOB_BYTES;
const uint64_t DISPATCH_JOBS = DISPATCH_KERNELS + uint64_t(MAX_KERNELS) * DISPATCH_KERNEL_BYTES;
const uint64_t DISPATCH_JOB_PARAMETERS = 64ul;
const uint64_t MOST_PARAMETER_BYTES = 256ul;
const uint64_t DISPATCH_JOB_SIGNALS = DISPATCH_JOB_PARAMETERS + MOST_PARAMETER_BYTES;
const uint64_t KERNEL_SIGNAL_BYTES = 32ul;
const uint64_t MOST_KERNEL_SIGNALS = 256ul;
const uint64_t DISPATCH_JOB_BYTES = DISPATCH_JOB_SIGNALS + MOST_KERNEL_SIGNALS * KERNEL_SIGNAL_BYTES;
const uint64_t DISPATCH_LOOKS = DISPATCH_JOBS + uint64_t(MAX_JOBS) * DISPATCH_JOB_BYTES;
const uint64_t QUEUE_LOOK_BYTES = 16ul;

const uint64_t MOST_GROUPS = 65535ul;
const uint64_t COUNTS_BYTES = 16ul;
const uint64_t DISPATCH_RELEASED = ~0ul;
const uint DISPATCH_DEPTH = 8u;

const uint64_t SCHEDULING_NONE = 0ul; // nothing
const uint64_t SCHEDULING_ON = 1ul; // the engine's step for the queues that go on, and the next table
const uint64_t SCHEDULING_ENDS = 2ul; // it marks its jobs as done, and the engine goes on

// What HandleEntry.detail has of a kernel: slot, whether it schedules itself and finds its job itself, bytes of
// parameters, version.
const uint64_t KERNEL_SLOT_MASK = 0x3ful;
const uint64_t KERNEL_SCHEDULES_ITSELF = 0x40ul;
const uint64_t KERNEL_FINDS_JOB = 0x80ul;
const uint64_t KERNEL_BYTES_SHIFT = 8ul;
const uint64_t KERNEL_BYTES_MASK = 0xffful;
const uint64_t KERNEL_VERSION_SHIFT = 20ul;

#endif
