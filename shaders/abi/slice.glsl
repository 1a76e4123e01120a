// Slice: arguments and result of one dispatch. Twin of src/abi/slice.rs.

#ifndef NF_ABI_SLICE
#define NF_ABI_SLICE

layout(buffer_reference, scalar, buffer_reference_align = 8) buffer SliceArgs {
    uint64_t slice;
    uint64_t queue_count;
    uint64_t base_ticks;
    uint64_t time_budget;
    uint64_t pass_budget;
    uint64_t idle_window;
    uint64_t request;
    uint64_t delivery;
};

layout(buffer_reference, scalar, buffer_reference_align = 8) buffer SliceResult {
    uint64_t reason;
    uint64_t passes;
    uint64_t iterations;
    uint64_t begin_ticks;
    uint64_t end_ticks;
    uint64_t answers;
    uint64_t done; // low half: parts of transfers, high half: dispatches
    uint64_t stands_at;
};

const uint64_t SLICE_SLOTS = 4ul;
const uint64_t SLICE_ARGS_BYTES = 64ul;
const uint64_t SLICE_RESULT_BYTES = 64ul;
const uint64_t STANDS_AT_TRANSFER = 1ul;
const uint64_t STANDS_AT_DISPATCH = 2ul;
const uint64_t SCHEDULES_ITSELF = 4ul; // not where it stands: a table's kernel was one that schedules itself

const uint64_t DELIVERY_EVENT = 0ul;
const uint64_t DELIVERY_POLLED = 1ul;

const uint REASON_CUT = 0u; // nobody voted for an end: the driver cut the loop
const uint REASON_BUDGET = 1u;
const uint REASON_IDLE = 2u;
const uint REASON_INTERRUPT = 3u;
const uint REASON_REQUEST = 4u;
const uint REASON_TRANSFER = 5u; // a queue stands at a transfer, and this shader has none
const uint REASON_DISPATCH = 6u; // a queue stands at a dispatch, and this slice makes none, or no more

#endif
