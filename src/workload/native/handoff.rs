//! Hand-off with native fences: queue A signals f1 and waits for f2, queue B the other way round, on
//! one engine or on two, of one adapter or of two.

use super::counts;
use crate::workload::{Counts, PATIENCE, Params, Runner, Sample};
use crate::{
    Adapter, CommandList, CrossAdapter, Device, Fence, FenceOptions, HwQueue, HwQueueOptions,
};
use anyhow::Context;
use std::time::{Duration, Instant};

/// Rounds of a batch; each is a hand-off there and one back.
const ROUNDS: u64 = 128;

/// Where the two queues are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandoffEngines {
    /// On one engine.
    One,
    /// On an engine each.
    Two,
    /// On an adapter each, which hear of each other so.
    TwoAdapters(CrossAdapter),
}

impl HandoffEngines {
    /// Engines that take part.
    #[must_use]
    pub fn count(self) -> u32 {
        match self {
            Self::One => 1,
            Self::Two | Self::TwoAdapters(_) => 2,
        }
    }
}

/// See the module's page.
#[derive(Debug)]
pub struct Handoff {
    engines: HandoffEngines,
    rounds: u64,
    patience: Duration,
    /// Handles of the first queue's device, and of the second's.
    there: [Fence; 2],
    back: [Fence; 2],
    first: HwQueue,
    second: HwQueue,
    first_list: CommandList,
    second_list: CommandList,
    value: u64,
    end: u64,
    adapters: Vec<Adapter>,
}

/// A fence of two devices, of which the first makes it.
fn across(devices: [&Device; 2], mode: CrossAdapter) -> anyhow::Result<[Fence; 2]> {
    let made = devices[0].create_fence_with(FenceOptions {
        cross_adapter: Some(mode),
        ..FenceOptions::default()
    })?;
    let opened = devices[1].open_fence(&made.share()?)?;
    Ok([made, opened])
}

impl Handoff {
    /// Two queues of an adapter that has so many engines.
    ///
    /// # Errors
    /// Fences or queues could not be made.
    pub fn new(adapter: Adapter, engines: HandoffEngines) -> anyhow::Result<Self> {
        let device = adapter.create_device();
        let options = HwQueueOptions {
            node_ordinal: engines.count() - 1,
            ..HwQueueOptions::default()
        };
        let fence = || -> anyhow::Result<[Fence; 2]> {
            let fence = device.create_fence(0)?;
            Ok([fence.clone(), fence])
        };
        let fences = [fence()?, fence()?];
        let queues = [
            device.create_hw_queue()?,
            device.create_hw_queue_with(options)?,
        ];
        Ok(Self::of(vec![adapter], engines, queues, fences))
    }

    /// A queue of each of two adapters.
    ///
    /// # Errors
    /// As [`Handoff::new`].
    pub fn across(adapters: [Adapter; 2], mode: CrossAdapter) -> anyhow::Result<Self> {
        let devices = [adapters[0].create_device(), adapters[1].create_device()];
        let [first, second] = [&devices[0], &devices[1]];
        let fences = [
            across([first, second], mode)?,
            across([first, second], mode)?,
        ];
        let queues = [first.create_hw_queue()?, second.create_hw_queue()?];
        let engines = HandoffEngines::TwoAdapters(mode);
        Ok(Self::of(adapters.into(), engines, queues, fences))
    }

    fn of(
        adapters: Vec<Adapter>,
        engines: HandoffEngines,
        [first, second]: [HwQueue; 2],
        [there, back]: [[Fence; 2]; 2],
    ) -> Self {
        Self {
            engines,
            rounds: ROUNDS,
            patience: PATIENCE,
            there,
            back,
            first,
            second,
            first_list: CommandList::new(),
            second_list: CommandList::new(),
            value: 0,
            end: 0,
            adapters,
        }
    }
}

impl Handoff {
    /// With so many rounds a batch, each batch given up after so long: for who wants to know how it
    /// is about, soon. The sentence that says what a batch is is then not true.
    #[must_use]
    pub fn in_short(self, rounds: u64, patience: Duration) -> Self {
        Self {
            rounds,
            patience,
            ..self
        }
    }
}

