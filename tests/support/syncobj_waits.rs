//! Waits that last while something happens: the stories that the peers' tests of binary and of timeline sync objects
//! share.
#![allow(dead_code, reason = "each test file uses a part")]

use super::bench::{Bench, LONG, on_every_bench, try_until, until};
use super::engines::Random;
use super::syncobj::{Jobs, Kind, Needs, Sleeper, Syncobj, wait};
use native_fence::WaitManyError;
use native_fence::gpu::NodePolicy;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How the suites say what a wait is for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Story {
    pub(crate) needs: Needs,
    /// Its jobs may be submitted when the wait has begun; else they are there before.
    pub(crate) for_submit: bool,
}

impl Story {
    pub(crate) const ANY: Self = Self {
        needs: Needs::Any,
        for_submit: false,
    };
    pub(crate) const ALL: Self = Self {
        needs: Needs::All,
        for_submit: false,
    };

    pub(crate) const fn for_submit(self) -> Self {
        Self {
            for_submit: true,
            ..self
        }
    }

    /// A waiter sleeps; what it waits for comes later, from another thread: the signal, or the job too.
    pub(crate) fn delayed(self, kinds: &[Kind], point: u64) {
        on_every_bench(NodePolicy::default(), |bench| {
            for kind in kinds {
                let [gate, object] = [0, 0].map(|_| Syncobj::new(bench, *kind));
                let mut jobs = Jobs::new(bench, *kind);
                if !self.for_submit {
                    jobs.submit_behind(&[(&gate, 1)], &object, point);
                }
                let sleeper = Sleeper::at(&[(&object, point)], self.needs);
                assert_eq!(object.point(), 0);
                std::thread::scope(|scope| {
                    scope.spawn(|| {
                        if self.for_submit {
                            jobs.submit(&object, point);
                        } else {
                            gate.signal(1);
                        }
                    });
                });
                assert_eq!(sleeper.join(), Ok(0), "{kind:?}");
                assert_eq!(object.point(), point);
            }
        });
    }

    /// A waiter keeps what it had of the first object, which is reset during the wait and gets a job that never comes
    /// to its signal; the second one ends it.
    pub(crate) fn snapshot(self, kinds: &[Kind], point: u64) {
        on_every_bench(NodePolicy::default(), |bench| {
            for kind in kinds {
                let objects = Syncobj::several(bench, *kind, 2);
                let gates = Syncobj::several(bench, *kind, 3);
                let mut jobs: Vec<_> = (0..3).map(|_| Jobs::new(bench, *kind)).collect();
                if !self.for_submit {
                    for at in 0..2 {
                        jobs[at].submit_behind(&[(&gates[at], 1)], &objects[at], point);
                    }
                }
                let points = [(&objects[0], point), (&objects[1], point)];
                let sleeper = Sleeper::at(&points, self.needs);
                match (self.needs, self.for_submit) {
                    (Needs::All, false) => gates[0].signal(1),
                    (Needs::All, true) => jobs[0].submit(&objects[0], point),
                    (Needs::Any, false) => {}
                    (Needs::Any, true) => {
                        jobs[0].submit_behind(&[(&gates[0], 1)], &objects[0], point);
                    }
                }
                if self.needs == Needs::All {
                    until("the first has come", || objects[0].point() == point);
                }
                objects[0].reset();
                jobs[2].submit_behind(&[(&gates[2], 1)], &objects[0], point);
                sleeper.until_asleep();
                assert!(!sleeper.is_finished());
                if self.for_submit {
                    jobs[1].submit(&objects[1], point);
                } else {
                    gates[1].signal(1);
                }
                let ended = match self.needs {
                    Needs::Any => 1,
                    Needs::All => 0,
                };
                assert_eq!(sleeper.join(), Ok(ended), "{kind:?}");
                assert_eq!(objects[0].point(), 0);
            }
        });
    }

