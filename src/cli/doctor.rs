//! `nfence doctor`: what devices there are, what each can and cannot do, and why.

use super::engine_units::EngineUnits;
use super::memory::{Memory, MemorySharing};
use super::output::{JsonOutput, colour, print};
use super::paint::{BOLD, painted};
use super::preemption::Preemption;
use super::progress::Bar;
use super::{Ending, devices, self_test};
use crate::report::{DeviceDescription, Machine};
use crate::sync::Arc;
use crate::vulkan::{self, AdapterInfo, ChoiceError, Instance, LocalMemory};
use clap::builder::NonEmptyStringValueParser;
use serde::Serialize;
use std::fmt::Write;
use std::path::Path;

const EXAMPLES: &str = "\
Examples:
  nfence doctor
  nfence doctor --device nvidia
  nfence doctor --json | jq '.devices[].name'

Exit codes: 0 something can run here, 1 nothing can, 2 usage.";

/// Says what devices there are, what each can and cannot do and why, tries native fences, and
/// measures how fast engines hand over to each other and how soon they answer a preemption request.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Doctor {
    /// As JSON, to stdout
    #[arg(long)]
    json: bool,

    /// Only the best device with this in its name or driver, in any case of letters
    #[arg(long, value_name = "PART_OF_NAME", value_parser = NonEmptyStringValueParser::new())]
    device: Option<String>,
}

/// What was found.
#[derive(Debug, Serialize)]
struct Findings {
    schema: u32,
    machine: Machine,
    /// Why there is no Vulkan at all.
    problem: Option<String>,
    devices: Vec<Finding>,
}

/// What was found of a device.
#[derive(Debug, Serialize)]
struct Finding {
    #[serde(flatten)]
    device: DeviceDescription,
    native_fences: NativeFences,
    /// What its driver says of memory that is shared.
    memory_sharing: MemorySharing,
    /// Who provides memory, where native fences work.
    memory: Option<Memory>,
    /// What engines can be made of, where native fences work: how fast each hands over to another.
    #[serde(flatten)]
    engine_units: Option<EngineUnits>,
    /// How finely engines are preempted, where native fences work.
    preemption: Option<Preemption>,
    /// Whether timeline semaphores can be measured.
    timeline_semaphores: bool,
    /// What it lacks.
    gaps: Vec<Gap>,
    /// What else bears on fences.
    facts: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Gap {
    id: &'static str,
    sentence: &'static str,
}

/// Whether native fences run.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case", tag = "state")]
enum NativeFences {
    /// Tried: a hand-off between two queues and a wait of the CPU.
    Work { self_test_us: u64 },
    /// Something that they need is missing.
    NotOffered,
    /// All is there, and they did not work.
    Failed { reason: String },
}

impl Doctor {
    pub(super) fn run(self) -> anyhow::Result<Ending> {
        let mut findings = Findings {
            schema: 1,
            machine: Machine::this(),
            problem: None,
            devices: Vec::new(),
        };
        match devices::connect() {
            Ok((instance, adapters)) => {
                let adapters = self.chosen(&adapters)?;
                let steps = adapters.len() * (EngineUnits::STEPS + Preemption::STEPS);
                let bar = Bar::new(steps as u64);
                findings.devices = adapters
                    .into_iter()
                    .map(|adapter| examine(&instance, adapter, &bar))
                    .collect();
            }
            Err(error) => findings.problem = Some(format!("{error:#}")),
        }
        if self.json {
            JsonOutput::open(Path::new("-"))?.write(&findings)?;
        } else {
            print(&text(&findings, colour(false)), false);
        }
        if let Some(problem) = &findings.problem {
            anyhow::bail!("{problem}");
        }
        let any = findings.devices.iter().any(Finding::can_run_something);
        Ok(if any { Ending::Well } else { Ending::NotWell })
    }

    fn chosen<'a>(&self, adapters: &'a [AdapterInfo]) -> Result<Vec<&'a AdapterInfo>, ChoiceError> {
        // The best of that name, or the error that says what names there are.
        let best = vulkan::choose(adapters, self.device.as_deref())?;
        Ok(match &self.device {
            None => vulkan::in_order_of_preference(adapters),
            Some(_) => vec![best],
        })
    }
}

