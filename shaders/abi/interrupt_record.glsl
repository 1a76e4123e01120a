// Interrupt record. Twin of src/abi/interrupt_record.rs.

#ifndef NF_ABI_INTERRUPT_RECORD
#define NF_ABI_INTERRUPT_RECORD

layout(buffer_reference, scalar, buffer_reference_align = 8) buffer InterruptRecord {
    uint64_t fence_id;
    uint64_t value;
    uint64_t hw_queue; // high half the fault code
    uint64_t log_number;
};

const uint64_t RECORD_RING_CAPACITY = 1024ul;
const uint64_t RECORD_BYTES = 32ul;
const uint64_t RECORD_FAULT = ~0ul;        // fence_id of a faulted queue's record
const uint64_t RECORD_NO_QUEUE = 0xfffffffful; // raised by adoption, by no queue

#endif
