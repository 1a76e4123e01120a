// The page of cross-adapter doorbells. Twin of src/abi/cross_doorbell.rs.

#ifndef NF_ABI_CROSS_DOORBELL
#define NF_ABI_CROSS_DOORBELL

layout(buffer_reference, scalar, buffer_reference_align = 8) buffer CrossDoorbells {
    uint64_t lines_in_use;
    uint64_t reserved[7];
};

layout(buffer_reference, scalar, buffer_reference_align = 8) buffer CrossDoorbellLine {
    uint64_t taken; // how many numbers were: the words of all of these are stored
    uint64_t reserved[7];
    uint64_t words[64];
};

const uint CROSS_DOORBELL_LINES = 8u;
const uint CROSS_DOORBELL_PLACES = 64u;
const uint64_t CROSS_DOORBELL_FIRST_LINE = 64ul;
const uint64_t CROSS_DOORBELL_LINE_BYTES = 576ul;
const uint CROSS_DOORBELL_ALL = 4294967295u; // in the place of a fence: whatever fence

#endif
