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
    /// A dispatch stores and ends; the CPU waits for its semaphore and looks
    SliceToHost,
}

impl Shape {
    /// All, in the order in which they are asked.
    pub const ALL: [Self; 7] = [
        Self::MessagePassing,
        Self::StoreBuffering,
        Self::Adoption,
        Self::Tearing,
        Self::LogEntry,
        Self::Visibility,
        Self::SliceToHost,
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
            Self::SliceToHost => "slice-to-host",
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
            Self::Visibility => {
                "a shader that polls on ends and has not seen a store; else a time is taken"
            }
            Self::SliceToHost => {
                "the CPU knows that a dispatch has ended, and finds what was there before"
            }
        }
    }

    /// Twins of `scripts/loom` that lack what an order leaves out, and in which the outcome is seen, whatever the
    /// hardware does; of two that are left out together each has its own.
    #[must_use]
    pub fn loom_twins(self, order: Order) -> &'static [&'static str] {
        match (self, order) {
            (Self::MessagePassing, Order::NoRelease) => &["loom-published-without-release"],
            (Self::MessagePassing, Order::NoAcquire) => &["loom-observed-without-acquire"],
            (Self::MessagePassing, Order::Neither) => &[
                "loom-published-without-release",
                "loom-observed-without-acquire",
            ],
            (Self::LogEntry, Order::NoRelease) => &["loom-a-logs-index-comes-with-its-entry"],
            (Self::LogEntry, Order::NoAcquire) => &["loom-a-logs-index-is-seen-before-its-entry"],
            (Self::LogEntry, Order::Neither) => &[
                "loom-a-logs-index-comes-with-its-entry",
                "loom-a-logs-index-is-seen-before-its-entry",
            ],
            (Self::StoreBuffering, Order::Bare) => &["loom-nobody-adopts"],
            (Self::StoreBuffering, Order::Fenced) => &["loom-a-barrier-for-an-adoption"],
            (Self::Adoption, Order::NoFirstMeeting) => &["loom-adoption-beside-an-execution"],
            (Self::Adoption, Order::NoSecondMeeting) => &["loom-one-barrier"],
            // Loom's words are whole, and a store is seen in the end; and it knows no semaphore: what lacks the barrier to
            // the host is seen on memory that keeps Vulkan's promises alone (`tests/missing_barrier.rs`).
            _ => &[],
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
            Self::Visibility => &[Order::AsShipped, Order::Plain],
            Self::SliceToHost => &[Order::AsShipped, Order::NoHostBarrier],
        }
    }

    /// The same between these: the CPU has no load that is kept in a register.
    #[must_use]
    pub fn orders_between(self, parties: Parties) -> &'static [Order] {
        match (self, parties.cpu_role()) {
            (Self::Visibility, Some(1)) => &[Order::AsShipped],
            _ => self.orders(),
        }
    }

    /// Between whom it is asked.
    #[must_use]
    pub fn parties(self) -> &'static [Parties] {
        use Parties::{CpuToGpu, Devices, GpuToCpu, Lanes, Queues, Workgroups};
        match self {
            Self::MessagePassing | Self::Tearing => {
                &[GpuToCpu, CpuToGpu, Workgroups, Queues, Devices]
            }
            // The CPU is the waiter.
            Self::StoreBuffering => &[GpuToCpu, Workgroups, Queues, Devices],
            Self::Adoption => &[Lanes],
            Self::LogEntry | Self::SliceToHost => &[GpuToCpu],
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
