//! Turns: eight hand-offs of each mechanism, moment by moment.
//!
//! Two parties pass a fence to and fro. Whose turn it is sees its fence, does nothing, and passes on; from there to when
//! the other sees it is the hand-off. Figures say how long that takes; this says where the time goes, for a picture of
//! all mechanisms on one axis. The moments are the parties' own where they have a clock: what an engine logged, what a
//! shader read; else the CPU watches. So each is taken with something more than the figures are, which [`Turns::how`]
//! says.

mod watched;

pub(super) use watched::watch;

use super::{Bench, Mechanism, NotOffered, bare, monitored, native, timeline};
use crate::AdapterOptions;
use crate::trace::{ClockSource, GpuClock};
use anyhow::ensure;
use serde::{Deserialize, Serialize};

/// Hand-offs that are taken: an even number.
pub(super) const HANDOFFS: usize = 8;
/// No time of them is later: an hour.
const MOST_NS: u64 = 3_600_000_000_000;
/// How often they are taken, beside a first time that warms up.
const TAKES: usize = 40;

/// Of one mechanism. Times are nanoseconds since the CPU began to hand the work over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turns {
    /// The mechanism.
    pub mechanism: Mechanism,
    /// What was done, and whose clock says so.
    pub how: String,
    /// One after another; their parties take turns, 0 first.
    pub turns: Vec<Turn>,
    /// When the CPU knew that all was done.
    pub seen_ns: u64,
    /// How far the parties' times may be off: all by the same where they have a clock, each by its own where the CPU looked.
    pub max_error_ns: u64,
    /// That the moments were not seen, since to look slows them: they are spread evenly, at the time that a hand-off takes
    /// when nobody looks. When the CPU began and knew is then not told.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_even: bool,
}

/// One party's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turn {
    /// Whose: 0 or 1.
    pub party: u32,
    /// When it saw that it is its turn; where that was not seen, when it passed on.
    pub got_ns: u64,
    /// When it passed on; the last of all passes nothing.
    pub passed_ns: u64,
}

impl Turns {
    /// From the first party's passing on until the last hand-off was seen.
    #[must_use]
    pub fn length_ns(&self) -> u64 {
        match (self.turns.first(), self.turns.last()) {
            (Some(first), Some(last)) => last.got_ns.saturating_sub(first.passed_ns),
            _ => 0,
        }
    }
}

impl Turns {
    /// Whether it can be, for who has read it from a file.
    ///
    /// # Errors
    /// What of it cannot, in words.
    pub fn check(&self) -> Result<(), String> {
        if self.turns.len() != HANDOFFS + 1 {
            let (found, expected) = (self.turns.len(), HANDOFFS + 1);
            return Err(format!("there are {found} turns instead of {expected}"));
        }
        let times = self
            .turns
            .iter()
            .flat_map(|turn| [turn.got_ns, turn.passed_ns]);
        let mut times = times.chain([self.seen_ns, self.max_error_ns]);
        if let Some(late) = times.find(|time| *time > MOST_NS) {
            return Err(format!("a time is {late} ns, which cannot be"));
        }
        let mut parties = self.turns.iter().zip([0, 1].into_iter().cycle());
        if parties.any(|(turn, party)| turn.party != party) {
            return Err("the parties do not take turns".into());
        }
        // Of both parties' clocks.
        let slack = 2 * self.max_error_ns;
        let mut pairs = self.turns.windows(2);
        let is_in_order = self.turns.iter().all(|turn| turn.got_ns <= turn.passed_ns)
            && pairs.all(|pair| pair[0].passed_ns <= pair[1].got_ns + slack);
        if is_in_order {
            Ok(())
        } else {
            Err("the parties' times contradict each other".into())
        }
    }

