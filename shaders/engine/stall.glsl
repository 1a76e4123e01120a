// Stalls: a packet that keeps the engine, as a shader does that never ends or a device that hangs.
//
// For fault injection alone. A lane whose queue stands at a stall goes into it at the end of its steps,
// one lane at a time; the others wait for it at the next meeting, so it holds the whole engine. Before
// it goes in it publishes which queue and which packet it is in, by which the OS finds whom to blame;
// when it is out it takes that back.
//
// Neither kind heeds REQUEST. One heeds ABORT: if that is not what it was when the engine went in, the
// queue faults and the packet is not completed. The other ends with its passes alone, as the first
// does where nobody aborts it. Where the driver cuts the loop the queue stays in its packet, as its
// saved state says, and goes on in the next slice with the passes that are left.

const uint NO_STALLER = ~0u;

// By lane 0, before the first meeting.
void begin_stalls() {
    s_staller = NO_STALLER;
    // What a slice that was cut inside of a stall has left: that queue may be in no run list now.
    PUBLISH(EngineReport(g_report_va).stalled_queue, 0ul);
}

bool stands_at_stall() {
    return q_ordinal != NO_QUEUE && p_fetched && is_stall(uint(p_control) & 0xffu)
           && q_status == STATUS_READY && p_handle_fault == FAULT_NONE
           && (uint(p_control) >> 8) == 1u;
}

void do_stall() {
    if (stands_at_stall()
        && atomicCompSwap(s_staller, NO_STALLER, gl_LocalInvocationID.x) == NO_STALLER) {
        EngineReport report = EngineReport(g_report_va);
        bool heeds_abort = uint(p_control >> 32) == STALL_HEEDS_ABORT;
        if (q_stall_abort == 0ul) {
            q_stall_abort = OBSERVE(g_control.abort) + 1ul;
        }
        PUT(report.stalled_packet, q_read);
        PUBLISH(report.stalled_queue, PEEK(QueueDescriptor(q_descriptor_va).hw_queue) + 1ul);
        bool aborted = false;
        for (; q_transferred < p_value && !aborted; q_transferred += 1ul) {
            uint64_t seen = OBSERVE(g_control.abort) + 1ul;
            aborted = heeds_abort && seen != q_stall_abort;
        }
        bool done = !aborted && q_transferred >= p_value;
        if (aborted) {
            // The next step finds it.
            p_handle_fault = FAULT_ABORTED;
        }
        if (done) {
            leave_head(false);
            PUBLISH(QueueProgress(q_progress_va).read_index, q_read);
        }
        if (aborted || done) {
            PUBLISH(report.stalled_queue, 0ul);
        }
        // None goes into a stall after one that was aborted: the OS is to be told of the fault first.
        if (!aborted) {
            atomicExchange(s_staller, NO_STALLER);
        }
    }
}
