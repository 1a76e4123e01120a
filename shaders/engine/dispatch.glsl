// Dispatches: packets that run kernels of the process, which the slice's command buffer holds behind the engine's
// own.
//
// A slice that dispatches is rounds of the engine, a barrier, each kernel that the engine has, and a barrier; the
// last round is the engine's alone. A kernel runs in as many workgroups as its record says, which is none where the
// round before released none, and the engine's own next round in one or, once the slice has ended, none. So what was
// released is done when the next round begins, and no slice ends with a kernel under way.
//
// A round has a table of jobs, a packet each. The lane whose queue stands at a dispatch checks the packet at the end
// of its execution, copies the parameters, and gives it a place; what is wrong with it the queue's next step finds.
// When the lanes have done what they can, the table is released: the records are written, and each queue's dispatch
// is done with the round. A round that ends for something else, as an interrupt, releases nothing, and the queues
// come to their dispatches again.
//
// Jobs of a kernel that finds its job itself (shaders/include/native_fence.glsl) run together, as one dispatch of the
// workgroups of all. Any other kernel runs alone: its workgroups are what gl_WorkGroupID says. Jobs of one table are
// of one process: of an engine that does not come back the OS knows whose kernel it is in
// (EngineReport.stalled_queue names the first), its device is in error, and nobody else has lost anything (TD-06).
//
// A kernel may schedule itself (include/self_scheduling.glsl): then the last workgroup of a table of its jobs does the
// engine's step and makes the next table (epilogue.glsl), and a slice that has rounds for that goes from table to table
// without the engine, until something is the engine's to do. A table that stands unrun when the engine comes is given up.
//
// A slice may be without a kernel. One that has not been used for long is left out, since it costs every round, used or
// not: the slice says which it has. And one may have come since the slice was started: its handle's entry says since
// which version of the engine's kernels there is one. Either is left to the slices that follow, and the engine notes
// that it was wanted (src/gpu/kernels_in_use.rs).

const uint NOT_REFUSED = ~0u;
const uint TABLE_IS_FULL = 0x80000000u;
// Executions for which a table is held back, beside those of two looks at every queue, while other queues go on.
const uint DISPATCH_PATIENCE = 8u;

// Loop passes that it can take to get one ready.
const uint DISPATCH_PASSES = uint(MOST_PARAMETER_BYTES) / 8u + 1u + 2u * TOGETHER_TRIES;
// And those of a round besides: what it marks as done, and its records.
const uint ROUND_PASSES = MAX_JOBS + 2u * MAX_KERNELS + 3u;

// Of lane 0, as the k_… of slice.glsl.
uint k_dispatches;
bool k_schedules_itself; // a table of the slice was of a kernel that schedules itself
uint64_t k_mailbox_read;
uint64_t k_rescan_end;   // 0: none under way
uint64_t k_rescan_seen;
uint64_t k_began;
uint64_t k_request;
uint64_t k_time_budget;

bool is_last_round() {
    return push.round == push.rounds;
}

// Whether the table that stands there has run. One that an epilogue has made may stand before its turn, where the engine
// was asked for: it is given up, and its queues come to their dispatches again.
bool has_run(DispatchRound round) {
    return PEEK(round.scheduling) == SCHEDULING_NONE || PEEK(round.ran) != 0ul;
}

// Before the first meeting: what the round before released is done. The newer of the two copies of a queue's state
// says so from here on; it is one word, so no copy is torn by it. Before it that copy has the log's index with the
// signals of the kernel, which the log has already.
//
// A kernel's record says whether it ran: where the driver has cut the loop that writes records, some are still as a
// round begins with them, and the jobs of those have not run.
void begin_round() {
    uint lane = gl_LocalInvocationID.x;
    DispatchRound round = DispatchRound(g_dispatch_va);
    uint launched = push.round != 0ul && has_run(round) ? min(PEEK(round.jobs), MAX_JOBS) : 0u;
    for (uint i = lane; i < launched; i += gl_WorkGroupSize.x) {
        uint64_t state_va = PEEK(job_at(i).state_va);
        if (state_va != 0ul && PEEK(record_of(PEEK(job_at(i).kernel) % MAX_KERNELS).jobs) != 0u) {
            uint64_t sequence;
            QueueState newer = newer_state(state_va, sequence);
            finish_signals(job_at(i), newer);
            PUBLISH(newer.transferred, DISPATCH_RELEASED);
        }
    }
    if (lane == 0u) {
        begin_table();
        s_table = 0u;
        s_refused = NOT_REFUSED;
        s_favours = push.round != 0ul ? uint(PEEK(round.favours)) : 0u;
    }
}

