//! Running a soak: round after round, on the model and on the engines that are soaked.

use super::draw::Scope;
use super::outcome::{Expected, Outcome, difference};
use super::play::{Counted, Extent, bursts, play};
use super::round::{Burst, ROUNDS_OF_A_GROUND, Round};
use super::shrink::shrink;
use super::stage::{Before, DeviceChoice, Stage};
use super::tally::Tally;
use crate::OpenError;
use crate::sync::Arc;
use std::cell::RefCell;
use std::fmt;
use std::time::Duration;

/// How long is waited.
#[derive(Clone, Copy, Debug)]
struct Patience {
    /// Longer than anything takes that comes, on a machine with much else to do.
    round: Duration,
    /// The same while a case is shrunk, of which many hang.
    shrinking_round: Duration,
    /// How long that may take: who waits for it sees a failure anyway.
    shrinking: Duration,
}

const PATIENCE: Patience = Patience {
    round: Duration::from_secs(60),
    shrinking_round: Duration::from_secs(4),
    shrinking: Duration::from_secs(60),
};
/// Words by which two failures are told to be of one kind, behind where they were seen.
const WORDS_OF_A_KIND: usize = 12;

/// What is soaked.
#[derive(Clone, Debug)]
pub enum Target {
    /// The model alone, and what the rules foretell.
    Model,
    /// A device, with the model as oracle.
    Device(DeviceChoice),
}

impl Target {
    fn name(&self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Device(_) => "shader",
        }
    }
}

/// For tests, which see that a wrong outcome is found: changes what came of a round on the engines that are soaked.
pub type Spoil = Arc<dyn Fn(&Round, &mut Outcome) + Send + Sync>;

/// What differed, in which round, and the least that shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Of the run.
    pub seed: u64,
    /// Which one.
    pub round: u64,
    /// What differed, in words, and where.
    pub what: String,
    /// Packets of the whole round's program.
    pub packets: u64,
    /// The least round that shows something.
    pub least: Round,
    /// What that shows when it is played once more, the same kind of difference if that was seen again; nothing, if it
    /// comes and goes.
    pub shows: Option<String>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {}, round {}: {}", self.seed, self.round, self.what)?;
        let (packets, least) = (self.packets, self.least.program.packets());
        match &self.shows {
            Some(shows) => writeln!(
                f,
                "shrunk from {packets} packets to {least}, which show: {shows}"
            )?,
            None => writeln!(
                f,
                "of {packets} packets; it comes and goes, and was last seen with these {least}:"
            )?,
        }
        write!(f, "{}", self.least)
    }
}

/// Why a round is not done.
#[derive(Debug, thiserror::Error)]
pub enum SoakError {
    /// No adapter came up.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// An outcome was not what it must be.
    #[error("{0}")]
    Failed(Box<Failure>),
}

/// What a round shows.
enum Shown {
    /// Nothing but what was foretold.
    AsForetold,
    /// Nothing was foretold of what came.
    Unforetold,
    /// What must not be, in words.
    Wrong(String),
}

/// The adapters of some rounds.
#[derive(Debug)]
struct Stages {
    of_rounds: u64,
    model: Stage,
    device: Option<Stage>,
}

impl Stages {
    fn soaked(&self) -> &Stage {
        self.device.as_ref().unwrap_or(&self.model)
    }
}

/// A soak.
pub struct Soak {
    scope: Scope,
    target: Target,
    spoil: Option<Spoil>,
    before: Option<Before>,
    patience: Patience,
    stages: Option<Stages>,
    tally: Tally,
}

impl fmt::Debug for Soak {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Soak")
            .field("scope", &self.scope)
            .field("target", &self.target)
            .field("tally", &self.tally)
            .finish_non_exhaustive()
    }
}

impl Soak {
    /// Nothing is opened before the first round.
    #[must_use]
    pub fn new(scope: Scope, target: Target) -> Self {
        Self {
            scope,
            target,
            spoil: None,
            before: None,
            patience: PATIENCE,
            stages: None,
            tally: Tally::default(),
        }
    }

    /// The same, of which outcomes are spoilt.
    #[must_use]
    pub fn spoilt(self, spoil: Spoil) -> Self {
        Self {
            spoil: Some(spoil),
            ..self
        }
    }

    /// The same, before whose models' drivers this stands.
    #[must_use]
    pub fn over(self, before: Before) -> Self {
        Self {
            before: Some(before),
            ..self
        }
    }

