//! The bytes that both sides agree on, from both sides: every structure and every constant of
//! `shaders/abi` is the one that `native_fence::abi` has, and in the shipped SPIR-V its members lie
//! where Rust's lie.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod glsl;
    pub(crate) mod spirv;
}

use std::collections::{BTreeMap, BTreeSet};
use std::mem::offset_of;

use native_fence::abi::{
    CrossDoorbellIndex, CrossDoorbellLine, CrossDoorbells, Delivery, Dispatch, DispatchBlock,
    DispatchJob, DispatchRecord, DispatchRound, Doorbell, DoorbellStatus, EngineControl,
    EngineReport, FaultCode, FenceEntry, HandleAccess, HandleEntry, InterruptRecord, KernelJob,
    KernelResult, KernelSignal, KernelUse, LOG_BUFFER_BYTES, LOG_BUFFER_ENTRIES, LocalHandle,
    LogEntry, LogHeader, LogIndex, LogOperation, LogType, MAILBOX_CAPACITY, MAX_HW_QUEUES,
    MAX_JOBS, MAX_KERNELS, MOST_KERNEL_SIGNALS, Opcode, PACKET_BYTES, Packet, QueueDescriptor,
    QueueLook, QueueProgress, QueueState, QueueStatus, RECORD_RING_CAPACITY, RingControl,
    SLICE_SLOTS, Scheduling, SliceArgs, SliceReason, SliceResult, StallKind,
};
use native_fence::vulkan::shaders;
use support::glsl::Abi;
use support::spirv::Module;

/// A structure of Rust: its size and where its members lie.
struct Twin {
    name: &'static str,
    bytes: u64,
    members: BTreeMap<&'static str, u64>,
}

/// Lists the members of structures by name; the published constant and the compiler must agree.
macro_rules! twins {
    ($($type:ident { $($field:ident = $constant:ident),+ $(,)? })+) => {
        vec![$({
            $(assert_eq!(
                $type::$constant,
                offset_of!($type, $field) as u64,
                concat!(stringify!($type), "::", stringify!($constant))
            );)+
            assert_eq!($type::BYTES, size_of::<$type>() as u64, stringify!($type));
            Twin {
                name: stringify!($type),
                bytes: $type::BYTES,
                members: BTreeMap::from([$((stringify!($field), $type::$constant)),+]),
            }
        }),+]
    };
}

