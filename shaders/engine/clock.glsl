// The engine's clock, in ticks of the device.
//
// Some drivers give the low 32 bits only: they are extended from the last reading, the first of
// which is the later of what the OS read from the whole clock before it submitted the slice and of
// the end of the slice before. It never goes back: a step of nearly the whole range is a reading
// that is a little older than the last one.

const uint CLOCK_STEP_BACK = 0xf0000000u;

uint64_t now() {
    uint64_t raw = clockRealtimeEXT();
    if (g_clock_is_short) {
        uint step = uint(raw) - uint(l_ticks);
        l_ticks += uint64_t(step < CLOCK_STEP_BACK ? step : 0u);
    } else {
        l_ticks = max(l_ticks, raw);
    }
    return l_ticks;
}