    /// The same, in whose rounds all that comes does within so long, and of which what differs is shrunk for no longer.
    #[must_use]
    pub fn within(self, patience: Duration) -> Self {
        Self {
            patience: Patience {
                round: patience,
                shrinking_round: patience.min(PATIENCE.shrinking_round),
                shrinking: patience,
            },
            ..self
        }
    }

    /// What was done until now.
    #[must_use]
    pub fn tally(&self) -> Tally {
        let mut tally = self.tally;
        if let Some(stages) = &self.stages {
            tally.add_stage(stages.soaked());
        }
        tally
    }

    /// Plays a round on the model, and on the device if there is one, and compares all.
    ///
    /// # Errors
    /// [`SoakError`]: something differed, and the least round that shows it.
    pub fn round(&mut self, number: u64) -> Result<(), SoakError> {
        self.play(number, &self.scope.round(number))
    }

    /// The same of a round that somebody has made, on the ground of the one of this number.
    ///
    /// # Errors
    /// As [`Soak::round`].
    pub fn play(&mut self, number: u64, round: &Round) -> Result<(), SoakError> {
        let expected = Expected::of(round);
        let stages = match self.stages.take() {
            Some(stages) if stages.of_rounds == number / ROUNDS_OF_A_GROUND => stages,
            before => {
                self.close(before);
                self.open(number, self.patience.round)?
            }
        };
        let counted = Counted::default();
        let shown = self.shows(&stages, (round, &expected), number, &counted);
        // An adapter on which something is wrong is not used again, nor one whose engine is lost still.
        match shown {
            Shown::AsForetold => {}
            Shown::Unforetold => {
                self.close(Some(stages));
                self.tally.unforetold += 1;
                return Ok(());
            }
            Shown::Wrong(what) => {
                self.close(Some(stages));
                let failure = self.failure(number, round, what);
                return Err(SoakError::Failed(Box::new(failure)));
            }
        }
        let whole = bursts(round, self.extent());
        let has_fault = self.scope.faults && round.fault.is_some();
        self.tally
            .add_round(round, &expected, (&whole, has_fault), &counted);
        if stages.device.is_some() {
            let sample: Vec<_> = whole.into_iter().map(Burst::sample).collect();
            self.tally.add_oracle(round, &expected, &sample);
        }
        self.stages = Some(stages);
        Ok(())
    }

    /// Of the engines that are soaked.
    fn extent(&self) -> Extent {
        Extent {
            whole_bursts: true,
            faults: self.scope.faults,
        }
    }

    fn open(&self, number: u64, patience: Duration) -> Result<Stages, OpenError> {
        let (ground, faults) = (self.scope.ground(number), self.scope.faults);
        let device = match &self.target {
            Target::Model => None,
            Target::Device(choice) => Some(Stage::of_device(&ground, choice, faults, patience)?),
        };
        let is_oracle = device.is_some();
        Ok(Stages {
            of_rounds: number / ROUNDS_OF_A_GROUND,
            model: Stage::of_models(
                &ground,
                self.before.as_ref(),
                faults && !is_oracle,
                patience,
            )?,
            device,
        })
    }

    fn close(&mut self, stages: Option<Stages>) {
        if let Some(stages) = stages {
            self.tally.add_stage(stages.soaked());
        }
    }

    /// What a round shows.
    fn shows(
        &self,
        stages: &Stages,
        (round, expected): (&Round, &Expected),
        number: u64,
        counted: &Counted,
    ) -> Shown {
        let moments = self.scope.seed ^ number;
        let mut of_oracle = None;
        if stages.device.is_some() {
            let extent = Extent {
                whole_bursts: false,
                faults: false,
            };
            let nobody = &Counted::default();
            match judged(
                &stages.model,
                (round, expected),
                (moments, extent),
                None,
                nobody,
            ) {
                Ok(outcome) => of_oracle = outcome,
                Err(how) => return Shown::Wrong(format!("on the model: {how}")),
            }
        }
        let on = self.target.name();
        let plays = (!moments, self.extent());
        let spoil = self.spoil.as_ref();
        match judged(stages.soaked(), (round, expected), plays, spoil, counted) {
            Err(how) => Shown::Wrong(format!("on the {on}: {how}")),
            Ok(None) => Shown::Unforetold,
            Ok(Some(outcome)) => match of_oracle.and_then(|of| difference(&of, &outcome)) {
                Some(how) => Shown::Wrong(format!("the model and the {on} differ in {how}")),
                None => Shown::AsForetold,
            },
        }
    }

