//! How finely an engine is preempted (PR-03): a request in the middle of each kind of packet.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
}

use native_fence::gpu::NodePolicy;
use native_fence::{Allocation, CommandList, Fence, HwContext, HwQueue};
use std::time::Duration;
use support::bench::{Bench, LONG, on_every_bench, try_until, until};

/// Nothing but a request ends a slice within a test; a driver that ends loops does, more seldom than a packet
/// of these ends by itself.
fn endless() -> NodePolicy {
    NodePolicy {
        slice_time: Duration::from_secs(60),
        idle_window: Duration::from_secs(60),
        ..NodePolicy::default()
    }
}

/// Packets of a run, of kinds that are short and of short transfers, and bytes of a long one: tens of times longer than a request
/// takes to be answered.
const RUN: u64 = 40_000;
const TRANSFERS: u64 = 1000;
const BYTES: u64 = 32 << 20;
const RING: u64 = 1 << 16;

#[derive(Clone, Copy, Debug)]
enum Kind {
    /// A run of them.
    Nop,
    /// One that stands at its wait.
    Wait,
    /// A run of them, each of a value that is reached.
    PassedWait,
    /// A run of them.
    Signal,
    /// A run of them.
    Timestamp,
    /// One.
    Fill,
    /// One.
    Copy,
}

impl Kind {
    const ALL: [Self; 7] = [
        Self::Nop,
        Self::Wait,
        Self::PassedWait,
        Self::Signal,
        Self::Timestamp,
        Self::Fill,
        Self::Copy,
    ];
}

/// A context with a queue, and what its packets name.
struct Scene {
    context: HwContext,
    queue: HwQueue,
    gate: Fence,
    passed: Fence,
    from: Allocation,
    to: Allocation,
}

impl Scene {
    fn of(bench: &Bench) -> Self {
        let context = bench.device.create_context(0, 1).unwrap();
        let queue = context.create_hw_queue(RING).unwrap();
        let [from, to] = [0, 1].map(|_| bench.device.create_allocation(BYTES).unwrap());
        Self {
            context,
            queue,
            gate: bench.fence(0),
            passed: bench.fence(0),
            from,
            to,
        }
    }

    /// Packets of a kind, of the attempt with this number.
    fn list(&self, kind: Kind, attempt: u64) -> CommandList {
        let mut list = CommandList::new();
        let base = self.passed.current_value();
        match kind {
            Kind::Nop => (0..RUN).for_each(|_| {
                list.nop();
            }),
            Kind::Wait => {
                list.signal(&self.passed, base + 1)
                    .wait(&self.gate, attempt)
                    .signal(&self.passed, base + 2);
            }
            Kind::PassedWait => (0..RUN).for_each(|_| {
                list.wait(&self.passed, base);
            }),
            Kind::Signal => (1..=RUN).for_each(|value| {
                list.signal(&self.passed, base + value);
            }),
            Kind::Timestamp => (0..TRANSFERS).for_each(|word| {
                list.timestamp(&self.to, 8 * word);
            }),
            Kind::Fill => {
                list.fill(&self.from, 0..BYTES, attempt);
            }
            Kind::Copy => {
                list.copy(&self.from, 0..BYTES, &self.to, 0);
            }
        }
        list
    }

    fn word(of: &Allocation, at: u64) -> u64 {
        let mut word = [0];
        of.read(at, &mut word);
        word[0]
    }

    /// Asks in the middle of it; whether the answer came before the end. What it is to do is done when it has
    /// gone on, once.
    fn is_answered_before_the_end(&mut self, kind: Kind, attempt: u64) -> bool {
        self.to.write(0, &[0]);
        if matches!(kind, Kind::Copy) {
            self.from.write(0, &vec![attempt; BYTES as usize / 8]);
        }
        let (base, first) = (self.passed.current_value(), self.queue.read_index());
        let end = self.queue.submit(&self.list(kind, attempt)).unwrap();
        until("the engine is in the midst of it", || match kind {
            Kind::Nop | Kind::PassedWait => self.queue.read_index() > first,
            Kind::Wait | Kind::Signal => self.passed.current_value() > base,
            Kind::Timestamp => Self::word(&self.to, 0) != 0,
            Kind::Fill => Self::word(&self.from, 0) == attempt,
            Kind::Copy => Self::word(&self.to, 0) == attempt,
        });
        self.context.suspend(LONG).unwrap();
        let progress = self.queue.progress_fence();
        let is_before = progress.current_value() < end;
        let index = self.queue.read_index();
        if matches!(kind, Kind::Wait) {
            assert_eq!(index, first + 1, "it stands at its wait");
            self.gate.signal(attempt).unwrap();
        }
        let values = (progress.current_value(), self.passed.current_value());
        self.context.resume();
        progress.wait(end, LONG).unwrap();
        if is_before {
            assert!(values.0 < end && index < self.queue.read_index());
        }
        let expected = match kind {
            Kind::Wait => base + 2,
            Kind::Signal => base + RUN,
            _ => base,
        };
        assert_eq!(self.passed.current_value(), expected);
        assert!(values.1 <= expected);
        let whole = |memory: &Allocation| {
            let mut words = vec![0; BYTES as usize / 8];
            memory.read(0, &mut words);
            words.iter().all(|word| *word == attempt)
        };
        match kind {
            Kind::Fill => assert!(whole(&self.from)),
            Kind::Copy => assert!(whole(&self.to)),
            Kind::Timestamp => assert_ne!(Self::word(&self.to, 8 * (TRANSFERS - 1)), 0),
            Kind::Nop | Kind::Wait | Kind::PassedWait | Kind::Signal => {}
        }
        is_before
    }
}

/// PR-03: a request in the middle of a packet of each kind, or of a run of them where each is short, is
/// acknowledged before its end, by values, index and progress; then it goes on to the right end. An attempt in
/// which the engine was done before it was asked counts for nothing.
///
/// Kills `a-suspension-asks-for-no-end`.
#[test]
fn pr_03_a_request_in_the_middle_of_a_packet_is_answered_before_its_end() {
    on_every_bench(endless(), |bench| {
        let mut scene = Scene::of(bench);
        for kind in Kind::ALL {
            let what = format!("{kind:?} is preempted before its end");
            try_until(&what, |attempt| {
                scene.is_answered_before_the_end(kind, attempt)
            });
        }
    });
}
