// Ring control: words that the user writes. Twin of src/abi/ring.rs.

#ifndef NF_ABI_RING
#define NF_ABI_RING

layout(buffer_reference, scalar, buffer_reference_align = 8) buffer RingControl {
    uint64_t write_index;
    uint64_t pad0[7];
    uint64_t last_queued_value;
    uint64_t pad1[7];
    uint64_t doorbell;
    uint64_t pad2[7];
};

#endif