// After it, and before anything is prepared: learns from how long the table took, and no kernel runs again.
//
// An epilogue has learned already.
void learn_of_kernels(uint64_t began, uint64_t budget) {
    DispatchRound round = DispatchRound(g_dispatch_va);
    uint64_t took = began - min(PEEK(round.released_at), began);
    bool learns = push.round != 0ul && PEEK(round.scheduling) == SCHEDULING_NONE;
    for (uint kernel = gl_LocalInvocationID.x; kernel < uint(push.kernels); kernel += gl_WorkGroupSize.x) {
        if (learns && PEEK(record_of(kernel).jobs) != 0u) {
            learn_of_kernel(kernel, took, budget, uint64_t(PEEK(round.jobs)));
        }
        PUT(record_at(kernel, 0u).x, 0u);
        PUT(record_at(kernel, 1u).x, 0u);
        PUT(record_at(kernel, 2u).x, 0u);
        PUT(record_of(kernel).jobs, 0u);
        s_together[kernel] = 0u;
    }
}

// After the meeting behind it: the lane that knows by its descriptor that it has the queue whose turn it is, and in
// which place.
bool begin_with_favoured() {
    if (push.round == 0ul && l_favours != 0u) {
        s_favours = l_favours;
    } else if (push.round != 0ul) {
        uint ordinal = s_favours - 1u;
        bool here = ordinal < g_queue_count && ordinal % gl_WorkGroupSize.x == gl_LocalInvocationID.x;
        l_favours = here ? s_favours : 0u;
    }
    if (l_favours != 0u) {
        l_cursor = (l_favours - 1u) / gl_WorkGroupSize.x;
    }
    return l_favours != 0u;
}

// The queue whose turn it is, or else the one that came first, as its ordinal + 1; 0: none.
uint who_came_first() {
    return s_favours != 0u ? s_favours : s_table & ~TABLE_IS_FULL;
}

// By lane 0: who comes first in the next round. Where this one released nothing, who was to come first in it; where it
// did, who was kept out.
void give_turn(DispatchRound next, bool goes) {
    uint turn = who_came_first();
    if (goes) {
        turn = s_refused == NOT_REFUSED ? 0u : (turn - 1u + s_refused) % MAX_HW_QUEUES + 1u;
    }
    PUT(next.favours, uint64_t(turn));
    PUT(next.favours_va, turn == 0u ? 0ul : PEEK(Word(g_run_list_va + uint64_t(turn - 1u) * 8ul).value));
}

// Whether a round that ends for this reason releases its table; all lanes find the same, after the meeting.
bool releases(uint reason) {
    return reason == REASON_DISPATCH && s_ready != 0u;
}

// Whether the kernel of the table does the engine's step when it has ended: its jobs are of one that does, and nothing was
// kept out of the table, which only the engine can give its turn.
bool can_schedule_itself() {
    return !STALLS && s_only != 0u && s_only != OF_SEVERAL && s_waits == 0u && s_refused == NOT_REFUSED;
}

// And whether the slice has rounds for it without the engine.
bool schedules_itself() {
    return push.depth > 1ul && can_schedule_itself();
}

// By lane 0: what an epilogue needs to know.
void hand_over(DispatchRound next) {
    uint kernel = s_only - 1u;
    PUT(next.turn, 0u);
    PUT(next.left, uint64_t(s_together[kernel] & (TOGETHER_JOB - 1u)));
    PUT(next.ran, 0ul);
    PUT(next.kernel, kernel);
    PUT(next.ready, s_ready);
    PUT(next.scheduled, 0ul);
    PUT(next.control_va, g_control_va);
    PUT(next.run_list_va, g_run_list_va);
    PUT(next.queue_count, uint64_t(g_queue_count));
    PUT(next.handle_directory_va, PEEK(QueueDescriptor(PEEK(job_at(s_first).descriptor_va)).handle_directory_va));
    PUT(next.version, g_version);
    PUT(next.in_slice, g_in_slice);
    PUT(next.slice, d_slice);
    PUT(next.time_budget, k_time_budget);
    PUT(next.began, k_began);
    PUT(next.request, k_request);
    PUT(next.mailbox_read, k_mailbox_read);
    // A rescan that is under way is the engine's to end.
    PUT(next.rescan_seen, k_rescan_end == 0ul ? k_rescan_seen : ~0ul);
}

