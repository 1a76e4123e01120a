// Dispatches: a packet that runs a kernel of the process, which the slice's command buffer holds behind the
// engine's own.
//
// A slice that dispatches is rounds of the engine, a barrier, each kernel that the engine has, and a barrier; the
// last round is the engine's alone. A kernel runs in as many workgroups as its record says, which is none but
// for the one that the round before released, and the engine's own next round in one or, once the slice has
// ended, none. So what was released is done when the next round begins, and no slice ends with a kernel under
// way.
//
// One dispatch is released a round: of an engine that does not come back the OS knows whose kernel it is in
// (EngineReport.stalled_queue), and no other queue has lost anything.
//
// Claims are made and looked at as those of transfers. Between the two meetings that follow, beside the control
// part, one of the claimers by turns checks the packet and copies the parameters; what is wrong with it the next
// step finds. Where it is ready and the lanes vote for it, the claimer releases it after the second meeting. The
// turns of s_dispatch_claim[] are those of s_claim[]; s_dispatch_ready is written between the meetings and read
// after the second.
//
// A kernel may have come since the slice was started, whose command buffer has it not: its handle's entry says since
// which version of the engine's kernels there is one, and the slice ends without it.

const uint NOT_READY = 0u; // the next step finds what is wrong
const uint READY = 1u;
const uint OF_ANOTHER_SLICE = 2u;

// Executions for which a dispatch is held back while other queues take steps.
const uint DISPATCH_PATIENCE = 8u;
// Loop passes that it can take to get one ready.
const uint DISPATCH_PASSES = uint(MOST_PARAMETER_BYTES) / 8u + 1u;

uint k_dispatches; // of lane 0, as the k_… of slice.glsl

bool is_last_round() {
    return push.round == DISPATCH_ROUNDS;
}

// By lane 0, before the first meeting: what the round before released is done.
void begin_round() {
    DispatchRecord next = DispatchRecord(push.dispatch_va);
    uint released = PEEK(next.released);
    if (released != 0u) {
        PUT(DispatchRecord(push.dispatch_va + uint64_t(released) * DISPATCH_RECORD_BYTES).x, 0u);
        PUBLISH(EngineReport(g_report_va).stalled_queue, 0ul);
    }
    PUT(next.released, 0u);
}

// Whether a round that ends for this reason releases what is ready; all lanes find the same, after the second
// meeting and to the end of the round.
bool releases(uint reason) {
    return reason == REASON_DISPATCH && !is_last_round() && s_dispatch_ready == READY;
}

// By lane 0, last: whether there is another round.
void end_round(uint reason) {
    DispatchRecord next = DispatchRecord(push.dispatch_va);
    PUT(next.x, releases(reason) ? 1u : 0u);
    PUT(next.y, 1u);
    PUT(next.z, 1u);
}

// At the end of an execution: claims if the queue in registers stands at a dispatch. Where the engine has no
// kernel, no handle is one's.
void claim_dispatch() {
    bool stands = q_ordinal != NO_QUEUE && p_fetched && is_dispatch(uint(p_control) & 0xffu)
                  && q_transferred != DISPATCH_RELEASED && q_status == STATUS_READY
                  && p_handle_fault == FAULT_NONE && (uint(p_control) >> 8) == 1u;
    if (stands) {
        if (PEEK(g_control.dispatches) == 0ul) {
            p_handle_fault = FAULT_HANDLE;
        } else {
            atomicMin(s_dispatch_claim[g_iterations & 1u], place_in_turns());
        }
    }
}

// The claim of the last execution.
uint dispatch_claim_made() {
    return s_dispatch_claim[(g_iterations + 1u) & 1u];
}

// Copies the parameters of the dispatch at the head, with addresses for references; what is wrong with them.
uint copy_parameters(Packet packet, uint64_t bytes) {
    Extent from = resolve_allocation(PEEK(packet.source_handle) & 0xfffffffful);
    uint64_t offset = PEEK(packet.source_offset);
    uint references = uint(PEEK(packet.bytes));
    if (from.fault != FAULT_NONE) {
        return from.fault;
    }
    if (!lie_in(offset, bytes, from)) {
        return FAULT_RANGE;
    }
    uint fault = FAULT_NONE;
    uint words = uint(bytes / 8ul);
    uint i = 0u;
    for (; i < words; ++i) {
        uint64_t value = Data(from.va + offset + uint64_t(i) * 8ul).word;
        if ((references >> i & 1u) != 0u) {
            Extent named = resolve_allocation(value & 0xfffffffful);
            uint64_t at = value >> 32;
            if (named.fault != FAULT_NONE) {
                fault = named.fault;
            } else if (at > named.bytes) {
                fault = FAULT_RANGE;
            }
            value = named.va + at;
        }
        Data(push.dispatch_va + DISPATCH_PARAMETERS + uint64_t(i) * 8ul).word = value;
    }
    // Where the driver has cut the loop another slice begins anew.
    d_is_here = d_is_here && i == words;
    return fault;
}

