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
// A slice may be without a kernel. One that has not been used for long is left out, since it costs every round, used or
// not: the slice says which it has. And one may have come since the slice was started: its handle's entry says since
// which version of the engine's kernels there is one. Either is left to the slices that follow, and the engine notes
// that it was wanted (src/gpu/kernels_in_use.rs).

const uint NOT_REFUSED = ~0u;
const uint TABLE_IS_FULL = 0x80000000u;
const uint TOGETHER_JOB = 1u << 24;
// Executions for which a table is held back, beside those of two looks at every queue, while other queues go on.
const uint DISPATCH_PATIENCE = 8u;
// Times that a lane tries to add a job to those of a kernel: each try in vain is another's success.
const uint TOGETHER_TRIES = MAX_JOBS;

// Loop passes that it can take to get one ready.
const uint DISPATCH_PASSES = uint(MOST_PARAMETER_BYTES) / 8u + 1u + TOGETHER_TRIES;
// And those of a round besides: what it marks as done, and its records.
const uint ROUND_PASSES = MAX_JOBS + 2u * MAX_KERNELS + 3u;

uint k_dispatches; // of lane 0, as the k_… of slice.glsl

bool is_last_round() {
    return push.round == DISPATCH_ROUNDS;
}

DispatchJob job_at(uint job) {
    return DispatchJob(push.dispatch_va + DISPATCH_JOBS + uint64_t(job) * DISPATCH_JOB_BYTES);
}

uint64_t kernel_va(uint kernel) {
    return push.dispatch_va + DISPATCH_KERNELS + uint64_t(kernel) * DISPATCH_KERNEL_BYTES;
}

KernelUse use_of(uint kernel) {
    return KernelUse(kernel_va(kernel) + KERNEL_USE);
}

DispatchRecord record_of(uint kernel) {
    return DispatchRecord(kernel_va(kernel));
}

// Before the first meeting: what the round before released is done. The newer of the two copies of a queue's state
// says so from here on; it is one word, so no copy is torn by it. Before it that copy has the log's index with the
// signals of the kernel, which the log has already.
//
// A kernel's record says whether it ran: where the driver has cut the loop that writes records, some are still as a
// round begins with them, and the jobs of those have not run.
void begin_round() {
    uint lane = gl_LocalInvocationID.x;
    DispatchRound round = DispatchRound(push.dispatch_va);
    uint launched = push.round != 0ul ? min(PEEK(round.jobs), MAX_JOBS) : 0u;
    for (uint i = lane; i < launched; i += gl_WorkGroupSize.x) {
        uint64_t state_va = PEEK(job_at(i).state_va);
        if (state_va != 0ul && PEEK(record_of(PEEK(job_at(i).kernel) % MAX_KERNELS).jobs) != 0u) {
            uint64_t even = OBSERVE(QueueState(state_va).sequence);
            uint64_t odd = OBSERVE(QueueState(state_va + QUEUE_STATE_BYTES).sequence);
            QueueState newer = QueueState(state_va + (odd > even ? QUEUE_STATE_BYTES : 0ul));
            finish_signals(job_at(i), newer);
            PUBLISH(newer.transferred, DISPATCH_RELEASED);
        }
    }
    if (lane == 0u) {
        s_table = 0u;
        s_alone = 0u;
        s_jobs = 0u;
        s_ready = 0u;
        s_first = MAX_JOBS;
        s_most = MAX_JOBS;
        s_refused = NOT_REFUSED;
        s_favours = push.round != 0ul ? uint(PEEK(round.favours)) : 0u;
    }
}

