//! Theme: the colours. Text has a contrast of 4.5 or more to what it stands on (WCAG AA).

use super::primitive::Colour;

/// What everything stands on.
pub const BACKGROUND: Colour = Colour::rgb(0xff_ff_ff);
/// Behind the header and the names of lanes.
pub const PANEL: Colour = Colour::rgb(0xee_f1_f5);
/// Behind every second lane.
pub const STRIPE: Colour = Colour::rgb(0xf7_f9_fb);
/// Between lanes.
pub const RULE: Colour = Colour::rgb(0xc9_d0_d8);
/// At the ticks of the time axis.
pub const GRID: Colour = Colour::rgb(0xe3_e7_ec);
/// Text.
pub const TEXT: Colour = Colour::rgb(0x1b_1f_24);
/// Text that matters less.
pub const FAINT_TEXT: Colour = Colour::rgb(0x55_5e_68);

/// A signal, and what is written on it.
pub const SIGNAL: Colour = Colour::rgb(0x1f_3a_68);
/// The rim of a signal.
pub const SIGNAL_BORDER: Colour = Colour::rgb(0x0c_1c_38);
/// On a signal.
pub const SIGNAL_TEXT: Colour = Colour::rgb(0xff_ff_ff);
/// A wait that the engine has not seen yet.
pub const WAIT: Colour = Colour::rgb(0xcf_e1_fa);
/// The rim of a wait.
pub const WAIT_BORDER: Colour = Colour::rgb(0x5c_80_b5);
/// On a wait.
pub const WAIT_TEXT: Colour = Colour::rgb(0x1b_1f_24);
/// A wait at which the engine is blocked.
pub const BLOCKED: Colour = Colour::rgb(0xff_ea_c7);
/// Its stripes.
pub const BLOCKED_HATCH: Colour = Colour::rgb(0xff_d2_8a);
/// Its rim.
pub const BLOCKED_BORDER: Colour = Colour::rgb(0xa8_5b_00);
/// A dispatch that the engine has not come to.
pub const DISPATCH: Colour = Colour::rgb(0xd9_ef_ec);
/// The rim of a dispatch.
pub const DISPATCH_BORDER: Colour = Colour::rgb(0x1d_6f_68);
/// A dispatch that runs.
pub const RUNNING: Colour = Colour::rgb(0x7f_cf_c4);
/// Its stripes, where it is not known when in that time it ran.
pub const RUNNING_HATCH: Colour = Colour::rgb(0xb5_e4_dd);
/// A command of which no one knows when it was done.
pub const UNKNOWN_HATCH: Colour = Colour::rgb(0xd0_45_45);
/// Where a queue holds more than its lane shows.
pub const BEYOND: Colour = Colour::rgb(0x8b_95_a1);

/// A slice of an engine.
pub const SLICE: Colour = Colour::rgb(0xbc_d9_c5);
/// The rim of a slice.
pub const SLICE_BORDER: Colour = Colour::rgb(0x4f_7d_5f);
/// An interrupt.
pub const INTERRUPT: Colour = Colour::rgb(0x7a_1f_a2);
/// What the operating system does for it.
pub const DEFERRED: Colour = Colour::rgb(0xe9_d8_f2);
/// A preemption.
pub const PREEMPTION: Colour = Colour::rgb(0x8a_5a_00);
/// A step of a recovery.
pub const RECOVERY: Colour = Colour::rgb(0xc6_28_28);
/// Lost events.
pub const LOST: Colour = Colour::rgb(0xad_14_57);
/// From a signal to the wait that it released.
pub const ARROW: Colour = Colour::rgb(0xc0_18_6f);

/// CurrentValue.
pub const CURRENT_VALUE: Colour = Colour::rgb(0x0b_6b_3a);
/// MonitoredValue.
pub const MONITORED_VALUE: Colour = Colour::rgb(0x9a_4a_00);

/// The time that the cursor points at.
pub const CURSOR: Colour = Colour::rgb(0x55_5e_68);
/// The hover box.
pub const HOVER: Colour = Colour::rgb(0xff_fd_f0);

#[cfg(test)]
mod tests {
    use super::*;

    fn luminance(Colour([red, green, blue, _]): Colour) -> f64 {
        let linear = |level: u8| {
            let level = f64::from(level) / 255.0;
            if level <= 0.04045 {
                level / 12.92
            } else {
                ((level + 0.055) / 1.055).powf(2.4)
            }
        };
        0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue)
    }

    #[test]
    fn text_is_legible_on_what_it_stands_on() {
        let pairs = [
            (TEXT, PANEL),
            (TEXT, BACKGROUND),
            (TEXT, HOVER),
            (FAINT_TEXT, PANEL),
            (FAINT_TEXT, STRIPE),
            (FAINT_TEXT, HOVER),
            (SIGNAL_TEXT, SIGNAL),
            (WAIT_TEXT, WAIT),
            (WAIT_TEXT, BLOCKED),
            (WAIT_TEXT, BLOCKED_HATCH),
            (TEXT, SLICE),
            (TEXT, DISPATCH),
            (TEXT, RUNNING),
            (TEXT, RUNNING_HATCH),
            (TEXT, DEFERRED),
            (CURRENT_VALUE, PANEL),
            (CURRENT_VALUE, BACKGROUND),
            (MONITORED_VALUE, PANEL),
            (MONITORED_VALUE, STRIPE),
            (INTERRUPT, STRIPE),
            (PREEMPTION, STRIPE),
            (RECOVERY, STRIPE),
            (LOST, STRIPE),
            (LOST, PANEL),
        ];
        for (text, behind) in pairs {
            let (one, other) = (luminance(text), luminance(behind));
            let contrast = (one.max(other) + 0.05) / (one.min(other) + 0.05);
            assert!(contrast >= 4.5, "{text:?} on {behind:?}: {contrast:.2}");
        }
    }
}
