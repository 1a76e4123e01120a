// From a handle to what it names: two levels of the process's table, every step checked.
//
// The OS alone writes the table. The engine reads it for packets, the shader library for kernels.

#ifndef NF_HANDLE
#define NF_HANDLE

#include "abi/word.glsl"
#include "abi/handle_entry.glsl"
#include "abi/fault.glsl"

// What is wrong with a handle of this generation, given its entry's meta word, where it must be of
// this kind: ACCESS_ALLOCATION, ACCESS_KERNEL, or 0 for a fence.
uint handle_fault(uint generation, uint64_t meta, uint kind) {
    uint access = uint(meta >> 32);
    if (uint(meta) == 0u || generation == 0u) {
        return FAULT_HANDLE;
    }
    if (uint(meta) != generation || (access & ACCESS_CLOSED) != 0u) {
        return FAULT_STALE_HANDLE;
    }
    return (access & ACCESS_KIND) != kind ? FAULT_HANDLE : FAULT_NONE;
}

// What a handle's entry says; all 0 where there is none.
struct NamedObject {
    uint64_t meta;
    uint64_t va;
    uint64_t detail;
};

// The entry of a handle in the table whose directory lies there.
NamedObject look_up_in(uint64_t directory_va, uint handle) {
    uint slot = handle & ((1u << HANDLE_SLOT_BITS) - 1u);
    uint64_t leaf = PEEK(Word(directory_va + uint64_t(slot >> HANDLE_LEAF_BITS) * 8ul).value);
    NamedObject named = NamedObject(0ul, 0ul, 0ul);
    if (leaf != 0ul) {
        uint64_t at = leaf + uint64_t(slot & ((1u << HANDLE_LEAF_BITS) - 1u)) * HANDLE_ENTRY_BYTES;
        named.meta = OBSERVE(HandleEntry(at).meta);
        named.va = PEEK(HandleEntry(at).va);
        named.detail = PEEK(HandleEntry(at).detail);
    }
    return named;
}

#endif