    /// Unix signals hail upon a waiter whose points never come: it waits until its time is over, and does not begin anew
    /// at each of them, or it would wait for as long as they come, which is 400 times its time.
    pub(crate) fn interrupted(self, kinds: &[Kind], point: u64) {
        const TIMEOUT: Duration = Duration::from_millis(50);
        on_every_bench(NodePolicy::default(), |bench| {
            for kind in kinds {
                let objects = Syncobj::several(bench, *kind, 2);
                let gate = Syncobj::new(bench, *kind);
                let mut jobs = Jobs::new(bench, *kind);
                for object in &objects {
                    jobs.submit_behind(&[(&gate, 1)], object, point);
                }
                let points = [(&objects[0], point), (&objects[1], point)];
                try_until("signals hit a waiter", |_| {
                    let begun = Instant::now();
                    let sleeper = Sleeper::at_for(&points, self.needs, TIMEOUT);
                    let hit = hail(|| sleeper.is_finished(), sleeper.number);
                    assert!(
                        sleeper.is_finished(),
                        "{kind:?}: {hit} signals, and it waits on"
                    );
                    assert_eq!(sleeper.join(), Err(WaitManyError::TimedOut), "{kind:?}");
                    assert!(begun.elapsed() >= TIMEOUT);
                    hit > 0
                });
                // And one that they come for does not miss them.
                let sleeper = Sleeper::at_for(&points, self.needs, LONG);
                let mut is_open = false;
                let is_over = || {
                    if !std::mem::replace(&mut is_open, true) {
                        gate.signal(1);
                    }
                    sleeper.is_finished()
                };
                hail(is_over, sleeper.number);
                assert!(sleeper.join().is_ok(), "{kind:?}");
            }
        });
    }

    /// Eight objects go through jobs, signals and resets by chance while a thread waits for any of them, which tells
    /// the one that came first, or for all, each of which must have come once.
    pub(crate) fn complex(self, kinds: &[Kind], point: u64) {
        on_every_bench(NodePolicy::default(), |bench| {
            for (kind, seed) in kinds
                .iter()
                .flat_map(|kind| (0..6).map(move |seed| (kind, seed)))
            {
                self.shuffle(bench, *kind, point, Random(seed));
            }
        });
    }

    fn shuffle(self, bench: &Bench, kind: Kind, point: u64, mut random: Random) {
        const OBJECTS: usize = 8;
        let seed = random.clone();
        let create = |_| Shuffled {
            object: Syncobj::new(bench, kind),
            gate: Syncobj::new(bench, kind),
            jobs: Jobs::new(bench, kind),
            submitted: 0,
            let_go: 0,
        };
        let mut all: Vec<Shuffled> = (0..OBJECTS).map(create).collect();
        if !self.for_submit {
            for one in &mut all {
                one.submit(point);
            }
        }
        let points: Vec<_> = all.iter().map(|one| (one.object.clone(), point)).collect();
        let points: Vec<_> = points.iter().map(|(object, at)| (object, *at)).collect();
        let sleeper = Sleeper::at(&points, self.needs);
        let mut come = [false; OBJECTS];
        let is_over = |come: &[bool]| match self.needs {
            Needs::Any => come.contains(&true),
            Needs::All => !come.contains(&false),
        };
        // For any, jobs and resets come first for a while: else it is over at once.
        let mut first = 0;
        let mut steps = 0;
        while !is_over(&come) {
            assert!(!sleeper.is_finished(), "{kind:?}, {seed:?}");
            steps += 1;
            let at = random.below(OBJECTS as u64) as usize;
            match random.below(4) {
                0 => all[at].submit(point),
                1 => all[at].object.reset(),
                2 => {
                    all[at].object.reset();
                    all[at].submit(point);
                }
                _ if self.needs == Needs::Any && steps < 16 => {}
                _ => {
                    all[at].signal(point);
                    (first, come[at]) = (at, true);
                }
            }
        }
        let ended = match self.needs {
            Needs::Any => first,
            Needs::All => 0,
        };
        assert_eq!(sleeper.join(), Ok(ended), "{kind:?}, {seed:?}");
    }
}