fn twins() -> Vec<Twin> {
    twins! {
        CrossDoorbells { lines_in_use = LINES_IN_USE }
        CrossDoorbellLine { taken = TAKEN, words = WORDS }
        EngineControl {
            mailbox_write = MAILBOX_WRITE, rescan = RESCAN, request = REQUEST,
            record_read = RECORD_READ, fence_slots = FENCE_SLOTS, clock_bits = CLOCK_BITS,
            report_va = REPORT_VA, abort = ABORT, dispatches = DISPATCHES,
            cross_doorbells_va = CROSS_DOORBELLS_VA, cross_doorbell_line = CROSS_DOORBELL_LINE,
            cross_doorbell_window = CROSS_DOORBELL_WINDOW,
        }
        DispatchRecord {
            x = X, y = Y, z = Z, jobs = JOBS,
        }
        DispatchRound {
            x = X, y = Y, z = Z, jobs = JOBS, favours = FAVOURS,
            favours_va = FAVOURS_VA, released_at = RELEASED_AT, kept_back = KEPT_BACK,
            interrupts = INTERRUPTS, raised = RAISED, logged = LOGGED, scheduling = SCHEDULING,
            last_x = LAST_X, last_y = LAST_Y, last_z = LAST_Z, turn = TURN, left = LEFT, ran = RAN,
            kernel = KERNEL, ready = READY, scheduled = SCHEDULED, control_va = CONTROL_VA,
            run_list_va = RUN_LIST_VA, queue_count = QUEUE_COUNT,
            handle_directory_va = HANDLE_DIRECTORY_VA, version = VERSION, in_slice = IN_SLICE,
            slice = SLICE, time_budget = TIME_BUDGET, began = BEGAN, request = REQUEST,
            mailbox_read = MAILBOX_READ, rescan_seen = RESCAN_SEEN,
        }
        KernelUse { wanted = WANTED, used = USED, most_jobs = MOST_JOBS, version = VERSION }
        KernelJob { job_va = JOB_VA, first = FIRST, end = END }
        DispatchJob {
            state_va = STATE_VA, descriptor_va = DESCRIPTOR_VA, packet = PACKET, x = X, y = Y, z = Z,
            clock_bits = CLOCK_BITS, ticks = TICKS, signals = SIGNALS, kernel = KERNEL, place = PLACE,
        }
        KernelSignal {
            fence_entry_va = FENCE_ENTRY_VA, value = VALUE,
            handle_and_marks = HANDLE_AND_MARKS, ticks = TICKS,
        }
        QueueLook { va = VA, value = VALUE }
        EngineReport {
            mailbox_read = MAILBOX_READ, rescan_seen = RESCAN_SEEN, record_write = RECORD_WRITE,
            collapsed = COLLAPSED, backward_signals = BACKWARD_SIGNALS, last_reason = LAST_REASON,
            stalled_queue = STALLED_QUEUE, stalled_packet = STALLED_PACKET, stayed = STAYED,
        }
        FenceEntry {
            current_value_va = CURRENT_VALUE_VA, monitored_value_va = MONITORED_VALUE_VA,
            shadow = SHADOW, id = ID,
        }
        HandleEntry {
            va = VA, detail = DETAIL, meta = META,
        }
        InterruptRecord {
            fence_id = FENCE_ID, value = VALUE, hw_queue = HW_QUEUE, log_number = LOG_NUMBER,
        }
        LogEntry {
            fence_value = FENCE_VALUE, native_fence = NATIVE_FENCE, operation = OPERATION,
            observed_ticks = OBSERVED_TICKS, end_ticks = END_TICKS,
        }
        LogHeader {
            index = INDEX, log_type = LOG_TYPE, number_of_entries = NUMBER_OF_ENTRIES,
        }
        Packet { control = CONTROL, log_number = LOG_NUMBER, value = VALUE,
            destination_offset = DESTINATION_OFFSET, bytes = BYTES_TO_TRANSFER,
            source_handle = SOURCE_HANDLE, source_offset = SOURCE_OFFSET,
            counts_offset = COUNTS_OFFSET }
        QueueDescriptor {
            ring_va = RING_VA, ring_control_va = RING_CONTROL_VA, ring_capacity = RING_CAPACITY,
            wait_log_va = WAIT_LOG_VA, wait_log_entries = WAIT_LOG_ENTRIES,
            signal_log_va = SIGNAL_LOG_VA, signal_log_entries = SIGNAL_LOG_ENTRIES,
            handle_directory_va = HANDLE_DIRECTORY_VA, state_va = STATE_VA,
            progress_va = PROGRESS_VA, progress_handle = PROGRESS_HANDLE,
            progress_current_value_va = PROGRESS_CURRENT_VALUE_VA,
            progress_fence_entry_va = PROGRESS_FENCE_ENTRY_VA, hw_queue = HW_QUEUE,
            verbose_log_va = VERBOSE_LOG_VA, verbose_log_entries = VERBOSE_LOG_ENTRIES,
        }
        QueueProgress {
            read_index = READ_INDEX, doorbell_status = DOORBELL_STATUS, log_types = LOG_TYPES,
        }
        QueueState {
            sequence = SEQUENCE, read_index = READ_INDEX, wait_number = WAIT_NUMBER,
            signal_number = SIGNAL_NUMBER, wait_log_index = WAIT_LOG_INDEX,
            signal_log_index = SIGNAL_LOG_INDEX, observed_ticks = OBSERVED_TICKS,
            progress_value = PROGRESS_VALUE,
            status = STATUS, fault = FAULT, head_control = HEAD_CONTROL, head_value = HEAD_VALUE,
            transferred = TRANSFERRED, verbose_log_index = VERBOSE_LOG_INDEX,
            stall_abort = STALL_ABORT,
        }
        RingControl {
            write_index = WRITE_INDEX,
        }
        SliceArgs {
            slice = SLICE, queue_count = QUEUE_COUNT, base_ticks = BASE_TICKS,
            time_budget = TIME_BUDGET, pass_budget = PASS_BUDGET, idle_window = IDLE_WINDOW,
            request = REQUEST, delivery = DELIVERY,
        }
        SliceResult {
            reason = REASON, passes = PASSES, iterations = ITERATIONS, begin_ticks = BEGIN_TICKS,
            end_ticks = END_TICKS, answers = ANSWERS, done = DONE, stands_at = STANDS_AT,
        }
    }
}

