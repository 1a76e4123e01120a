// The clock of the device, whole.
//
// Some drivers give the low 32 bits only: they are extended from an earlier reading. It never goes back: a step of
// nearly the whole range is a reading that is a little older than the last one.

#ifndef NF_TICKS
#define NF_TICKS

const uint CLOCK_STEP_BACK = 0xf0000000u;

// Ticks now, given an earlier reading.
uint64_t ticks_after(uint64_t before, bool is_short) {
    uint64_t raw = clockRealtimeEXT();
    uint step = uint(raw) - uint(before);
    uint64_t extended = before + uint64_t(step < CLOCK_STEP_BACK ? step : 0u);
    return is_short ? extended : max(before, raw);
}

#endif