// By all lanes, last: what runs before the next round, and whether there is one. Where the driver cuts the loop the
// kernels that are left do not run. `raised`: a record was published; `interrupts`: for which the slice ends.
void end_round(uint reason, bool raised, bool interrupts) {
    bool goes = releases(reason);
    uint lane = gl_LocalInvocationID.x;
    for (uint kernel = lane; goes && kernel < uint(push.kernels); kernel += gl_WorkGroupSize.x) {
        uint together = s_together[kernel];
        bool alone = s_alone == kernel + 1u;
        if (alone || together != 0u) {
            DispatchRecord record = record_of(kernel);
            PUT(record.x, alone ? s_alone_x : together & (TOGETHER_JOB - 1u));
            PUT(record.y, alone ? s_alone_y : 1u);
            PUT(record.z, alone ? s_alone_z : 1u);
            PUT(record.jobs, alone ? 1u : together / TOGETHER_JOB);
        }
    }
    if (lane == 0u) {
        DispatchRound next = DispatchRound(g_dispatch_va);
        bool scheduling = goes && !interrupts && schedules_itself();
        PUT(next.scheduling, scheduling ? SCHEDULING_ON : SCHEDULING_NONE);
        if (scheduling) {
            hand_over(next);
        }
        k_schedules_itself = k_schedules_itself || (goes && can_schedule_itself());
        PUT(next.x, goes && !scheduling ? 1u : 0u);
        PUT(next.y, 1u);
        PUT(next.z, 1u);
        PUT(next.last_x, goes ? 1u : 0u);
        PUT(next.last_y, 1u);
        PUT(next.last_z, 1u);
        PUT(next.jobs, goes ? s_jobs : 0u);
        PUT(next.interrupts, goes && raised ? 1ul : 0ul);
        PUT(next.released_at, now());
        if (s_ready != 0u) {
            PUT(next.kept_back, goes ? 0ul : 1ul);
        }
        give_turn(next, goes);
        k_dispatches += goes ? s_ready : 0u;
        if (goes) {
            name_job(s_first);
        }
    }
}

// Whether the table is this queue's process's, or becomes so. One that is alone needs an empty one.
bool joins_table(bool alone, uint only) {
    uint own = q_ordinal + 1u;
    uint taken = atomicCompSwap(s_table, 0u, alone ? own | TABLE_IS_FULL : own);
    bool joins = taken == 0u;
    if (!joins && !alone && (taken & TABLE_IS_FULL) == 0u) {
        uint founder = (taken & ~TABLE_IS_FULL) - 1u;
        uint64_t other = PEEK(Word(g_run_list_va + uint64_t(founder) * 8ul).value);
        joins = PEEK(QueueDescriptor(other).handle_directory_va) == q_handle_directory_va;
    }
    if (joins) {
        uint before = atomicCompSwap(s_only, 0u, only);
        if (before != 0u && before != only) {
            atomicMax(s_only, OF_SEVERAL);
        }
    }
    return joins;
}

void note_refused() {
    atomicMin(s_refused, (q_ordinal + MAX_HW_QUEUES + 1u - who_came_first()) % MAX_HW_QUEUES);
}

// By lane 0, where a second execution follows: who let another come first has not been refused by that. Else turns would
// be given for ever to queues that all find a place, and no table left to an epilogue.
void forget_who_let_come_first() {
    if (s_favours != 0u) {
        s_refused = NOT_REFUSED;
    }
}

// At the end of an execution, of a queue in registers that stands at a dispatch. Where the engine has no kernel, no
// handle is one's.
void stand_at_dispatch() {
    bool stands = is_at_dispatch();
    if (DISPATCHES && g_iterations == 0u && s_favours != 0u && s_favours != q_ordinal + 1u) {
        // In the next execution, once the one whose turn it is has come; or in the next round, if there is none.
        if (stands) {
            note_refused();
        }
        stands = false;
    }
    if (stands && PEEK(g_control.dispatches) == 0ul) {
        p_handle_fault = FAULT_HANDLE;
    } else if (stands) {
        bool waits = true;
        if (DISPATCHES && !is_last_round()) {
            waits = !prepare_dispatch();
        }
        // Of one that is refused the next step tells.
        q_stands = p_handle_fault == FAULT_NONE;
        if (waits && q_stands) {
            s_waits = 1u;
        }
    }
}
