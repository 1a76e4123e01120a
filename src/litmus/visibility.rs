//! Visibility: how long a store takes to be seen.
//!
//! The CPU stores a word, a running shader that polls it sees that and answers, and the CPU, which polls too, sees the
//! answer. One of the words lies in the memory that is asked about, the other where the design has it. Times of one way
//! need the shader's clock beside the CPU's, and say how far they may be off; the round trip is the CPU's alone.

use super::areas::Area;
use super::dispatch::{Dispatch, most_passes};
use super::group::PAUSE;
use super::outcome::Outcomes;
use super::row::{Delays, Distribution};
use super::{Memory, Parties};
use crate::sync::{Arc, monotonic_ns};
use crate::trace::{ClockSource, Exchange, GpuClock, Reading};
use crate::vulkan::{Calibration, Device, Queue, shaders};

/// Round trips of one run, behind the first, which waits for the dispatch.
const ROUNDS: u64 = 128;
/// Looks of the CPU after which it asks whether the shader is still there.
const LOOKS: u32 = 512;

/// See the file's head.
#[derive(Debug)]
pub(super) struct Visibility {
    asks: Parties,
    question: Area,
    answer: Area,
    times: Area,
    dispatch: Dispatch,
    queue: Queue,
    device: Arc<Device>,
    outcomes: Outcomes,
    /// Of each run, with how far they may be off.
    one_way: Vec<(u64, Vec<u64>)>,
    round_trip: Vec<u64>,
}

fn reading(both: Calibration) -> Reading {
    Reading {
        ticks: both.device_ticks,
        monotonic_ns: both.monotonic_ns,
        max_deviation_ns: both.max_deviation_ns,
    }
}

impl Visibility {
    /// On a queue of a device whose shaders have a clock, of a word in `memory`; what the GPU polls else lies in `polled`.
    ///
    /// # Errors
    /// The driver takes no shader or no memory.
    pub(super) fn new(
        queue: Queue,
        asks: Parties,
        memory: Memory,
        polled: Memory,
    ) -> anyhow::Result<Self> {
        let device = Arc::clone(queue.device());
        let area = |memory, bytes| Area::new(std::slice::from_ref(&device), memory, bytes);
        let (question, answer) = match asks {
            Parties::CpuToGpu => (memory, Memory::System),
            _ => (polled, memory),
        };
        let (question, answer) = (area(question, 8)?, area(answer, 8)?);
        let times = area(Memory::System, (ROUNDS + 1) * 16)?;
        let spec = [
            (0, device.adapter().features.subgroup_size.max(1)),
            (1, most_passes(&device)),
            (2, ROUNDS as u32 + 1),
        ];
        let imports = [&question, &answer, &times].map(|area| Arc::clone(area.import(0)));
        let push: Vec<u8> = imports
            .iter()
            .flat_map(|import| import.gpu_va().to_le_bytes())
            .collect();
        let shader = &shaders::LITMUS_VISIBILITY;
        let dispatch = Dispatch::new(&device, shader, (&push, &spec, 1), &imports)?;
        Ok(Self {
            asks,
            question,
            answer,
            times,
            dispatch,
            queue,
            device,
            outcomes: Outcomes::default(),
            one_way: Vec::new(),
            round_trip: Vec::new(),
        })
    }

    pub(super) fn tried(&self) -> u64 {
        self.outcomes.runs + self.outcomes.not_met
    }

    /// One run.
    ///
    /// # Errors
    /// The device is lost, or does not come to its end.
    pub(super) fn round(&mut self) -> anyhow::Result<()> {
        self.question.host().word(0).publish(0);
        self.answer.host().word(0).publish(0);
        let before = self.device.calibrate();
        let submitted_ns = monotonic_ns();
        self.dispatch.submit(&mut self.queue)?;
        let mut stored_and_seen = Vec::new();
        for round in 1..=ROUNDS + 1 {
            let stored_ns = monotonic_ns();
            self.question.host().word(0).publish(round);
            if !self.is_answered(round) {
                break;
            }
            stored_and_seen.push((stored_ns, monotonic_ns()));
        }
        self.dispatch.wait()?;
        let after = self.device.calibrate();
        let seen_ns = monotonic_ns();
        let answered = stored_and_seen.len() as u64;
        let runs = answered.saturating_sub(1);
        self.outcomes.add(&Outcomes {
            runs,
            not_met: ROUNDS - runs,
            batches: 1,
            ..Outcomes::default()
        });
        if runs < ROUNDS / 2 {
            std::thread::sleep(PAUSE);
        }
        let base = before.map_or(submitted_ns, |both| both.device_ticks);
        let times: Vec<[u64; 2]> = (0..answered)
            .map(|round| {
                let raw = self.times.host().peek_words(16 * round);
                raw.map(|raw| self.device.whole_ticks(raw, base))
            })
            .collect();
        let ends = times.first().zip(times.last());
        let exchange = ends.map(|([begin_ticks, _], [_, end_ticks])| Exchange {
            submitted_ns,
            begin_ticks: *begin_ticks,
            end_ticks: *end_ticks,
            seen_ns,
        });
        let readings = before.map(reading).zip(after.map(reading));
        let frequency = self.device.ticks_per_second();
        let clock = exchange.map(|exchange| GpuClock::new(frequency, readings, &[exchange]));
        let counted = stored_and_seen.iter().zip(times).skip(1);
        let round_trips = counted.clone().map(|((stored, seen), _)| seen - stored);
        self.round_trip.extend(round_trips);
        let is_known = |clock: &GpuClock| match clock.source {
            ClockSource::Calibrated | ClockSource::Exchanged => true,
            ClockSource::None | ClockSource::Unchecked => false,
        };
        if let Some(clock) = clock.filter(is_known) {
            let one_way = counted.map(|((stored_ns, seen_ns), [got, passed])| match self.asks {
                Parties::CpuToGpu => clock.ns(got).saturating_sub(*stored_ns),
                _ => seen_ns.saturating_sub(clock.ns(passed)),
            });
            self.one_way.push((clock.max_error_ns, one_way.collect()));
        }
        Ok(())
    }

    /// Whether the shader answers.
    fn is_answered(&self, round: u64) -> bool {
        let answer = self.answer.host().word(0);
        loop {
            for _ in 0..LOOKS {
                if answer.observe() >= round {
                    return true;
                }
                std::hint::spin_loop();
            }
            if self.dispatch.has_ended() {
                return answer.observe() >= round;
            }
        }
    }

    pub(super) fn found(self) -> (Outcomes, Delays) {
        // Of runs in which the clocks were known much worse than in the best they would tell of the clocks.
        let least = self.one_way.iter().map(|(error, _)| *error).min();
        let well_known = |(error, _): &(u64, _)| least.is_some_and(|least| *error <= 2 * least);
        let kept: Vec<_> = self.one_way.into_iter().filter(well_known).collect();
        let delays = Delays {
            max_error_ns: kept.iter().map(|(error, _)| *error).max(),
            one_way: Distribution::of(kept.into_iter().flat_map(|(_, times)| times).collect()),
            round_trip: Distribution::of(self.round_trip),
        };
        (self.outcomes, delays)
    }
}
