// Moving a queue between registers and memory.
//
// A save goes to the older of the two copies and its sequence word is published last, so a torn
// save is never taken for the state.

QueueLook look_at(uint ordinal) {
    return QueueLook(g_dispatch_va + DISPATCH_LOOKS + uint64_t(ordinal) * QUEUE_LOOK_BYTES);
}

// The newer of the two copies of a queue's state, and its number.
QueueState newer_state(uint64_t state_va, out uint64_t sequence) {
    uint64_t even = OBSERVE(QueueState(state_va).sequence);
    uint64_t odd = OBSERVE(QueueState(state_va + QUEUE_STATE_BYTES).sequence);
    sequence = max(even, odd);
    return QueueState(state_va + (odd > even ? QUEUE_STATE_BYTES : 0ul));
}

// Where the queue in registers will be looked at by who runs now, and what opens it first.
void remember_look(uint64_t va, uint64_t value);

void save_queue() {
    if (q_ordinal != NO_QUEUE) {
        // Where it will be seen that the queue can go on. A faulted queue never can.
        bool blocked = q_status == STATUS_BLOCKED;
        uint64_t look_va = blocked ? c_wait_cv : q_ring_control_va;
        uint64_t look_value = blocked ? p_value
                            : q_status == STATUS_FAULTED ? ~0ul
                            : q_status == STATUS_READY ? 0ul
                            : q_read + 1ul;
        q_sequence += 1ul;
        QueueState state = QueueState(q_state_va + (q_sequence & 1ul) * QUEUE_STATE_BYTES);
        PUT(state.read_index, q_read);
        PUT(state.wait_number, q_wait_number);
        PUT(state.signal_number, q_signal_number);
        PUT(state.wait_log_index, q_wait_log_index);
        PUT(state.signal_log_index, q_signal_log_index);
        PUT(state.observed_ticks, q_observed);
        PUT(state.progress_value, q_progress_value);
        PUT(state.status, uint64_t(q_status));
        PUT(state.fault, uint64_t(q_fault));
        PUT(state.transferred, q_transferred);
        if (VERBOSE) {
            PUT(state.verbose_log_index, q_verbose_log_index);
        }
        if (STALLS) {
            PUT(state.stall_abort, q_stall_abort);
        }
        PUT(state.head_control, p_fetched ? p_control : 0ul);
        PUT(state.head_value, p_fetched ? p_value : 0ul);
        PUBLISH(state.sequence, q_sequence);
        remember_look(look_va, look_value);
        if (DISPATCHES) {
            // By the next round, in which it may be done.
            QueueLook look = look_at(q_ordinal);
            PUT(look.va, look_va);
            PUT(look.value, look_value);
        }
    }
}

void load_queue(uint ordinal) {
    q_ordinal = ordinal;
    uint64_t at = PEEK(Word(g_run_list_va + uint64_t(q_ordinal) * 8ul).value);
    QueueDescriptor descriptor = QueueDescriptor(at);
    q_descriptor_va = at;
    q_ring_va = PEEK(descriptor.ring_va);
    q_ring_control_va = PEEK(descriptor.ring_control_va);
    q_ring_capacity = PEEK(descriptor.ring_capacity);
    q_wait_log_va = PEEK(descriptor.wait_log_va);
    q_wait_log_entries = uint(PEEK(descriptor.wait_log_entries));
    q_signal_log_va = PEEK(descriptor.signal_log_va);
    q_signal_log_entries = uint(PEEK(descriptor.signal_log_entries));
    q_handle_directory_va = PEEK(descriptor.handle_directory_va);
    q_state_va = PEEK(descriptor.state_va);
    q_progress_va = PEEK(descriptor.progress_va);
    q_progress_handle = uint(PEEK(descriptor.progress_handle));
    c_progress_cv = PEEK(descriptor.progress_current_value_va);
    c_progress_entry = PEEK(descriptor.progress_fence_entry_va);

    QueueState state = newer_state(q_state_va, q_sequence);
    q_read = PEEK(state.read_index);
    // An index that cannot be is found so by the first step's look.
    uint64_t written = OBSERVE(RingControl(q_ring_control_va).write_index);
    q_write = written - q_read <= q_ring_capacity ? written : q_read;
    q_wait_number = PEEK(state.wait_number);
    q_signal_number = PEEK(state.signal_number);
    q_wait_log_index = PEEK(state.wait_log_index);
    q_signal_log_index = PEEK(state.signal_log_index);
    q_observed = PEEK(state.observed_ticks);
    q_progress_value = PEEK(state.progress_value);
    q_fault = uint(PEEK(state.fault));
    q_transferred = PEEK(state.transferred);
    if (VERBOSE) {
        q_verbose_log_va = PEEK(descriptor.verbose_log_va);
        q_verbose_log_entries = uint(PEEK(descriptor.verbose_log_entries));
        q_verbose_log_index = PEEK(state.verbose_log_index);
    }
    if (STALLS) {
        q_stall_abort = PEEK(state.stall_abort);
    }
    // It is stepped at least once before it is saved again, which finds out where it stands.
    q_status = q_fault != FAULT_NONE ? STATUS_FAULTED : STATUS_READY;

    // What a queue was stopped at stays what its state says, also where the lane leaves it before it
    // fetches anything.
    p_fetched = q_fault != FAULT_NONE;
    p_handle_fault = FAULT_NONE;
    p_control = 0ul;
    p_value = 0ul;
    if (p_fetched) {
        p_control = PEEK(state.head_control);
        p_value = PEEK(state.head_value);
    }
    c_wait_handle = 0u;
    c_signal_handle = 0u;
    q_closed = 0u;
    q_stands = false;
    l_quantum = 0u;
}
