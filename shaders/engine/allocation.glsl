// Allocations that packets name.

// A word that is loaded and stored plainly.
layout(buffer_reference, scalar, buffer_reference_align = 8) buffer Data {
    nonprivate uint64_t word;
};

// An allocation that a handle names.
struct Extent {
    uint64_t va;
    uint64_t bytes;
    uint fault;
};

Extent resolve_allocation(uint64_t word) {
    uint handle = uint(word);
    NamedObject named = look_up(handle);
    uint fault = (word >> 32) != 0ul
        ? FAULT_HANDLE
        : handle_fault(handle >> HANDLE_SLOT_BITS, named.meta, ACCESS_ALLOCATION);
    return Extent(named.va, named.detail, fault);
}

// Whether the bytes are words of the extent.
bool lie_in(uint64_t offset, uint64_t bytes, Extent extent) {
    return ((offset | bytes) & 7ul) == 0ul && offset <= extent.bytes
           && bytes <= extent.bytes - offset;
}