/// Two members of Rust that the shader stores at once, as one word.
const JOINED: (&str, &str, [&str; 2]) = (
    "LogEntry",
    "fence_and_operation",
    ["native_fence", "operation"],
);

/// The members as the twin names them.
fn expected(twin: &Twin) -> BTreeMap<&'static str, u64> {
    let mut members = twin.members.clone();
    let (structure, joined, parts) = JOINED;
    if twin.name == structure {
        let [low, high] = parts.map(|part| members.remove(part).expect("a member of Rust"));
        assert_eq!(
            low + 4,
            high,
            "{joined}: low half and high half of one word"
        );
        assert_eq!(low % 8, 0, "{joined} is one word");
        members.insert(joined, low);
    }
    members
}

#[test]
fn every_structure_of_the_twins_is_rusts() {
    let abi = Abi::read();
    let mut structures = abi.structures();
    let word = structures.remove("Word").expect("a word by itself");
    assert_eq!((word.members.len(), word.bytes), (1, 8));
    for twin in twins() {
        let name = twin.name;
        let structure = structures
            .remove(name)
            .unwrap_or_else(|| panic!("{name} has no twin in shaders/abi"));
        let named = structure.members.iter().filter(|m| !m.is_padding());
        let found: BTreeMap<_, _> = named.map(|m| (m.name.as_str(), m.offset)).collect();
        assert_eq!(found, expected(&twin), "{name}");
        assert_eq!(structure.bytes, twin.bytes, "size of {name}");
    }
    let left: Vec<_> = structures.keys().collect();
    assert!(left.is_empty(), "no twin in Rust: {left:?}");
}

#[test]
fn every_member_in_the_shipped_spirv_lies_where_rusts_lies() {
    let abi = Abi::read();
    let sources = abi.structures();
    let mut shipped = BTreeSet::new();
    let engines = shaders::ALL
        .iter()
        .filter(|shader| shader.name.starts_with("engine"));
    for shader in engines {
        let module = Module::new(shader.words);
        for twin in twins() {
            let Some(members) = module.members(twin.name) else {
                continue;
            };
            shipped.insert(twin.name);
            let found: BTreeMap<_, _> = members
                .iter()
                .map(|member| (member.name.clone(), u64::from(member.offset)))
                .collect();
            // Padding has no name in Rust; the twin's own layout is held to Rust's above.
            let source = sources[twin.name].members.iter();
            let padding = source.filter(|m| m.is_padding());
            let members = expected(&twin).into_iter();
            let mut wanted: BTreeMap<_, _> = members.map(|(n, at)| (n.to_owned(), at)).collect();
            wanted.extend(padding.map(|m| (m.name.clone(), m.offset)));
            assert_eq!(found, wanted, "{} in {}", twin.name, shader.name);
        }
    }
    // The others are only named in the source: nothing reads them by their type.
    for needed in ["EngineControl", "EngineReport", "FenceEntry", "HandleEntry"] {
        assert!(shipped.contains(needed), "{needed} is in no engine");
    }
    for needed in [
        "InterruptRecord",
        "LogEntry",
        "LogHeader",
        "Packet",
        "QueueState",
    ] {
        assert!(shipped.contains(needed), "{needed} is in no engine");
    }
    assert!(shipped.len() >= 12, "{shipped:?}");
}

