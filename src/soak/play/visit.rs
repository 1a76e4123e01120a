//! Visiting: a visit's fence and queues are made, used and destroyed, one step when the other has come.

use super::collect;
use super::disturb::pause;
use super::dropped::Quiet;
use super::waits::{Told, one};
use crate::soak::outcome::WaitEnd;
use crate::soak::program::Named;
use crate::soak::round::Round;
use crate::soak::visit::{Lap, Leaving, MOST_LAPS, Visit, VisitOutcome};
use crate::soak::{Random, Stage};
use crate::{
    Allocation, CommandList, Device, Fence, FenceMemory, FenceOptions, HwContext, HwQueue,
};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Within this a queue could pass a wait that it must not.
const SOON: Duration = Duration::from_micros(500);
/// Packets of its rings, more than a lap has.
const CAPACITY: u64 = 32;

/// A queue, what it stores to, and its process's handle of the fence.
#[derive(Debug)]
struct Party {
    fence: Fence,
    queue: HwQueue,
    memory: Allocation,
}

impl Party {
    fn new(fence: Fence, device: &Device, context: &HwContext) -> Result<Self, String> {
        let memory = device.create_allocation(8 * MOST_LAPS as u64);
        Ok(Self {
            fence,
            queue: context.create_hw_queue(CAPACITY).map_err(wrong("queue"))?,
            memory: memory.map_err(wrong("allocation"))?,
        })
    }

    fn submit(&mut self, list: &CommandList) -> Result<u64, String> {
        let submitted = self.queue.submit(list);
        submitted.map_err(|error| format!("a queue takes nothing: {error}"))
    }

    /// Waits until all is done that was submitted.
    fn settle(&self, value: u64, patience: Duration) -> Result<(), String> {
        let ended = self.queue.progress_fence().wait(value, patience);
        ended.map_err(|error| format!("a queue does not end its submission {value}: {error}"))
    }

    /// What its progress comes to stands in its log, and in memory, when the packet was taken.
    fn until_taken(&self, packets: u64, deadline: Instant) -> Result<(), String> {
        while self.queue.read_index() < packets {
            if Instant::now() > deadline {
                let taken = self.queue.read_index();
                return Err(format!("a queue takes {taken} packets of {packets}"));
            }
            std::thread::yield_now();
        }
        Ok(())
    }
}

/// See the file's head.
#[derive(Debug)]
pub(super) struct Visiting<'a> {
    visit: &'a Visit,
    signaller: Party,
    waiter: Party,
    /// What came and goes with the queue that waits.
    apart: Option<(Device, HwContext)>,
    patience: Duration,
    /// Of a fence of one adapter: whether an interrupt may name it, though nobody waited for it.
    may_be_named: Option<bool>,
    /// What the one queue stores the other copies.
    takes: bool,
    /// The wait for the end of the lap before, and how that has ended, as has the one that was cancelled.
    before: Option<(Told, [WaitEnd; 2])>,
    /// Of each lap, who listened to the wait that was cancelled.
    quiet: Vec<Quiet>,
    outcome: VisitOutcome,
}

/// A visit that is over, of which some is looked at once more when all others are.
#[derive(Debug)]
pub(super) struct Visited {
    outcome: VisitOutcome,
    /// Where its queue has gone with work.
    fence: Option<Fence>,
    quiet: Vec<Quiet>,
}

impl Visited {
    /// What was left undone stays so, and who listened to what was cancelled is told of nothing.
    pub(super) fn at_last(self) -> VisitOutcome {
        let mut outcome = self.outcome;
        if let Some(fence) = self.fence {
            outcome.last = fence.current_value();
        }
        for ([_, _, more], quiet) in outcome.waits.iter_mut().zip(self.quiet) {
            if let Some(how) = quiet.complaint() {
                *more = WaitEnd::Failed(how);
            }
        }
        outcome
    }
}

/// Does all of a visit.
pub(super) fn run(
    stage: &Stage,
    (round, visit): (&Round, &Visit),
    (devices, contexts): (&[Device], &[HwContext]),
    random: &mut Random,
) -> Result<Visited, String> {
    let mut visiting = Visiting::new(stage, (round, visit), (devices, contexts))?;
    for (number, lap) in (1..).zip(&visit.laps) {
        visiting.lap(number, *lap, random)?;
    }
    visiting.leave()
}

fn wrong(what: &str) -> impl Fn(crate::umd::CreateError) -> String {
    move |error| format!("no {what}: {error}")
}

