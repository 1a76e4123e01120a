//! Visibility: how long a store takes to be seen.
//!
//! The CPU stores a word, a running shader that polls it sees that and answers, and the CPU, which polls too, sees the
//! answer. One of the words lies in the memory that is asked about, the other where the design has it. Times of one way
//! need the shader's clock beside the CPU's, and say how far they may be off; the round trip is the CPU's alone.
//!
//! It is asked with the poll that the engine has and with a plain load, by turns. Of the second a shader may end and not
//! have seen a store over which it has polled on. That it did so, and had not merely come to its end, its beats say.

use super::areas::Area;
use super::dispatch::{Dispatch, end_of, most_passes};
use super::group::PAUSE;
use super::outcome::Outcomes;
use super::row::{Delays, Distribution};
use super::{Memory, Order, Parties, Shape};
use crate::sync::{Arc, monotonic_ns};
use crate::trace::{ClockSource, Exchange, GpuClock, Reading};
use crate::vulkan::{Calibration, Device, Queue};

/// Round trips of one run, behind the first, which waits for the dispatch.
const ROUNDS: u64 = 128;
/// Looks of the CPU after which it asks whether the shader is still there.
const LOOKS: u32 = 512;
/// Where a shader that polls plainly tells at which pass it is: behind the times.
const BEAT: u64 = (ROUNDS + 1) * 16;

/// A way to poll, and what was seen with it.
#[derive(Debug)]
struct Poll {
    order: Order,
    dispatch: Dispatch,
    outcomes: Outcomes,
    /// Of each run, with how far they may be off.
    one_way: Vec<(u64, Vec<u64>)>,
    round_trip: Vec<u64>,
}

/// The words.
#[derive(Debug)]
struct Words {
    question: Area,
    answer: Area,
    times: Area,
}

/// See the file's head.
#[derive(Debug)]
pub(super) struct Visibility {
    asks: Parties,
    words: Words,
    polls: Vec<Poll>,
    queue: Queue,
    device: Arc<Device>,
}

/// How the CPU's part of a run went.
#[derive(Debug)]
struct Asked {
    /// Of each round that was answered, when the CPU stored and when it saw the answer.
    stored_and_seen: Vec<(u64, u64)>,
    /// The beat behind the store that was not answered.
    beat: u64,
}

/// Whether a shader has polled over a store for half of its passes, by its beats when the store was made and at its end.
/// Beats reach the CPU late, but not so late.
fn polled_on([stored, ended]: [u64; 2], most_passes: u32) -> bool {
    ended.saturating_sub(stored) >= u64::from(most_passes / 2)
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
        let times = area(Memory::System, BEAT + 8)?;
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
        let poll = |order: &Order| {
            let shader = order.shader(Shape::Visibility);
            let launch = (&push[..], &spec[..], 1);
            let dispatch = Dispatch::new(&device, shader, launch, &imports, end_of(*order))?;
            Ok(Poll {
                order: *order,
                dispatch,
                outcomes: Outcomes::default(),
                one_way: Vec::new(),
                round_trip: Vec::new(),
            })
        };
        let orders = Shape::Visibility.orders_between(asks).iter();
        let polls = orders.map(poll).collect::<anyhow::Result<_>>()?;
        Ok(Self {
            asks,
            words: Words {
                question,
                answer,
                times,
            },
            polls,
            queue,
            device,
        })
    }

    /// Stores that were to be made in the order in which there were fewest; behind one that was not seen there are none.
    pub(super) fn tried(&self) -> u64 {
        let tried = |poll: &Poll| poll.outcomes.tried();
        self.polls.iter().map(tried).min().unwrap_or(0)
    }

    /// One run of each order.
    ///
    /// # Errors
    /// The device is lost, or does not come to its end.
    pub(super) fn round(&mut self) -> anyhow::Result<()> {
        for poll in &mut self.polls {
            poll.run(self.asks, &self.words, &mut self.queue, &self.device)?;
        }
        Ok(())
    }

    /// What was seen in each order.
    pub(super) fn found(self) -> impl Iterator<Item = (Order, Outcomes, Delays)> {
        self.polls.into_iter().map(Poll::found)
    }
}

