//! Drawing a round, and the ground that it is played on.

use super::Random;
use super::heir::Heir;
use super::program::{
    Command, Kinds, Named, Program, QueueProgram, draw, foretell, initial_value, initial_values,
};
use super::round::{
    Awaited, Burst, Cancel, ContextPlan, CpuWait, DevicePlan, Disturbance, Fault, FencePlan,
    Ground, How, Joint, ROUNDS_OF_A_GROUND, Round,
};
use super::visit::{Lap, Leaving, Visit};
use crate::CrossAdapter;
use std::num::NonZeroU32;

/// What is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scope {
    /// From what.
    pub seed: u64,
    /// Signals that the bursts of a round have, more or less; none where it is 0.
    pub burst_signals: u64,
    /// Whether engines hang and are lost.
    pub faults: bool,
}

impl Scope {
    /// Chance of this number, which is not that of its neighbours.
    fn chance(&self, number: u64, of: u64) -> Random {
        let mut mixed = Random(self.seed ^ number.wrapping_mul(0xd6e8_feb8_6659_fd93) ^ of);
        Random(mixed.bits())
    }

    /// The ground of a round.
    #[must_use]
    pub fn ground(&self, round: u64) -> Ground {
        let random = &mut self.chance(round / ROUNDS_OF_A_GROUND, 1 << 63);
        Ground {
            nodes: 1 + random.below(3) as u32,
            is_polled: random.below(4) == 0,
            slice_us: *random.pick(&[4000, 4000, 1000, 200, 50]),
            idle_us: *random.pick(&[50, 50, 10, 300]),
            model: [
                *random.pick(&[1, 2, 8]),
                *random.pick(&[1, 3, 32]),
                *random.pick(&[1, 8]),
            ],
            model_cuts_within: *random.pick(&[None, None, Some(400), Some(3000)]),
            doorbells: NonZeroU32::new(*random.pick(&[0, 0, 1, 2, 5])),
            adapters: *random.pick(&[1, 2]),
            names_queues: random.below(3) == 0,
            is_mapped_twice: random.below(4) == 0,
        }
    }

    /// The round.
    #[must_use]
    pub fn round(&self, number: u64) -> Round {
        let random = &mut self.chance(number, 0);
        let Ground {
            nodes, adapters, ..
        } = self.ground(number);
        let devices = (0..=random.below(3)).map(|_| DevicePlan {
            adapter: random.below(adapters as u64) as usize,
        });
        let devices: Vec<_> = devices.collect();
        let any_device = |random: &mut Random| random.below(devices.len() as u64) as usize;
        let context = |random: &mut Random| ContextPlan {
            device: any_device(random),
            node: random.below(nodes.into()) as u32,
        };
        let contexts: Vec<_> = (0..devices.len() as u64 + random.below(4))
            .map(|_| context(random))
            .collect();
        let program = draw(random, Kinds::OF_LISTS);
        let any_context = |random: &mut Random| random.below(contexts.len() as u64) as usize;
        let places = program.queues.iter().map(|_| any_context(random)).collect();
        let fences = (0..program.initial.len()).map(|fence| FencePlan {
            home: any_device(random),
            is_local: random.below(3) == 0,
            is_monitored: is_monitored(random, &program, fence),
            crosses: crossing(random, nodes),
        });
        let fences = fences.collect();
        let bursts = match self.burst_signals {
            0 => Vec::new(),
            signals => {
                let count = 1 + random.below(4);
                let each = signals / count;
                (0..count)
                    .map(|_| {
                        let context = any_context(random);
                        burst(random, context, each)
                    })
                    .collect()
            }
        };
        let disturbances = Disturbance::ALL.into_iter();
        let disturbances = disturbances.filter(|_| random.below(3) == 0).collect();
        let fault = (self.faults && random.below(2) == 0).then(|| Fault {
            node: random.below(nodes.into()) as u32,
            after: random.below(4),
            hangs: random.below(4) == 0,
            heir: None,
        });
        let mut round = Round {
            devices,
            contexts,
            places,
            fences,
            program,
            waits: Vec::new(),
            disturbances,
            bursts,
            visits: Vec::new(),
            fault,
        };
        round.put_in_order();
        // By a chance of their own: others draw what they drew.
        let apart = &mut self.chance(number, 1 << 62);
        round.program.add_takes(apart, round.may_name());
        round.put_in_order();
        let is_narrow = |fence: usize| round.fences[fence].is_monitored;
        let initial = initial_values(apart, &round.program, is_narrow);
        round.start_at(initial);
        for burst in &mut round.bursts {
            // So soon that the model passes it as well.
            let soon = burst.sample().signals;
            burst.initial = initial_value(apart, (burst.total(), soon), false);
        }
        round.waits = waits(random, &round);
        let of_goers = &mut self.chance(number, 1 << 61);
        cancel_some(of_goers, &mut round);
        round.visits = visits(of_goers, &round, nodes);
        if let Some(fault) = &mut round.fault {
            let contexts = round.contexts.len() as u64;
            fault.heir = heir(of_goers, contexts, nodes);
        }
        round
    }
}

