// Native fence log buffer. Twin of src/abi/log_buffer.rs.

#ifndef NF_ABI_LOG_BUFFER
#define NF_ABI_LOG_BUFFER

layout(buffer_reference, scalar, buffer_reference_align = 8) buffer LogHeader {
    uint64_t index; // low half first free entry, high half wrap count: one store (LG-03)
    uint log_type;
    uint padding;
    uint64_t number_of_entries;
    uint64_t reserved[2];
};

layout(buffer_reference, scalar, buffer_reference_align = 8) buffer LogEntry {
    uint64_t fence_value;
    uint64_t fence_and_operation; // low half the user's handle, high half the operation
    uint64_t reserved0;
    uint64_t observed_ticks;
    uint64_t reserved1;
    uint64_t end_ticks;
};

const uint64_t LOG_HEADER_BYTES = 40ul;
const uint64_t LOG_ENTRY_BYTES = 48ul;
const uint64_t LOG_SIGNAL_EXECUTED = 0ul;
const uint64_t LOG_WAIT_UNBLOCKED = 1ul;
const uint64_t LOG_WAIT_QUEUED = 2147483649ul; // 0x80000001, our own (LG-11)
const uint64_t LOG_DISPATCH_DONE = 2147483650ul; // 0x80000002, likewise

#endif
