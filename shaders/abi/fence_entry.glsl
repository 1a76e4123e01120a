// What this engine knows of one fence. Twin of src/abi/fence_entry.rs.

#ifndef NF_ABI_FENCE_ENTRY
#define NF_ABI_FENCE_ENTRY

layout(buffer_reference, scalar, buffer_reference_align = 8) buffer FenceEntry {
    uint64_t current_value_va;
    uint64_t monitored_value_va; // 0: adopted by nobody
    uint64_t shadow;
    uint64_t id;
};

const uint64_t FENCE_ENTRY_BYTES = 32ul;
const uint FENCE_LEAF_BITS = 10u;

#endif