    /// So many hand-offs that take `handoff_ns` each.
    fn even(mechanism: Mechanism, how: &str, handoff_ns: u64) -> Self {
        let turn = |number: u64| Turn {
            party: (number % 2) as u32,
            got_ns: number * handoff_ns,
            passed_ns: number * handoff_ns,
        };
        Self {
            mechanism,
            how: format!(
                "{how} But to read them slows the hand-offs down here: they are shown evenly, as long as each takes in the \
                 same chain, 256 long, while nobody looks."
            ),
            turns: (0..=HANDOFFS as u64).map(turn).collect(),
            seen_ns: HANDOFFS as u64 * handoff_ns,
            max_error_ns: handoff_ns,
            is_even: true,
        }
    }
}

/// What a take gives; times are of CLOCK_MONOTONIC.
pub(super) struct Take {
    pub(super) began_ns: u64,
    /// When each got its turn, and passed on.
    pub(super) moments: Vec<(u64, u64)>,
    pub(super) seen_ns: u64,
    pub(super) max_error_ns: u64,
}

impl Take {
    fn turns(&self, mechanism: Mechanism, how: &str) -> anyhow::Result<Turns> {
        let slack = self.max_error_ns;
        let within = self.began_ns.saturating_sub(slack)..=self.seen_ns.saturating_add(slack);
        let mut times = self.moments.iter().flat_map(|(got, passed)| [got, passed]);
        ensure!(
            times.all(|time| within.contains(time)),
            "the parties' times contradict the CPU's"
        );
        let since = |ns: u64| ns.saturating_sub(self.began_ns);
        let moments = self.moments.iter().zip([0, 1].into_iter().cycle());
        let turns: Vec<_> = moments
            .map(|((got, passed), party)| Turn {
                party,
                got_ns: since(*got),
                passed_ns: since(*passed),
            })
            .collect();
        let turns = Turns {
            mechanism,
            how: how.into(),
            turns,
            seen_ns: since(self.seen_ns),
            max_error_ns: self.max_error_ns,
            is_even: false,
        };
        turns.check().map_err(anyhow::Error::msg)?;
        Ok(turns)
    }
}

/// Refuses a clock of which nothing is known. Whether one that was only read is the one by which the parties timed, a take
/// finds by itself: they did what they did after the CPU began and before it knew.
pub(super) fn must_be_known(clock: &GpuClock) -> anyhow::Result<()> {
    match clock.source {
        ClockSource::Calibrated | ClockSource::Exchanged | ClockSource::Unchecked => Ok(()),
        ClockSource::None => anyhow::bail!("the device's clock is not known beside the CPU's"),
    }
}

/// Someone whose parties take turns.
pub(super) trait Taker {
    /// What is done, and whose clock says so.
    fn how(&self) -> &'static str;

    /// [`HANDOFFS`] hand-offs.
    fn take(&mut self) -> anyhow::Result<Take>;

    /// What one takes while nobody looks, in nanoseconds; `None` where to look is not known to cost much.
    fn unseen_ns(&mut self) -> anyhow::Result<Option<u64>> {
        Ok(None)
    }
}

