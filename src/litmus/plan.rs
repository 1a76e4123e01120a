//! Plan: which questions there are, between whom, in which memory.

use super::Order;
use serde::Serialize;
use std::fmt;

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Shape {
    /// Data is stored, then a word that says that it is there
    MessagePassing,
    /// Each stores its word and looks at the other's: a signal against a waiter that arms
    StoreBuffering,
    /// An engine's leading lane adopts while another lane signals
    Adoption,
    /// A word of 64 bits is stored while another reads it
    Tearing,
    /// A log entry is written, then the index that names it
    LogEntry,
    /// How long until a running shader sees a store of the CPU, and the CPU one of a running shader
    Visibility,
}

impl Shape {
    /// All, in the order in which they are asked.
    pub const ALL: [Self; 6] = [
        Self::MessagePassing,
        Self::StoreBuffering,
        Self::Adoption,
        Self::Tearing,
        Self::LogEntry,
        Self::Visibility,
    ];

    /// Its name, on the command line and in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::MessagePassing => "message-passing",
            Self::StoreBuffering => "store-buffering",
            Self::Adoption => "adoption",
            Self::Tearing => "tearing",
            Self::LogEntry => "log-entry",
            Self::Visibility => "visibility",
        }
    }

    /// What must not be seen.
    #[must_use]
    pub fn forbidden(self) -> &'static str {
        match self {
            Self::MessagePassing => "the word says that the data is there, and the data is old",
            Self::StoreBuffering => {
                "the signal does not see the waiter, and the waiter not the signal"
            }
            Self::Adoption => {
                "the signalling lane does not see the shadow, and the leading lane not the signal"
            }
            Self::Tearing => "a word that nobody stored, half of one and half of the next",
            Self::LogEntry => "the index names an entry that is not the one that was logged",
            Self::Visibility => "nothing: a time",
        }
    }

    /// Twins of `scripts/loom` in which the outcome is seen, whatever the hardware does.
    #[must_use]
    pub fn loom_twins(self) -> &'static [&'static str] {
        match self {
            // An entry and its index are data and the word that says that it is there.
            Self::MessagePassing | Self::LogEntry => &[
                "loom-published-without-release",
                "loom-observed-without-acquire",
            ],
            Self::StoreBuffering => &["loom-cv-before-shadow", "loom-telling-without-a-fence"],
            Self::Adoption => &["loom-one-barrier", "loom-adoption-beside-an-execution"],
            // Loom's words are whole.
            Self::Tearing | Self::Visibility => &[],
        }
    }

    /// How it is asked: as the engine does first.
    #[must_use]
    pub fn orders(self) -> &'static [Order] {
        match self {
            Self::MessagePassing | Self::LogEntry => &[
                Order::AsShipped,
                Order::NoRelease,
                Order::NoAcquire,
                Order::Neither,
            ],
            Self::StoreBuffering => &[Order::AsShipped, Order::Fenced, Order::Bare],
            Self::Adoption => &[
                Order::AsShipped,
                Order::NoFirstMeeting,
                Order::NoSecondMeeting,
            ],
            Self::Tearing => &[Order::AsShipped, Order::Plain, Order::Halves],
            Self::Visibility => &[Order::AsShipped],
        }
    }

    /// Between whom it is asked.
    #[must_use]
    pub fn parties(self) -> &'static [Parties] {
        use Parties::{CpuToGpu, Devices, GpuToCpu, Lanes, Queues, Workgroups};
        match self {
            Self::MessagePassing => &[GpuToCpu, CpuToGpu, Workgroups, Queues, Devices],
            // The CPU is the waiter.
            Self::StoreBuffering => &[GpuToCpu, Workgroups, Queues, Devices],
            Self::Adoption => &[Lanes],
            Self::Tearing => &[GpuToCpu, CpuToGpu, Workgroups],
            Self::LogEntry => &[GpuToCpu],
            Self::Visibility => &[CpuToGpu, GpuToCpu],
        }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Who stores first, and who looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Parties {
    /// A running shader, and the CPU.
    GpuToCpu,
    /// The CPU, and a running shader.
    CpuToGpu,
    /// Two lanes of one workgroup.
    Lanes,
    /// Two workgroups of one dispatch.
    Workgroups,
    /// Two dispatches on two queues of one device.
    Queues,
    /// Two dispatches on two devices.
    Devices,
}

impl Parties {
    /// In words.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::GpuToCpu => "GPU → CPU",
            Self::CpuToGpu => "CPU → GPU",
            Self::Lanes => "two lanes",
            Self::Workgroups => "two workgroups",
            Self::Queues => "two queues",
            Self::Devices => "two devices",
        }
    }

    /// Which of the two is the CPU, if one is.
    pub(super) fn cpu_role(self) -> Option<usize> {
        match self {
            Self::GpuToCpu => Some(1),
            Self::CpuToGpu => Some(0),
            Self::Lanes | Self::Workgroups | Self::Queues | Self::Devices => None,
        }
    }
}

impl fmt::Display for Parties {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Where the words lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Memory {
    /// Pages of the host, which the CPU caches.
    System,
    /// The device's own memory, which the CPU reaches.
    Local,
}

impl Memory {
    /// In a word.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Local => "local",
        }
    }
}

impl fmt::Display for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
