// Logging: the entry, then the index that names it (LG-02 to LG-05).
//
// The reader takes the index first, so nothing of the entry may be stored behind it: the index is published.
// And when it has copied entries it takes the index again, to see which of them were written over meanwhile: so
// nothing of an entry may be stored before the index of the one that was logged before it. The barrier behind each
// step orders that.
// Whether the device keeps that order, and whether it would without being told, `nfence litmus` asks.

// What follows an index word.
uint64_t next_index(uint64_t index, uint entries) {
    return uint(index) + 1u < entries ? index + 1ul : ((index >> 32) + 1ul) << 32;
}

// Where the entry that an index word names lies.
uint64_t log_place(uint64_t log, uint64_t index) {
    return log + LOG_HEADER_BYTES + uint64_t(uint(index)) * LOG_ENTRY_BYTES;
}

// Writes what entries of all operations have, then publishes the log's index; which that is.
uint64_t log_entry(uint64_t log, uint64_t index, uint entries, uint64_t value, uint64_t fence_and_operation,
                   uint64_t ticks) {
    uint64_t entry = log_place(log, index);
    PUT(LogEntry(entry).fence_value, value);
    PUT(LogEntry(entry).fence_and_operation, fence_and_operation);
    PUT(LogEntry(entry).end_ticks, ticks);
    index = next_index(index, entries);
    PUBLISH(LogHeader(log).index, index);
    return index;
}
