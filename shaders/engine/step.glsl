// One step of a queue: a packet checked, executed and logged, and the signal behind it if there is
// one: a wait and the signal that follows it are one step.
//
// The parts of all opcodes stand in one line, without loops, and are masked: on a CPU device a
// step costs its number of memory operations whatever branch is taken (decisions.md 22), so WAIT,
// SIGNAL and PROGRESS share the look at CurrentValue, the log stores and the index store.
//
// Order of a signal (IN-01): CurrentValue, log entry, log index, barrier, comparison with the
// shadow. The shadow is stored by the adopting lane between two meetings of all lanes, and read
// by this one after the second of them: either this signal compares with the new one, or the
// adoption reads this signal's CurrentValue (NF-07).
//
// In an epilogue (epilogue.glsl) there is no adoption beside it, so what is compared before a signal stores is what would
// be compared after: what raises, stores backwards, rings or faults is left to the engine, and nothing of it is done.

// Notes that the lane must raise; with RAISES notes it holds.
void note_raise(bool faults, uint64_t fence_entry, uint64_t value, uint64_t log_number) {
    if (i_raised == 0u) {
        i_faults[0] = faults;
        i_fence_entry[0] = fence_entry;
        i_value[0] = value;
        i_log_number[0] = log_number;
    } else {
        i_faults[1] = faults;
        i_fence_entry[1] = fence_entry;
        i_value[1] = value;
        i_log_number[1] = log_number;
    }
    i_raised += 1u;
    l_holding = l_holding || faults || i_raised == RAISES;
}

// Whether it is one of those that all lanes do together (transfer.glsl).
bool is_transfer(uint opcode) {
    return opcode >= OPCODE_TIMESTAMP && opcode <= OPCODE_COPY;
}

// Whether it keeps the engine (stall.glsl), where the engine knows that.
bool is_stall(uint opcode) {
    return STALLS && opcode == OPCODE_STALL;
}

// Whether it runs a kernel (dispatch.glsl).
bool is_dispatch(uint opcode) {
    return opcode == OPCODE_DISPATCH;
}

// What a packet at hand asks for, with the registers that its kind uses.
struct Request {
    uint opcode;
    uint handle;
    bool is_wait;
    bool is_progress;
    bool stores;
    bool names_fence;
    bool known;  // its fence is resolved; a transfer, stall or dispatch is never done by a step
    uint access;
    uint64_t cv;
    uint fault;
};

// Reads the packet at the head and checks it, all but its fence where that is not resolved.
Request request_at_head() {
    Request r;
    bool have = q_read != q_write;
    r.opcode = have ? uint(p_control) & 0xffu : OPCODE_NONE;
    r.handle = uint(p_control >> 32);
    r.is_wait = r.opcode == OPCODE_WAIT;
    r.is_progress = r.opcode == OPCODE_PROGRESS;
    r.stores = r.opcode == OPCODE_SIGNAL || r.is_progress;
    r.names_fence = r.is_wait || r.stores;
    r.access = r.is_wait ? c_wait_access : r.is_progress ? 0u : c_signal_access;
    r.cv = r.is_wait ? c_wait_cv : r.is_progress ? c_progress_cv : c_signal_cv;
    uint known_handle =
        r.is_wait ? c_wait_handle : r.is_progress ? q_progress_handle : c_signal_handle;
    // Generation 0 is no handle, and what nothing was resolved into.
    bool stalls = is_stall(r.opcode);
    // A dispatch that was released was done when this round began.
    bool released = is_dispatch(r.opcode) && q_transferred == DISPATCH_RELEASED;
    bool apart = is_transfer(r.opcode) || stalls || (is_dispatch(r.opcode) && !released);
    r.known = r.names_fence ? r.handle == known_handle && (r.handle >> HANDLE_SLOT_BITS) != 0u
                            : !apart;
    uint64_t number = r.is_wait ? q_wait_number : q_signal_number;
    r.fault = FAULT_NONE;
    if (have && ((!r.names_fence && !apart && !released && r.opcode != OPCODE_NOP)
                 || (stalls && r.handle > STALL_HEEDS_ABORT))) {
        r.fault = FAULT_OPCODE;
    } else if (have && (uint(p_control) >> 8) != 1u) {
        r.fault = FAULT_LENGTH;
    } else if (r.is_progress && (!r.known || p_value <= q_progress_value)) {
        r.fault = FAULT_PROGRESS;
    } else if (!r.known) {
        r.fault = p_handle_fault;
    } else if (r.names_fence && p_log_number != number) {
        r.fault = FAULT_LOG_NUMBER;
    } else if (r.names_fence && (r.access & (r.is_wait ? ACCESS_NO_WAIT : ACCESS_NO_SIGNAL)) != 0u) {
        r.fault = FAULT_ACCESS_DENIED;
    }
    return r;
}

#include "engine/log.glsl"

