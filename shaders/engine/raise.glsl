// Raising: interrupt records, their ring, and one-shot arming.
//
// Lanes store the words of their records at places that an atomic of the workgroup gives them;
// after the lanes have met, lane 0 publishes the index (slice.glsl). On raising, the shadow becomes
// UINT64_MAX, so that a fence whose raise is unanswered raises no more (decisions.md 5). One whose
// MonitoredValue nobody adopts would be armed again by nobody: it stays armed (XA-03).

void disarm(FenceEntry entry) {
    if (OBSERVE(entry.monitored_value_va) != 0ul) {
        PUT(entry.shadow, ~0ul);
    }
}

void store_record(uint64_t index, uint64_t fence_id, uint64_t value, uint64_t hw_queue,
                  uint64_t log_number) {
    InterruptRecord record = InterruptRecord(g_report_va + REPORT_RECORDS
                                             + (index & (RECORD_RING_CAPACITY - 1ul)) * RECORD_BYTES);
    PUT(record.fence_id, fence_id);
    PUT(record.value, value);
    PUT(record.hw_queue, hw_queue);
    PUT(record.log_number, log_number);
}

// Stores the records that the lane noted. Without room the count alone goes up, and lane 0 tells
// the OS that the set is no longer exactly known.
void raise_what_was_noted() {
    for (uint i = 0u; i < i_raised; ++i) {
        bool first = i == 0u;
        bool faults = first ? i_faults[0] : i_faults[1];
        uint64_t entry = first ? i_fence_entry[0] : i_fence_entry[1];
        uint ordinal = atomicAdd(s_raised, 1u);
        uint64_t fence_id = RECORD_FAULT;
        if (!faults) {
            fence_id = PEEK(FenceEntry(entry).id);
            disarm(FenceEntry(entry));
        }
        if (s_record_room != 0u) {
            uint64_t number = PEEK(QueueDescriptor(q_descriptor_va).hw_queue);
            store_record(s_record_base + uint64_t(ordinal), fence_id,
                         first ? i_value[0] : i_value[1],
                         number | (uint64_t(faults ? q_fault : 0u) << 32),
                         first ? i_log_number[0] : i_log_number[1]);
        }
    }
}