impl<'a> Visiting<'a> {
    fn new(
        stage: &Stage,
        (round, visit): (&Round, &'a Visit),
        (devices, contexts): (&[Device], &[HwContext]),
    ) -> Result<Self, String> {
        let [one, other] = [visit.signaller, visit.waiter].map(|context| round.contexts[context]);
        let adapter_of = |device: usize| round.devices[device].adapter;
        let crosses = adapter_of(one.device) != adapter_of(other.device);
        let adapter = stage.adapter(adapter_of(other.device));
        let apart = visit.is_apart.then(|| {
            let device = adapter.create_device();
            let context = device.create_context(other.node, 1);
            Ok::<_, String>((device, context.map_err(wrong("context"))?))
        });
        let apart = apart.transpose()?;
        let (waiting, context) = match &apart {
            Some((device, context)) => (device, context),
            None => (&devices[other.device], &contexts[visit.waiter]),
        };
        // A handle that is closed is not the signaller's.
        let is_one_process = apart.is_none() && one.device == other.device;
        let is_shared = !is_one_process || visit.leaving == Leaving::Closed;
        let memory = if visit.is_local && !crosses && stage.has_local_memory() {
            FenceMemory::Local
        } else {
            FenceMemory::System
        };
        let fence = devices[one.device].create_fence_with(FenceOptions {
            initial: visit.initial(),
            memory,
            shared: is_shared,
            cross_adapter: crosses.then(|| stage.crossing(visit.crosses)),
            ..FenceOptions::default()
        });
        let fence = fence.map_err(wrong("fence"))?;
        let opened = if is_shared {
            let shared = fence
                .share()
                .map_err(|error| format!("not shared: {error}"))?;
            waiting.open_fence(&shared).map_err(wrong("opened fence"))?
        } else {
            fence.clone()
        };
        let signalling = (&devices[one.device], &contexts[visit.signaller]);
        Ok(Self {
            visit,
            signaller: Party::new(fence, signalling.0, signalling.1)?,
            waiter: Party::new(opened, waiting, context)?,
            patience: stage.patience,
            may_be_named: (!crosses).then(|| collect::may_be_named(adapter, round)),
            apart,
            takes: is_one_process,
            before: None,
            quiet: Vec::new(),
            outcome: VisitOutcome::default(),
        })
    }

    fn values(&self) -> [u64; 2] {
        [&self.signaller, &self.waiter].map(|party| party.fence.current_value())
    }

    /// The lap of this number, counted from 1.
    fn lap(&mut self, number: u64, lap: Lap, random: &mut Random) -> Result<(), String> {
        if number > 1 {
            let party = *random.pick(&[&self.signaller, &self.waiter]);
            let rewound = party.fence.rewind(lap.from);
            rewound.map_err(|error| format!("its fence is not rewound: {error}"))?;
        }
        self.look_again();
        self.outcome.values.push(self.values());
        let told = Told::new(&self.waiter.fence, lap.to())?;
        let more = Told::new(&self.waiter.fence, lap.to() + 1)?;
        self.wait(number, lap.to())?;
        pause(random, SOON);
        let passed = self.waiter.queue.progress_fence().current_value();
        self.outcome.passed.push(passed);
        self.signal(number, lap)?;
        let came = told.end(self.patience);
        self.waiter.settle(number, self.patience)?;
        self.signaller.settle(number, self.patience)?;
        self.outcome.values.push(self.values());
        self.before = Some((told, [came, more.end(Duration::ZERO)]));
        // The next lap may pass its value, and what is signalled in the end passes that of the last one.
        self.quiet.push(more.given_up());
        Ok(())
    }

    /// The queue that waits stores the lap's number then, or what stands in the other's memory.
    fn wait(&mut self, number: u64, value: u64) -> Result<(), String> {
        let mut list = CommandList::new();
        list.wait(&self.waiter.fence, value);
        let word = 8 * (number - 1);
        if self.takes {
            list.copy(&self.signaller.memory, 0..8, &self.waiter.memory, word);
        } else {
            list.fill(&self.waiter.memory, word..word + 8, number);
        }
        self.waiter.submit(&list).map(|_| ())
    }

    fn signal(&mut self, number: u64, lap: Lap) -> Result<(), String> {
        let mut list = CommandList::new();
        list.fill(&self.signaller.memory, 0..8, number);
        let values = lap.from + 1..=lap.to();
        if !lap.by_cpu {
            for value in values.clone() {
                list.signal(&self.signaller.fence, value);
            }
        }
        self.signaller.submit(&list)?;
        if lap.by_cpu {
            // Behind what it tells of.
            self.signaller.settle(number, self.patience)?;
            for value in values {
                let signalled = self.signaller.fence.signal(value);
                signalled.map_err(|error| format!("a CPU signal was refused: {error}"))?;
            }
        }
        Ok(())
    }

    /// What was satisfied stays so, though the fence was rewound (NF-26).
    fn look_again(&mut self) {
        if let Some((told, [came, more])) = self.before.take() {
            let stays = told.end(Duration::ZERO);
            self.outcome.waits.push([came, stays, more]);
        }
    }

    /// What queues have logged and stored, and what stands of the fence that nobody waits for.
    fn collect(&mut self) -> Result<(), String> {
        let deadline = Instant::now() + self.patience;
        let laps = self.visit.laps.len();
        let [_, packets] = self.visit.signals_and_packets();
        // A wait, what is stored behind it, and the end.
        let of_waiter = 3 * laps as u64;
        self.waiter.until_taken(of_waiter, deadline)?;
        self.signaller.until_taken(packets - of_waiter, deadline)?;
        let unread = |error| format!("a log is not read: {error}");
        let fence = |party: &Party| (party.fence.handle(), Named::Fence(0));
        let waits = self.waiter.queue.read_wait_log().map_err(unread)?;
        let signals = self.signaller.queue.read_signal_log().map_err(unread)?;
        let progress = self.signaller.queue.progress_fence().handle();
        self.outcome.logs = [
            collect::logged(&HashMap::from([fence(&self.waiter)]), &waits),
            collect::logged(
                &HashMap::from([fence(&self.signaller), (progress, Named::ProgressOf(0))]),
                &signals,
            ),
        ];
        self.outcome.words = vec![0; laps];
        self.waiter.memory.read(0, &mut self.outcome.words);
        self.outcome.fence = self
            .may_be_named
            .map(|may_be_named| collect::fence_end(&self.waiter.fence, may_be_named, deadline));
        Ok(())
    }

    /// The queue that waits goes, with work or without.
    fn leave(mut self) -> Result<Visited, String> {
        self.look_again();
        self.collect()?;
        let Self {
            visit,
            signaller,
            mut waiter,
            apart,
            patience,
            quiet,
            mut outcome,
            ..
        } = self;
        let more = visit.done() + 1;
        let told = Told::new(&waiter.fence, more)?;
        let progress = waiter.queue.progress_fence().clone();
        let mut due = visit.laps.len() as u64;
        if visit.leaves_work() {
            let mut list = CommandList::new();
            list.wait(&waiter.fence, more);
            list.signal(&waiter.fence, more + 1);
            due = waiter.submit(&list)?;
        }
        let of_queue = || one(progress.wait(due, patience));
        let of_queue = match (visit.leaving, &apart) {
            (Leaving::InOrder, Some((device, _))) => {
                let end = of_queue();
                let ended = device.end(patience);
                ended.map_err(|error| format!("its process did not end in order: {error}"))?;
                end
            }
            (Leaving::InOrder, None) => {
                let end = of_queue();
                drop(waiter.queue);
                end
            }
            (Leaving::Destroyed, _) => {
                drop(waiter.queue);
                of_queue()
            }
            (Leaving::Closed, _) => {
                waiter.fence.close();
                of_queue()
            }
            (Leaving::Terminated, Some((device, _))) => {
                device.terminate();
                of_queue()
            }
            (Leaving::Terminated, None) => {
                return Err("what is terminated is no process of its own".into());
            }
        };
        let signalled = signaller.fence.signal(more);
        signalled.map_err(|error| format!("a CPU signal was refused: {error}"))?;
        outcome.left = vec![of_queue, told.end(patience)];
        outcome.last = signaller.fence.current_value();
        Ok(Visited {
            outcome,
            fence: visit.leaves_work().then_some(signaller.fence),
            quiet,
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use super::*;
    use crate::EventHandle;

    /// Who is told of a wait that was cancelled in a lap is found, whichever lap brought what it waited for.
    ///
    /// Kills `soak-a-visit-forgets-what-it-cancelled`.
    #[test]
    fn who_is_told_of_a_lap_that_is_over_is_found() {
        let stage = Stage::of_test();
        let fence = stage.adapter(0).create_device().create_fence(0).unwrap();
        let events = [EventHandle::new().unwrap(), EventHandle::new().unwrap()];
        drop(fence.wait_event(0, &events[1]));
        let lap = [WaitEnd::Came, WaitEnd::Came, WaitEnd::TimedOut];
        let visited = Visited {
            outcome: VisitOutcome {
                waits: vec![lap.clone(); 2],
                ..VisitOutcome::default()
            },
            fence: None,
            quiet: events.map(Quiet::before_it_came).into(),
        };
        let waits = visited.at_last().waits;
        assert_eq!(waits[0], lap);
        assert!(matches!(waits[1][2], WaitEnd::Failed(_)), "{waits:?}");
    }
}