/// A process has eight lines for engines that ring each other, of which those of the oracle have as many as those that are
/// soaked.
fn crossing(random: &mut Random, nodes: u32) -> CrossAdapter {
    if nodes == 1 && random.below(2) == 0 {
        CrossAdapter::Doorbell
    } else {
        CrossAdapter::Propagated
    }
}

/// One of two that a queue of kernel mode signals, and one of three that the CPU does and such a queue can wait for.
fn is_monitored(random: &mut Random, program: &Program, fence: usize) -> bool {
    let signals = |queue: &&QueueProgram| {
        let mut commands = queue.commands.iter();
        commands.any(|command| matches!(command, Command::Signal(named, _) if *named == fence))
    };
    if let Some(queue) = program.queues.iter().find(signals) {
        queue.mode.is_kernel() && random.below(2) == 0
    } else {
        let mut queues = program.queues.iter();
        queues.any(|queue| queue.mode.is_kernel()) && random.below(3) == 0
    }
}

fn burst(random: &mut Random, context: usize, signals: u64) -> Burst {
    // What costs most is a submission: of short ones there are fewer signals.
    let (a_list, signals) = match random.below(6) {
        0 => (50, signals / 20),
        1 => (1000, signals / 2),
        2..=3 => (4000, signals),
        _ => (16_000, signals),
    };
    let a_list = signals.clamp(1, a_list);
    // Room for one submission alone, or for several.
    let submissions = *random.pick(&[1, 2, 4]);
    Burst {
        context,
        capacity: (submissions * (a_list + 1)).next_power_of_two(),
        signals: a_list,
        lists: (signals / a_list).max(1),
        is_local: random.below(3) == 0,
        initial: 0,
    }
}