#[test]
fn every_constant_of_the_twins_is_rusts() {
    let abi = Abi::read();
    let wanted = BTreeMap::from([
        ("MAILBOX_CAPACITY", MAILBOX_CAPACITY),
        ("CONTROL_MAILBOX", EngineControl::MAILBOX),
        ("CONTROL_SLICE_ARGS", EngineControl::SLICE_ARGS),
        ("CONTROL_RUN_LISTS", EngineControl::RUN_LISTS),
        ("CONTROL_FENCE_DIRECTORY", EngineControl::FENCE_DIRECTORY),
        ("REPORT_SLICE_RESULTS", EngineReport::SLICE_RESULTS),
        ("REPORT_RECORDS", EngineReport::RECORDS),
        ("FAULT_NONE", 0),
        ("FAULT_OPCODE", FaultCode::Opcode as u64),
        ("FAULT_LENGTH", FaultCode::Length as u64),
        ("FAULT_HANDLE", FaultCode::Handle as u64),
        ("FAULT_STALE_HANDLE", FaultCode::StaleHandle as u64),
        ("FAULT_WRITE_INDEX", FaultCode::WriteIndex as u64),
        ("FAULT_LOG_NUMBER", FaultCode::LogNumber as u64),
        ("FAULT_ACCESS_DENIED", FaultCode::AccessDenied as u64),
        ("FAULT_PROGRESS", FaultCode::Progress as u64),
        ("FAULT_RANGE", FaultCode::Range as u64),
        ("FAULT_OVERLAP", FaultCode::Overlap as u64),
        ("FAULT_ABORTED", FaultCode::Aborted as u64),
        ("FAULT_GROUPS", FaultCode::Groups as u64),
        ("FAULT_PARAMETERS", FaultCode::Parameters as u64),
        ("FENCE_ENTRY_BYTES", FenceEntry::BYTES),
        (
            "FENCE_LEAF_BITS",
            u64::from(FenceEntry::LEAF_ENTRIES.ilog2()),
        ),
        ("HANDLE_ENTRY_BYTES", HandleEntry::BYTES),
        (
            "HANDLE_LEAF_BITS",
            u64::from(HandleEntry::LEAF_ENTRIES.ilog2()),
        ),
        ("HANDLE_SLOT_BITS", u64::from(LocalHandle::SLOT_BITS)),
        (
            "ACCESS_ALWAYS_SIGNALED",
            u64::from(HandleAccess::ALWAYS_SIGNALED.0),
        ),
        ("CROSS_DOORBELL_LINES", CrossDoorbells::LINES),
        ("CROSS_DOORBELL_PLACES", CrossDoorbellLine::PLACES),
        ("CROSS_DOORBELL_FIRST_LINE", CrossDoorbells::line(0)),
        ("CROSS_DOORBELL_LINE_BYTES", CrossDoorbellLine::BYTES),
        ("CROSS_DOORBELL_ALL", u64::from(CrossDoorbellLine::ALL)),
        ("ACCESS_NO_SIGNAL", u64::from(HandleAccess::NO_SIGNAL.0)),
        ("ACCESS_NO_WAIT", u64::from(HandleAccess::NO_WAIT.0)),
        ("ACCESS_CLOSED", u64::from(HandleAccess::CLOSED.0)),
        ("ACCESS_ALLOCATION", u64::from(HandleAccess::ALLOCATION.0)),
        ("ACCESS_KERNEL", u64::from(HandleAccess::KERNEL.0)),
        ("ACCESS_KIND", u64::from(HandleAccess::KIND.0)),
        ("ACCESS_KEEPS_ARMED", u64::from(HandleAccess::KEEPS_ARMED.0)),
        (
            "ACCESS_DOORBELL_SHIFT",
            u64::from(CrossDoorbellIndex(0).access().0.ilog2()),
        ),
        ("MAX_KERNELS", MAX_KERNELS),
        ("MAX_JOBS", MAX_JOBS),
        ("DISPATCH_ROUND_BYTES", DispatchRound::BYTES),
        ("KERNEL_USE_BYTES", KernelUse::BYTES),
        ("KERNEL_JOB_BYTES", KernelJob::BYTES),
        ("KERNEL_USE", DispatchBlock::KERNEL_USE),
        ("KERNEL_JOBS", DispatchBlock::KERNEL_JOBS),
        ("DISPATCH_KERNEL_BYTES", DispatchBlock::KERNEL_BYTES),
        ("DISPATCH_JOBS", DispatchBlock::JOBS),
        ("DISPATCH_JOB_PARAMETERS", DispatchBlock::JOB_PARAMETERS),
        ("DISPATCH_JOB_SIGNALS", DispatchBlock::JOB_SIGNALS),
        ("KERNEL_SIGNAL_BYTES", KernelSignal::BYTES),
        ("MOST_KERNEL_SIGNALS", MOST_KERNEL_SIGNALS),
        ("DISPATCH_JOB_BYTES", DispatchBlock::JOB_BYTES),
        ("DISPATCH_LOOKS", DispatchBlock::LOOKS),
        ("QUEUE_LOOK_BYTES", QueueLook::BYTES),
        ("NF_DONE", KernelResult::Done as u64),
        ("NF_NO_FENCE", KernelResult::NoFence as u64),
        ("NF_CLOSED", KernelResult::Closed as u64),
        ("NF_DENIED", KernelResult::Denied as u64),
        ("NF_NOT_REACHED", KernelResult::NotReached as u64),
        ("NF_NO_ROOM", KernelResult::NoRoom as u64),
        ("KERNEL_SLOT_MASK", Dispatch::SLOT_MASK),
        ("KERNEL_SCHEDULES_ITSELF", Dispatch::SCHEDULES_ITSELF),
        ("KERNEL_FINDS_JOB", Dispatch::FINDS_JOB),
        ("KERNEL_BYTES_SHIFT", Dispatch::BYTES_SHIFT),
        ("KERNEL_BYTES_MASK", Dispatch::BYTES_MASK),
        ("KERNEL_VERSION_SHIFT", Dispatch::VERSION_SHIFT),
        ("DISPATCH_RECORD_BYTES", DispatchRecord::BYTES),
        ("DISPATCH_KERNELS", DispatchBlock::KERNELS),
        ("MOST_PARAMETER_BYTES", Dispatch::MOST_PARAMETER_BYTES),
        ("MOST_GROUPS", u64::from(Dispatch::MOST_GROUPS)),
        ("COUNTS_BYTES", Dispatch::COUNTS_BYTES),
        ("DISPATCH_RELEASED", Dispatch::RELEASED),
        ("DISPATCH_DEPTH", Dispatch::DEPTH),
        ("DISPATCH_RECORDS", DispatchBlock::RECORDS),
        ("SCHEDULING_NONE", Scheduling::None as u64),
        ("SCHEDULING_ON", Scheduling::On as u64),
        ("SCHEDULING_ENDS", Scheduling::Ends as u64),
        ("MAX_HW_QUEUES", MAX_HW_QUEUES),
        ("QUEUE_STATE_BYTES", QueueState::BYTES),
        ("STATUS_READY", QueueStatus::Ready as u64),
        ("STATUS_EMPTY", QueueStatus::Empty as u64),
        ("STATUS_BLOCKED", QueueStatus::Blocked as u64),
        ("STATUS_FAULTED", QueueStatus::Faulted as u64),
        ("RECORD_RING_CAPACITY", RECORD_RING_CAPACITY),
        ("RECORD_BYTES", InterruptRecord::BYTES),
        ("RECORD_FAULT", InterruptRecord::FAULT),
        ("RECORD_NO_QUEUE", u64::from(InterruptRecord::NO_QUEUE)),
        ("LOG_HEADER_BYTES", LogHeader::BYTES),
        ("LOG_ENTRY_BYTES", LogEntry::BYTES),
        ("LOG_SIGNAL_EXECUTED", LogOperation::SignalExecuted as u64),
        ("LOG_WAIT_UNBLOCKED", LogOperation::WaitUnblocked as u64),
        ("LOG_WAIT_QUEUED", LogOperation::WaitQueued as u64),
        ("LOG_DISPATCH_DONE", LogOperation::DispatchDone as u64),
        ("PACKET_BYTES", PACKET_BYTES),
        ("OPCODE_NONE", 0),
        ("OPCODE_NOP", Opcode::Nop as u64),
        ("OPCODE_WAIT", Opcode::Wait as u64),
        ("OPCODE_SIGNAL", Opcode::Signal as u64),
        ("OPCODE_PROGRESS", Opcode::Progress as u64),
        ("OPCODE_TIMESTAMP", Opcode::Timestamp as u64),
        ("OPCODE_FILL", Opcode::Fill as u64),
        ("OPCODE_COPY", Opcode::Copy as u64),
        ("OPCODE_STALL", Opcode::Stall as u64),
        ("OPCODE_DISPATCH", Opcode::Dispatch as u64),
        ("STALL_HEEDS_NOTHING", StallKind::HeedsNothing as u64),
        ("STALL_HEEDS_ABORT", StallKind::HeedsAbort as u64),
        ("SLICE_SLOTS", SLICE_SLOTS),
        ("SLICE_ARGS_BYTES", SliceArgs::BYTES),
        ("SLICE_RESULT_BYTES", SliceResult::BYTES),
        ("STANDS_AT_TRANSFER", SliceResult::TRANSFER),
        ("STANDS_AT_DISPATCH", SliceResult::DISPATCH),
        ("SCHEDULES_ITSELF", SliceResult::SCHEDULES_ITSELF),
        ("REASON_CUT", SliceReason::Cut as u64),
        ("REASON_BUDGET", SliceReason::Budget as u64),
        ("REASON_IDLE", SliceReason::Idle as u64),
        ("REASON_INTERRUPT", SliceReason::Interrupt as u64),
        ("REASON_REQUEST", SliceReason::Request as u64),
        ("REASON_TRANSFER", SliceReason::Transfer as u64),
        ("REASON_DISPATCH", SliceReason::Dispatch as u64),
        ("DELIVERY_EVENT", Delivery::Event as u64),
        ("DELIVERY_POLLED", Delivery::Polled as u64),
    ]);
    assert_eq!(abi.constants(), wanted);
    // Rust may not know one more than the engine does.
    let count = |prefix: &str| wanted.keys().filter(|k| k.starts_with(prefix)).count();
    assert_eq!(count("FAULT_"), FaultCode::ALL.len() + 1);
    assert_eq!(count("OPCODE_"), Opcode::ALL.len() + 1);
    assert_eq!(count("NF_"), KernelResult::ALL.len());
    assert!(FenceEntry::LEAF_ENTRIES.is_power_of_two());
    assert!(HandleEntry::LEAF_ENTRIES.is_power_of_two());
}

