//! Stage: the adapters that rounds are played on, over models or over engines of a Vulkan device.

use super::round::{Fault, Ground};
use crate::abi::{Delivery, StallKind};
use crate::gpu::{
    Crowd, CutPlan, Engine, EngineUnit, Injection, ModelEngine, ModelMemory, ModelOptions, Node,
    NodePolicy, ShaderTuning, SpareEngines, SparePolicy,
};
use crate::kmd::{Ddi, Driver, DriverOptions};
use crate::os::{Features, Record};
use crate::sync::Arc;
use crate::sync::plain::{Mutex, lock};
use crate::vulkan::AdapterInfo;
use crate::{Adapter, AdapterOptions, CrossAdapter, OpenError, TdrPolicy};
use std::num::NonZeroU32;
use std::time::{Duration, Instant};

/// Nobody finds within this that an engine does not answer: on a busy machine one may have no core for seconds.
const PATIENT: Duration = Duration::from_secs(600);
/// Within this an engine has to answer where one is hung on purpose.
const TDR_DELAY: Duration = Duration::from_secs(5);

/// What is done to an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Blow {
    /// A packet of this kind keeps it for good.
    Stall(StallKind),
    /// Its device is lost.
    Loss,
}

/// For tests, which see that what goes wrong between driver and operating system is found: stands before the driver of
/// models.
pub type Before = Arc<dyn Fn(Arc<dyn Ddi>) -> Arc<dyn Ddi> + Send + Sync>;

/// Which device, and how it is opened.
#[derive(Clone, Debug, Default)]
pub struct DeviceChoice {
    /// A part of its name; the best one where `None`.
    pub name: Option<String>,
    /// Khronos validation layers.
    pub validation: bool,
}

/// An adapter.
#[derive(Debug)]
struct Side {
    adapter: Adapter,
    /// Of the models.
    memories: Vec<Arc<ModelMemory>>,
    /// Records of the operating system that were looked at.
    known_records: Mutex<usize>,
}

/// See the file's head.
#[derive(Debug)]
pub struct Stage {
    sides: Vec<Side>,
    /// Of the first one's engines.
    injection: Option<Arc<Injection>>,
    /// What hangs an engine here, where something does.
    stall: Option<StallKind>,
    backward: Mutex<Backward>,
    /// Held by who has logs move, or wants none to: a queue whose log moves is in no slice then.
    pub(super) log_moves: Mutex<()>,
    /// Longer than anything takes that comes.
    pub(super) patience: Duration,
}