/// Takes them many times, and gives those of middling length; `stop` is asked between two takes.
///
/// # Errors
/// The mechanism is not offered here, something of it went wrong, or its times cannot be had.
pub fn turns(
    bench: &Bench,
    mechanism: Mechanism,
    stop: &dyn Fn() -> bool,
) -> anyhow::Result<Turns> {
    if let Some(obstacle) = bench.obstacle(mechanism) {
        anyhow::bail!("{obstacle}");
    }
    let mut taker: Box<dyn Taker> = match mechanism {
        Mechanism::NativeSystemEvent
        | Mechanism::NativeSystemPolled
        | Mechanism::NativeLocalEvent
        | Mechanism::NativeLocalPolled => {
            let adapter = bench.native(mechanism, 1, AdapterOptions::default())?;
            Box::new(native::TurnTaker::new(adapter)?)
        }
        Mechanism::TimelineSemaphore => {
            let devices = [bench.device(2)?, bench.device(2)?];
            Box::new(timeline::TurnTaker::new(devices.each_ref())?)
        }
        Mechanism::MonitoredFence => Box::new(monitored::TurnTaker::new(bench.queue()?)?),
        Mechanism::BareControl => Box::new(bare::TurnTaker::new(&bench.device(1)?)?),
    };
    taker.take()?;
    let mut takes = Vec::new();
    let mut contradictory = None;
    for _ in 0..TAKES {
        ensure!(!stop(), "it was ended before");
        // A take that goes wrong ends all; one whose times contradict each other is left out.
        match taker.take()?.turns(mechanism, taker.how()) {
            Ok(turns) => takes.push(turns),
            Err(error) => contradictory = Some(error),
        }
    }
    if let Some(error) = contradictory.filter(|_| takes.len() < TAKES / 2) {
        return Err(error);
    }
    takes.sort_by_key(Turns::length_ns);
    let handoff_ns = takes[takes.len() / 2].length_ns() / HANDOFFS as u64;
    if let Some(unseen_ns) = taker.unseen_ns()?
        && handoff_ns > 2 * unseen_ns
    {
        return Ok(Turns::even(mechanism, taker.how(), unseen_ns));
    }
    middle(takes, handoff_ns)
}

/// Of those whose times are known to less than a hand-off takes, the one whose hand-offs take most nearly that.
fn middle(mut takes: Vec<Turns>, handoff_ns: u64) -> anyhow::Result<Turns> {
    takes.retain(|turns| turns.max_error_ns <= handoff_ns);
    let off = |turns: &Turns| turns.length_ns().abs_diff(handoff_ns * HANDOFFS as u64);
    takes.into_iter().min_by_key(off).ok_or_else(|| {
        let why = "the moments of its hand-offs could not be told apart: clocks are too far off, or who looked did not run \
                   all the time";
        NotOffered(why.into()).into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(moments: Vec<(u64, u64)>) -> Take {
        Take {
            began_ns: 1000,
            moments,
            seen_ns: 3000,
            max_error_ns: 5,
        }
    }

    fn in_order() -> Vec<(u64, u64)> {
        (0..=HANDOFFS as u64)
            .map(|n| (1100 + 100 * n, 1140 + 100 * n))
            .collect()
    }

    #[test]
    fn turns_are_counted_from_when_the_cpu_began() {
        let turns = take(in_order())
            .turns(Mechanism::BareControl, "How.")
            .unwrap();
        let second = turns.turns[1];
        assert_eq!(
            (second.party, second.got_ns, second.passed_ns),
            (1, 200, 240)
        );
        assert_eq!((turns.length_ns(), turns.seen_ns), (760, 2000));
    }

    #[test]
    fn what_was_seen_too_seldom_is_not_taken_for_what_happened() {
        let of = |handoff_ns: u64, max_error_ns| Turns {
            max_error_ns,
            is_even: false,
            ..Turns::even(Mechanism::BareControl, "How.", handoff_ns)
        };
        let takes = vec![of(90, 5), of(100, 101), of(112, 100), of(9_000, 50)];
        assert_eq!(middle(takes, 100).unwrap(), of(90, 5));
        assert!(middle(vec![of(100, 101)], 100).is_err());
    }

    #[test]
    fn times_that_cannot_be_are_refused() {
        let refused = |moments: Vec<(u64, u64)>| {
            let turns = take(moments).turns(Mechanism::BareControl, "How.");
            turns.unwrap_err().to_string()
        };
        assert!(refused(vec![(1001, 1002)]).contains("1 turns instead"));
        let mut backwards = in_order();
        backwards[3] = (1440, 1400);
        assert!(refused(backwards).contains("contradict"));
        let mut late = in_order();
        late[8] = (2900, 3006);
        assert!(refused(late).contains("contradict the CPU's"));
        let mut early = in_order();
        early[3].0 = 1329;
        assert!(refused(early.clone()).contains("contradict"));
        // As far off as the clocks may be.
        early[3].0 = 1330;
        assert!(take(early).turns(Mechanism::BareControl, "How.").is_ok());
    }
}