fn examine(instance: &Arc<Instance>, adapter: &AdapterInfo, bar: &Bar) -> Finding {
    let gaps = vulkan::gaps(adapter);
    let mut memory = None;
    let native_fences = if vulkan::has_native_fences(adapter) {
        match self_test::run(instance, adapter) {
            Ok((time, used)) => {
                memory = Some(used);
                NativeFences::Work {
                    self_test_us: u64::try_from(time.as_micros()).unwrap_or(u64::MAX),
                }
            }
            Err(error) => NativeFences::Failed {
                reason: format!("{error:#}"),
            },
        }
    } else {
        NativeFences::NotOffered
    };
    let works = matches!(native_fences, NativeFences::Work { .. });
    Finding {
        device: DeviceDescription::of(adapter),
        native_fences,
        memory_sharing: MemorySharing::of(&adapter.features),
        memory,
        engine_units: works.then(|| EngineUnits::measure(instance, adapter, bar)),
        preemption: works.then(|| Preemption::measure(instance, adapter, bar)),
        timeline_semaphores: adapter.has_vulkan_1_2()
            && adapter.features.timeline_semaphore
            && !adapter.features.compute_families.is_empty(),
        gaps: gaps
            .iter()
            .map(|gap| Gap {
                id: gap.id,
                sentence: gap.sentence,
            })
            .collect(),
        facts: facts(adapter),
    }
}

fn facts(adapter: &AdapterInfo) -> Vec<String> {
    let features = &adapter.features;
    let mut facts = Vec::new();
    let families = features.compute_families.iter();
    let queues: Vec<_> = families
        .map(|family| {
            let draws = if family.graphics {
                " that also draw"
            } else {
                ""
            };
            format!("{}{draws}", family.queues)
        })
        .collect();
    if !queues.is_empty() {
        facts.push(format!(
            "Compute queues: {}; subgroups of {}.",
            queues.join(", "),
            features.subgroup_size
        ));
    }
    facts.push(match features.local_memory {
        LocalMemory::Unreachable => "The CPU reaches no memory of the device's own.".into(),
        LocalMemory::SameAsSystem => "Local memory is system memory.".into(),
        LocalMemory::Separate { bytes } => {
            format!(
                "The CPU reaches {} MiB of the device's own memory.",
                bytes >> 20
            )
        }
    });
    if features.host_import && !features.host_import_admitted {
        facts.push("Host memory is imported although the driver's own query denies it.".into());
    }
    if features.shader_device_clock && features.shader_clock_bits < 64 {
        facts.push(format!(
            "The shaders' clock has {} bits; timestamps in logs are extended.",
            features.shader_clock_bits
        ));
    }
    facts
}

impl Finding {
    fn can_run_something(&self) -> bool {
        matches!(self.native_fences, NativeFences::Work { .. }) || self.timeline_semaphores
    }

    fn verdict(&self) -> String {
        match &self.native_fences {
            NativeFences::Work { self_test_us } => format!(
                "native fences work (tried: a hand-off and a CPU wait took {self_test_us} µs)"
            ),
            NativeFences::NotOffered if self.timeline_semaphores => {
                "no native fences; `nfence compare` runs what does not need them".into()
            }
            NativeFences::NotOffered => "nothing of this program runs on it".into(),
            NativeFences::Failed { reason } => {
                format!("native fences should work and do not: {reason}")
            }
        }
    }
}

fn text(findings: &Findings, colour: bool) -> String {
    let mut text = String::new();
    for (number, finding) in findings.devices.iter().enumerate() {
        let best = if number == 0 {
            "  [used by default]"
        } else {
            ""
        };
        let line = painted(&finding.device.line(), BOLD, colour);
        let _ = writeln!(text, "{line}{best}\n  {}.", finding.verdict());
        for gap in &finding.gaps {
            let _ = writeln!(text, "  - {} ({})", gap.sentence, gap.id);
        }
        let facts = finding.facts.iter().cloned();
        let memory = finding.memory.iter().flat_map(Memory::sentences);
        let sharing = [finding.memory_sharing.sentence()];
        let facts = facts.chain(memory).chain(sharing);
        let facts = facts.chain(finding.engine_units.iter().map(EngineUnits::sentence));
        for fact in facts.chain(finding.preemption.iter().flat_map(Preemption::sentences)) {
            let _ = writeln!(text, "  · {fact}");
        }
    }
    text
}