// Whether the queue logs verbosely (LG-11). What that logs is not on the way of a wait that passes or of a signal.
bool logs_verbosely() {
    return VERBOSE && q_verbose_log_va != 0ul;
}

void log_verbosely(Request r, uint64_t operation, uint64_t value, uint64_t observed, uint64_t ticks) {
    PUT(LogEntry(log_place(q_verbose_log_va, q_verbose_log_index)).observed_ticks, observed);
    q_verbose_log_index = log_entry(q_verbose_log_va, q_verbose_log_index, q_verbose_log_entries, value,
                                    uint64_t(r.handle) | (operation << 32), ticks);
}

// Logs that a wait was found unsatisfied.
void log_queued_wait(Request r, uint64_t ticks) {
    log_verbosely(r, LOG_WAIT_QUEUED, p_value, ticks, ticks);
}

// Logs that the dispatch at the head is done, as the engine knows since its round began. One that ran while nobody logged
// verbosely has no time of its release.
void log_dispatch(Request r) {
    log_verbosely(r, LOG_DISPATCH_DONE, q_read, q_observed == 0ul ? l_began : q_observed, l_began);
}

// Writes the log entry of a wait or a signal, then publishes the log's index.
void log_packet(Request r, uint64_t ticks) {
    uint64_t log = r.is_wait ? q_wait_log_va : q_signal_log_va;
    uint64_t index = r.is_wait ? q_wait_log_index : q_signal_log_index;
    uint entries = r.is_wait ? q_wait_log_entries : q_signal_log_entries;
    if (r.is_wait) {
        PUT(LogEntry(log_place(log, index)).observed_ticks, q_observed == 0ul ? ticks : q_observed);
    }
    index = log_entry(log, index, entries, p_value,
                      uint64_t(r.handle) | ((r.is_wait ? LOG_WAIT_UNBLOCKED : LOG_SIGNAL_EXECUTED) << 32), ticks);
    if (r.is_wait) {
        q_wait_log_index = index;
        q_wait_number += 1ul;
    } else {
        q_signal_log_index = index;
        q_signal_number += 1ul;
    }
}

// To the doorbell with this index, less one.
void ring(uint doorbell);

// One more than the index of the fence's cross-adapter doorbell; 0: it has none.
uint doorbell_of(Request r) {
    return r.access >> ACCESS_DOORBELL_SHIFT;
}

// Stores CurrentValue; `seen` is what stood there before.
void store_value(Request r, uint64_t seen) {
    PUBLISH(Word(r.cv).value, p_value);
    if (DOORBELLS && doorbell_of(r) != 0u) {
        ring(doorbell_of(r));
    }
    l_backward += seen > p_value ? 1u : 0u;
    l_stored = true;
}

uint64_t shadow_of(Request r) {
    return r.is_progress ? c_progress_shadow : c_signal_shadow;
}

// In an epilogue: whether it is the engine's to do.
bool is_for_engine(Request r, bool stores_now, uint64_t seen) {
    return EPILOGUE && (r.fault != FAULT_NONE || (stores_now && (p_value > shadow_of(r) || seen > p_value))
                        || (stores_now && doorbell_of(r) != 0u));
}

void leave_to_engine() {
    l_for_engine = true;
    l_holding = true;
    q_status = STATUS_READY;
}

// Compares with the shadow, after the log: the conditional interrupt.
void compare_with_shadow(Request r) {
    ORDERED(order_log_before_comparison());
    if (p_value > shadow_of(r)) {
        note_raise(false, r.is_progress ? c_progress_entry : c_signal_entry, p_value,
                   p_log_number);
        // Unanswered from here on: the lane raises it no more (NF-05).
        if (r.is_progress) {
            c_progress_shadow = ~0ul;
        } else {
            c_signal_shadow = ~0ul;
            // One that is never disarmed raises again in the next iteration, which reads its shadow anew.
            l_holding = l_holding || (r.access & ACCESS_KEEPS_ARMED) != 0u;
        }
    }
}

void leave_head(bool is_progress) {
    q_progress_value = is_progress ? p_value : q_progress_value;
    q_observed = 0ul;
    q_transferred = 0ul;
    q_stall_abort = 0ul;
    q_read += 1ul;
    p_fetched = false;
    l_stepped = true;
}

