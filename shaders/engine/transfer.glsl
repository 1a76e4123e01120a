// Transfers: TIMESTAMP, FILL and COPY, which all lanes do together, a part in an iteration.
//
// A lane whose queue stands at a transfer claims the next part at the end of an execution. Between
// the two meetings that follow, beside the control part, one of the claimers by turns checks the
// packet and resolves its handles, for every part anew, since a handle may be closed between two
// (PR-15), and writes the job. After the second meeting each lane does its share, the lanes meet,
// and the claimer counts the part if every lane's loop ran to its end. A slice can end between any
// two parts. A part that is done again has the same effect: source and destination do not overlap.
//
// Words are loaded and stored plainly: atomic or coherent accesses cost a CPU device many times as
// much. So each lane makes what was stored before visible to itself before its share, and what it
// stored available after it. What the work before wrote is seen: the lane that observed it has met
// all lanes since. What is written here is seen by whoever observes the queue's next signal: the
// lanes meet before the claimer goes on, and it publishes that afterwards.
//
// s_job_* and s_claim[] have these turns: claims of an execution go to one of the two words, by its
// number; lane 0 clears the other in the control part, before the first execution both; the job is
// written between the meetings and read after the second. Before the first meeting of a slice nobody
// but lane 0 looks at a claim: workgroup memory begins with anything.

const uint NO_CLAIM = ~0u;
// Words of a lane in one pass of its loop, whose body they are.
const uint WORDS_OF_A_PASS = 8u;
const uint PASSES_OF_A_PART = 64u;

// Checks the transfer at the head, and writes the job of its next part; none if it is refused.
void write_job() {
    uint opcode = uint(p_control) & 0xffu;
    bool copies = opcode == OPCODE_COPY;
    Packet packet = Packet(q_ring_va + (q_read & (q_ring_capacity - 1ul)) * PACKET_BYTES);
    uint64_t to = PEEK(packet.destination_offset);
    uint64_t bytes = opcode == OPCODE_TIMESTAMP ? 8ul : PEEK(packet.bytes);
    uint64_t from = PEEK(packet.source_offset);
    Extent destination = resolve_allocation(p_control >> 32);
    Extent source = resolve_allocation(PEEK(packet.source_handle));
    uint fault = destination.fault;
    if (fault == FAULT_NONE && copies) {
        fault = source.fault;
    }
    // Of a packet that was changed between two of its parts, less may be left than was done.
    if (fault == FAULT_NONE
        && (!lie_in(to, bytes, destination) || (copies && !lie_in(from, bytes, source))
            || q_transferred > bytes)) {
        fault = FAULT_RANGE;
    }
    uint64_t to_va = destination.va + to;
    uint64_t from_va = source.va + from;
    if (fault == FAULT_NONE && copies && to_va < from_va + bytes && from_va < to_va + bytes) {
        fault = FAULT_OVERLAP;
    }
    bool goes = fault == FAULT_NONE;
    uint64_t most = uint64_t(PASSES_OF_A_PART * WORDS_OF_A_PASS * gl_WorkGroupSize.x) * 8ul;
    p_handle_fault = fault;
    t_bytes = goes ? bytes : ~0ul;
    s_job_words = goes ? uint(min(bytes - q_transferred, most) / 8ul) : 0u;
    s_job_to = to_va + q_transferred;
    s_job_from = copies ? from_va + q_transferred : 0ul;
    s_job_value = opcode == OPCODE_TIMESTAMP ? now() : p_value;
    s_job_shares = 0u;
}