    fn failure(&self, number: u64, round: &Round, what: String) -> Failure {
        // What is opened once more is thrown away when something was wrong on it.
        let kept: RefCell<Option<Stages>> = RefCell::default();
        let shows = |round: &Round| {
            let stages = kept.take();
            let stages =
                stages.map_or_else(|| self.open(number, self.patience.shrinking_round), Ok);
            // That nothing can be opened any more is another thing.
            let stages = stages.ok()?;
            let expected = Expected::of(round);
            let counted = Counted::default();
            match self.shows(&stages, (round, &expected), number, &counted) {
                Shown::AsForetold => {
                    kept.replace(Some(stages));
                    None
                }
                Shown::Unforetold => None,
                Shown::Wrong(what) => Some(what),
            }
        };
        // The least that shows it again may differ in something else. Where it is not seen again, whatever differs is better
        // than nothing.
        let is_it = |shown: &String| kind_of(shown) == kind_of(&what);
        let comes_again = (0..2).any(|_| shows(round).is_some_and(|shown| is_it(&shown)));
        let shows_it = |round: &Round| shows(round).filter(|shown| !comes_again || is_it(shown));
        let fails = |round: &Round| (0..2).any(|_| shows_it(round).is_some());
        let least = shrink(round, self.patience.shrinking, fails);
        Failure {
            seed: self.scope.seed,
            round: number,
            packets: round.program.packets(),
            shows: (0..3).find_map(|_| shows_it(&least)),
            least,
            what,
        }
    }
}

/// Where it was seen, on which engines, and the first words of what differs there, without those that number something:
/// the numbers of a smaller case are others.
fn kind_of(what: &str) -> (&str, Vec<&str>) {
    let on_one = what.split_once(": ");
    let on_one = on_one.filter(|(place, _)| place.starts_with("on the "));
    let (place, what) = on_one
        .or_else(|| what.split_once(" differ in "))
        .unwrap_or(("", what));
    let words = what.split_whitespace();
    let words = words.filter(|word| !word.contains(|c: char| c.is_ascii_digit()));
    (place, words.take(WORDS_OF_A_KIND).collect())
}

/// Plays a round, and judges what came of it by the rules.
fn judged(
    stage: &Stage,
    (round, expected): (&Round, &Expected),
    (moments, extent): (u64, Extent),
    spoil: Option<&Spoil>,
    counted: &Counted,
) -> Result<Option<Outcome>, String> {
    let played = play(stage, round, expected, (moments, extent), counted)?;
    let Some(mut outcome) = played else {
        return Ok(None);
    };
    if let Some(spoil) = spoil {
        spoil(round, &mut outcome);
    }
    match expected.difference(&outcome, round, &bursts(round, extent)) {
        None => Ok(Some(outcome)),
        Some(how) => Err(how),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Failures of two kinds that begin alike are told from each other, and one with other numbers is of the same kind.
    ///
    /// Kills `soak-failures-that-begin-alike-are-one`, `soak-a-failure-is-the-same-elsewhere`,
    /// `soak-other-numbers-are-another-failure`.
    #[test]
    fn failures_are_of_one_kind_whatever_their_numbers() {
        let kinds = [
            [
                "on the model: burst 0: a wait for 5: the adapter was stopped",
                "on the model: burst 3: a wait for 71: the adapter was stopped",
            ],
            [
                "on the model: burst 0: a wait for 5 was not woken, and its fence is at 4",
                "on the model: burst 1: a wait for 6 was not woken, and its fence is at 9",
            ],
            [
                "on the shader: burst 0: a wait for 5 was not woken, and its fence is at 4",
                "on the shader: burst 2: a wait for 8 was not woken, and its fence is at 8",
            ],
            [
                "the model and the shader differ in queue 1: allocation 2, word 7 (one of 3): 0x1 and 0x2",
                "the model and the shader differ in queue 0: allocation 1, word 0 (one of 1): 0x7 and 0x0",
            ],
            [
                "the model and the shader differ in fence 1: 4 and 5",
                "the model and the shader differ in fence 12: 5 and 4",
            ],
            [
                "on the model: queue 1, log of signals: 7 entries instead of 8",
                "on the model: queue 4, log of signals: 1 entries instead of 0",
            ],
            [
                "on the model: queue 1, log of signals: Fence(3) = 4 is not due there",
                "on the model: queue 0, log of signals: ProgressOf(0) = 1 is not due there",
            ],
        ];
        for (at, [one, other]) in kinds.iter().enumerate() {
            assert_eq!(kind_of(one), kind_of(other));
            for [another, _] in &kinds[..at] {
                assert_ne!(kind_of(one), kind_of(another));
            }
        }
    }
}