impl Stage {
    /// Of models.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn of_models(
        ground: &Ground,
        before: Option<&Before>,
        faults: bool,
        patience: Duration,
    ) -> Result<Self, OpenError> {
        let [lanes, rounds, quantum] = ground.model;
        let options = ModelOptions {
            lanes,
            rounds,
            quantum,
            stalls: faults,
            // A stall that is cut hangs nothing.
            cut: match ground.model_cuts_within {
                Some(most) if !faults => CutPlan::Random { seed: most, most },
                Some(_) | None => CutPlan::Never,
            },
            ..ModelOptions::default()
        };
        let side = || Side::of_models(ground, &options, before, faults);
        Ok(Self {
            sides: (0..ground.adapters)
                .map(|_| side())
                .collect::<Result<_, _>>()?,
            injection: None,
            stall: Some(StallKind::HeedsNothing),
            backward: Mutex::default(),
            log_moves: Mutex::default(),
            patience,
        })
    }

    /// Of a device.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn of_device(
        ground: &Ground,
        device: &DeviceChoice,
        faults: bool,
        patience: Duration,
    ) -> Result<Self, OpenError> {
        let injection = faults.then(|| {
            let made = Injection::new(ground.nodes);
            made.map_err(|error| OpenError::Engine(error.to_string()))
        });
        let injection = injection.transpose()?;
        let side = |number: usize| {
            let options = AdapterOptions {
                device: device.name.clone(),
                validation: device.validation,
                nodes: NonZeroU32::new(ground.nodes).unwrap_or(NonZeroU32::MIN),
                // So that one is lost alone.
                unit: faults.then_some(EngineUnit::Instance),
                policy: policy(ground),
                driver: driver(ground, faults),
                tuning: ShaderTuning {
                    stalls: faults,
                    ..ShaderTuning::default()
                },
                tdr: tdr(faults),
                spares: SparePolicy::Kept,
                injection: injection.clone().filter(|_| number == 0),
                ..AdapterOptions::default()
            };
            Adapter::open(&options).map(|adapter| Side::new(adapter, Vec::new()))
        };
        let sides: Vec<_> = (0..ground.adapters).map(side).collect::<Result<_, _>>()?;
        let mut infos = sides.iter().filter_map(|side| side.adapter.info());
        let ends_loops = infos.any(AdapterInfo::ends_loops);
        Ok(Self {
            sides,
            injection,
            // Nobody takes a processor, or a GPU, from a packet that heeds nothing.
            stall: (!ends_loops).then_some(StallKind::HeedsAbort),
            backward: Mutex::default(),
            log_moves: Mutex::default(),
            patience,
        })
    }

    /// The adapter of this number.
    pub(super) fn adapter(&self, number: usize) -> &Adapter {
        &self.sides[number].adapter
    }

    /// All of them.
    pub(super) fn adapters(&self) -> impl Iterator<Item = &Adapter> {
        self.sides.iter().map(|side| &side.adapter)
    }

    /// Whether fences can lie in local memory.
    pub(super) fn has_local_memory(&self) -> bool {
        let mut adapters = self.adapters();
        adapters.all(|adapter| adapter.providers().local().is_ok())
    }

    /// How adapters hear of each other's signals: by doorbells where these are offered.
    pub(super) fn crossing(&self, asked: CrossAdapter) -> CrossAdapter {
        let mut adapters = self.adapters();
        if adapters.all(|adapter| adapter.providers().is_system_memory_seen()) {
            asked
        } else {
            CrossAdapter::Propagated
        }
    }

    /// What happens to an engine in a round with a fault.
    pub(super) fn blow(&self, fault: Fault) -> Blow {
        let can_lose = self.injection.is_some();
        match self.stall {
            Some(kind) if fault.hangs || !can_lose => Blow::Stall(kind),
            Some(_) | None => Blow::Loss,
        }
    }

    /// Loses the device of a node's engine.
    pub(super) fn lose(&self, node: u32) {
        if let Some(injection) = &self.injection {
            injection.device_loss(node).lose();
        }
    }

    /// Waits until the operating system of the first adapter has noted, in this round, that it recovered an engine: all that
    /// the loss is for others has come to pass then.
    pub(super) fn until_noted(&self) -> Result<(), String> {
        let deadline = Instant::now() + self.patience;
        while !self.sides[0].has_news() {
            if Instant::now() > deadline {
                return Err("the operating system notes no recovery".into());
            }
            std::thread::yield_now();
        }
        Ok(())
    }

    /// Signals below the value before that engines have said to have executed since this was last asked, after a round
    /// whose engine was struck or not.
    pub(super) fn backward_signals(&self, was_struck: bool) -> u64 {
        let counters = self.adapters().map(Adapter::node_counters);
        let total = counters.map(|counters| counters.backward_signals).sum();
        lock(&self.backward).since(total, was_struck)
    }

    /// What is wrong with the adapters after a round, in which the engine of this node of the first was to be reset, and no
    /// other.
    pub(super) fn complaint(&self, node_reset: Option<u32>) -> Option<String> {
        self.sides.iter().enumerate().find_map(|(number, side)| {
            let complaint = side.complaint(node_reset.filter(|_| number == 0))?;
            Some(format!("of adapter {number}: {complaint}"))
        })
    }
}

/// How many signals below the value before are known, and whether the last round's engine was struck.
#[derive(Debug, Default)]
struct Backward {
    known: u64,
    was_struck: bool,
}

impl Backward {
    /// How many more there are: none in a round whose engine was struck, since one that takes another's place may execute
    /// once more what that was at. Nor in the round after it: a slice says what it has counted when it ends, and one of the
    /// struck round may have ended in this one.
    fn since(&mut self, total: u64, is_struck: bool) -> u64 {
        let known = std::mem::replace(&mut self.known, total);
        let was_struck = std::mem::replace(&mut self.was_struck, is_struck);
        if is_struck || was_struck {
            0
        } else {
            total.saturating_sub(known)
        }
    }
}

impl Side {
    fn new(adapter: Adapter, memories: Vec<Arc<ModelMemory>>) -> Self {
        Self {
            adapter,
            memories,
            known_records: Mutex::default(),
        }
    }

