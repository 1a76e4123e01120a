// Signals of kernels: what the invocations of a job stored, logged and compared once the kernel has ended.
//
// A kernel stores CurrentValues itself and notes them in a list of its job (shaders/include/native_fence.glsl). A log
// has one writer at a time and a reader that counts on it, and so has the ring of records; so the rest of a signal is
// done here, by the lane that marks the job's dispatch as done, before it does: log entry, log index, barrier,
// comparison with the shadow (IN-01). The barrier of the device between kernel and round orders the stores of the
// kernel before all of it. Lane 0 adopts after it, in the same round: a MonitoredValue that came meanwhile is stored to
// the shadow then, and CurrentValue read after that (NF-07).
//
// They take places of the log and no numbers: those of the packets behind the dispatch were given before it ran.

// The record of a signal that raises. Lane 0 publishes the ring's index after the lanes have met (slice.glsl), if there
// was room for all.
void raise_for_kernel(uint64_t fence_entry, uint64_t value, uint64_t hw_queue, uint64_t log_number) {
    disarm(FenceEntry(fence_entry));
    DispatchRound round = DispatchRound(g_dispatch_va);
    uint64_t ordinal = ADD(round.raised, 1ul) & 0xfffffffful;
    uint64_t index = PEEK(EngineReport(g_report_va).record_write) + ordinal;
    if (index - OBSERVE(g_control.record_read) < RECORD_RING_CAPACITY) {
        store_record(index, PEEK(FenceEntry(fence_entry).id), value, hw_queue, log_number);
    } else {
        ADD(round.raised, 1ul << 32);
    }
}

// Does the rest of the signals of a job, whose queue has this state.
void finish_signals(DispatchJob job, QueueState state) {
    uint signals = uint(min(PEEK(job.signals), MOST_KERNEL_SIGNALS));
    if (signals != 0u) {
        QueueDescriptor descriptor = QueueDescriptor(PEEK(job.descriptor_va));
        uint64_t log = PEEK(descriptor.signal_log_va);
        uint entries = uint(PEEK(descriptor.signal_log_entries));
        uint64_t hw_queue = PEEK(descriptor.hw_queue);
        uint64_t log_number = PEEK(state.signal_number);
        uint64_t index = PEEK(state.signal_log_index);
        // Places are taken in another order than the clock is read: one log's times never go back (LG-08).
        uint64_t ticks = 0ul;
        for (uint i = 0u; i < signals; ++i) {
            KernelSignal signal =
                KernelSignal(uint64_t(job) + DISPATCH_JOB_SIGNALS + uint64_t(i) * KERNEL_SIGNAL_BYTES);
            uint64_t value = PEEK(signal.value);
            uint64_t handle = PEEK(signal.handle_and_marks);
            uint64_t fence_entry = PEEK(signal.fence_entry_va);
            ticks = max(ticks, PEEK(signal.ticks));
            index = log_entry(log, index, entries, value,
                              (handle & 0xfffffffful) | (LOG_SIGNAL_EXECUTED << 32), ticks);
            order_log_before_comparison();
            if (fence_entry != 0ul && value > PEEK(FenceEntry(fence_entry).shadow)) {
                raise_for_kernel(fence_entry, value, hw_queue, log_number);
            }
            l_backward += uint(handle >> 32) & 1u;
            // Late, since the kernel has no line: another adapter's queue is woken when the kernel has ended.
            uint doorbell = uint(handle >> 48);
            if (DOORBELLS && fence_entry != 0ul && doorbell != 0u) {
                ring(doorbell);
            }
        }
        PUT(state.signal_log_index, index);
        ADD(DispatchRound(g_dispatch_va).logged, uint64_t(signals));
    }
}
