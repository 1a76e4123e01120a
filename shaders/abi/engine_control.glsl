// Engine control: written by the OS, read here. Twin of src/abi/engine_control.rs.

#ifndef NF_ABI_ENGINE_CONTROL
#define NF_ABI_ENGINE_CONTROL

layout(buffer_reference, scalar, buffer_reference_align = 8) buffer EngineControl {
    uint64_t mailbox_write;
    uint64_t rescan;
    uint64_t request;
    uint64_t record_read;
    uint64_t fence_slots;
    uint64_t clock_bits;
    uint64_t report_va;
    uint64_t abort;
    uint64_t dispatches;
    uint64_t cross_doorbells_va; // 0: no fence has one
    uint64_t cross_doorbell_line;
    uint64_t cross_doorbell_window;
    uint64_t reserved[4];
};

const uint64_t MAILBOX_CAPACITY = 256ul;
const uint64_t CONTROL_MAILBOX = 128ul;
const uint64_t CONTROL_SLICE_ARGS = CONTROL_MAILBOX + MAILBOX_CAPACITY * 8ul;
const uint64_t CONTROL_RUN_LISTS = CONTROL_SLICE_ARGS + SLICE_SLOTS * SLICE_ARGS_BYTES;
const uint64_t CONTROL_FENCE_DIRECTORY =
    CONTROL_RUN_LISTS + SLICE_SLOTS * uint64_t(MAX_HW_QUEUES) * 8ul;

#endif
