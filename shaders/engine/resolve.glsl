// From a handle in a packet to a fence: two levels of the process's table, every step checked.
//
// The engine reads the table, the OS alone writes it. It is done once an iteration, for the packet
// at the head, and the answer is kept in registers for the queue's next packets; a packet that
// names another fence ends the lane's steps of this iteration. A handle that is closed meanwhile
// may be used until the slice ends, and its storage is freed only after that (decisions.md 12).

// Copies the packet at the head, if there is one that was not copied.
void fetch_packet() {
    if (q_ordinal != NO_QUEUE && q_read != q_write && !p_fetched) {
        uint64_t packet = q_ring_va + (q_read & (q_ring_capacity - 1ul)) * PACKET_BYTES;
        p_control = PEEK(Packet(packet).control);
        p_log_number = PEEK(Packet(packet).log_number);
        p_value = PEEK(Packet(packet).value);
        p_fetched = true;
    }
}

// Resolves the handle of the packet at the head into c_wait_* or c_signal_*, if it is a new one,
// and reads the shadows for this iteration. A handle that names no open fence faults the queue.
void resolve_head() {
    uint opcode = p_fetched ? uint(p_control) & 0xffu : OPCODE_NONE;
    uint handle = uint(p_control >> 32);
    bool is_wait = opcode == OPCODE_WAIT;
    uint generation = handle >> HANDLE_SLOT_BITS;
    bool is_new = is_wait ? handle != c_wait_handle || generation == 0u
                : opcode == OPCODE_SIGNAL && (handle != c_signal_handle || generation == 0u);
    if (is_new) {
        uint slot = handle & ((1u << HANDLE_SLOT_BITS) - 1u);
        uint64_t leaf = PEEK(Word(q_handle_directory_va
                                  + uint64_t(slot >> HANDLE_LEAF_BITS) * 8ul).value);
        uint64_t meta = 0ul;
        uint64_t cv = 0ul;
        uint64_t entry = 0ul;
        if (leaf != 0ul) {
            uint64_t at =
                leaf + uint64_t(slot & ((1u << HANDLE_LEAF_BITS) - 1u)) * HANDLE_ENTRY_BYTES;
            meta = OBSERVE(HandleEntry(at).meta);
            cv = PEEK(HandleEntry(at).current_value_va);
            entry = PEEK(HandleEntry(at).fence_entry_va);
        }
        uint access = uint(meta >> 32);
        if (uint(meta) == 0u || generation == 0u) {
            p_handle_fault = FAULT_HANDLE;
        } else if (uint(meta) != generation || (access & ACCESS_CLOSED) != 0u) {
            p_handle_fault = FAULT_STALE_HANDLE;
        } else if (is_wait) {
            c_wait_handle = handle;
            c_wait_access = access;
            c_wait_cv = cv;
        } else {
            c_signal_handle = handle;
            c_signal_access = access;
            c_signal_cv = cv;
            c_signal_entry = entry;
        }
    }
    if (q_ordinal != NO_QUEUE) {
        c_progress_shadow = PEEK(FenceEntry(c_progress_entry).shadow);
    }
    if (c_signal_handle != 0u) {
        c_signal_shadow = PEEK(FenceEntry(c_signal_entry).shadow);
    }
}
