//! Bench: where runners are made, an adapter of an instance.

use super::{Mechanism, NotOffered};
use crate::sync::Arc;
use crate::sync::plain::{Mutex, lock};
use crate::vulkan::{
    AdapterInfo, Device, DeviceOptions, Instance, InstanceOptions, LocalMemory, Queue,
};
use crate::{Adapter, AdapterOptions, CrossAdapter, Delivery, FenceMemory, MemoryPlacement};
use anyhow::Context;
use std::num::NonZeroU32;
use std::sync::OnceLock;

/// Where runners are made.
#[derive(Clone)]
pub struct Bench {
    /// The instance.
    pub instance: Arc<Instance>,
    /// The adapter that all runners use.
    pub adapter: AdapterInfo,
    /// Fences in local memory are made also where that is system memory under another name: rows of
    /// the way through export and import, which claim nothing of memory.
    pub force_local: bool,
    /// The other adapter of those scenarios that need two; another instance of the same where `None`.
    other: Option<AdapterInfo>,
    /// Adapters of native fences that runners have opened here, where somebody asked to know.
    opened: Option<Arc<Mutex<Vec<Adapter>>>>,
    /// What a pass of the kernel of `work` takes here; empty until it is measured.
    pub(super) picoseconds_of_a_pass: Arc<OnceLock<u64>>,
}

impl std::fmt::Debug for Bench {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bench")
            .field("adapter", &self.adapter.name)
            .finish_non_exhaustive()
    }
}

impl Bench {
    /// On an adapter of an instance.
    #[must_use]
    pub fn new(instance: Arc<Instance>, adapter: AdapterInfo, force_local: bool) -> Self {
        Self {
            instance,
            adapter,
            force_local,
            other: None,
            opened: None,
            picoseconds_of_a_pass: Arc::default(),
        }
    }

    /// The same, beside which this one is the other adapter of those scenarios that need two.
    #[must_use]
    pub fn beside(self, other: AdapterInfo) -> Self {
        Self {
            other: Some(other),
            ..self
        }
    }

    /// The same, which remembers the adapters of native fences that its runners open: for who records what they do.
    #[must_use]
    pub fn remembering(self) -> Self {
        Self {
            opened: Some(Arc::default()),
            ..self
        }
    }

    /// Those adapters, in the order in which they were opened.
    #[must_use]
    pub fn opened(&self) -> Vec<Adapter> {
        let opened = self.opened.as_ref();
        opened.map_or_else(Vec::new, |opened| lock(opened).clone())
    }

    /// Why the device can do nothing by a mechanism, as a sentence; `None` if it can.
    #[must_use]
    pub fn obstacle(&self, mechanism: Mechanism) -> Option<&'static str> {
        let features = &self.adapter.features;
        match features.local_memory {
            _ if !mechanism.is_local() => None,
            LocalMemory::Unreachable => Some("The CPU reaches no memory of the device's own."),
            LocalMemory::SameAsSystem if !self.force_local => {
                Some("Local memory is system memory on this device; --force-local runs it.")
            }
            LocalMemory::SameAsSystem | LocalMemory::Separate { .. } => None,
        }
    }

    /// Whether a row of a mechanism says nothing of memory: there is but one kind.
    pub(super) fn is_same_memory(&self, mechanism: Mechanism) -> bool {
        mechanism.is_local() && self.adapter.features.local_memory == LocalMemory::SameAsSystem
    }

    /// An adapter of native fences for a mechanism, with so many engines.
    pub(super) fn native(
        &self,
        mechanism: Mechanism,
        engines: u32,
        mut options: AdapterOptions,
    ) -> anyhow::Result<Adapter> {
        options.nodes = NonZeroU32::new(engines).context("an adapter has at least one engine")?;
        if mechanism.is_polled() {
            options.policy.delivery = Delivery::Polled;
        }
        options.fence_memory = Some(FenceMemory::System);
        if mechanism.is_local() {
            options.fence_memory = Some(FenceMemory::Local);
            if self.force_local {
                options.memory.placement = MemoryPlacement::LocalForced;
            }
        }
        let adapter = Adapter::open_on(&self.instance, &self.adapter, &options)?;
        if mechanism.is_local()
            && let Err(why) = adapter.providers().local()
        {
            return Err(NotOffered(why.to_string()).into());
        }
        if let Some(opened) = &self.opened {
            lock(opened).push(adapter.clone());
        }
        Ok(adapter)
    }

    /// The same with this adapter, on an instance of its own: drivers on the CPU have a pool of threads for each.
    fn apart(&self, adapter: &AdapterInfo) -> anyhow::Result<Self> {
        Ok(Self {
            instance: Instance::new(InstanceOptions::default())?,
            adapter: adapter.clone(),
            ..self.clone()
        })
    }

    /// Where the other adapter is.
    fn other(&self) -> anyhow::Result<Self> {
        self.apart(self.other.as_ref().unwrap_or(&self.adapter))
    }

    /// Two adapters with native fences, of one engine each.
    pub(super) fn two_adapters(
        &self,
        mechanism: Mechanism,
        mode: CrossAdapter,
    ) -> anyhow::Result<[Adapter; 2]> {
        let mut options = AdapterOptions::default();
        if mode == CrossAdapter::Propagated {
            // Engines that hear stay so long for another adapter's answer by themselves.
            options.policy.idle_window = options.policy.doorbell_window;
        }
        let open = |bench: &Self| bench.native(mechanism, 1, options.clone());
        let both = [open(self)?, open(&self.other()?)?];
        let see = |adapter: &Adapter| adapter.providers().is_system_memory_seen();
        if mode == CrossAdapter::Doorbell && !both.iter().all(see) {
            return Err(NotOffered(String::from(
                "running engines do not see in system memory, where doorbells lie, what others store",
            )).into());
        }
        Ok(both)
    }

    /// A queue of each of the two.
    pub(super) fn queues_of_two(&self) -> anyhow::Result<[Queue; 2]> {
        Ok([self.queue()?, self.other()?.queue()?])
    }

    /// A device of the runner's own: some drivers have one queue a device.
    pub(super) fn device(&self, queues: u32) -> anyhow::Result<Arc<Device>> {
        open(&self.instance, &self.adapter, queues)
    }

    /// A queue of a device of the runner's own.
    pub(super) fn queue(&self) -> anyhow::Result<Queue> {
        first_queue(&self.device(1)?)
    }

    /// Two queues that work beside each other as engines do by default: of one device where it has
    /// two, else of a device each, of an instance each, since those of one instance may share
    /// threads.
    pub(super) fn two_queues(&self) -> anyhow::Result<[Queue; 2]> {
        let device = self.device(2)?;
        let first = first_queue(&device)?;
        if let Some(second) = device.queue(1) {
            return Ok([first, second]);
        }
        Ok([first, self.apart(&self.adapter)?.queue()?])
    }
}

fn open(
    instance: &Arc<Instance>,
    adapter: &AdapterInfo,
    queues: u32,
) -> anyhow::Result<Arc<Device>> {
    Ok(Device::open(
        instance,
        adapter,
        DeviceOptions { queues, loss: None },
    )?)
}

fn first_queue(device: &Arc<Device>) -> anyhow::Result<Queue> {
    device.queue(0).context("the device gives out no queue")
}