/// Waits of the CPU, most of which end.
fn waits(random: &mut Random, round: &Round) -> Vec<CpuWait> {
    let end = foretell(&round.program);
    let threads = 1 + random.below(4);
    let awaited = |random: &mut Random| {
        let fence = random.below(2 * round.fences.len() as u64) as usize;
        let (named, device) = if fence < round.fences.len() {
            let device = match round.fences[fence] {
                plan if plan.is_monitored => plan.home,
                _ => random.below(round.devices.len() as u64) as usize,
            };
            (Named::Fence(fence), device)
        } else {
            let queue = random.below(round.places.len() as u64) as usize;
            (Named::ProgressOf(queue), round.device_of(queue))
        };
        let last = end.value_of(named);
        let least = match named {
            Named::Fence(fence) => round.program.initial[fence],
            Named::ProgressOf(_) => 0,
        };
        let value = match random.below(10) {
            0 => last + 1 + random.below(3),
            1..=5 => last,
            _ => least + random.below(last - least + 1),
        };
        Awaited {
            named,
            device,
            value,
        }
    };
    let wait = |random: &mut Random| {
        let joint = *random.pick(&[Joint::One, Joint::One, Joint::Any, Joint::All]);
        let count = match joint {
            Joint::One => 1,
            Joint::Any | Joint::All => 1 + random.below(5),
        };
        let mut of: Vec<_> = (0..count).map(|_| awaited(random)).collect();
        // One call waits on one adapter, and for several native fences alone.
        let adapter = |awaited: &Awaited| round.devices[awaited.device].adapter;
        let may_join =
            |other: &Awaited| round.is_native(other.named) && adapter(other) == adapter(&of[0]);
        let joint = if of.iter().all(may_join) {
            joint
        } else {
            of.truncate(1);
            Joint::One
        };
        CpuWait {
            thread: random.below(threads) as usize,
            how: *random.pick(&[How::Blocked, How::Blocked, How::Event, How::Future]),
            joint,
            of,
            cancel: None,
        }
    };
    (0..random.below(20)).map(|_| wait(random)).collect()
}

/// One of three is cancelled: dropped where no thread blocks in it, or by the handle of its first fence, if that is one that
/// can be opened once more.
fn cancel_some(random: &mut Random, round: &mut Round) {
    let end = foretell(&round.program);
    for at in 0..round.waits.len() {
        if random.below(3) > 0 {
            continue;
        }
        let first = round.waits[at].of[0];
        let can_close = matches!(first.named, Named::Fence(_)) && round.is_native(first.named);
        let can_drop = round.waits[at].how != How::Blocked;
        let by_handle = random.below(2) == 0;
        if can_close && (by_handle || !can_drop) {
            round.waits[at].of[0].value = end.value_of(first.named) + 1 + random.below(3);
            round.waits[at].cancel = Some(Cancel::Closed);
        } else if can_drop {
            round.waits[at].cancel = Some(Cancel::Dropped);
        }
    }
}

/// Up to six, by a thread or two.
fn visits(random: &mut Random, round: &Round, nodes: u32) -> Vec<Visit> {
    let threads = 1 + random.below(2);
    let contexts = round.contexts.len() as u64;
    let visit = |random: &mut Random| {
        let leaving = *random.pick(&Leaving::ALL);
        Visit {
            thread: random.below(threads) as usize,
            signaller: random.below(contexts) as usize,
            waiter: random.below(contexts) as usize,
            is_apart: leaving == Leaving::Terminated || random.below(3) == 0,
            is_local: random.below(3) == 0,
            crosses: crossing(random, nodes),
            laps: laps(random),
            leaving,
        }
    };
    (0..random.below(7)).map(|_| visit(random)).collect()
}

/// In three of four rounds with a fault.
fn heir(random: &mut Random, contexts: u64, nodes: u32) -> Option<Heir> {
    (random.below(4) > 0).then(|| Heir {
        context: random.below(contexts) as usize,
        crosses: crossing(random, nodes),
        goes_on: random.below(3) == 0,
    })
}

/// Each of them begins below where the one before ended, far below or hardly.
fn laps(random: &mut Random) -> Vec<Lap> {
    let count = 1 + random.below(4);
    let signals = |random: &mut Random| *random.pick(&[1, 1, 2, 5, 12]);
    let rise = 12 * count;
    let mut from = initial_value(random, (rise, rise), false);
    let mut laps = Vec::new();
    for _ in 0..count {
        let lap = Lap {
            from,
            signals: signals(random),
            by_cpu: random.below(4) == 0,
        };
        let back = match random.below(3) {
            0 => 1,
            1 => 1 + random.below(lap.to().min(16)),
            _ => 1 + random.below(lap.to()),
        };
        from = lap.to() - back;
        laps.push(lap);
    }
    laps
}