impl Poll {
    fn run(
        &mut self,
        asks: Parties,
        words: &Words,
        queue: &mut Queue,
        device: &Device,
    ) -> anyhow::Result<()> {
        words.question.host().word(0).publish(0);
        words.answer.host().word(0).publish(0);
        words.times.host().word(BEAT).publish(0);
        let before = device.calibrate();
        let submitted_ns = monotonic_ns();
        self.dispatch.submit(queue)?;
        let asked = self.ask(words);
        self.dispatch.wait()?;
        let after = device.calibrate();
        let seen_ns = monotonic_ns();
        let answered = asked.stored_and_seen.len() as u64;
        let is_unseen = self.is_unseen(&asked, words, most_passes(device));
        let runs = answered.saturating_sub(1) + u64::from(is_unseen);
        self.outcomes.add(&Outcomes {
            runs,
            forbidden: u64::from(is_unseen),
            not_met: ROUNDS - runs,
            ..Outcomes::of_a_batch()
        });
        if runs < ROUNDS / 2 {
            std::thread::sleep(PAUSE);
        }
        let base = before.map_or(submitted_ns, |both| both.device_ticks);
        let times: Vec<[u64; 2]> = (0..answered)
            .map(|round| {
                let raw = words.times.host().peek_words(16 * round);
                raw.map(|raw| device.whole_ticks(raw, base))
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
        let frequency = device.ticks_per_second();
        let clock = exchange.map(|exchange| GpuClock::new(frequency, readings, &[exchange]));
        let counted = asked.stored_and_seen.iter().zip(times).skip(1);
        let round_trips = counted.clone().map(|((stored, seen), _)| seen - stored);
        self.round_trip.extend(round_trips);
        let is_known = |clock: &GpuClock| match clock.source {
            ClockSource::Calibrated | ClockSource::Exchanged => true,
            ClockSource::None | ClockSource::Unchecked => false,
        };
        if let Some(clock) = clock.filter(is_known) {
            let one_way = counted.map(|((stored_ns, seen_ns), [got, passed])| match asks {
                Parties::CpuToGpu => clock.ns(got).saturating_sub(*stored_ns),
                _ => seen_ns.saturating_sub(clock.ns(passed)),
            });
            self.one_way.push((clock.max_error_ns, one_way.collect()));
        }
        Ok(())
    }

    /// Stores one number after another, each when the one before is answered.
    fn ask(&self, words: &Words) -> Asked {
        let mut stored_and_seen = Vec::new();
        let mut beat = 0;
        if self.order == Order::Plain {
            self.until_polling(words);
        }
        for round in 1..=ROUNDS + 1 {
            let stored_ns = monotonic_ns();
            words.question.host().word(0).publish(round);
            if self.order == Order::Plain {
                // The beat comes behind the store.
                words.question.host().keep_order();
                beat = words.times.host().word(BEAT).observe();
            }
            if !self.is_answered(words, round) {
                break;
            }
            stored_and_seen.push((stored_ns, monotonic_ns()));
        }
        Asked {
            stored_and_seen,
            beat,
        }
    }

    /// Whether the shader, which was running before, did not see the last store though it polled on.
    fn is_unseen(&self, asked: &Asked, words: &Words, most_passes: u32) -> bool {
        let answered = asked.stored_and_seen.len() as u64;
        let ended = words.times.host().word(BEAT).observe();
        self.order == Order::Plain
            && answered <= ROUNDS
            && polled_on([asked.beat, ended], most_passes)
    }

    /// Until the shader has polled, of which it may be that it sees none of the stores, or has ended.
    fn until_polling(&self, words: &Words) {
        let beat = words.times.host().word(BEAT);
        while beat.observe() == 0 && !self.dispatch.has_ended() {
            std::hint::spin_loop();
        }
    }

    /// Whether the shader answers.
    fn is_answered(&self, words: &Words, round: u64) -> bool {
        let answer = words.answer.host().word(0);
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

    fn found(self) -> (Order, Outcomes, Delays) {
        // Of runs in which the clocks were known much worse than in the best they would tell of the clocks.
        let least = self.one_way.iter().map(|(error, _)| *error).min();
        let well_known = |(error, _): &(u64, _)| least.is_some_and(|least| *error <= 2 * least);
        let kept: Vec<_> = self.one_way.into_iter().filter(well_known).collect();
        let delays = Delays {
            max_error_ns: kept.iter().map(|(error, _)| *error).max(),
            one_way: Distribution::of(kept.into_iter().flat_map(|(_, times)| times).collect()),
            round_trip: Distribution::of(self.round_trip),
        };
        (self.order, self.outcomes, delays)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Kills `litmus-an-end-is-a-store-unseen`.
    #[test]
    fn who_came_to_its_end_was_not_polling() {
        assert!(polled_on([64, 59_967], 60_000));
        assert!(!polled_on([59_903, 59_967], 60_000));
        assert!(!polled_on([0, 0], 60_000), "no beat");
        assert!(!polled_on([7, 0], 60_000), "of a run before");
    }
}
