//! Visibility: how long a store takes to be seen.
//!
//! The CPU stores a word, a running shader that polls it sees that and answers, and the CPU, which polls too, sees the
//! answer. The shader is the bare control's, which notes the device's clock when it sees and when it has answered. Times
//! of one way need that clock beside the CPU's, and say how far they may be off; the round trip is the CPU's alone.

use super::Memory;
use super::areas::Area;
use super::dispatch::Dispatch;
use super::outcome::Outcomes;
use super::row::{Delays, Distribution};
use super::setup::LINE_BYTES;
use crate::sync::{Arc, monotonic_ns};
use crate::trace::{Exchange, GpuClock, Reading};
use crate::vulkan::{Calibration, Device, Queue, shaders};

/// Round trips of one run.
const ROUNDS: u64 = 128;
/// Lines of the shader: its answer, the CPU's word, and how often each was answered; then the times.
const ANSWER: u64 = 0;
const QUESTION: u64 = LINE_BYTES;
const TIMES: u64 = 4 * LINE_BYTES;
/// Looks of the CPU after which it asks whether the shader is still there.
const LOOKS: u32 = 512;

/// See the file's head.
#[derive(Debug)]
pub(super) struct Visibility {
    words: Area,
    dispatch: Dispatch,
    queue: Queue,
    device: Arc<Device>,
    outcomes: Outcomes,
    to_gpu: Vec<u64>,
    to_cpu: Vec<u64>,
    round_trip: Vec<u64>,
    max_error_ns: Option<u64>,
}

fn reading(both: Calibration) -> Reading {
    Reading {
        ticks: both.device_ticks,
        monotonic_ns: both.monotonic_ns,
        max_deviation_ns: both.max_deviation_ns,
    }
}

impl Visibility {
    /// On a queue of a device whose shaders have a clock.
    ///
    /// # Errors
    /// The driver takes no shader or no memory.
    pub(super) fn new(queue: Queue, memory: Memory) -> anyhow::Result<Self> {
        let device = Arc::clone(queue.device());
        let devices = std::slice::from_ref(&device);
        let words = Area::new(devices, memory, TIMES + 2 * (ROUNDS + 1) * 16)?;
        let lanes = device.adapter().features.subgroup_size.max(2);
        // The second party, for one round more: the first waits for the dispatch.
        let spec = [
            (0, lanes),
            (1, 2 * (ROUNDS as u32 + 1)),
            (3, 1),
            (5, u32::MAX),
        ];
        let push = words.import(0).gpu_va().to_le_bytes();
        let dispatch = Dispatch::new(
            &device,
            &shaders::BARE_HANDOFF_TIMED,
            (&push, &spec, 1),
            &[Arc::clone(words.import(0))],
        )?;
        Ok(Self {
            words,
            dispatch,
            queue,
            device,
            outcomes: Outcomes::default(),
            to_gpu: Vec::new(),
            to_cpu: Vec::new(),
            round_trip: Vec::new(),
            max_error_ns: None,
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
        for word in [ANSWER, QUESTION] {
            self.words.host().word(word).publish(0);
        }
        let before = self.device.calibrate();
        let submitted_ns = monotonic_ns();
        self.dispatch.submit(&mut self.queue)?;
        let mut stored_and_seen = Vec::new();
        for round in 1..=ROUNDS + 1 {
            let stored_ns = monotonic_ns();
            self.words.host().word(QUESTION).publish(round);
            if !self.is_answered(round) {
                break;
            }
            stored_and_seen.push((stored_ns, monotonic_ns()));
        }
        self.dispatch.wait()?;
        let after = self.device.calibrate();
        let seen_ns = monotonic_ns();
        self.outcomes.batches += 1;
        let answered = stored_and_seen.len() as u64;
        self.outcomes.not_met += ROUNDS - answered.saturating_sub(1);
        self.outcomes.runs += answered.saturating_sub(1);
        let base = before.map_or(submitted_ns, |both| both.device_ticks);
        let times: Vec<[u64; 2]> = (0..answered)
            .map(|round| {
                // The second party's turns are those of odd numbers.
                let turn = 2 * round + 1;
                let raw = self.words.host().peek_words(TIMES + 16 * turn);
                raw.map(|raw| self.whole(raw, base))
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
        let clock = exchange.map(|exchange| GpuClock::new(self.frequency(), readings, &[exchange]));
        let rounds = stored_and_seen.iter().zip(times);
        // The first waits for the dispatch.
        for ((stored_ns, seen_ns), [got, passed]) in rounds.skip(1) {
            self.round_trip.push(seen_ns - stored_ns);
            if let Some(clock) = &clock {
                let (got_ns, passed_ns) = (clock.ns(got), clock.ns(passed));
                self.to_gpu.push(got_ns.saturating_sub(*stored_ns));
                self.to_cpu.push(seen_ns.saturating_sub(passed_ns));
            }
        }
        self.max_error_ns = self.max_error_ns.max(clock.map(|clock| clock.max_error_ns));
        Ok(())
    }

    /// Whether the shader answers.
    fn is_answered(&self, round: u64) -> bool {
        let answer = self.words.host().word(ANSWER);
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

    /// The whole of a time of which a shader's clock may give the low 32 bits only.
    fn whole(&self, raw: u64, base: u64) -> u64 {
        if self.device.adapter().features.shader_clock_bits == 64 {
            return raw;
        }
        base + u64::from((raw as u32).wrapping_sub(base as u32))
    }

    fn frequency(&self) -> u64 {
        let period = f64::from(self.device.adapter().features.timestamp_period).max(1e-3);
        #[allow(
            clippy::cast_sign_loss,
            reason = "a device's ticks in a second are above zero"
        )]
        let frequency = (1e9 / period).round() as u64;
        frequency
    }

    pub(super) fn found(self) -> (Outcomes, Delays) {
        let delays = Delays {
            to_gpu: Distribution::of(self.to_gpu),
            to_cpu: Distribution::of(self.to_cpu),
            round_trip: Distribution::of(self.round_trip),
            max_error_ns: self.max_error_ns,
        };
        (self.outcomes, delays)
    }
}
