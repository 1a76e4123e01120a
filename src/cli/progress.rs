//! Progress: a bar on stderr, where that is a terminal.

use crate::workload::{Progress, Scenario};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;

/// The bar; invisible where nobody looks.
#[derive(Debug)]
pub(super) struct Bar(ProgressBar);

impl Bar {
    pub(super) fn new(steps: u64) -> Self {
        let target = if std::io::stderr().is_terminal() {
            ProgressDrawTarget::stderr_with_hz(10)
        } else {
            ProgressDrawTarget::hidden()
        };
        let bar = ProgressBar::with_draw_target(Some(steps), target);
        if let Ok(style) =
            ProgressStyle::with_template("{bar:30} {percent:>3} %  {msg}  {eta} left")
        {
            bar.set_style(style);
        }
        Self(bar)
    }

    /// A step of what `message` names begins.
    pub(super) fn begin(&self, message: String) {
        self.0.set_message(message);
    }

    /// A step is done.
    pub(super) fn step(&self) {
        self.0.inc(1);
    }

    /// So many steps are done.
    pub(super) fn stand_at(&self, steps: u64) {
        self.0.set_position(steps);
    }

    /// Writes to the terminal while the bar is away.
    pub(super) fn aside(&self, write: impl FnOnce()) {
        self.0.suspend(write);
    }

    pub(super) fn show(&self, progress: Progress) {
        match progress {
            Progress::Group { scenario, form } => self.begin(message(scenario, form)),
            Progress::Batch => self.step(),
        }
    }
}

/// How a group is called while it runs.
pub(super) fn message(scenario: Scenario, form: Option<&str>) -> String {
    match form {
        Some(form) => format!("{scenario}, {form}"),
        None => scenario.to_string(),
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
