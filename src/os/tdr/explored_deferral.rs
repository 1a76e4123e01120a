//! Explored deferral: interrupts of one engine and its resets, as loom explores them.
//!
//! Its code is that of adapters, over what loom stops at. In an adapter it stops there not: every interrupt goes through it.

#[path = "deferral.rs"]
mod deferral;

use crate::kmd::Interrupt;
use crate::sync as guards;
use deferral::Deferral;
use std::time::Duration;

/// What an engine raises while it is reset, without the engine.
#[derive(Debug)]
pub struct ExploredDeferral(Deferral);

impl Default for ExploredDeferral {
    fn default() -> Self {
        Self(Deferral::new(1))
    }
}

impl ExploredDeferral {
    /// An interrupt with this number comes, and is handled, if it is not kept; whether it was.
    pub fn raise(&self, number: u32, handle: impl FnOnce()) -> bool {
        let interrupt = Interrupt::ResampleFences {
            node_ordinal: 0,
            slots: vec![number],
        };
        let under_way = self.0.keep(interrupt);
        if under_way.is_some() {
            handle();
        }
        under_way.is_some()
    }

    /// The engine is reset; the numbers of what was kept meanwhile.
    #[must_use]
    pub fn reset(&self, reset: impl FnOnce()) -> Vec<u32> {
        // Under loom no time passes.
        self.0.begin(0, Duration::ZERO);
        reset();
        let kept = self.0.end(0).into_iter();
        kept.flat_map(|interrupt| match interrupt {
            Interrupt::ResampleFences { slots, .. } => slots,
            other => unreachable!("nobody has raised {other:?}"),
        })
        .collect()
    }
}
