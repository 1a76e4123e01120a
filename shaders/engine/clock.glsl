// The engine's clock, in ticks of the device.
//
// Some drivers give the low 32 bits only: they are extended from the last reading, the first of
// which the OS took from the whole clock before it submitted the slice. It never goes back.

uint64_t now() {
    uint64_t raw = clockRealtimeEXT();
    if (g_clock_is_short) {
        int step = int(uint(raw) - uint(l_ticks));
        l_ticks += uint64_t(max(step, 0));
    } else {
        l_ticks = max(l_ticks, raw);
    }
    return l_ticks;
}