    fn of_models(
        ground: &Ground,
        options: &ModelOptions,
        before: Option<&Before>,
        faults: bool,
    ) -> Result<Self, OpenError> {
        let crowd = Arc::new(Crowd::on_cores());
        let (mut nodes, mut memories) = (Vec::new(), Vec::new());
        for ordinal in 0..ground.nodes {
            let engine = ModelEngine::new(options.clone());
            memories.push(Arc::clone(engine.memory()));
            let crowd = Arc::clone(&crowd);
            let node = Node::new(ordinal, Box::new(engine), policy(ground), crowd);
            nodes.push(node.map_err(|error| OpenError::Engine(error.to_string()))?);
        }
        let options = options.clone();
        let make = move || -> Result<Box<dyn Engine>, String> {
            Ok(Box::new(ModelEngine::new(options.clone())))
        };
        let spares = faults.then(|| SpareEngines::new(SparePolicy::OnSuspicion, make));
        let driver = Driver::with_spares(nodes, driver(ground, faults), spares);
        let driver: Arc<dyn Ddi> = match before {
            Some(before) => before(driver),
            None => driver,
        };
        let adapter = Adapter::with_driver_watched(driver, Features::default(), tdr(faults))?;
        Ok(Self::new(adapter, memories))
    }

    /// Whether there is a record that no round has looked at.
    fn has_news(&self) -> bool {
        self.adapter.os().records().len() > *lock(&self.known_records)
    }

    fn complaint(&self, node_reset: Option<u32>) -> Option<String> {
        for (node, memory) in self.memories.iter().enumerate() {
            if let Some(violation) = memory.violations().first() {
                return Some(format!(
                    "the model of node {node} did what none may: {violation}"
                ));
            }
        }
        let os = self.adapter.os();
        if let Some(record) = os.stopped() {
            return Some(format!("it was stopped: {record}"));
        }
        let records = os.records();
        let mut known = lock(&self.known_records);
        let new = records.get(*known..).unwrap_or_default();
        *known = records.len();
        let is_due = |record: &Record| {
            record.code == Record::VIDEO_ENGINE_TIMEOUT_DETECTED
                && node_reset.map(u64::from) == Some(record.parameters[3])
        };
        let due = usize::from(node_reset.is_some());
        if let Some(record) = new.iter().find(|record| !is_due(record)) {
            return Some(format!("the operating system noted: {record}"));
        }
        (new.len() != due).then(|| {
            let count = new.len();
            format!("{count} resets of engines were noted instead of {due}")
        })
    }
}

fn policy(ground: &Ground) -> NodePolicy {
    NodePolicy {
        slice_time: Duration::from_micros(ground.slice_us),
        idle_window: Duration::from_micros(ground.idle_us),
        delivery: if ground.is_polled {
            Delivery::Polled
        } else {
            Delivery::Event
        },
        ..NodePolicy::default()
    }
}

fn driver(ground: &Ground, faults: bool) -> DriverOptions {
    DriverOptions {
        // One whose doorbell is taken away is not the one that an engine is lost with.
        doorbells: ground.doorbells.filter(|_| !faults),
        optimized_interrupt: ground.names_queues,
        map_to_gpu_system_process: ground.is_mapped_twice,
        ..DriverOptions::default()
    }
}

fn tdr(faults: bool) -> TdrPolicy {
    TdrPolicy {
        delay: if faults { TDR_DELAY } else { PATIENT },
        // One that hangs engines on purpose is no program that hangs.
        limit_count: u32::MAX,
        ..TdrPolicy::default()
    }
}

#[cfg(test)]
impl Stage {
    /// Of models, without faults, for the test of a part that needs a fence.
    pub(super) fn of_test() -> Self {
        let scope = super::Scope {
            seed: 1,
            burst_signals: 0,
            faults: false,
        };
        let patience = Duration::from_secs(60);
        let stage = Self::of_models(&scope.ground(0), None, false, patience);
        stage.expect("models need no device")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a struck round's slices say after it is not the next round's fault, and whatever comes later is told.
    ///
    /// Kills `soak-a-struck-round-counts-in-the-next`, `soak-a-struck-round-excuses-all-others`.
    #[test]
    fn what_a_struck_round_says_late_is_excused() {
        let mut backward = Backward::default();
        assert_eq!(backward.since(1, false), 1);
        assert_eq!(backward.since(4, true), 0);
        assert_eq!(backward.since(6, false), 0);
        assert_eq!(backward.since(9, false), 3);
        assert_eq!(backward.since(9, false), 0);
        // An engine that takes another's place counts from 0.
        assert_eq!(backward.since(2, false), 0);
        assert_eq!(backward.since(3, false), 1);
    }
}
