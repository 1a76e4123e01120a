// Adoption: the engine takes a changed MonitoredValue in its own program order.
//
// By lane 0, between two meetings of all lanes: write the shadow, then read CurrentValue, then
// raise if it is greater (NF-07). A signal of this engine came before the meeting, and its
// CurrentValue is read here; or it comes after, and compares with this shadow.

// Adopts the fence of `slot`; true if it must be raised, then with its id and value.
bool adopt(uint slot, out uint64_t fence_id, out uint64_t value) {
    uint64_t leaf = PEEK(Word(g_control_va + CONTROL_FENCE_DIRECTORY
                              + uint64_t(slot >> FENCE_LEAF_BITS) * 8ul).value);
    uint64_t entry = leaf + uint64_t(slot & ((1u << FENCE_LEAF_BITS) - 1u)) * FENCE_ENTRY_BYTES;
    uint64_t monitored_va = 0ul;
    if (leaf != 0ul) {
        monitored_va = OBSERVE(FenceEntry(entry).monitored_value_va);
    }
    bool raises = false;
    if (monitored_va != 0ul) {
        uint64_t monitored = OBSERVE(Word(monitored_va).value);
        PUT(FenceEntry(entry).shadow, monitored);
        value = OBSERVE(Word(PEEK(FenceEntry(entry).current_value_va)).value);
        fence_id = PEEK(FenceEntry(entry).id);
        raises = value > monitored;
        if (raises) {
            PUT(FenceEntry(entry).shadow, ~0ul);
        }
    }
    return raises;
}
