//! Keys: which key and which turn of the wheel means what.

use super::Command;
use winit::event::MouseScrollDelta;
use winit::keyboard::{Key, ModifiersState, NamedKey};

/// Pixels of a wheel that counts no lines.
const LINE: f64 = 40.0;
/// Units of a line of lanes.
const LANES: f32 = 40.0;

/// What a key means.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Pressed {
    Command(Command),
    Close,
}

pub(super) fn pressed(key: &Key) -> Option<Pressed> {
    let command = match key.as_ref() {
        Key::Named(NamedKey::Escape) | Key::Character("q" | "Q") => return Some(Pressed::Close),
        Key::Named(NamedKey::ArrowLeft) => Command::Later(-1.0),
        Key::Named(NamedKey::ArrowRight) => Command::Later(1.0),
        Key::Named(NamedKey::ArrowUp) => Command::Down(-LANES),
        Key::Named(NamedKey::ArrowDown) => Command::Down(LANES),
        Key::Named(NamedKey::Space) => Command::Pause,
        Key::Named(NamedKey::Home) | Key::Character("0") => Command::Fit,
        Key::Character("+" | "=") => Command::Zoom(1.0),
        Key::Character("-" | "_") => Command::Zoom(-1.0),
        Key::Character("f" | "F") => Command::Follow,
        _ => return None,
    };
    Some(Pressed::Command(command))
}

/// What a turn of the wheel means.
pub(super) fn turned(delta: MouseScrollDelta, held: ModifiersState) -> Command {
    let (across, up) = match delta {
        MouseScrollDelta::LineDelta(across, up) => (f64::from(across), f64::from(up)),
        MouseScrollDelta::PixelDelta(pixels) => (pixels.x / LINE, pixels.y / LINE),
    };
    #[allow(clippy::cast_possible_truncation, reason = "some lines")]
    let down = -(up as f32) * LANES;
    match (held.shift_key(), across.abs() > up.abs()) {
        (true, _) => Command::Down(down),
        (false, true) => Command::Later(across),
        (false, false) => Command::Zoom(up),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_those_that_the_help_of_nfence_view_names() {
        for (key, command) in [
            (Key::Character("+".into()), Command::Zoom(1.0)),
            (Key::Character("-".into()), Command::Zoom(-1.0)),
            (Key::Character("0".into()), Command::Fit),
            (Key::Character("f".into()), Command::Follow),
            (Key::Named(NamedKey::Space), Command::Pause),
            (Key::Named(NamedKey::ArrowRight), Command::Later(1.0)),
            (Key::Named(NamedKey::ArrowDown), Command::Down(LANES)),
        ] {
            assert_eq!(pressed(&key), Some(Pressed::Command(command)));
        }
        assert_eq!(pressed(&Key::Character("q".into())), Some(Pressed::Close));
        assert_eq!(pressed(&Key::Character("x".into())), None);
    }

    #[test]
    fn the_wheel_zooms_and_with_shift_moves_the_lanes() {
        let up = MouseScrollDelta::LineDelta(0.0, 1.0);
        assert_eq!(turned(up, ModifiersState::empty()), Command::Zoom(1.0));
        assert_eq!(turned(up, ModifiersState::SHIFT), Command::Down(-LANES));
        let across = MouseScrollDelta::LineDelta(2.0, 0.0);
        assert_eq!(turned(across, ModifiersState::empty()), Command::Later(2.0));
    }
}
