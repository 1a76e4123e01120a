//! Judgement: whether all came out as it should.

use super::bounds::Bound;
use super::expectation::{Expectation, Noted};
use super::findings::Outcome;
use crate::{DeviceExecutionState, WaitError};

/// What was seen.
#[derive(Clone, Debug)]
pub(super) struct Evidence {
    /// How the guilty program's wait ended.
    pub(super) ended: Result<(), WaitError>,
    /// Engines that took the place of the one that is hung, and of the other one.
    pub(super) resets: [u64; 2],
    /// Times that the operating system went through a recovery.
    pub(super) recoveries: usize,
    /// The driver was asked for what it was to do wrong; none where that was nothing.
    pub(super) fault_met: Option<bool>,
    /// The process of the engine that was hung is gone; none where it was of this process.
    pub(super) process_gone: Option<bool>,
    pub(super) guilty_state: DeviceExecutionState,
    /// Of the program that hangs the other engine, if one does.
    pub(super) second_guilty_state: Option<DeviceExecutionState>,
    pub(super) innocent_state: DeviceExecutionState,
    pub(super) idle_state: DeviceExecutionState,
    /// Why the innocent program does not go on: on the engine that was hung, and on the other one.
    pub(super) errors: [Option<String>; 2],
    /// The other engine completed submissions meanwhile, if it could, and afterwards.
    pub(super) other_goes_on: bool,
    /// How long it was held up there, where that has a limit.
    pub(super) bounds: Vec<Bound>,
    /// Why the innocent program that had nothing queued does not go on.
    pub(super) idle: Option<String>,
    /// Why the system device does not, if it was its packet.
    pub(super) system: Option<String>,
    /// What the engine that was given up changed when it came back, or why it did not.
    pub(super) came_back: Option<String>,
    /// What a new device says of an adapter that was stopped; none where that was not.
    pub(super) refusal: Option<String>,
    /// Why the guilty program cannot go on anew.
    pub(super) again: Option<String>,
    pub(super) records: Vec<Noted>,
}

impl Evidence {
    /// What it was, and each thing that is not as it should be, as a sentence.
    pub(super) fn judge(&self, expected: &Expectation) -> (Outcome, Vec<String>) {
        let mut problems: Vec<_> = match self.ended {
            ended if ended == expected.ends => self.unlike(expected),
            Ok(()) => vec!["it ended by itself before anybody took note".into()],
            Err(WaitError::TimedOut) => vec!["nobody ended it".into()],
            Err(error) => vec![format!(
                "the guilty program's wait ended otherwise: {error}"
            )],
        };
        problems.extend(match expected.outcome {
            Outcome::Recovered | Outcome::NeverHung => self.of_going_on(),
            Outcome::AdapterReset => self.of_adapter_reset(),
            Outcome::AdapterStopped => self.of_stop(),
            // Nothing is like it.
            Outcome::NotRecovered => vec!["nobody expects it".into()],
        });
        let never_hung = expected.outcome == Outcome::NeverHung;
        if self.process_gone == Some(never_hung) {
            problems.push(if never_hung {
                "the process of an engine that never hung is gone".into()
            } else {
                "the process of the engine that was hung is still there".into()
            });
        }
        if self.fault_met == Some(false) {
            problems.push("the driver was not asked for what it was to do wrong".into());
        }
        problems.extend(self.of_bounds());
        let system = self.system.iter();
        problems.extend(system.map(|error| format!("the system device does not go on: {error}")));
        let back = self.came_back.iter();
        problems.extend(back.map(|what| format!("the engine that was given up: {what}")));
        let again = self.again.iter();
        problems.extend(again.map(|error| format!("a new device does not work: {error}")));
        let outcome = if problems.is_empty() {
            expected.outcome
        } else {
            Outcome::NotRecovered
        };
        (outcome, problems)
    }

    /// What is not so: states, records, how many engines were replaced and in how many recoveries.
    fn unlike(&self, expected: &Expectation) -> Vec<String> {
        let mut problems = Vec::new();
        let states = [
            (expected.guilty_state, self.guilty_state, "the guilty"),
            (expected.innocent_state, self.innocent_state, "the innocent"),
        ];
        for (expected, state, device) in states {
            if expected.is_some_and(|expected| expected != state) {
                let problem = format!("{device} device is in another state than it should be");
                problems.push(problem);
            }
        }
        let second = self.second_guilty_state;
        if second.is_some_and(|state| state != DeviceExecutionState::HUNG) {
            problems.push("the second guilty device is in another state than it should be".into());
        }
        if self.records != expected.records {
            problems.push(format!(
                "its records are {} instead of {}",
                listed(&self.records),
                listed(&expected.records)
            ));
        }
        let [most, other] = expected.resets;
        if self.resets[0] > most {
            problems.push(format!(
                "{} engines were replaced instead of {most} at most",
                self.resets[0]
            ));
        }
        if self.resets[1] != other {
            problems.push(format!(
                "engine 1 was replaced {} times instead of {other}",
                self.resets[1]
            ));
        }
        if self.recoveries != expected.recoveries {
            problems.push(format!(
                "there were {} recoveries instead of {}",
                self.recoveries, expected.recoveries
            ));
        }
        problems
    }