impl Runner for Handoff {
    fn work(&self) -> &'static str {
        match self.engines {
            HandoffEngines::One => {
                "Two hardware queues of one engine pass native fences to and fro, 128 times there \
                 and back; the packets are written before, measured is from the doorbells to the \
                 return of the CPU's wait for the end; every wait and signal is logged."
            }
            HandoffEngines::Two => {
                "Two hardware queues of two engines pass native fences to and fro, 128 times there \
                 and back; the packets are written before, measured is from the doorbells to the \
                 return of the CPU's wait for the end; every wait and signal is logged."
            }
            HandoffEngines::TwoAdapters(CrossAdapter::Propagated) => {
                "Two hardware queues of two adapters pass cross-adapter fences to and fro as the article has \
                 it, 128 times there and back: each signal interrupts, and the OS has the other adapter look; \
                 the packets are written before, measured is from the doorbells to the return of the CPU's \
                 wait for the end; an engine stays at a wait as long as one that hears doorbells; \
                 notifications are those of the two fences, and those that name none."
            }
            HandoffEngines::TwoAdapters(CrossAdapter::Doorbell) => {
                "Two hardware queues of two adapters pass cross-adapter fences to and fro, 128 times there and \
                 back: each signal rings a doorbell that the other adapter's engine looks at; the packets are \
                 written before, measured is from the doorbells to the return of the CPU's wait for the end; \
                 notifications are those of the two fences, and those that name none."
            }
        }
    }

    fn params(&self) -> Params {
        let mut params: Params = [
            ("queues".into(), 2.into()),
            ("engines".into(), self.engines.count().into()),
            ("rounds".into(), self.rounds.into()),
        ]
        .into();
        if let HandoffEngines::TwoAdapters(mode) = self.engines {
            let variant = match mode {
                CrossAdapter::Doorbell => "rings a doorbell",
                CrossAdapter::Propagated => "is propagated by the OS",
            };
            params.insert("variant".into(), variant.into());
            let infos = self.adapters.iter().filter_map(Adapter::info);
            let names = infos.map(|info| format!("{}, {}", info.name, info.driver_info));
            params.insert("adapters".into(), names.collect::<Vec<_>>().into());
        }
        params
    }

    fn ops_per_batch(&self) -> u64 {
        2 * self.rounds
    }

    fn prepare(&mut self) -> anyhow::Result<()> {
        self.first_list.clear();
        self.second_list.clear();
        for _ in 0..self.rounds {
            self.value += 1;
            self.first_list
                .signal(&self.there[0], self.value)
                .wait(&self.back[0], self.value);
            self.second_list
                .wait(&self.there[1], self.value)
                .signal(&self.back[1], self.value);
        }
        self.second.queue_commands(&self.second_list)?;
        self.end = self.first.queue_commands(&self.first_list)?;
        Ok(())
    }

    fn batch(&mut self) -> anyhow::Result<Sample> {
        let start = Instant::now();
        self.second.ring_doorbell()?;
        self.first.ring_doorbell()?;
        self.first
            .progress_fence()
            .wait(self.end, self.patience)
            .context("the hand-offs did not end")?;
        Ok(Sample::whole(start.elapsed()))
    }

    fn counts(&self) -> Counts {
        let HandoffEngines::TwoAdapters(_) = self.engines else {
            return counts(&self.adapters[0]);
        };
        let fences = self.there.iter().chain(&self.back);
        let named = fences.map(|fence| fence.object().fence().notifications());
        let adapters = || self.adapters.iter();
        let submits = adapters().map(|adapter| counts(adapter).submits);
        // One that names no fence may be for these.
        let unnamed = adapters().map(|adapter| adapter.os().interrupts().null_array());
        Counts {
            submits: submits.sum(),
            notifications: Some(named.sum::<u64>() + unnamed.sum::<u64>()),
        }
    }
}
