//! Comparison: the runners of a group take turns, batch by batch.
//!
//! A machine is never quiet for long, and what else it does hits whoever runs at that moment. So
//! nobody does all of his batches in a row: each round every runner does one, and all share the
//! weather.

use super::{
    Bench, Entry, Group, Mechanism, NotOffered, Params, ProcessCounters, Runner, Sample, Scenario,
    TooBusy, Turns, groups, turns,
};
use std::time::Duration;

/// How much is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Batches of each runner that count.
    pub batches: u32,
    /// Batches before, which do not count: shaders are compiled, memory is touched.
    pub warm_up: u32,
    /// After each batch, and counted with it: what a mechanism leaves running (an engine that has
    /// not noticed yet that it is idle) is its own cost, and not its neighbour's noise. Longer
    /// than an engine looks for work, short enough that cores do not fall into deep sleep.
    pub rest: Duration,
}

impl Pace {
    /// This many batches, with the usual warm-up and rest.
    #[must_use]
    pub fn of(batches: u32) -> Self {
        Self {
            batches,
            warm_up: 3,
            rest: Duration::from_micros(500),
        }
    }

    /// The pace of a scenario at this pace: a batch of `idle` is a second long, and needs no
    /// warm-up since its runners are at rest when they are made; one of `copy` takes milliseconds.
    #[must_use]
    pub fn of_scenario(self, scenario: Scenario) -> Self {
        match scenario {
            Scenario::Idle => Self {
                batches: self.batches.div_ceil(200).min(5),
                warm_up: 0,
                ..self
            },
            Scenario::Copy => Self {
                batches: self.batches.div_ceil(8),
                ..self
            },
            // Its batches take up to a second, and some rows are there to show how the others grow.
            Scenario::Work => Self {
                batches: self.batches.div_ceil(12),
                warm_up: self.warm_up.min(1),
                ..self
            },
            // Its rows are many, and all of its runners are there at a time.
            Scenario::Scale => Self {
                batches: self.batches.div_ceil(6),
                warm_up: self.warm_up.min(2),
                ..self
            },
            // One takes up to two seconds, most of which is to make it ready.
            Scenario::Reset => Self {
                batches: self.batches.div_ceil(30).min(20),
                warm_up: self.warm_up.min(1),
                ..self
            },
            Scenario::Handoff
            | Scenario::HandoffCross
            | Scenario::CrossAdapter
            | Scenario::Storm
            | Scenario::CpuWait
            | Scenario::CpuSignal
            | Scenario::FanOut
            | Scenario::FanIn => self,
        }
    }

    fn steps(self) -> u32 {
        self.batches + self.warm_up
    }
}

/// One batch, with what was counted during it and its rest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeasuredBatch {
    /// What it took.
    pub sample: Sample,
    /// Of the whole process.
    pub process: ProcessCounters,
    /// Calls of `vkQueueSubmit`.
    pub submits: u64,
    /// Fences named in interrupts, and interrupts that name none, where that can be counted.
    pub notifications: Option<u64>,
}

/// What one runner did.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// The scenario.
    pub scenario: Scenario,
    /// Its form, where there are several.
    pub form: Option<&'static str>,
    /// The mechanism.
    pub mechanism: Mechanism,
    /// Sizes.
    pub params: Params,
    /// What a batch is.
    pub work: String,
    /// Operations of a batch.
    pub ops_per_batch: u64,
    /// The batches that counted.
    pub batches: Vec<MeasuredBatch>,
    /// That local memory is system memory here, so that it says nothing of memory.
    pub same_memory: bool,
}

/// Who did not run, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotRun {
    /// The scenario; all of them where `None`.
    pub scenario: Option<Scenario>,
    /// The mechanism.
    pub mechanism: Mechanism,
    /// One sentence.
    pub reason: String,
    /// Whether something went wrong, rather than not being offered here.
    pub failed: bool,
}

