//! The matrix of waits that the peers' tests of sync objects go through: one object or several, any or all, what has
//! been submitted and signalled. A case's name says all of it.
#![allow(dead_code, reason = "each test file uses a part")]

use super::bench::{Bench, LONG, finish, until};
use super::syncobj::{Jobs, Kind, Needs, Sleeper, Syncobj, wait};
use native_fence::{CommandList, EventHandle, Fence, KernelQueue, WaitManyError};
use std::time::Duration;

/// What has become of an object's point when the wait begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Unsubmitted,
    Submitted,
    Signaled,
}

/// Long enough to sleep.
const SHORT: Duration = Duration::from_millis(2);

/// A wait, by its name: `[etime-](single|multi)-wait[-all][-for-submit][-available]`, and the states that its objects
/// are in. A wait for what nobody has submitted is no mistake here, so `for-submit` changes nothing of how it ends: what
/// it adds is that a wait which lasts is ended by what is submitted during it. `available` asks for less than the point:
/// that the job which signals it was submitted.
#[derive(Debug)]
pub(crate) struct WaitCase<'a> {
    name: &'a str,
    needs: Needs,
    is_for_submit: bool,
    is_available: bool,
    states: Vec<State>,
}

impl<'a> WaitCase<'a> {
    pub(crate) fn named(name: &'a str) -> Self {
        let of = name.strip_prefix("etime-").unwrap_or(name);
        let (number, rest) = of.split_once("-wait").expect("a wait's name");
        let (mut rest, copies) = match number {
            "single" => (rest, 1),
            "multi" => (rest, 2),
            _ => panic!("{name}: {number}"),
        };
        let mut has = |word: &str| match rest.strip_prefix(word) {
            Some(after) => {
                rest = after;
                true
            }
            None => false,
        };
        let needs = if has("-all") { Needs::All } else { Needs::Any };
        let is_for_submit = has("-for-submit");
        let is_available = has("-available");
        let states = [
            ("-unsubmitted", State::Unsubmitted),
            ("-submitted", State::Submitted),
            ("-signaled", State::Signaled),
        ];
        let states = states.into_iter().filter(|(word, _)| has(word));
        let states: Vec<_> = states.map(|(_, state)| state).collect();
        assert_eq!(rest, "", "{name}");
        assert!(!states.is_empty(), "{name}");
        Self {
            name,
            needs,
            is_for_submit,
            is_available,
            states: states.repeat(copies),
        }
    }

    fn is_there(&self, state: State) -> bool {
        match state {
            State::Unsubmitted => false,
            State::Submitted => self.is_available,
            State::Signaled => true,
        }
    }

    /// How it ends, in no time or in a short one.
    fn expected(&self) -> Result<usize, WaitManyError> {
        let mut states = self.states.iter();
        let first = match self.needs {
            Needs::Any => states.position(|state| self.is_there(*state)),
            Needs::All => states.all(|state| self.is_there(*state)).then_some(0),
        };
        first.ok_or(WaitManyError::TimedOut)
    }

    /// Its objects in this state.
    fn of(&self, state: State) -> impl Iterator<Item = usize> {
        let states = self.states.iter().enumerate();
        states.filter_map(move |(at, is)| (*is == state).then_some(at))
    }

    /// Holds the case's name to what its states say.
    pub(crate) fn says_how_it_ends(&self) -> bool {
        self.name.starts_with("etime-") == self.expected().is_err()
    }

    /// Makes the objects, and waits for a point of each.
    pub(crate) fn run(&self, bench: &Bench, kind: Kind, point: impl Fn(usize) -> u64) {
        if self.is_available {
            return self.run_available(bench, point);
        }
        let (gate, mut jobs) = (Syncobj::new(bench, kind), Jobs::new(bench, kind));
        let mut held = Jobs::new(bench, kind);
        let objects = Syncobj::several(bench, kind, self.states.len());
        let points = objects
            .iter()
            .enumerate()
            .map(|(at, object)| (object, point(at)));
        let points: Vec<_> = points.collect();
        for (state, (object, at)) in self.states.iter().zip(&points) {
            match state {
                State::Unsubmitted => {}
                State::Submitted => held.submit_behind(&[(&gate, 1)], object, *at),
                State::Signaled => {
                    jobs.submit(object, *at);
                    until("the job is done", || object.point() == *at);
                }
            }
        }
        self.wait(&points, kind);
        let reached = self.states.iter().zip(&points);
        for (state, (object, at)) in reached {
            let is = if *state == State::Signaled { *at } else { 0 };
            assert_eq!(object.point(), is, "{}", self.name);
        }
        let submit = |at: usize| {
            let (object, point) = points[at];
            jobs.submit(object, point);
        };
        self.end_by_submitting(&points, submit, || gate.signal(1));
    }

