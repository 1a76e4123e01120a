//! Scenarios and mechanisms, by name.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A piece of synchronisation that programs do.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    clap::ValueEnum,
)]
#[serde(rename_all = "kebab-case")]
pub enum Scenario {
    /// Two queues of one engine pass a fence to and fro on the GPU
    Handoff,
    /// Two queues of two engines pass a fence to and fro
    HandoffCross,
    /// Two queues of two adapters pass a cross-adapter fence to and fro
    CrossAdapter,
    /// 64 queues signal fences that hardly anybody waits for
    Storm,
    /// The CPU submits a signal and waits for it
    CpuWait,
    /// The CPU signals, the GPU's wait passes, the GPU signals, the CPU sees it
    CpuSignal,
    /// One signal lets go 32 queues, and the CPU waits for all
    FanOut,
    /// One queue waits for 32 others, and the CPU for that one
    FanIn,
    /// A queue copies memory, 1 MiB at a time
    Copy,
    /// Chains of dependent dispatches of a small kernel, over two queues each
    Work,
    /// A fence is armed, signalled by the GPU, and its waiter released, with up to 4,096 others
    Scale,
    /// An engine is lost or hung: until another program's work goes on there
    Reset,
    /// Everything waits for the CPU: what does that cost?
    Idle,
}

impl Scenario {
    /// All, in the order in which they are run and shown.
    pub const ALL: [Self; 13] = [
        Self::Handoff,
        Self::HandoffCross,
        Self::CrossAdapter,
        Self::Storm,
        Self::CpuWait,
        Self::CpuSignal,
        Self::FanOut,
        Self::FanIn,
        Self::Copy,
        Self::Work,
        Self::Scale,
        Self::Reset,
        Self::Idle,
    ];

    /// Its name on the command line and in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Handoff => "handoff",
            Self::HandoffCross => "handoff-cross",
            Self::CrossAdapter => "cross-adapter",
            Self::Storm => "storm",
            Self::CpuWait => "cpu-wait",
            Self::CpuSignal => "cpu-signal",
            Self::FanOut => "fan-out",
            Self::FanIn => "fan-in",
            Self::Copy => "copy",
            Self::Work => "work",
            Self::Scale => "scale",
            Self::Reset => "reset",
            Self::Idle => "idle",
        }
    }

    /// What one operation of it is called.
    #[must_use]
    pub fn operation(self) -> &'static str {
        match self {
            Self::Handoff | Self::HandoffCross | Self::CrossAdapter => "hand-off",
            Self::Storm => "signal",
            Self::CpuWait => "wait",
            Self::CpuSignal => "round trip",
            Self::FanOut | Self::FanIn => "fan of 32",
            Self::Copy => "copy of 1 MiB",
            Self::Work => "dispatch",
            Self::Scale => "signal and its wait",
            Self::Reset => "recovery",
            Self::Idle => "second",
        }
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A way to synchronise.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    clap::ValueEnum,
)]
#[serde(rename_all = "kebab-case")]
pub enum Mechanism {
    /// Native fences in system memory; the CPU sleeps until it is interrupted
    NativeSystemEvent,
    /// Native fences in system memory; the CPU polls
    NativeSystemPolled,
    /// Native fences in device memory; the CPU sleeps until it is interrupted
    NativeLocalEvent,
    /// Native fences in device memory; the CPU polls
    NativeLocalPolled,
    /// Vulkan timeline semaphores
    TimelineSemaphore,
    /// Monitored fences, which the CPU holds
    MonitoredFence,
    /// Words in memory and nothing else: what the hardware allows at best
    BareControl,
}

impl Mechanism {
    /// All, in the order in which they are run and shown.
    pub const ALL: [Self; 7] = [
        Self::NativeSystemEvent,
        Self::NativeSystemPolled,
        Self::NativeLocalEvent,
        Self::NativeLocalPolled,
        Self::TimelineSemaphore,
        Self::MonitoredFence,
        Self::BareControl,
    ];

    /// Its name on the command line and in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::NativeSystemEvent => "native-system-event",
            Self::NativeSystemPolled => "native-system-polled",
            Self::NativeLocalEvent => "native-local-event",
            Self::NativeLocalPolled => "native-local-polled",
            Self::TimelineSemaphore => "timeline-semaphore",
            Self::MonitoredFence => "monitored-fence",
            Self::BareControl => "bare-control",
        }
    }

    /// Whether its fences lie in local memory.
    #[must_use]
    pub fn is_local(self) -> bool {
        match self {
            Self::NativeLocalEvent | Self::NativeLocalPolled => true,
            Self::NativeSystemEvent
            | Self::NativeSystemPolled
            | Self::TimelineSemaphore
            | Self::MonitoredFence
            | Self::BareControl => false,
        }
    }

    /// Whether the CPU polls, where it would sleep else.
    #[must_use]
    pub fn is_polled(self) -> bool {
        match self {
            Self::NativeSystemPolled | Self::NativeLocalPolled => true,
            Self::NativeSystemEvent
            | Self::NativeLocalEvent
            | Self::TimelineSemaphore
            | Self::MonitoredFence
            | Self::BareControl => false,
        }
    }

    /// Whether it is one of native fences.
    #[must_use]
    pub fn is_native(self) -> bool {
        match self {
            Self::NativeSystemEvent
            | Self::NativeSystemPolled
            | Self::NativeLocalEvent
            | Self::NativeLocalPolled => true,
            Self::TimelineSemaphore | Self::MonitoredFence | Self::BareControl => false,
        }
    }
}

impl fmt::Display for Mechanism {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_same_in_text_and_in_json() {
        for scenario in Scenario::ALL {
            let json = serde_json::to_string(&scenario).unwrap();
            assert_eq!(json, format!("\"{scenario}\""));
        }
        for mechanism in Mechanism::ALL {
            let json = serde_json::to_string(&mechanism).unwrap();
            assert_eq!(json, format!("\"{mechanism}\""));
        }
    }
}
