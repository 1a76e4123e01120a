//! Paint: text for people in colour, where they see it on a terminal ([`colour`](super::output::colour)).

pub(super) const BOLD: &str = "\x1b[1m";
pub(super) const RED: &str = "\x1b[31m";
pub(super) const GREEN: &str = "\x1b[32m";
const PLAIN: &str = "\x1b[0m";

/// The text, painted if there is to be `colour`.
pub(super) fn painted(text: &str, paint: &str, colour: bool) -> String {
    if colour {
        format!("{paint}{text}{PLAIN}")
    } else {
        text.to_owned()
    }
}
