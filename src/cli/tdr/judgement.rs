//! Judgement: whether all came out as it should.

use super::findings::Outcome;
use crate::os::Record;
use crate::{DeviceExecutionState, WaitError};

/// What was seen.
#[derive(Clone, Debug)]
pub(super) struct Evidence {
    /// How the guilty program's wait ended.
    pub(super) ended: Result<(), WaitError>,
    /// It was a stall, on a driver that ends loops.
    pub(super) is_cut: bool,
    pub(super) engine_resets: u64,
    /// The process of the engine that was hung is gone; none where it was of this process.
    pub(super) process_gone: Option<bool>,
    pub(super) guilty_state: DeviceExecutionState,
    pub(super) innocent_state: DeviceExecutionState,
    /// Why the innocent program does not go on: on the engine that was hung, and on the other one.
    pub(super) errors: [Option<String>; 2],
    /// The other engine completed submissions meanwhile, and afterwards.
    pub(super) other_goes_on: bool,
    /// Why the guilty program cannot go on with a new device.
    pub(super) again: Option<String>,
    pub(super) records: Vec<Record>,
}

impl Evidence {
    /// What it was, and each thing that is not as it should be, as a sentence.
    pub(super) fn judge(&self) -> (Outcome, Vec<String>) {
        let never_hung = self.ended.is_ok() && self.is_cut;
        let mut problems: Vec<_> = match self.ended {
            Ok(()) if never_hung => self.unlike(DeviceExecutionState::ACTIVE, &[], 0),
            Ok(()) => vec!["it ended by itself before anybody took note".into()],
            Err(WaitError::TimedOut) => vec!["nobody ended it".into()],
            Err(_) => {
                let engine = Record::VIDEO_ENGINE_TIMEOUT_DETECTED;
                self.unlike(DeviceExecutionState::HUNG, &[engine], 1)
            }
        };
        if self.innocent_state != DeviceExecutionState::ACTIVE {
            problems.push("the innocent device is in error".into());
        }
        for (error, engine) in self.errors.iter().zip(0..) {
            problems.extend(
                error
                    .iter()
                    .map(|error| format!("the innocent queue on engine {engine} ended: {error}")),
            );
        }
        if !self.other_goes_on && self.errors[1].is_none() {
            problems.push("engine 1 stood still".into());
        }
        if self.process_gone == Some(never_hung) {
            problems.push(if never_hung {
                "the process of an engine that never hung is gone".into()
            } else {
                "the process of the engine that was hung is still there".into()
            });
        }
        let again = self.again.iter();
        problems.extend(again.map(|error| format!("a new device does not work: {error}")));
        let outcome = match (problems.is_empty(), never_hung) {
            (false, _) => Outcome::NotRecovered,
            (true, true) => Outcome::NeverHung,
            (true, false) => Outcome::Recovered,
        };
        (outcome, problems)
    }

    /// What is not so: the guilty device in this state, these records, at most so many engines replaced.
    fn unlike(&self, state: DeviceExecutionState, codes: &[u32], resets: u64) -> Vec<String> {
        let mut problems = Vec::new();
        if self.guilty_state != state {
            problems.push("the guilty device is in another state than it should be".into());
        }
        let noted: Vec<_> = self.records.iter().map(|record| record.code).collect();
        if noted != codes {
            problems.push(format!(
                "its records are {} instead of {}",
                listed(&noted),
                listed(codes)
            ));
        }
        if self.engine_resets > resets {
            problems.push(format!(
                "{} engines were replaced instead of {resets} at most",
                self.engine_resets
            ));
        }
        problems
    }
}

fn listed(codes: &[u32]) -> String {
    let codes: Vec<_> = codes.iter().map(|code| format!("{code:#x}")).collect();
    if codes.is_empty() {
        return String::from("none");
    }
    codes.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is seen of a stall that is recovered from.
    fn recovered() -> Evidence {
        Evidence {
            ended: Err(WaitError::DeviceLost),
            is_cut: false,
            engine_resets: 1,
            process_gone: Some(true),
            guilty_state: DeviceExecutionState::HUNG,
            innocent_state: DeviceExecutionState::ACTIVE,
            errors: [None, None],
            other_goes_on: true,
            again: None,
            records: vec![record(Record::VIDEO_ENGINE_TIMEOUT_DETECTED)],
        }
    }

    fn record(code: u32) -> Record {
        Record {
            code,
            parameters: [0; 4],
            reason: String::new(),
        }
    }

    fn outcome(change: impl FnOnce(&mut Evidence)) -> (Outcome, usize) {
        let mut evidence = recovered();
        change(&mut evidence);
        let (outcome, problems) = evidence.judge();
        (outcome, problems.len())
    }

    /// Kills `an-innocent-that-ends-is-no-problem`.
    #[test]
    fn each_thing_that_is_not_as_it_should_be_is_said() {
        use Outcome::{NotRecovered, Recovered};
        assert_eq!(outcome(|_| {}), (Recovered, 0));
        assert_eq!(outcome(|seen| seen.engine_resets = 0), (Recovered, 0));
        assert_eq!(outcome(|seen| seen.process_gone = None), (Recovered, 0));
        let bad: [fn(&mut Evidence); 11] = [
            |seen| seen.ended = Ok(()),
            |seen| seen.ended = Err(WaitError::TimedOut),
            |seen| seen.engine_resets = 2,
            |seen| seen.process_gone = Some(false),
            |seen| seen.guilty_state = DeviceExecutionState::ACTIVE,
            |seen| seen.innocent_state = DeviceExecutionState::HUNG,
            |seen| seen.errors[0] = Some("lost".into()),
            |seen| seen.errors[1] = Some("lost".into()),
            |seen| seen.other_goes_on = false,
            |seen| seen.again = Some("lost".into()),
            |seen| seen.records.push(record(Record::VIDEO_TDR_FAILURE)),
        ];
        for (number, change) in bad.into_iter().enumerate() {
            assert_eq!(outcome(change), (NotRecovered, 1), "{number}");
        }
    }

    #[test]
    fn a_stall_that_the_driver_cuts_never_hung() {
        let cut = |seen: &mut Evidence| {
            seen.ended = Ok(());
            seen.is_cut = true;
            seen.engine_resets = 0;
            seen.process_gone = Some(false);
            seen.guilty_state = DeviceExecutionState::ACTIVE;
            seen.records.clear();
        };
        assert_eq!(outcome(cut), (Outcome::NeverHung, 0));
        let reset = outcome(|seen| {
            cut(seen);
            seen.engine_resets = 1;
        });
        assert_eq!(reset, (Outcome::NotRecovered, 1));
    }
}
