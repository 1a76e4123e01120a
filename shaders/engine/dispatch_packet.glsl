// A DISPATCH packet: checked, and given a place in the table of those that run next.
//
// What is wrong with it the engine's next step finds, and faults its queue; parameters are copied, with addresses for
// references, so that what is checked is what runs (HQ-04).

// Times that a lane tries to take a place, and to add a job to those of a kernel: each try in vain is another's success.
const uint TOGETHER_TRIES = MAX_JOBS;

DispatchJob job_at(uint job) {
    return DispatchJob(g_dispatch_va + DISPATCH_JOBS + uint64_t(job) * DISPATCH_JOB_BYTES);
}

uint64_t kernel_va(uint kernel) {
    return g_dispatch_va + DISPATCH_KERNELS + uint64_t(kernel) * DISPATCH_KERNEL_BYTES;
}

KernelUse use_of(uint kernel) {
    return KernelUse(kernel_va(kernel) + KERNEL_USE);
}

DispatchRecord record_of(uint kernel) {
    return DispatchRecord(kernel_va(kernel));
}

// By which it runs when so many tables have run since the engine's place in the command buffer. Each kernel's first is read
// once between two places of the engine, and so by a table that is followed by the engine; the others by turns.
DispatchRecord record_at(uint kernel, uint turn) {
    uint record = turn == 0u ? 0u : 2u - (turn & 1u);
    return DispatchRecord(kernel_va(kernel) + uint64_t(record) * DISPATCH_RECORD_BYTES);
}

// By lane 0, as the kernel of a job is about to run: of an engine that does not come back the OS knows by it whose it was.
void name_job(uint job) {
    EngineReport report = EngineReport(g_report_va);
    PUT(report.stalled_packet, PEEK(job_at(job).packet));
    PUBLISH(report.stalled_queue, PEEK(QueueDescriptor(PEEK(job_at(job).descriptor_va)).hw_queue) + 1ul);
}

// By lane 0, once all that was released is known to be done: none is under way.
void forget_names() {
    PUBLISH(EngineReport(g_report_va).stalled_queue, 0ul);
}

// Whether the table takes a job of the queue's: alone, or with others; `only` is the kernel's number + 1 where it schedules
// itself, else OF_SEVERAL.
bool joins_table(bool alone, uint only);

// Its turn comes, though there is no place for it in this table, or not yet.
void note_refused();

// The dispatch at the head, as far as the packet says.
uint d_kernel;
bool d_finds_job;
bool d_schedules_itself;
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
    d_schedules_itself = (kernel.detail & KERNEL_SCHEDULES_ITSELF) != 0ul;
    d_is_here = kernel.detail >> KERNEL_VERSION_SHIFT <= g_version && (g_in_slice >> d_kernel & 1ul) != 0ul;
    KernelUse use = use_of(d_kernel);
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
    // What the work before wrote is seen: it was available when this lane learned of it. (In an epilogue what the kernel
    // stored through `nonprivate` references is: include/self_scheduling.glsl.)
    ORDERED(make_visible());
    if (counts_handle != 0ul) {
        Extent counts = resolve_allocation(counts_handle);
        uint64_t offset = PEEK(packet.counts_offset);
        if (counts.fault != FAULT_NONE) {
            return counts.fault;
        }
        if (!lie_in(offset, COUNTS_BYTES, counts)) {
            return FAULT_RANGE;
        }
        xy = PEEK(Word(counts.va + offset).value);
        z = PEEK(Word(counts.va + offset + 8ul).value) & 0xfffffffful;
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
    do {
        uint64_t value = PEEK(Word(from.va + offset + uint64_t(i) * 8ul).value);
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
        ++i;
    } while (i < words);
    // Where the driver has cut the loop another slice begins anew.
    d_is_here = d_is_here && i == words;
    return fault;
}

// Adds so many workgroups to those of the kernel; false if there would be too many.
bool joins_kernel(uint job, uint groups) {
    uint kernel = EPILOGUE ? 0u : d_kernel;
    uint before = s_together[kernel];
    uint most = uint(MOST_GROUPS) - groups;
    bool joins = false;
    uint tries = 0u;
    do {
        if ((before & (TOGETHER_JOB - 1u)) <= most) {
            uint seen = atomicCompSwap(s_together[kernel], before, before + groups + TOGETHER_JOB);
            joins = seen == before;
            before = joins ? before : seen;
        }
        ++tries;
    } while (tries < TOGETHER_TRIES && !joins && (before & (TOGETHER_JOB - 1u)) <= most);
    if (joins) {
        KernelJob entry = KernelJob(kernel_va(d_kernel) + KERNEL_JOBS
                                    + uint64_t(before / TOGETHER_JOB) * KERNEL_JOB_BYTES);
        uint first = before & (TOGETHER_JOB - 1u);
        PUT(entry.job_va, uint64_t(job_at(job)));
        PUT(entry.first, first);
        PUT(entry.end, first + groups);
    }
    return joins;
}

// A place in the table, if there is one for a job of this kernel: MAX_JOBS or more where there is none. None is given
// back: another lane may have the next one.
uint take_place() {
    uint most = min(uint(PEEK(use_of(d_kernel).most_jobs)), MAX_JOBS - 1u) + 1u;
    uint before = s_jobs;
    uint place = MAX_JOBS;
    uint tries = 0u;
    do {
        if (before < min(most, s_most)) {
            uint seen = atomicCompSwap(s_jobs, before, before + 1u);
            place = seen == before ? before : MAX_JOBS;
            before = seen;
        }
        ++tries;
    } while (tries < TOGETHER_TRIES && place == MAX_JOBS && before < min(most, s_most));
    if (place != MAX_JOBS) {
        atomicMin(s_most, most);
    }
    return place;
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
    uint only = d_schedules_itself && !alone && groups != 0ul ? d_kernel + 1u : OF_SEVERAL;
    if (!joins_table(alone, only)) {
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
    PUT(job_at(job).place, job);
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
    uint64_t ticks = now();
    if (VERBOSE) {
        // Of a table that is kept back it is released with another one, and later.
        q_observed = ticks;
    }
    PUT(job_at(job).ticks, ticks);
    PUT(job_at(job).state_va, q_state_va);
    atomicAdd(s_ready, 1u);
    atomicMin(s_first, job);
    return true;
}

// Learns from how long a table took, which had so many jobs.
//
// A table cannot be preempted, and is watched as one packet is. So the packets of a kernel that make it long come
// in smaller tables, down to one alone; those of one that keep it short in larger ones. The first table of a kernel has
// one packet more than others bring.
void learn_of_kernel(uint kernel, uint64_t took, uint64_t budget, uint64_t jobs) {
    uint64_t most = PEEK(use_of(kernel).most_jobs);
    uint64_t learned = most;
    if (took > budget) {
        learned = min(most, jobs) / 2ul;
    } else if (took < budget / 4ul) {
        learned = min(2ul * most + 1ul, uint64_t(MAX_JOBS));
    }
    if (learned != most) {
        PUT(use_of(kernel).most_jobs, learned);
    }
}

// Whether the queue in registers stands at a dispatch that is to be made, as far as the packet is looked at here.
bool is_at_dispatch() {
    return q_ordinal != NO_QUEUE && !q_stands && p_fetched && is_dispatch(uint(p_control) & 0xffu)
           && q_transferred != DISPATCH_RELEASED && q_status == STATUS_READY && p_handle_fault == FAULT_NONE
           && (uint(p_control) >> 8) == 1u;
}
