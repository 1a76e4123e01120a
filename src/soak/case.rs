//! Case: a round as it is printed, for who looks for what is wrong.

use super::program::{Command, Mode, Named};
use super::round::{Cancel, Round};
use super::visit::{Leaving, Visit};
use std::fmt::{self, Display, Formatter};

impl Display for Round {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let adapters = self.devices.iter().map(|device| device.adapter);
        writeln!(
            f,
            "devices of adapters {:?}; disturbed by {:?}",
            adapters.collect::<Vec<_>>(),
            self.disturbances
        )?;
        let is_used = |fence: usize| {
            let of_cpu = self
                .program
                .cpu
                .iter()
                .any(|(signalled, _)| *signalled == fence);
            of_cpu || self.openers(fence).len() > 1 || self.names(fence)
        };
        for (at, fence) in self
            .fences
            .iter()
            .enumerate()
            .filter(|(at, _)| is_used(*at))
        {
            let initial = self.program.initial[at];
            if fence.is_monitored {
                writeln!(
                    f,
                    "fence {at}: monitored, of device {}, starts at {initial}",
                    fence.home
                )?;
                continue;
            }
            let place = match (self.crosses(at), fence.is_local) {
                (Some(mode), _) => format!("between adapters, {mode:?}"),
                (None, true) => "local memory if offered".into(),
                (None, false) => "system memory".into(),
            };
            let openers = self.openers(at);
            writeln!(
                f,
                "fence {at}: of device {}, open in {openers:?}, {place}, starts at {initial}",
                fence.home
            )?;
        }
        for (at, queue) in self.program.queues.iter().enumerate() {
            if queue.commands.is_empty() {
                continue;
            }
            let (place, capacity) = (self.contexts[self.places[at]], queue.capacity);
            write!(
                f,
                "queue {at}: device {}, node {}, ",
                place.device, place.node
            )?;
            match queue.mode {
                Mode::User => {
                    writeln!(f, "context {}, ring of {capacity}", self.places[at])?;
                }
                Mode::Kernel(signals) => writeln!(f, "of kernel mode, signals {signals:?}")?,
            }
            for command in &queue.commands {
                writeln!(f, "    {}", words(*command))?;
            }
        }
        for (fence, value) in &self.program.cpu {
            writeln!(f, "the CPU signals fence {fence} = {value}")?;
        }
        for (at, wait) in self.waits.iter().enumerate() {
            let of = wait.of.iter();
            let of =
                of.map(|of| format!("{} ≥ {} (device {})", name(of.named), of.value, of.device));
            writeln!(
                f,
                "CPU wait {at}, thread {}: {:?}, {:?} of {}{}",
                wait.thread,
                wait.how,
                wait.joint,
                of.collect::<Vec<_>>().join(", "),
                match wait.cancel {
                    Some(Cancel::Dropped) => ", dropped",
                    Some(Cancel::Closed) =>
                        ", by a handle of its own to the first, which is closed",
                    None => "",
                }
            )?;
        }
        for (at, burst) in self.bursts.iter().enumerate() {
            let place = self.contexts[burst.context];
            writeln!(
                f,
                "burst {at}: device {}, node {}, context {}, ring of {}: {} submissions of {} signals above {}",
                place.device,
                place.node,
                burst.context,
                burst.capacity,
                burst.lists,
                burst.signals,
                burst.initial
            )?;
        }
        for (at, visit) in self.visits.iter().enumerate() {
            writeln!(
                f,
                "visit {at}, thread {}: {}",
                visit.thread,
                self.told(visit)
            )?;
        }
        match self.fault {
            Some(fault) => {
                writeln!(
                    f,
                    "the engine of node {} of adapter 0 {}, after {} submissions of the guilty",
                    fault.node,
                    if fault.hangs { "hangs" } else { "is lost" },
                    fault.after
                )?;
                fault.heir.map_or(Ok(()), |heir| {
                    let place = self.contexts[heir.context];
                    writeln!(
                        f,
                        "a queue of device {}, node {} waits for a fence of the guilty's, which {}",
                        place.device,
                        place.node,
                        if heir.goes_on {
                            "goes on"
                        } else {
                            "is signalled for ever then"
                        }
                    )
                })
            }
            None => Ok(()),
        }
    }
}

impl Round {
    /// A visit in words.
    fn told(&self, visit: &Visit) -> String {
        let place = |context: usize| {
            let place = self.contexts[context];
            format!("device {}, node {}", place.device, place.node)
        };
        let laps = visit.laps.iter().map(|lap| {
            let by = if lap.by_cpu { " by the CPU" } else { "" };
            format!("{} to {}{by}", lap.from, lap.to())
        });
        let laps: Vec<_> = laps.collect();
        format!(
            "a queue of {} signals {}{}; one of {}{} waits, and {}",
            place(visit.signaller),
            laps.join(", rewound to "),
            if visit.is_local {
                " in local memory"
            } else {
                ""
            },
            place(visit.waiter),
            if visit.is_apart {
                " in a process of its own"
            } else {
                ""
            },
            match visit.leaving {
                Leaving::InOrder => "ends",
                Leaving::Destroyed => "is destroyed at a wait",
                Leaving::Closed => "waits by a handle that is closed",
                Leaving::Terminated => "is terminated at a wait",
            }
        )
    }

    /// Whether a queue or a wait of the CPU names the fence.
    fn names(&self, fence: usize) -> bool {
        let of_queues = self.program.queues.iter().flat_map(|queue| &queue.commands);
        let mut of_queues = of_queues.filter_map(Command::fence);
        let mut awaited = self.waits.iter().flat_map(|wait| &wait.of);
        of_queues.any(|named| named == fence)
            || awaited.any(|awaited| awaited.named == Named::Fence(fence))
    }
}

/// What commands are called in a case that is printed.
fn words(command: Command) -> String {
    match command {
        Command::Nop => "nop".into(),
        Command::Wait(named, value) => format!("wait {} ≥ {value}", name(named)),
        Command::Signal(fence, value) => format!("signal fence {fence} = {value}"),
        Command::Progress(value) => format!("(ends submission {value})"),
        Command::Timestamp(word) => format!("timestamp to word {word}"),
        Command::Fill(to, value) => format!(
            "fill {:?} {}..{} with {value:#x}",
            to.of,
            to.first,
            to.first + to.count
        ),
        Command::Copy(from, first, to) => format!(
            "copy {from:?} {first}..{} to {:?} {}",
            first + to.count,
            to.of,
            to.first
        ),
        Command::Take {
            queue,
            from,
            first,
            to,
        } => format!(
            "take {from:?} {first}..{} of queue {queue} to {:?} {}",
            first + to.count,
            to.of,
            to.first
        ),
        Command::Add {
            by,
            from,
            first,
            to,
            number,
        } => format!(
            "dispatch {by:?}: {from:?} {first}..{} + {number:#x} to {:?} {}",
            first + to.count,
            to.of,
            to.first
        ),
        Command::Malformed(malformed) => format!("{malformed:?}"),
    }
}

/// What a fence is called in it.
fn name(named: Named) -> String {
    match named {
        Named::Fence(fence) => format!("fence {fence}"),
        Named::ProgressOf(queue) => format!("progress of queue {queue}"),
    }
}
