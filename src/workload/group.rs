//! Group: runners that stand beside each other, and why one cannot run here.

use super::{Bench, Mechanism, Runner, Scenario};
use crate::sync::Arc;
use crate::vulkan::{self, AdapterInfo};
use anyhow::{Context, anyhow};

/// A runner, or why there is none.
pub(super) type Made = anyhow::Result<Box<dyn Runner>>;

/// Makes a runner for a mechanism.
type Make = dyn Fn(&Bench, Mechanism) -> Made;

/// One place in a group.
#[derive(Clone)]
pub struct Entry {
    /// The mechanism.
    pub mechanism: Mechanism,
    /// Which form of the scenario, where several take turns in one group.
    pub form: Option<&'static str>,
    make: Arc<Make>,
    /// Why no device can do this.
    absent: Option<&'static str>,
}

impl std::fmt::Debug for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Entry")
            .field("mechanism", &self.mechanism)
            .finish_non_exhaustive()
    }
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
    /// A mechanism, and what makes its runner.
    pub(super) fn new(
        mechanism: Mechanism,
        make: impl Fn(&Bench, Mechanism) -> Made + 'static,
    ) -> Self {
        Self {
            mechanism,
            form: None,
            make: Arc::new(make),
            absent: None,
        }
    }

    /// The same, of a form of its own.
    pub(super) fn of_form(self, form: &'static str) -> Self {
        Self {
            form: Some(form),
            ..self
        }
    }

    /// A mechanism that has no such thing, and why.
    pub(super) fn absent(mechanism: Mechanism, reason: &'static str) -> Self {
        Self {
            absent: Some(reason),
            ..Self::new(mechanism, move |_, _| Err(anyhow!(reason)))
        }
    }

    /// Why a device cannot do this, as a sentence; `None` if it can.
    #[must_use]
    pub fn obstacle(&self, adapter: &AdapterInfo) -> Option<String> {
        if let Some(reason) = self.absent {
            return Some(reason.to_owned());
        }
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