// After it, and before anything is prepared: learns from how long the table took, and no kernel runs again.
//
// A table cannot be preempted, and is watched as one packet is. So the packets of a kernel that make it long come
// in smaller tables, down to one alone; those of one that keep it short in larger ones. The first table of a kernel has
// one packet more than others bring.
void learn_of_kernels(uint64_t began, uint64_t budget) {
    uint64_t took = began - min(PEEK(DispatchRound(push.dispatch_va).released_at), began);
    for (uint kernel = gl_LocalInvocationID.x; kernel < uint(push.kernels); kernel += gl_WorkGroupSize.x) {
        if (push.round != 0ul && PEEK(record_of(kernel).jobs) != 0u) {
            uint64_t most = PEEK(use_of(kernel).most_jobs);
            uint64_t jobs = uint64_t(PEEK(DispatchRound(push.dispatch_va).jobs));
            if (took > budget) {
                most = min(most, jobs) / 2ul;
            } else if (took < budget / 4ul) {
                most = min(2ul * most + 1ul, uint64_t(MAX_JOBS));
            }
            PUT(use_of(kernel).most_jobs, most);
        }
        PUT(record_of(kernel).x, 0u);
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

// By lane 0, after it: all of them are known to be done, so none is under way.
void forget_names() {
    PUBLISH(EngineReport(g_report_va).stalled_queue, 0ul);
}

// Whether a round that ends for this reason releases its table; all lanes find the same, after the meeting.
bool releases(uint reason) {
    return reason == REASON_DISPATCH && s_ready != 0u;
}

// By all lanes, last: what runs before the next round, and whether there is one. Where the driver cuts the loop the
// kernels that are left do not run.
void end_round(uint reason, bool raised) {
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
        DispatchRound next = DispatchRound(push.dispatch_va);
        PUT(next.x, goes ? 1u : 0u);
        PUT(next.y, 1u);
        PUT(next.z, 1u);
        PUT(next.jobs, goes ? s_jobs : 0u);
        PUT(next.interrupts, goes && raised ? 1ul : 0ul);
        PUT(next.released_at, now());
        if (s_ready != 0u) {
            PUT(next.kept_back, goes ? 0ul : 1ul);
        }
        give_turn(next, goes);
        k_dispatches += goes ? s_ready : 0u;
        if (goes) {
            EngineReport report = EngineReport(g_report_va);
            DispatchJob first = job_at(s_first);
            PUT(report.stalled_packet, PEEK(first.packet));
            PUBLISH(report.stalled_queue, PEEK(QueueDescriptor(PEEK(first.descriptor_va)).hw_queue) + 1ul);
        }
    }
}

uint64_t d_slice; // the number of the slice

// The dispatch at the head, as far as the packet says.
uint d_kernel;
bool d_finds_job;
uint d_x;
uint d_y;
uint d_z;
uint64_t d_bytes;

// Checks it, and reads its counts.
uint check_dispatch(Packet packet) {
    uint handle = uint(p_control >> 32);
    NamedObject kernel = look_up(handle);
    uint fault = handle_fault(handle >> HANDLE_SLOT_BITS, kernel.meta, ACCESS_KERNEL);
    if (fault != FAULT_NONE) {
        return fault;
    }
    uint64_t shape = PEEK(packet.destination_offset);
    d_bytes = shape >> 32;
    if (d_bytes != (kernel.detail >> KERNEL_BYTES_SHIFT & KERNEL_BYTES_MASK)
        || d_bytes > MOST_PARAMETER_BYTES) {
        return FAULT_PARAMETERS;
    }
    d_kernel = uint(kernel.detail & KERNEL_SLOT_MASK);
    d_finds_job = (kernel.detail & KERNEL_FINDS_JOB) != 0ul;
    d_is_here = kernel.detail >> KERNEL_VERSION_SHIFT <= push.version
                && (push.in_slice >> (d_kernel & 63u) & 1ul) != 0ul;
    KernelUse use = use_of(d_kernel % MAX_KERNELS);
    if (d_is_here) {
        PUT(use.used, d_slice);
    } else {
        PUT(use.wanted, d_slice);
    }
    // Of a kernel that has come to another's place nothing is known.
    if (PEEK(use.version) != kernel.detail >> KERNEL_VERSION_SHIFT) {
        PUT(use.version, kernel.detail >> KERNEL_VERSION_SHIFT);
        PUT(use.most_jobs, 0ul);
    }
    uint64_t xy = p_value;
    uint64_t z = shape & 0xfffffffful;
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
        xy = Data(counts.va + offset).word;
        z = Data(counts.va + offset + 8ul).word & 0xfffffffful;
    }
    if ((xy & 0xfffffffful) > MOST_GROUPS || xy >> 32 > MOST_GROUPS || z > MOST_GROUPS) {
        return FAULT_GROUPS;
    }
    d_x = uint(xy);
    d_y = uint(xy >> 32);
    d_z = uint(z);
    return FAULT_NONE;
}

// Copies its parameters, with addresses for references; what is wrong with them.
uint copy_parameters(Packet packet, uint64_t to) {
    Extent from = resolve_allocation(PEEK(packet.source_handle) & 0xfffffffful);
    uint64_t offset = PEEK(packet.source_offset);
    uint references = uint(PEEK(packet.bytes));
    if (from.fault != FAULT_NONE) {
        return from.fault;
    }
    if (!lie_in(offset, d_bytes, from)) {
        return FAULT_RANGE;
    }
    uint fault = FAULT_NONE;
    uint words = uint(d_bytes / 8ul);
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
        Data(to + uint64_t(i) * 8ul).word = value;
    }
    // Where the driver has cut the loop another slice begins anew.
    d_is_here = d_is_here && i == words;
    return fault;
}

