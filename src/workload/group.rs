//! Groups: which runners stand beside each other, and which cannot run here.

use super::native::{CpuWaitForm, StormForm};
use super::timeline::HandoffForm;
use super::{Mechanism, Runner, Scenario, bare, native, timeline};
use crate::sync::Arc;
use crate::vulkan::{self, AdapterInfo, Device, DeviceOptions, Instance};
use crate::{Adapter, AdapterOptions};
use anyhow::Context;

/// Where runners are made: an adapter of an instance.
#[derive(Clone)]
pub struct Bench {
    /// The instance.
    pub instance: Arc<Instance>,
    /// The adapter that all runners use.
    pub adapter: AdapterInfo,
}

/// Makes a runner.
type Make = fn(&Bench) -> anyhow::Result<Box<dyn Runner>>;

/// One place in a group.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The mechanism.
    pub mechanism: Mechanism,
    make: Make,
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
        let needs: &[(bool, &str)] = match self.mechanism {
            Mechanism::BareControl => &[
                (
                    features.host_import && features.buffer_device_address,
                    "Shaders cannot reach imported host memory by address.",
                ),
                (
                    features.vulkan_memory_model && features.memory_model_device_scope,
                    "The Vulkan memory model with device scope is missing.",
                ),
                (
                    features.timeline_semaphore,
                    "Timeline semaphores are missing.",
                ),
            ],
            _ => &[(
                features.timeline_semaphore,
                "Timeline semaphores are missing.",
            )],
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
        (self.make)(bench).with_context(|| format!("{} could not be set up", self.mechanism))
    }
}

impl std::fmt::Debug for Bench {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bench")
            .field("adapter", &self.adapter.name)
            .finish_non_exhaustive()
    }
}

impl Bench {
    fn native(&self) -> anyhow::Result<Adapter> {
        self.native_with(&AdapterOptions::default())
    }

    fn native_with(&self, options: &AdapterOptions) -> anyhow::Result<Adapter> {
        Ok(Adapter::open_on(&self.instance, &self.adapter, options)?)
    }

    fn native_cpu_wait(&self, form: CpuWaitForm) -> anyhow::Result<Box<dyn Runner>> {
        let adapter = self.native_with(&form.options())?;
        Ok(Box::new(native::CpuWait::new(adapter, form)?))
    }

    /// A device of the runner's own: some drivers have one queue a device.
    fn device(&self, queues: u32) -> anyhow::Result<Arc<Device>> {
        Ok(Device::open(
            &self.instance,
            &self.adapter,
            DeviceOptions { queues },
        )?)
    }
}

/// All groups of a scenario.
#[must_use]
pub fn groups(scenario: Scenario) -> Vec<Group> {
    match scenario {
        Scenario::Handoff => vec![Group {
            scenario,
            form: None,
            entries: vec![
                native(|bench| Ok(Box::new(native::Handoff::new(bench.native()?)?))),
                timeline(|bench| {
                    let form = HandoffForm::SubmitPerLink;
                    Ok(Box::new(timeline::Handoff::new(&bench.device(2)?, form)?))
                }),
                timeline(|bench| {
                    let form = HandoffForm::OneSubmit;
                    Ok(Box::new(timeline::Handoff::new(&bench.device(2)?, form)?))
                }),
                bare(|bench| Ok(Box::new(bare::Handoff::new(&bench.device(1)?)?))),
            ],
        }],
        Scenario::Storm => vec![
            Group {
                scenario,
                form: Some(StormForm::Filled.name()),
                entries: vec![
                    native(|bench| {
                        let form = StormForm::Filled;
                        Ok(Box::new(native::Storm::new(bench.native()?, form)?))
                    }),
                    timeline(|bench| {
                        let form = StormForm::Filled;
                        Ok(Box::new(timeline::Storm::new(&bench.device(1)?, form)?))
                    }),
                    bare(|bench| {
                        let form = StormForm::Filled;
                        Ok(Box::new(bare::Storm::new(&bench.device(1)?, form)?))
                    }),
                ],
            },
            Group {
                scenario,
                form: Some(StormForm::Live.name()),
                entries: vec![
                    native(|bench| {
                        let form = StormForm::Live;
                        Ok(Box::new(native::Storm::new(bench.native()?, form)?))
                    }),
                    timeline(|bench| {
                        let form = StormForm::Live;
                        Ok(Box::new(timeline::Storm::new(&bench.device(1)?, form)?))
                    }),
                    bare(|bench| {
                        let form = StormForm::Live;
                        Ok(Box::new(bare::Storm::new(&bench.device(1)?, form)?))
                    }),
                ],
            },
        ],
        Scenario::CpuWait => vec![Group {
            scenario,
            form: None,
            entries: vec![
                native(|bench| bench.native_cpu_wait(CpuWaitForm::Looks)),
                native(|bench| bench.native_cpu_wait(CpuWaitForm::Sleeps)),
                timeline(|bench| Ok(Box::new(timeline::CpuWait::new(&bench.device(1)?)?))),
                bare(|bench| Ok(Box::new(bare::CpuWait::new(&bench.device(1)?)?))),
            ],
        }],
    }
}

fn native(make: Make) -> Entry {
    let mechanism = Mechanism::NativeSystemEvent;
    Entry { mechanism, make }
}

fn timeline(make: Make) -> Entry {
    let mechanism = Mechanism::TimelineSemaphore;
    Entry { mechanism, make }
}

fn bare(make: Make) -> Entry {
    let mechanism = Mechanism::BareControl;
    Entry { mechanism, make }
}
