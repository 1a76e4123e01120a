//! Scene: what a round's program has on a stage.

use super::bursts::Burster;
use super::collect;
use super::kernel_mode::KernelMode;
use super::kernels::{self, Kernels};
use super::opened::{Opened, OpenedFence};
use super::player::{Player, Queue};
use crate::soak::outcome::Expected;
use crate::soak::program::{MEMORY_BYTES, Mode, Named};
use crate::soak::round::{Burst, Round};
use crate::soak::{Random, Stage};
use crate::{Device, FenceMemory, FenceOptions, HwContext};
use std::collections::HashMap;
use std::time::Duration;

/// See the file's head.
#[derive(Debug)]
pub(super) struct Scene {
    pub(super) queues: Vec<Player>,
    pub(super) bursts: Vec<Burster>,
    pub(super) fences: Vec<Opened>,
    pub(super) contexts: Vec<HwContext>,
    /// A packet that names one which has gone is malformed.
    _kernels: Kernels,
    pub(super) devices: Vec<Device>,
    /// No queue stands at a wait for ever.
    ends: bool,
}

fn wrong(what: &str) -> impl Fn(crate::umd::CreateError) -> String {
    move |error| format!("no {what}: {error}")
}

impl Scene {
    pub(super) fn new(
        stage: &Stage,
        (round, expected): (&Round, &Expected),
        bursts: &[Burst],
    ) -> Result<Self, String> {
        let devices = round.devices.iter();
        let devices = devices.map(|plan| stage.adapter(plan.adapter).create_device());
        let devices: Vec<_> = devices.collect();
        let context = |plan: &crate::soak::ContextPlan| {
            devices[plan.device]
                .create_context(plan.node, 1)
                .map_err(wrong("context"))
        };
        let contexts = round.contexts.iter().map(context);
        let contexts = contexts.collect::<Result<Vec<_>, _>>()?;
        let memory = |is_local| {
            if is_local && stage.has_local_memory() {
                FenceMemory::Local
            } else {
                FenceMemory::System
            }
        };
        let mut fences = Vec::new();
        for (at, plan) in round.fences.iter().enumerate() {
            let initial = round.program.initial[at];
            if plan.is_monitored {
                let made = devices[plan.home].create_monitored_fence(initial);
                let made = OpenedFence::Monitored(made.map_err(wrong("monitored fence"))?);
                fences.push(Opened::from([(plan.home, made)]));
                continue;
            }
            let openers = round.openers(at);
            let crosses = round.crosses(at).map(|mode| stage.crossing(mode));
            let options = FenceOptions {
                initial,
                memory: memory(plan.is_local && crosses.is_none()),
                shared: round.is_shared(at),
                cross_adapter: crosses,
                ..FenceOptions::default()
            };
            let made = devices[plan.home].create_fence_with(options);
            let made = made.map_err(wrong("fence"))?;
            let mut opened = Opened::new();
            for device in openers.into_iter().filter(|device| *device != plan.home) {
                let shared = made
                    .share()
                    .map_err(|error| format!("not shared: {error}"))?;
                let fence = devices[device].open_fence(&shared);
                let fence = fence.map_err(wrong("opened fence"))?;
                opened.insert(device, OpenedFence::Native(fence));
            }
            opened.insert(plan.home, OpenedFence::Native(made));
            fences.push(opened);
        }
        let kernels = kernels::registered(round, &devices)?;
        let mut queues = Vec::new();
        for (at, program) in round.program.queues.iter().enumerate() {
            let device = round.device_of(at);
            let queue = match program.mode {
                Mode::User => Queue::User {
                    queue: contexts[round.places[at]]
                        .create_hw_queue(program.capacity)
                        .map_err(wrong("queue"))?,
                    lists: Vec::new(),
                },
                Mode::Kernel(signals) => Queue::Kernel(KernelMode {
                    queue: devices[device]
                        .create_kernel_queue_on(round.contexts[round.places[at]].node)
                        .map_err(wrong("kernel-mode queue"))?,
                    signals,
                    submissions: Vec::new(),
                }),
            };
            let [times, words, more, parts] =
                MEMORY_BYTES.map(|bytes| devices[device].create_allocation(bytes));
            let no_memory = wrong("allocation");
            queues.push(Player {
                queue,
                device,
                memory: [
                    times.map_err(&no_memory)?,
                    words.map_err(&no_memory)?,
                    more.map_err(&no_memory)?,
                    parts.map_err(&no_memory)?,
                ],
                names: HashMap::new(),
            });
        }
        let progress: Vec<_> = queues
            .iter()
            .map(|player| player.queue.progress())
            .collect();
        let memories: Vec<_> = queues.iter().map(|player| player.memory.clone()).collect();
        for (at, player) in queues.iter_mut().enumerate() {
            for (fence, opened) in fences.iter().enumerate() {
                let named = opened.get(&player.device);
                let named = named.map(|handle| (handle.handle(), Named::Fence(fence)));
                player.names.extend(named);
            }
            let own = |queue: &usize| round.device_of(*queue) == player.device;
            let names = (0..progress.len()).filter(own);
            let names = names.map(|queue| (progress[queue].handle(), Named::ProgressOf(queue)));
            player.names.extend(names);
            player.prepare(
                round.submissions(at),
                (&fences, &progress, &memories, &kernels),
            )?;
        }
        let burster = |burst: &Burst| -> Result<Burster, String> {
            let device = round.contexts[burst.context].device;
            let options = FenceOptions {
                initial: burst.initial,
                memory: memory(burst.is_local),
                ..FenceOptions::default()
            };
            let queue = contexts[burst.context].create_hw_queue(burst.capacity);
            let adapter = stage.adapter(round.devices[device].adapter);
            Ok(Burster {
                burst: *burst,
                may_be_named: collect::may_be_named(adapter, round),
                queue: queue.map_err(wrong("queue"))?,
                fence: devices[device]
                    .create_fence_with(options)
                    .map_err(wrong("fence"))?,
            })
        };
        Ok(Self {
            bursts: bursts.iter().map(burster).collect::<Result<_, _>>()?,
            ends: expected.program.ends(&round.program),
            queues,
            fences,
            contexts,
            _kernels: kernels,
            devices,
        })
    }

    /// Ends the processes: in order, or by taking all away, as chance says.
    pub(super) fn end(self, patience: Duration, random: &mut Random) -> Result<(), String> {
        for device in &self.devices {
            match random.below(3) {
                0 if self.ends => device
                    .end(patience)
                    .map_err(|error| format!("a device did not end in order: {error}"))?,
                1 => device.terminate(),
                _ => {}
            }
        }
        Ok(())
    }
}
