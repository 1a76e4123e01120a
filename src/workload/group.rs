//! Group: runners that stand beside each other, and why one cannot run here.

use super::{Bench, Mechanism, Runner, Scenario};
use crate::vulkan::{self, AdapterInfo};
use anyhow::Context;

/// Makes a runner for a mechanism.
pub(super) type Make = fn(&Bench, Mechanism) -> anyhow::Result<Box<dyn Runner>>;

/// One place in a group.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The mechanism.
    pub mechanism: Mechanism,
    pub(super) make: Make,
}

/// Runners that do equal work, which take turns.
#[derive(Clone, Debug)]
pub struct Group {
    /// What they do.
    pub scenario: Scenario,
    /// Which form of it, where there are several.
    pub form: Option<&'static str>,
    /// Who does it.
    pub entries: Vec<Entry>,
}

impl Entry {
    /// Why a device cannot do this, as a sentence; `None` if it can.
    #[must_use]
    pub fn obstacle(&self, adapter: &AdapterInfo) -> Option<String> {
        let features = &adapter.features;
        if self.mechanism.is_native() {
            let gaps = vulkan::gaps(adapter);
            let mut sentences = gaps.iter().map(|gap| gap.sentence);
            return sentences.next().map(str::to_owned);
        }
        let by_address = features.host_import && features.buffer_device_address;
        let address = (
            by_address,
            "Shaders cannot reach imported host memory by address.",
        );
        let import = (by_address, "Host memory cannot be imported.");
        let model = (
            features.vulkan_memory_model && features.memory_model_device_scope,
            "The Vulkan memory model with device scope is missing.",
        );
        let timelines = (
            features.timeline_semaphore,
            "Timeline semaphores are missing.",
        );
        let needs = match self.mechanism {
            Mechanism::BareControl => vec![address, model, timelines],
            Mechanism::MonitoredFence => vec![import, timelines],
            _ => vec![timelines],
        };
        needs
            .iter()
            .find(|(met, _)| !met)
            .map(|(_, sentence)| (*sentence).to_owned())
    }

    /// Makes the runner.
    ///
    /// # Errors
    /// The device could not be opened, or refuses something.
    pub fn runner(&self, bench: &Bench) -> anyhow::Result<Box<dyn Runner>> {
        (self.make)(bench, self.mechanism)
            .with_context(|| format!("{} could not be set up", self.mechanism))
    }
}