// This lane's share of the job; true if it ran to its end. Whole passes are loops of their own,
// without a condition in them: on lavapipe a condition costs as much as what it skips.
bool do_share() {
    uint64_t step = uint64_t(gl_WorkGroupSize.x) * 8ul;
    uint64_t first = uint64_t(gl_LocalInvocationID.x) * 8ul;
    uint of_a_pass = WORDS_OF_A_PASS * gl_WorkGroupSize.x;
    uint64_t value = s_job_value;
    bool copies = s_job_from != 0ul;
    uint copied = 0u;
    uint passes = s_job_words / of_a_pass;
    uint64_t to = s_job_to + first;
    uint64_t from = s_job_from + first;
    for (; copies && copied < passes; ++copied) {
        uint64_t v0 = Data(from).word;
        uint64_t v1 = Data(from + step).word;
        uint64_t v2 = Data(from + 2ul * step).word;
        uint64_t v3 = Data(from + 3ul * step).word;
        uint64_t v4 = Data(from + 4ul * step).word;
        uint64_t v5 = Data(from + 5ul * step).word;
        uint64_t v6 = Data(from + 6ul * step).word;
        uint64_t v7 = Data(from + 7ul * step).word;
        Data(to).word = v0;
        Data(to + step).word = v1;
        Data(to + 2ul * step).word = v2;
        Data(to + 3ul * step).word = v3;
        Data(to + 4ul * step).word = v4;
        Data(to + 5ul * step).word = v5;
        Data(to + 6ul * step).word = v6;
        Data(to + 7ul * step).word = v7;
        to += WORDS_OF_A_PASS * step;
        from += WORDS_OF_A_PASS * step;
    }
    uint filled = 0u;
    for (; !copies && filled < passes; ++filled) {
        Data(to).word = value;
        Data(to + step).word = value;
        Data(to + 2ul * step).word = value;
        Data(to + 3ul * step).word = value;
        Data(to + 4ul * step).word = value;
        Data(to + 5ul * step).word = value;
        Data(to + 6ul * step).word = value;
        Data(to + 7ul * step).word = value;
        to += WORDS_OF_A_PASS * step;
    }
    // The rest, fewer than a pass has.
    uint i = passes * of_a_pass + gl_LocalInvocationID.x;
    for (; i < s_job_words; i += gl_WorkGroupSize.x) {
        if (copies) {
            value = Data(from).word;
        }
        Data(to).word = value;
        to += step;
        from += step;
    }
    return (copies ? copied : filled) == passes && i >= s_job_words;
}

// Of all lanes, whose turn it is comes first.
uint place_in_turns() {
    return (gl_LocalInvocationID.x + gl_WorkGroupSize.x - g_turn) % gl_WorkGroupSize.x;
}

// At the end of an execution: claims the next part if the queue in registers stands at a transfer.
void claim_transfer() {
    bool stands = q_ordinal != NO_QUEUE && p_fetched && is_transfer(uint(p_control) & 0xffu)
                  && q_status == STATUS_READY && p_handle_fault == FAULT_NONE
                  && (uint(p_control) >> 8) == 1u;
    if (stands) {
        atomicMin(s_claim[g_iterations & 1u], place_in_turns());
    }
}

// The claim of the last execution.
uint claim_made() {
    return s_claim[(g_iterations + 1u) & 1u];
}

// Between the meetings, but not before the first execution: the claimer whose turn it is writes the job.
void prepare_part() {
    if (claim_made() == place_in_turns()) {
        write_job();
    }
}

// After them: all lanes do the part. Gives the passes that it can have taken.
uint do_part() {
    uint claim = claim_made();
    if (claim != NO_CLAIM) {
        bool is_its = claim == place_in_turns();
        make_visible();
        bool done = do_share();
        make_available();
        if (done) {
            atomicAdd(s_job_shares, 1u);
        }
        meet();
        if (is_its && p_handle_fault == FAULT_NONE) {
            if (s_job_shares == gl_WorkGroupSize.x) {
                q_transferred += uint64_t(s_job_words) * 8ul;
                l_stepped = true;
            }
            if (q_transferred == t_bytes) {
                leave_head(false);
                PUBLISH(QueueProgress(q_progress_va).read_index, q_read);
            }
        }
        g_turn = (claim + g_turn + 1u) % gl_WorkGroupSize.x;
    }
    // Those of the rest, and the last of each of three loops, too.
    return claim != NO_CLAIM ? PASSES_OF_A_PART + WORDS_OF_A_PASS + 3u : 0u;
}