/// A wait for a point of several objects, which were signalled and reset, times out, be it for any or for all.
pub(crate) fn reset_signaled(kinds: &[Kind], count: usize, point: u64) {
    on_every_bench(NodePolicy::default(), |bench| {
        for kind in kinds {
            let objects = Syncobj::several(bench, *kind, count);
            let points: Vec<_> = objects.iter().map(|object| (object, point)).collect();
            for object in &objects {
                object.signal(point);
            }
            assert_eq!(wait(&points, Needs::All, Duration::ZERO), Ok(0));
            objects.iter().for_each(Syncobj::reset);
            for needs in [Needs::Any, Needs::All] {
                for timeout in [Duration::ZERO, Duration::from_millis(1)] {
                    let ended = wait(&points, needs, timeout);
                    assert_eq!(ended, Err(WaitManyError::TimedOut), "{kind:?}");
                }
            }
        }
    });
}

/// A reset is nothing to a wait that lasts: what is signalled later ends it.
pub(crate) fn reset_during_wait(kinds: &[Kind], point: u64) {
    on_every_bench(NodePolicy::default(), |bench| {
        for kind in kinds {
            let (object, mut jobs) = (Syncobj::new(bench, *kind), Jobs::new(bench, *kind));
            let sleeper = Sleeper::at(&[(&object, point)], Needs::Any);
            object.reset();
            sleeper.until_asleep();
            assert!(!sleeper.is_finished());
            jobs.submit(&object, point);
            assert_eq!(sleeper.join(), Ok(0), "{kind:?}");
        }
    });
}

struct Shuffled {
    object: Syncobj,
    /// What its jobs wait for, one after the other.
    gate: Syncobj,
    jobs: Jobs,
    submitted: u64,
    let_go: u64,
}

impl Shuffled {
    fn submit(&mut self, point: u64) {
        self.submitted += 1;
        let gate = (&self.gate, self.submitted);
        self.jobs.submit_behind(&[gate], &self.object, point);
    }

    /// By its next job, or by the host.
    fn signal(&mut self, point: u64) {
        // It may stand there from before; then it was not reset.
        if self.let_go == self.submitted || self.object.point() == point {
            return self.object.signal(point);
        }
        self.let_go += 1;
        self.gate.signal(self.let_go);
        until("the job signals", || self.object.point() == point);
    }
}

/// Hails Unix signals upon a thread until `is_over`, for [`LONG`] at most; gives how many.
fn hail(mut is_over: impl FnMut() -> bool, thread: rustix::thread::Pid) -> u64 {
    take_signals();
    let (begun, mut hit) = (Instant::now(), 0);
    while !is_over() && begun.elapsed() < LONG {
        // SAFETY: it reads three numbers; the thread is of this process, and one that has ended gets nothing.
        let sent = unsafe {
            libc::syscall(
                libc::SYS_tgkill,
                libc::c_long::from(rustix::process::getpid().as_raw_nonzero().get()),
                libc::c_long::from(thread.as_raw_nonzero().get()),
                libc::c_long::from(libc::SIGUSR1),
            )
        };
        hit += u64::from(sent == 0);
        std::thread::yield_now();
    }
    hit
}

/// Has SIGUSR1 interrupt calls of the system, and do nothing else.
fn take_signals() {
    static ONCE: Once = Once::new();
    static TAKEN: AtomicBool = AtomicBool::new(false);
    extern "C" fn handler(_: libc::c_int) {
        TAKEN.store(true, Ordering::Relaxed);
    }
    ONCE.call_once(|| {
        // SAFETY: zeroes are a valid action: no flags, no mask.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = handler as *const () as usize;
        // SAFETY: the handler does what a handler may, and lives as long as the program.
        let set =
            unsafe { libc::sigaction(libc::SIGUSR1, &raw const action, std::ptr::null_mut()) };
        assert_eq!(set, 0);
    });
}