/// What came of a comparison.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Who ran, in the order of groups and entries.
    pub measured: Vec<Measured>,
    /// Who did not.
    pub not_run: Vec<NotRun>,
    /// Of who ran [`Scenario::Handoff`], some hand-offs moment by moment.
    pub turns: Vec<Turns>,
    /// Whose moments could not be had.
    pub no_turns: Vec<NotRun>,
    /// Whether it was ended before its time.
    pub interrupted: bool,
}

/// Something that whoever watches may show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// A group begins.
    Group {
        /// Its scenario.
        scenario: Scenario,
        /// Its form.
        form: Option<&'static str>,
    },
    /// A batch is done, or was left out.
    Batch,
}

/// What is to be compared.
#[derive(Clone, Debug)]
pub struct Comparison {
    groups: Vec<Group>,
    mechanisms: Vec<Mechanism>,
    pace: Pace,
}

impl Comparison {
    /// These scenarios with these mechanisms.
    #[must_use]
    pub fn new(scenarios: &[Scenario], mechanisms: &[Mechanism], pace: Pace) -> Self {
        let mut groups: Vec<_> = scenarios
            .iter()
            .flat_map(|scenario| groups(*scenario))
            .collect();
        for group in &mut groups {
            group
                .entries
                .retain(|entry| mechanisms.contains(&entry.mechanism));
        }
        groups.retain(|group| !group.entries.is_empty());
        Self {
            groups,
            mechanisms: mechanisms.to_vec(),
            pace,
        }
    }

    /// The same, of forms alone that have this in their name.
    #[must_use]
    pub fn of_forms(mut self, part: &str) -> Self {
        for group in &mut self.groups {
            let of_group = group.form;
            group.entries.retain(|entry| {
                let form = entry.form.or(of_group);
                form.is_some_and(|form| form.contains(part))
            });
        }
        self.groups.retain(|group| !group.entries.is_empty());
        self
    }

    /// Whether there is nothing to run.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// How many batches there are, warm-up and those that will be left out included.
    #[must_use]
    pub fn steps(&self) -> u64 {
        let steps = |group: &Group| {
            let steps = self.pace.of_scenario(group.scenario).steps();
            group.entries.len() as u64 * u64::from(steps)
        };
        self.groups.iter().map(steps).sum()
    }

    /// Runs it; what was measured when `stop` says so is kept.
    pub fn run(
        &self,
        bench: &Bench,
        stop: &dyn Fn() -> bool,
        watch: &mut dyn FnMut(Progress),
    ) -> Outcome {
        let mut outcome = Outcome::default();
        for mechanism in &self.mechanisms {
            if let Some(reason) = bench.obstacle(*mechanism) {
                outcome.not_run.push(NotRun {
                    scenario: None,
                    mechanism: *mechanism,
                    reason: reason.into(),
                    failed: false,
                });
            }
        }
        for group in &self.groups {
            if stop() {
                outcome.interrupted = true;
                break;
            }
            let Group { scenario, form, .. } = *group;
            watch(Progress::Group { scenario, form });
            self.run_group(group, bench, stop, watch, &mut outcome);
            if scenario == Scenario::Handoff && !outcome.interrupted {
                take_turns(bench, stop, &mut outcome);
            }
        }
        outcome
    }