    /// What is not so where each innocent program goes on with all that it had.
    fn of_going_on(&self) -> Vec<String> {
        let errors = self.errors.iter().zip(0..);
        let ended = errors.filter_map(|(error, engine)| {
            let error = error.as_ref()?;
            Some(format!(
                "the innocent queue on engine {engine} ended: {error}"
            ))
        });
        let mut problems: Vec<_> = ended.collect();
        if !self.other_goes_on && self.errors[1].is_none() {
            problems.push("engine 1 stood still".into());
        }
        problems.extend(self.of_idle());
        problems
    }

    /// Where it goes on with what it had not queued.
    fn of_adapter_reset(&self) -> Vec<String> {
        let mut problems = self.of_untold();
        problems.extend(self.of_idle());
        problems
    }

    /// Where nothing goes on, and everybody is told so.
    fn of_stop(&self) -> Vec<String> {
        let mut problems = self.of_untold();
        if self.idle.is_none() {
            problems.push("a queue goes on".into());
        }
        if self.refusal.is_none() {
            problems.push("a new device is not refused".into());
        }
        problems
    }

    /// Who lost work and was not told.
    fn of_untold(&self) -> Vec<String> {
        let errors = self.errors.iter().zip(0..);
        let untold = errors.filter(|(error, _)| error.is_none());
        let untold =
            untold.map(|(_, engine)| format!("the innocent queue on engine {engine} goes on"));
        untold.collect()
    }

    /// Who was held up for too long.
    fn of_bounds(&self) -> impl Iterator<Item = String> {
        let broken = self.bounds.iter().filter(|bound| !bound.held);
        broken.map(|bound| {
            format!(
                "the innocent program's fences on engine {} were held up for longer than they may be",
                bound.engine
            )
        })
    }

    /// What is not so of the program that had nothing queued.
    fn of_idle(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if self.idle_state != DeviceExecutionState::ACTIVE {
            problems.push("the idle device is in error".into());
        }
        let idle = self.idle.iter();
        problems.extend(idle.map(|error| format!("the idle program does not go on: {error}")));
        problems
    }
}

fn listed(records: &[Noted]) -> String {
    let record = |(code, [p1, p2, p3, p4]): &Noted| {
        format!("{code:#x} ({p1:#x}, {p2:#x}, {p3:#x}, {p4:#x})")
    };
    let records: Vec<_> = records.iter().map(record).collect();
    if records.is_empty() {
        return String::from("none");
    }
    records.join(", ")
}

#[cfg(test)]
mod tests {
    use super::super::hang::Hang;
    use super::*;
    use crate::os::Record;
    use clap::ValueEnum;

    /// What the queue had completed before.
    const COMPLETED: u64 = 3;

    fn expected(hang: Hang) -> Expectation {
        Expectation::of(hang, COMPLETED)
    }

    /// What is seen of a hang where all is as it should be.
    fn seen(hang: Hang) -> Evidence {
        let expected = expected(hang);
        let lost = Some(String::from("lost"));
        let (goes_on, stopped) = (
            expected.outcome == Outcome::Recovered,
            expected.outcome == Outcome::AdapterStopped,
        );
        let active = DeviceExecutionState::ACTIVE;
        Evidence {
            ended: expected.ends,
            resets: expected.resets,
            recoveries: 1,
            fault_met: Some(true),
            process_gone: Some(true),
            guilty_state: expected.guilty_state.unwrap_or(active),
            second_guilty_state: Some(DeviceExecutionState::HUNG),
            innocent_state: expected.innocent_state.unwrap_or(active),
            idle_state: active,
            errors: if goes_on {
                [None, None]
            } else {
                [lost.clone(), lost.clone()]
            },
            other_goes_on: goes_on,
            bounds: vec![bound(true)],
            idle: lost.clone().filter(|_| stopped),
            system: None,
            came_back: None,
            refusal: lost.filter(|_| stopped),
            again: None,
            records: expected.records,
        }
    }

    fn bound(held: bool) -> Bound {
        Bound {
            engine: 1,
            limit_us: 1_000_000,
            measured_us: 20_000,
            held,
        }
    }

    fn outcome(hang: Hang, change: impl FnOnce(&mut Evidence)) -> (Outcome, usize) {
        let mut evidence = seen(hang);
        change(&mut evidence);
        let (outcome, problems) = evidence.judge(&expected(hang));
        (outcome, problems.len())
    }

    #[test]
    fn each_hang_comes_out_as_it_should() {
        for &hang in Hang::value_variants() {
            assert_eq!(
                outcome(hang, |_| {}),
                (expected(hang).outcome, 0),
                "{hang:?}"
            );
        }
        let outcomes = [
            (Hang::Lost, Outcome::Recovered),
            (Hang::Late, Outcome::Recovered),
            (Hang::FailedReset, Outcome::AdapterReset),
            (Hang::Paging, Outcome::AdapterReset),
            (Hang::WrongAbortedId, Outcome::AdapterStopped),
        ];
        for (hang, outcome) in outcomes {
            assert_eq!(expected(hang).outcome, outcome, "{hang:?}");
        }
    }