// Checks the dispatch at the head, and copies what its kernel gets.
uint write_dispatch() {
    Packet packet = Packet(q_ring_va + (q_read & (q_ring_capacity - 1ul)) * PACKET_BYTES);
    uint handle = uint(p_control >> 32);
    Entry kernel = look_up(handle);
    uint fault = handle_fault(handle >> HANDLE_SLOT_BITS, kernel.meta, ACCESS_KERNEL);
    if (fault != FAULT_NONE) {
        return fault;
    }
    uint64_t shape = PEEK(packet.destination_offset);
    uint64_t bytes = shape >> 32;
    if (bytes != (kernel.detail >> 8 & 0xffful) || bytes > MOST_PARAMETER_BYTES) {
        return FAULT_PARAMETERS;
    }
    d_kernel = uint(kernel.detail) & 0xffu;
    d_is_here = kernel.detail >> 20 <= push.version;
    d_groups_xy = p_value;
    d_groups_z = shape & 0xfffffffful;
    uint64_t counts_handle = PEEK(packet.source_handle) >> 32;
    // What the work before wrote is seen: it was available when this lane learned of it.
    make_visible();
    if (counts_handle != 0ul) {
        Extent counts = resolve_allocation(counts_handle);
        uint64_t offset = PEEK(packet.counts_offset);
        if (counts.fault != FAULT_NONE) {
            return counts.fault;
        }
        if (!lie_in(offset, COUNTS_BYTES, counts)) {
            return FAULT_RANGE;
        }
        d_groups_xy = Data(counts.va + offset).word;
        d_groups_z = Data(counts.va + offset + 8ul).word & 0xfffffffful;
    }
    if ((d_groups_xy & 0xfffffffful) > MOST_GROUPS || d_groups_xy >> 32 > MOST_GROUPS
        || d_groups_z > MOST_GROUPS) {
        return FAULT_GROUPS;
    }
    return bytes == 0ul ? FAULT_NONE : copy_parameters(packet, bytes);
}

// Between the meetings, but not before the first execution: the claimer whose turn it is gets its dispatch ready.
void prepare_dispatch() {
    if (!is_last_round() && dispatch_claim_made() == place_in_turns()) {
        p_handle_fault = write_dispatch();
        s_dispatch_ready = p_handle_fault != FAULT_NONE ? NOT_READY : d_is_here ? READY : OF_ANOTHER_SLICE;
    }
}

// After them, what the lanes voted, given whether it is ready.
uint vote_of_the_ready(uint reason) {
    bool waits = reason == REASON_DISPATCH && !is_last_round() && s_dispatch_ready == NOT_READY;
    return waits ? REASON_CUT : reason;
}

// Then, where the lanes voted for it: releases it.
void release_dispatch(uint reason) {
    bool goes = releases(reason);
    if (goes && gl_LocalInvocationID.x == 0u) {
        k_dispatches += 1u;
    }
    if (goes && dispatch_claim_made() == place_in_turns()) {
        EngineReport report = EngineReport(g_report_va);
        PUT(report.stalled_packet, q_read);
        PUBLISH(report.stalled_queue, PEEK(QueueDescriptor(q_descriptor_va).hw_queue) + 1ul);
        DispatchRecord kernel = DispatchRecord(push.dispatch_va + DISPATCH_KERNELS
                                               + uint64_t(d_kernel) * DISPATCH_RECORD_BYTES);
        PUT(kernel.x, uint(d_groups_xy));
        PUT(kernel.y, uint(d_groups_xy >> 32));
        PUT(kernel.z, uint(d_groups_z));
        PUT(DispatchRecord(push.dispatch_va).released, d_kernel + 1u);
        q_transferred = DISPATCH_RELEASED;
        l_stepped = true;
    }
}