    fn run_group(
        &self,
        group: &Group,
        bench: &Bench,
        stop: &dyn Fn() -> bool,
        watch: &mut dyn FnMut(Progress),
        outcome: &mut Outcome,
    ) {
        let not_run = |entry: &Entry, reason: String, failed: bool| NotRun {
            scenario: Some(group.scenario),
            mechanism: entry.mechanism,
            reason,
            failed,
        };
        let pace = self.pace.of_scenario(group.scenario);
        let mut seats = Vec::new();
        for entry in &group.entries {
            if bench.obstacle(entry.mechanism).is_some() {
                // Said once, for all scenarios.
                continue;
            }
            if let Some(obstacle) = entry.obstacle(&bench.adapter) {
                outcome.not_run.push(not_run(entry, obstacle, false));
                continue;
            }
            match entry.runner(bench) {
                Ok(runner) => seats.push(Seat::new(entry, runner)),
                Err(error) => {
                    let failed = !error.is::<NotOffered>();
                    let reason = format!("{error:#}.");
                    outcome.not_run.push(not_run(entry, reason, failed));
                }
            }
        }
        for _ in seats.len()..group.entries.len() {
            (0..pace.steps()).for_each(|_| watch(Progress::Batch));
        }
        'rounds: for round in 0..pace.steps() {
            for seat in &mut seats {
                if stop() {
                    outcome.interrupted = true;
                    break 'rounds;
                }
                seat.turn(pace.rest, round >= pace.warm_up);
                watch(Progress::Batch);
            }
        }
        for seat in seats {
            let too_busy = seat
                .failed
                .as_ref()
                .is_some_and(anyhow::Error::is::<TooBusy>);
            match &seat.failed {
                Some(error) if !too_busy || seat.batches.is_empty() => {
                    let reason = format!("{error:#}.");
                    outcome
                        .not_run
                        .push(not_run(&seat.entry, reason, !too_busy));
                }
                Some(_) | None if seat.batches.is_empty() => {}
                Some(_) | None => outcome.measured.push(seat.measured(group, bench)),
            }
        }
    }
}

/// Of everyone who has just been measured, after that: what is taken to see the moments is not in the figures.
fn take_turns(bench: &Bench, stop: &dyn Fn() -> bool, outcome: &mut Outcome) {
    let scenario = Scenario::Handoff;
    let measured = outcome.measured.iter();
    let mut who: Vec<_> = measured
        .filter(|measured| measured.scenario == scenario)
        .map(|measured| measured.mechanism)
        .collect();
    who.dedup();
    for mechanism in who {
        if stop() {
            outcome.interrupted = true;
            return;
        }
        match turns(bench, mechanism, stop) {
            Ok(turns) => outcome.turns.push(turns),
            Err(error) => outcome.no_turns.push(NotRun {
                scenario: Some(scenario),
                mechanism,
                reason: format!("{error:#}."),
                failed: !error.is::<NotOffered>(),
            }),
        }
    }
}

/// A runner in the round.
struct Seat {
    entry: Entry,
    runner: Box<dyn Runner>,
    batches: Vec<MeasuredBatch>,
    failed: Option<anyhow::Error>,
}

impl Seat {
    fn new(entry: &Entry, runner: Box<dyn Runner>) -> Self {
        Self {
            entry: entry.clone(),
            runner,
            batches: Vec::new(),
            failed: None,
        }
    }

    fn turn(&mut self, rest: Duration, counts: bool) {
        if self.failed.is_some() {
            return;
        }
        match self.batch(rest) {
            Ok(batch) if counts => self.batches.push(batch),
            Ok(_) => {}
            Err(error) => self.failed = Some(error),
        }
    }

    fn batch(&mut self, rest: Duration) -> anyhow::Result<MeasuredBatch> {
        // What is submitted beforehand was submitted for this batch all the same.
        let counts = self.runner.counts();
        self.runner.prepare()?;
        let process = ProcessCounters::at_start();
        let sample = self.runner.batch()?;
        // A pause, not a wait: there is no event for "nothing goes on any more" that all
        // mechanisms share.
        std::thread::sleep(rest);
        let mut process = ProcessCounters::at_end().since(process);
        // The pause itself is one sleep, and the runner may have made others.
        let own = 1 + sample.pauses;
        process.wakeups = process.wakeups.map(|wakeups| wakeups.saturating_sub(own));
        let after = self.runner.counts();
        Ok(MeasuredBatch {
            sample,
            process,
            submits: after.submits - counts.submits,
            notifications: after
                .notifications
                .zip(counts.notifications)
                .map(|(now, then)| now - then),
        })
    }

    fn measured(self, group: &Group, bench: &Bench) -> Measured {
        Measured {
            scenario: group.scenario,
            form: self.entry.form.or(group.form),
            mechanism: self.entry.mechanism,
            params: self.runner.params(),
            work: self.runner.work().to_owned(),
            ops_per_batch: self.runner.ops_per_batch(),
            batches: self.batches,
            same_memory: bench.is_same_memory(self.entry.mechanism),
        }
    }
}