    type Change = fn(&mut Evidence);

    fn assert_problems(hang: Hang, bad: &[Change]) {
        for (number, change) in bad.iter().enumerate() {
            let found = outcome(hang, change);
            assert_eq!(found, (Outcome::NotRecovered, 1), "{hang:?} {number}");
        }
    }

    /// What is wrong of each hang.
    const ALWAYS: [Change; 9] = [
        |seen| seen.came_back = Some("its fence has another value".into()),
        |seen| seen.ended = Err(WaitError::TimedOut),
        |seen| seen.resets[0] += 1,
        |seen| seen.recoveries = 2,
        |seen| seen.fault_met = Some(false),
        |seen| seen.process_gone = Some(false),
        |seen| seen.again = Some("lost".into()),
        |seen| seen.bounds.push(bound(false)),
        |seen| seen.records.push((Record::VIDEO_TDR_FAILURE, [0; 4])),
    ];

    /// Kills `an-innocent-that-ends-is-no-problem` and `a-broken-limit-is-no-problem`.
    #[test]
    fn each_thing_that_is_not_as_it_should_be_is_said() {
        use Outcome::Recovered;
        let stall = |change: Change| outcome(Hang::Stall, change);
        assert_eq!(stall(|seen| seen.resets[0] = 0), (Recovered, 0));
        assert_eq!(stall(|seen| seen.process_gone = None), (Recovered, 0));
        for &hang in Hang::value_variants() {
            assert_problems(hang, &ALWAYS);
        }
        let of_stall: [Change; 12] = [
            |seen| seen.ended = Ok(()),
            |seen| seen.ended = Err(WaitError::AdapterStopped),
            |seen| seen.resets[1] = 1,
            |seen| seen.guilty_state = DeviceExecutionState::ACTIVE,
            |seen| seen.second_guilty_state = Some(DeviceExecutionState::ACTIVE),
            |seen| seen.innocent_state = DeviceExecutionState::HUNG,
            |seen| seen.idle_state = DeviceExecutionState::RESET,
            |seen| seen.idle = Some("lost".into()),
            |seen| seen.errors[0] = Some("lost".into()),
            |seen| seen.errors[1] = Some("lost".into()),
            |seen| seen.other_goes_on = false,
            |seen| seen.records[0].1[3] = 1,
        ];
        assert_problems(Hang::Stall, &of_stall);
    }

    /// Kills `a-recovery-is-called-a-reset-of-the-adapter`.
    #[test]
    fn an_adapter_reset_is_not_a_recovery() {
        let bad: [Change; 8] = [
            |seen| seen.records = expected(Hang::Lost).records,
            |seen| seen.records[0].1[2] = Record::PREEMPT_TIMEOUT,
            |seen| seen.innocent_state = DeviceExecutionState::ACTIVE,
            |seen| seen.errors[1] = None,
            |seen| seen.idle_state = DeviceExecutionState::RESET,
            |seen| seen.idle = Some("lost".into()),
            |seen| seen.resets[1] = 0,
            |seen| seen.system = Some("lost".into()),
        ];
        for hang in [Hang::FailedReset, Hang::Paging] {
            assert_problems(hang, &bad);
        }
        let hung: Change = |seen| seen.guilty_state = DeviceExecutionState::HUNG;
        assert_eq!(outcome(Hang::FailedReset, hung).1, 0);
        assert_eq!(outcome(Hang::Paging, hung).1, 1, "it was not its packet");
    }

    /// Kills `a-recovery-is-called-a-stop`.
    #[test]
    fn a_stop_is_not_a_recovery() {
        let bad: [Change; 7] = [
            |seen| seen.ended = Err(WaitError::DeviceLost),
            |seen| seen.records = expected(Hang::Lost).records,
            |seen| seen.records[0].1[2] = COMPLETED + 1,
            |seen| seen.errors[0] = None,
            |seen| seen.errors[1] = None,
            |seen| seen.idle = None,
            |seen| seen.refusal = None,
        ];
        assert_problems(Hang::WrongAbortedId, &bad);
    }

    #[test]
    fn a_stall_that_the_driver_cuts_never_hung() {
        let cut = |change: Change| {
            let mut cut = Evidence {
                ended: Ok(()),
                resets: [0, 0],
                recoveries: 0,
                process_gone: Some(false),
                guilty_state: DeviceExecutionState::ACTIVE,
                records: Vec::new(),
                ..seen(Hang::Stall)
            };
            change(&mut cut);
            let (outcome, problems) = cut.judge(&Expectation::never_hung());
            (outcome, problems.len())
        };
        assert_eq!(cut(|_| {}), (Outcome::NeverHung, 0));
        let reset = cut(|seen| seen.resets[0] = 1);
        assert_eq!(reset, (Outcome::NotRecovered, 1));
    }
}
