//! Device: what was measured.

use crate::vulkan::{AdapterInfo, AdapterKind};
use serde::{Deserialize, Serialize};

/// A Vulkan device, in words.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceDescription {
    /// Its name.
    pub name: String,
    /// Its driver.
    pub driver: String,
    /// The driver's version, in its own words.
    pub driver_version: String,
    /// Highest Vulkan version.
    pub api: String,
    /// `discrete-gpu`, `integrated-gpu`, `virtual-gpu`, `cpu` or `other`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Whether it is a program on the CPU: its figures say nothing about a GPU's.
    pub cpu_implementation: bool,
}

impl DeviceDescription {
    /// Of an adapter.
    #[must_use]
    pub fn of(adapter: &AdapterInfo) -> Self {
        let (major, minor, patch) = adapter.api_version;
        Self {
            name: adapter.name.clone(),
            driver: adapter.driver_name.clone(),
            driver_version: adapter.driver_info.clone(),
            api: format!("{major}.{minor}.{patch}"),
            kind: match adapter.kind {
                AdapterKind::Discrete => "discrete-gpu",
                AdapterKind::Integrated => "integrated-gpu",
                AdapterKind::Virtual => "virtual-gpu",
                AdapterKind::Cpu => "cpu",
                AdapterKind::Other => "other",
            }
            .to_owned(),
            cpu_implementation: adapter.kind == AdapterKind::Cpu,
        }
    }

    /// One line.
    #[must_use]
    pub fn line(&self) -> String {
        let driver = format!("{} {}", self.driver, self.driver_version);
        let driver = match driver.trim() {
            "" => "unnamed driver",
            driver => driver,
        };
        let label = if self.cpu_implementation {
            ", a CPU implementation"
        } else {
            ""
        };
        format!("{} ({driver}, Vulkan {}{label})", self.name, self.api)
    }
}