// The packet at the head, of any kind; or the write index, if there is none. True if it was taken,
// at `ticks`: the clock is read after the look, so a wait ends no earlier than the signal that
// released it, and before a signal stores (LG-10).
bool step_head(out uint64_t ticks) {
    fetch_packet();
    if (DISPATCHES || RESOLVES) {
        resolve_later_head();
    }
    bool have = q_read != q_write;
    Request r = request_at_head();
    bool goes = r.fault == FAULT_NONE && r.known;

    // One look serves all: the write index of an empty queue, CurrentValue of a fence packet.
    uint64_t seen = 0ul;
    if (goes && (r.names_fence || !have)) {
        seen = OBSERVE(Word(have ? r.cv : q_ring_control_va).value);
    }
    ticks = now();
    if (!have) {
        if (seen - q_read > q_ring_capacity) {
            r.fault = FAULT_WRITE_INDEX;
        } else {
            q_write = seen;
        }
    }
    bool always_signaled = (r.access & ACCESS_ALWAYS_SIGNALED) != 0u;
    bool waits_on = r.is_wait && !always_signaled && seen < p_value;
    bool takes = have && goes && !waits_on;
    bool stores_now = takes && r.stores && !always_signaled;
    if (is_for_engine(r, stores_now, seen)) {
        leave_to_engine();
        return false;
    }
    if (waits_on && goes && q_observed == 0ul) {
        q_observed = ticks;
        if (logs_verbosely()) {
            log_queued_wait(r, ticks);
        }
    }
    if (takes && is_dispatch(r.opcode) && logs_verbosely()) {
        log_dispatch(r);
    }
    if (stores_now) {
        store_value(r, seen);
    }
    if (takes && r.names_fence) {
        log_packet(r, ticks);
    }
    if (stores_now) {
        compare_with_shadow(r);
        l_ordered = true;
    }
    if (takes) {
        leave_head(r.is_progress);
    }
    q_status = r.fault != FAULT_NONE ? STATUS_FAULTED
             : takes || !r.known ? STATUS_READY
             : have ? STATUS_BLOCKED
             : q_read == q_write ? STATUS_EMPTY : STATUS_READY;
    // From the next round on it is looked at again when it is rung for.
    q_closed = DOORBELLS && waits_on && goes ? doorbell_of(r) : 0u;
    // A fence that is unknown still is resolved at the head of the next iteration, or found there to be none.
    l_holding = l_holding || !r.known;
    if (r.fault != FAULT_NONE) {
        q_fault = r.fault;
        note_raise(true, 0ul, q_read, have ? p_control : 0ul);
    }
    return takes;
}

// The packet behind the one that was taken, if it is a signal with nothing wrong; everything else
// is left to the next step. It saves that step's part of what a step costs by itself.
void step_signal(uint64_t ticks) {
    if (!l_holding) {
        fetch_packet();
        Request r = request_at_head();
        bool always_signaled = (r.access & ACCESS_ALWAYS_SIGNALED) != 0u;
        if (r.stores && r.known && r.fault == FAULT_NONE && !always_signaled) {
            // What it is compared with, and nothing behind it is read by it.
            uint64_t seen = PEEK(Word(r.cv).value);
            if (is_for_engine(r, true, seen)) {
                leave_to_engine();
            } else {
                store_value(r, seen);
                log_packet(r, ticks);
                compare_with_shadow(r);
                leave_head(r.is_progress);
                l_ordered = true;
            }
        }
    }
}

// One step; true if the lane may do more in this iteration.
bool step_queue() {
    uint64_t ticks;
    l_ordered = false;
    bool takes = step_head(ticks);
    if (takes) {
        step_signal(ticks);
        // After the effects, once a step: a packet that was executed and is not covered yet is
        // known by its log number, so a redo takes effect once (decisions.md 13). The barrier of a
        // signal's comparison releases what was stored before it by this store too: on a GPU a
        // second release costs as much as the first, a third of a microsecond. Of another packet it is
        // a barrier as well, and not a release of this store alone: it orders the log's index before the
        // entry that follows.
        if (!l_ordered) {
            ORDERED(order_log_before_comparison());
        }
        PUT(QueueProgress(q_progress_va).read_index, q_read);
    }
    l_fruitless = takes ? 0u : l_fruitless + 1u;
    // A lane that raised lets the slice end as soon as its queue stands still.
    // So does one of a slice that dispatches, if it has other queues.
    bool at_once = i_raised != 0u || (DISPATCHES && l_places > 1u);
    return !l_holding && l_fruitless < (at_once ? 1u : PATIENCE);
}

// There is no queue in registers, or one that does nothing more in this iteration.
bool has_nothing_to_step() {
    return q_ordinal == NO_QUEUE || q_status == STATUS_FAULTED || q_stands;
}

// In each round: true if there is nothing to step (cross_doorbell.glsl).
bool only_hears();

// Before the steps of one iteration.
void begin_rounds() {
    fetch_packet();
    resolve_head();
    l_fruitless = 0u;
    i_raised = 0u;
    l_holding = has_nothing_to_step();
}

// The steps of one iteration. A lane that can do no more leaves; the others go on without it.
void step_rounds() {
    begin_rounds();
    for (l_rounds = 0u; l_rounds < ROUNDS; ++l_rounds) {
        if (DOORBELLS && i_raised == 0u && only_hears()) {
            l_fruitless += 1u;
            if (l_fruitless >= PATIENCE) {
                break;
            }
            continue;
        }
        if (l_holding) {
            break;
        }
        if (!step_queue()) {
            break;
        }
    }
}
