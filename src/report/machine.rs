//! Machine: where something was measured.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;

/// The machine, as far as it bears on figures.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Name of the processor.
    pub cpu: String,
    /// Processors that this process may use.
    pub cores: usize,
    /// Name of the operating system.
    pub os: String,
    /// Release of its kernel.
    pub kernel: String,
    /// Architecture.
    pub arch: String,
    /// Settings of drivers in the environment that bear on figures.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub driver_settings: BTreeMap<String, String>,
}

impl Machine {
    /// One line.
    #[must_use]
    pub fn line(&self) -> String {
        format!(
            "{} cores of {}, {}, kernel {}",
            self.cores, self.cpu, self.os, self.kernel
        )
    }

    /// This one.
    #[must_use]
    pub fn this() -> Self {
        Self {
            cpu: fact("/proc/cpuinfo", "model name", ':'),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            os: fact("/etc/os-release", "PRETTY_NAME", '='),
            kernel: fs::read_to_string("/proc/sys/kernel/osrelease")
                .map(|release| release.trim().to_owned())
                .unwrap_or_default(),
            arch: std::env::consts::ARCH.to_owned(),
            driver_settings: BTreeMap::new(),
        }
    }
}

fn fact(file: &str, name: &str, separator: char) -> String {
    fs::read_to_string(file)
        .ok()
        .and_then(|text| {
            let mut facts = text.lines().filter_map(|line| line.split_once(separator));
            let (_, fact) = facts.find(|(key, _)| key.trim() == name)?;
            Some(fact.trim().trim_matches('"').to_owned())
        })
        .unwrap_or_default()
}
