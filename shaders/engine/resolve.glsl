// From a handle in a packet to a fence: two levels of the process's table, every step checked.
//
// The engine reads the table, the OS alone writes it. It is done once an iteration, for the packet
// at the head, and the answer is kept in registers for the queue's next packets; a packet that
// names another fence ends the lane's steps of this iteration, if the lane does not resolve it there
// and then (DISPATCHES, RESOLVES). A handle that is closed meanwhile
// may be used until the slice ends, and its storage is freed only after that (decisions.md 12).

#include "include/handle.glsl"

// The entry of a handle in the table of the queue's process.
NamedObject look_up(uint handle) {
    return look_up_in(q_handle_directory_va, handle);
}

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

// Resolves the handle of the packet at the head into c_wait_* or c_signal_*, if it is a new one; true if
// it was. A handle that names no open fence faults the queue.
bool resolve_new_head() {
    uint opcode = p_fetched ? uint(p_control) & 0xffu : OPCODE_NONE;
    uint handle = uint(p_control >> 32);
    bool is_wait = opcode == OPCODE_WAIT;
    uint generation = handle >> HANDLE_SLOT_BITS;
    bool is_new = is_wait ? handle != c_wait_handle || generation == 0u
                : opcode == OPCODE_SIGNAL && (handle != c_signal_handle || generation == 0u);
    if (is_new) {
        NamedObject named = look_up(handle);
        uint access = uint(named.meta >> 32);
        p_handle_fault = handle_fault(generation, named.meta, 0u);
        if (p_handle_fault != FAULT_NONE) {
            // The step finds it.
        } else if (is_wait) {
            c_wait_handle = handle;
            c_wait_access = access;
            c_wait_cv = named.va;
        } else {
            c_signal_handle = handle;
            c_signal_access = access;
            c_signal_cv = named.va;
            c_signal_entry = named.detail;
        }
    }
    return is_new;
}

// The same, and reads the shadows for this iteration.
void resolve_head() {
    resolve_new_head();
    if (q_ordinal != NO_QUEUE) {
        c_progress_shadow = PEEK(FenceEntry(c_progress_entry).shadow);
    }
    if (c_signal_handle != 0u) {
        c_signal_shadow = PEEK(FenceEntry(c_signal_entry).shadow);
    }
}

// In the midst of an iteration, which saves one for each packet that names another fence than the one before: in a slice
// that dispatches each packet behind a dispatch does, and elsewhere a queue that waits for many fences stands at such ones.
// Not once the lane has noted a raise: what it noted is not stored yet, and it would raise the same fence again.
void resolve_later_head() {
    if (i_raised == 0u && resolve_new_head() && c_signal_handle != 0u) {
        c_signal_shadow = PEEK(FenceEntry(c_signal_entry).shadow);
    }
}
