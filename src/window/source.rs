//! Source: what is shown.

use crate::trace::Trace;
use crate::viewer::Scene;

/// A trace, which may go on.
pub trait Source {
    /// Takes in what has been recorded since the last time. Whether there is anything.
    fn advance(&mut self) -> bool;

    /// Whether there may be more.
    fn goes_on(&self) -> bool;

    /// Shows what there is: the scene, and when it ends, in nanoseconds since it began.
    fn look(&self, at: &mut dyn FnMut(&Scene<'_>, u64));
}

/// A trace that was recorded.
#[derive(Debug)]
pub struct Recorded<'a> {
    scene: Scene<'a>,
    length: u64,
}

impl<'a> Recorded<'a> {
    /// Of a trace.
    #[must_use]
    pub fn new(trace: &'a Trace) -> Self {
        Self {
            scene: Scene::new(trace),
            length: trace.length,
        }
    }
}

impl Source for Recorded<'_> {
    fn advance(&mut self) -> bool {
        false
    }

    fn goes_on(&self) -> bool {
        false
    }

    fn look(&self, at: &mut dyn FnMut(&Scene<'_>, u64)) {
        at(&self.scene, self.length);
    }
}
