//! Reset: what the runners of that scenario share.
//!
//! An engine, or a device of plain Vulkan, is lost or hung by one program while another works on it. A batch
//! is one recovery: from the moment at which it is known that nothing comes any more to the first thing that
//! is done again there.

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
/// GPU is left alone by its own driver.
pub(super) const KERNEL_TIME: Duration = Duration::from_secs(2);
