// What one handle of one process means here: a fence, an allocation, or a kernel. Twin of src/abi/handle_entry.rs.

#ifndef NF_ABI_HANDLE_ENTRY
#define NF_ABI_HANDLE_ENTRY

layout(buffer_reference, scalar, buffer_reference_align = 8) buffer HandleEntry {
    uint64_t va;     // of a fence's CurrentValue, or an allocation's first byte; of a kernel 0
    uint64_t detail; // address of the fence's entry, the allocation's bytes, or the kernel's place
    uint64_t meta; // low half generation (0: never opened), high half access bits
    uint64_t reserved;
};

const uint64_t HANDLE_ENTRY_BYTES = 32ul;
const uint HANDLE_LEAF_BITS = 10u;
const uint HANDLE_SLOT_BITS = 20u;

const uint ACCESS_ALWAYS_SIGNALED = 1u;
const uint ACCESS_NO_SIGNAL = 2u;
const uint ACCESS_NO_WAIT = 4u;
const uint ACCESS_CLOSED = 8u;
const uint ACCESS_ALLOCATION = 16u;
const uint ACCESS_KERNEL = 32u;
const uint ACCESS_KIND = 48u; // the two
const uint ACCESS_KEEPS_ARMED = 64u;
const uint ACCESS_DOORBELL_SHIFT = 16u; // from here on one more than the index of the fence's doorbell; 0: it has none

#endif
