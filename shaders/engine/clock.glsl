// The engine's clock, in ticks of the device.
//
// A lane's first reading is the later of what the OS read from the whole clock before it submitted the slice and of
// the end of the slice before.

#include "include/ticks.glsl"

uint64_t now() {
    l_ticks = ticks_after(l_ticks, g_clock_is_short);
    return l_ticks;
}
