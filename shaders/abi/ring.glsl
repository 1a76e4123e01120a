// Ring control: the word that the user writes for the engine. Twin of src/abi/ring.rs.

#ifndef NF_ABI_RING
#define NF_ABI_RING

layout(buffer_reference, scalar, buffer_reference_align = 8) buffer RingControl {
    uint64_t write_index;
    uint64_t pad0[7];
};

#endif
