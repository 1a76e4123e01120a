//! Usage: what a command was asked and cannot do, though clap takes each of its options.

use clap::Args;
use clap::error::ErrorKind;
use std::fmt::Display;

/// Ends the program as clap does where a command line is wrong: says why, how the command `name` is used, and exits
/// with code 2.
pub(super) fn refuse<A: Args>(name: &'static str, kind: ErrorKind, why: impl Display) -> ! {
    let mut command = A::augment_args(clap::Command::new(name));
    command.error(kind, why).exit()
}