// Whether the table is this queue's process's, or becomes so. One that is alone needs an empty one.
bool joins_table(bool alone) {
    uint own = q_ordinal + 1u;
    uint taken = atomicCompSwap(s_table, 0u, alone ? own | TABLE_IS_FULL : own);
    if (taken == 0u) {
        return true;
    }
    uint founder = (taken & ~TABLE_IS_FULL) - 1u;
    if (!alone && (taken & TABLE_IS_FULL) == 0u) {
        uint64_t other = PEEK(Word(g_run_list_va + uint64_t(founder) * 8ul).value);
        if (PEEK(QueueDescriptor(other).handle_directory_va) == q_handle_directory_va) {
            return true;
        }
    }
    return false;
}

// Its turn comes, though there is no place for it in this table, or not yet.
void note_refused() {
    atomicMin(s_refused, (q_ordinal + MAX_HW_QUEUES + 1u - who_came_first()) % MAX_HW_QUEUES);
}

// Adds so many workgroups to those of the kernel; false if there would be too many.
bool joins_kernel(uint job, uint groups) {
    uint before = s_together[d_kernel];
    for (uint i = 0u; i < TOGETHER_TRIES; ++i) {
        uint first = before & (TOGETHER_JOB - 1u);
        if (first + groups > uint(MOST_GROUPS)) {
            break;
        }
        uint seen = atomicCompSwap(s_together[d_kernel], before, before + groups + TOGETHER_JOB);
        if (seen == before) {
            KernelJob entry = KernelJob(kernel_va(d_kernel) + KERNEL_JOBS
                                        + uint64_t(before / TOGETHER_JOB) * KERNEL_JOB_BYTES);
            PUT(entry.job_va, uint64_t(job_at(job)));
            PUT(entry.first, first);
            PUT(entry.end, first + groups);
            return true;
        }
        before = seen;
    }
    return false;
}

// A place in the table, if there is one for a job of this kernel: MAX_JOBS or more where there is none.
uint take_place() {
    uint most = min(uint(PEEK(use_of(d_kernel).most_jobs)), MAX_JOBS - 1u) + 1u;
    uint job = atomicAdd(s_jobs, 1u);
    if (job >= most || job >= s_most) {
        atomicAdd(s_jobs, ~0u);
        return MAX_JOBS;
    }
    atomicMin(s_most, most);
    return job;
}

// Gives the dispatch at the head a place in the table: false if it has to wait for another round or slice. What is
// wrong with it is in p_handle_fault.
bool prepare_dispatch() {
    Packet packet = Packet(q_ring_va + (q_read & (q_ring_capacity - 1ul)) * PACKET_BYTES);
    p_handle_fault = check_dispatch(packet);
    if (p_handle_fault != FAULT_NONE || !d_is_here) {
        return false;
    }
    uint64_t groups = uint64_t(d_x) * uint64_t(d_y) * uint64_t(d_z);
    bool alone = !d_finds_job || groups > MOST_GROUPS;
    if (!joins_table(alone)) {
        note_refused();
        return false;
    }
    uint job = take_place();
    if (job >= MAX_JOBS) {
        note_refused();
        return false;
    }
    // Nothing comes of it where it ends here.
    PUT(job_at(job).state_va, 0ul);
    PUT(job_at(job).signals, 0ul);
    if (d_bytes != 0ul) {
        p_handle_fault = copy_parameters(packet, uint64_t(job_at(job)) + DISPATCH_JOB_PARAMETERS);
        if (p_handle_fault != FAULT_NONE || !d_is_here) {
            return false;
        }
    }
    if (alone) {
        KernelJob entry = KernelJob(kernel_va(d_kernel) + KERNEL_JOBS);
        PUT(entry.job_va, uint64_t(job_at(job)));
        PUT(entry.first, 0u);
        PUT(entry.end, ~0u);
        s_alone = d_kernel + 1u;
        s_alone_x = d_x;
        s_alone_y = d_y;
        s_alone_z = d_z;
    } else if (!joins_kernel(job, uint(groups))) {
        note_refused();
        return false;
    }
    PUT(job_at(job).descriptor_va, q_descriptor_va);
    PUT(job_at(job).packet, q_read);
    PUT(job_at(job).x, d_x);
    PUT(job_at(job).y, d_y);
    PUT(job_at(job).z, d_z);
    PUT(job_at(job).kernel, d_kernel);
    PUT(job_at(job).clock_bits, g_clock_is_short ? 32u : 64u);
    PUT(job_at(job).ticks, now());
    PUT(job_at(job).state_va, q_state_va);
    atomicAdd(s_ready, 1u);
    atomicMin(s_first, job);
    return true;
}

// At the end of an execution, of a queue in registers that stands at a dispatch. Where the engine has no kernel, no
// handle is one's.
void stand_at_dispatch() {
    bool stands = q_ordinal != NO_QUEUE && !q_stands && p_fetched && is_dispatch(uint(p_control) & 0xffu)
                  && q_transferred != DISPATCH_RELEASED && q_status == STATUS_READY
                  && p_handle_fault == FAULT_NONE && (uint(p_control) >> 8) == 1u;
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
