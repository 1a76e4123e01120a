// Hardware queue: descriptor, saved state, progress words. Twin of src/abi/hw_queue.rs.

#ifndef NF_ABI_HW_QUEUE
#define NF_ABI_HW_QUEUE

layout(buffer_reference, scalar, buffer_reference_align = 8) buffer QueueDescriptor {
    uint64_t ring_va;
    uint64_t ring_control_va;
    uint64_t ring_capacity;
    uint64_t wait_log_va;
    uint64_t wait_log_entries;
    uint64_t signal_log_va;
    uint64_t signal_log_entries;
    uint64_t handle_directory_va;
    uint64_t state_va;
    uint64_t progress_va;
    uint64_t progress_handle;
    uint64_t progress_current_value_va;
    uint64_t progress_fence_entry_va;
    uint64_t hw_queue;
    uint64_t verbose_log_va;
    uint64_t verbose_log_entries;
};

layout(buffer_reference, scalar, buffer_reference_align = 8) buffer QueueState {
    uint64_t sequence;
    uint64_t read_index;
    uint64_t wait_number;
    uint64_t signal_number;
    uint64_t wait_log_index;
    uint64_t signal_log_index;
    uint64_t observed_ticks;
    uint64_t progress_value;
    uint64_t status;
    uint64_t fault;
    uint64_t head_control;
    uint64_t head_value;
    uint64_t transferred;
    uint64_t verbose_log_index;
    uint64_t stall_abort;
    uint64_t reserved;
};

layout(buffer_reference, scalar, buffer_reference_align = 8) buffer QueueProgress {
    uint64_t read_index;
    uint64_t pad[7];
    uint64_t doorbell_status;
    uint64_t log_types;
    uint64_t pad1[6];
};

const uint MAX_HW_QUEUES = 512u;
const uint64_t QUEUE_STATE_BYTES = 128ul;

const uint STATUS_READY = 0u;
const uint STATUS_EMPTY = 1u;
const uint STATUS_BLOCKED = 2u;
const uint STATUS_FAULTED = 3u;

#endif
