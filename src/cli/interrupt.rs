//! Interrupt: Ctrl-C asks for an end, a second one takes it.

use anyhow::Context;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether Ctrl-C was pressed.
#[derive(Clone, Debug)]
pub(super) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Takes Ctrl-C for itself.
    pub(super) fn watch() -> anyhow::Result<Self> {
        let pressed = Arc::new(AtomicBool::new(false));
        let interrupt = Self(Arc::clone(&pressed));
        ctrlc::set_handler(move || {
            if pressed.swap(true, Ordering::Relaxed) {
                std::process::exit(130);
            }
        })
        .context("cannot take Ctrl-C")?;
        Ok(interrupt)
    }

    pub(super) fn is_pressed(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