    /// The same, where the objects wait for what kernel-mode queues signal at submission (PR-17).
    fn run_available(&self, bench: &Bench, point: impl Fn(usize) -> u64) {
        let create = |at| Job {
            queue: bench.device.create_kernel_queue().unwrap(),
            submitted: bench.fence(0),
            done: bench.fence(0),
            point: point(at),
        };
        let mut jobs: Vec<_> = (0..self.states.len()).map(create).collect();
        for at in self.of(State::Signaled) {
            jobs[at].submit();
            jobs[at].done.wait(jobs[at].point, LONG).unwrap();
        }
        bench.initialised(0);
        bench.until_parked();
        let gate = bench.engine.close();
        for at in self.of(State::Submitted) {
            jobs[at].submit();
            assert_eq!(jobs[at].done.current_value(), 0, "{}", self.name);
        }
        let objects = jobs
            .iter()
            .map(|job| Syncobj::Native(job.submitted.clone()));
        let objects: Vec<_> = objects.collect();
        let points = objects
            .iter()
            .zip(&jobs)
            .map(|(object, job)| (object, job.point));
        let points: Vec<_> = points.collect();
        self.wait(&points, Kind::Native);
        // The engine stands: only what is submitted ends a wait.
        self.end_by_submitting(&points, |at| jobs[at].submit(), || {});
        drop(gate);
        for job in &mut jobs {
            finish(&mut job.queue);
        }
    }

    /// A wait for submissions that lasts ends with them. One for any needs one job, of the last object that has none, so
    /// that it says which; if all have theirs it is the first that is let go. One for all needs each.
    fn end_by_submitting(
        &self,
        points: &[(&Syncobj, u64)],
        submit: impl FnMut(usize),
        let_go: impl FnOnce(),
    ) {
        if !self.is_for_submit || self.expected().is_ok() {
            return;
        }
        let sleeper = Sleeper::at(points, self.needs);
        let missing = self.of(State::Unsubmitted);
        match self.needs {
            Needs::Any => {
                let last = missing.last();
                last.map_or_else(let_go, submit);
                let ended = sleeper.join();
                let which = last.map_or(ended.is_ok(), |last| ended == Ok(last));
                assert!(which, "{}: {ended:?}", self.name);
            }
            Needs::All => {
                missing.for_each(submit);
                let_go();
                assert_eq!(sleeper.join(), Ok(0), "{}", self.name);
            }
        }
    }

    fn wait(&self, points: &[(&Syncobj, u64)], kind: Kind) {
        let expected = self.expected();
        let and_more = expected.is_ok().then_some(LONG);
        for timeout in [Duration::ZERO, SHORT].into_iter().chain(and_more) {
            let ended = wait(points, self.needs, timeout);
            assert_eq!(ended, expected, "{}, {kind:?}, {timeout:?}", self.name);
        }
        // And without a time-out, as far as one thread can see it.
        let event = EventHandle::new().unwrap();
        let waits = points
            .iter()
            .map(|(object, at)| object.wait_event(*at, &event));
        let waits: Vec<_> = waits.collect();
        let there = waits.iter().map(|wait| wait.outcome() == Some(Ok(())));
        let states = self.states.iter().map(|state| self.is_there(*state));
        assert!(there.eq(states), "{}, {kind:?}", self.name);
    }
}

/// A job of a kernel-mode queue, of which it is told when it is submitted and when it is done.
struct Job {
    queue: KernelQueue,
    submitted: Fence,
    done: Fence,
    point: u64,
}

impl Job {
    fn submit(&mut self) {
        let Self {
            queue,
            submitted,
            done,
            point,
        } = self;
        queue.record(CommandList::new().nop()).unwrap();
        queue
            .signal_native_at_submission(submitted, *point)
            .unwrap();
        queue.signal_native(done, *point).unwrap();
    }
}