#[test]
fn what_the_engine_takes_for_granted_holds() {
    // It looks at an empty queue through the address of its control words.
    assert_eq!(RingControl::WRITE_INDEX, 0);
    // Rings of mailbox and records are indexed by masks.
    assert!(MAILBOX_CAPACITY.is_power_of_two() && RECORD_RING_CAPACITY.is_power_of_two());
    // The user's words lie in cache lines of their own, so do the engine's and the OS's.
    for (one, other) in [
        (RingControl::WRITE_INDEX, RingControl::BYTES),
        (Doorbell::LAST_QUEUED_VALUE, Doorbell::RINGS),
        (Doorbell::RINGS, Doorbell::BYTES),
        (QueueProgress::READ_INDEX, QueueProgress::DOORBELL_STATUS),
    ] {
        assert!(other - one >= 64);
    }
}

/// `layouts.md` 1.1, d3dukmdt.h.
#[test]
fn the_log_buffer_has_the_published_bytes() {
    assert_eq!(size_of::<LogHeader>(), 40);
    assert_eq!(align_of::<LogHeader>(), 8);
    assert_eq!(offset_of!(LogHeader, index), 0);
    assert_eq!(offset_of!(LogHeader, log_type), 8);
    assert_eq!(offset_of!(LogHeader, number_of_entries), 16);
    assert_eq!(offset_of!(LogHeader, reserved), 24);

    assert_eq!(size_of::<LogEntry>(), 48);
    assert_eq!(align_of::<LogEntry>(), 8);
    assert_eq!(offset_of!(LogEntry, fence_value), 0);
    assert_eq!(offset_of!(LogEntry, native_fence), 8);
    assert_eq!(offset_of!(LogEntry, operation), 12);
    assert_eq!(offset_of!(LogEntry, reserved0), 16);
    assert_eq!(offset_of!(LogEntry, observed_ticks), 24);
    assert_eq!(offset_of!(LogEntry, reserved1), 32);
    assert_eq!(offset_of!(LogEntry, end_ticks), 40);

    assert_eq!((LogType::Waits as u32, LogType::Signals as u32), (1, 2));
    let operations = (
        LogOperation::SignalExecuted as u32,
        LogOperation::WaitUnblocked as u32,
    );
    assert_eq!(operations, (0, 1));
    assert_eq!((LOG_BUFFER_BYTES, LOG_BUFFER_ENTRIES), (4096, 84));
    assert_eq!(LogIndex::entry_offset(0), 40);
    assert_eq!(LogIndex::entry_offset(83) + LogEntry::BYTES, 4072);
    let index = LogIndex {
        first_free_entry_index: 3,
        wraparound_count: 7,
    };
    assert_eq!(index.word(), 7 << 32 | 3);
}

/// `D3DDDI_DOORBELLSTATUS`.
#[test]
fn doorbells_have_the_published_statuses() {
    let statuses = [
        DoorbellStatus::Connected,
        DoorbellStatus::ConnectedNotify,
        DoorbellStatus::DisconnectedRetry,
        DoorbellStatus::DisconnectedAbort,
    ];
    assert_eq!(statuses.map(|status| status as u64), [0, 1, 2, 3]);
}
