//! Reset: what the runners of that scenario share.
//!
//! An engine, or a device of plain Vulkan, is lost or hung by one program while another works on it. A batch
//! is one recovery: from the moment at which it is known that nothing comes any more to the first thing that
//! is done again there.

use anyhow::ensure;
use std::time::Duration;

/// What happens to the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResetForm {
    /// Its Vulkan device is lost: `VK_ERROR_DEVICE_LOST`, injected.
    Lost,
    /// A kernel keeps its queue, and nothing stops that. It has an end, of which no recovery knows.
    Hung,
}

impl ResetForm {
    /// Both. A kernel that is left behind keeps a processor for a while, where the device is a CPU.
    pub const ALL: [Self; 2] = [Self::Lost, Self::Hung];

    /// Its name in the report.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Lost => "lost",
            Self::Hung => "hung",
        }
    }
}

/// Within this time who is asked has answered, or is taken for hung: TdrDelay, and a plain program's patience.
pub(super) const DELAY: Duration = Duration::from_millis(500);

/// What a kernel that hangs takes: so long that every mechanism has recovered from it before it ends, and a
/// GPU is left alone by its own driver. How much that is was found by short ones, which look long on a busy
/// machine: one that ended before anybody took note is followed by a longer one.
#[derive(Clone, Copy, Debug)]
pub(super) struct KernelTime(Duration);

impl KernelTime {
    const MOST: Duration = Duration::from_secs(16);

    pub(super) fn get(self) -> Duration {
        self.0
    }

    /// The last one ended by itself.
    ///
    /// # Errors
    /// It was the longest.
    pub(super) fn lengthen(&mut self) -> anyhow::Result<()> {
        ensure!(
            self.0 < Self::MOST,
            "the kernel ended by itself before anybody took note"
        );
        self.0 *= 2;
        Ok(())
    }
}

impl Default for KernelTime {
    fn default() -> Self {
        Self(Duration::from_secs(2))
    }
}
