//! What the kunit tests of DRM's scheduler assert with a mock of the hardware, of kernel-mode queues on engines that go
//! on when the test lets them. An entity is a queue, a job a command, a job's dependency a wait for a fence. Jobs that
//! hang or are cancelled are in `port_drm_scheduler_faults.rs`, loads in `port_drm_scheduler_load.rs`;
//! `tests/ports/README.md` has the table.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
    pub(crate) mod engines;
}

use native_fence::gpu::NodePolicy;
use native_fence::kmd::Interrupt;
use native_fence::{
    Allocation, CommandList, HwContext, HwQueueOptions, KernelQueue, MonitoredFence, SubmitError,
    WaitError,
};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;
use support::bench::{
    Bench, Call, Ended, LONG, finish, on_every_bench, on_monitored_benches, until, words,
};
use support::engines::Random;

fn queue(bench: &Bench) -> KernelQueue {
    bench.device.create_kernel_queue().unwrap()
}

/// Commands that the engine was handed.
fn scheduled(bench: &Bench) -> usize {
    bench
        .spy
        .count(|call| matches!(call, Call::SubmitCommand { .. }))
}

/// Commands that it told the completion of.
fn completed(bench: &Bench) -> usize {
    let interrupts = bench.spy.interrupts().into_iter();
    let told = interrupts.filter(|told| matches!(told, Interrupt::DmaCompleted { .. }));
    told.count()
}

/// Waits until nothing is left of what came with the queues, and forgets it.
fn begin(bench: &Bench) {
    bench.initialised(0);
    bench.until_parked();
    bench.spy.take();
}

/// A job is scheduled at once, and finished when the hardware has gone on, and not before.
#[test]
fn drm_sched_basic_submit() {
    on_every_bench(NodePolicy::default(), |bench| {
        let mut entity = queue(bench);
        begin(bench);
        let gate = bench.engine.close();
        let job = entity.submit(CommandList::new().nop()).unwrap();
        assert_eq!(scheduled(bench), 1);
        let early = entity.progress_fence().wait(job, Duration::from_millis(10));
        assert_eq!(early, Err(WaitError::TimedOut));
        assert_eq!(completed(bench), 0);
        drop(gate);
        assert_eq!(entity.progress_fence().wait(job, LONG), Ok(()));
        until("its end is told", || completed(bench) == 1);
        assert_eq!(scheduled(bench), 1);
    });
}

/// Jobs that pass a word on, each from its place to the next, or that each store to their own.
struct Jobs {
    words: Allocation,
    done: MonitoredFence,
    submitted: u64,
    are_chained: bool,
}

impl Jobs {
    const DEPTH: u64 = 100;

    fn new(bench: &Bench, are_chained: bool) -> Self {
        let words = bench
            .device
            .create_allocation(8 * (Self::DEPTH + 1))
            .unwrap();
        words.write(0, &[7]);
        Self {
            words,
            done: bench.device.create_monitored_fence(0).unwrap(),
            submitted: 0,
            are_chained,
        }
    }

    /// Behind the one before, if they are chained.
    fn submit(&mut self, entity: &mut KernelQueue) {
        let at = 8 * self.submitted;
        self.submitted += 1;
        let mut list = CommandList::new();
        if self.are_chained {
            entity.wait(&self.done, self.submitted - 1).unwrap();
            list.copy(&self.words, at..at + 8, &self.words, at + 8);
        } else {
            list.fill(&self.words, at + 8..at + 16, 7);
        }
        entity.record(&list).unwrap();
        if self.are_chained {
            entity.signal(&self.done, self.submitted).unwrap();
        }
        entity.flush().unwrap();
    }

    /// How many have stored, from the first on.
    fn finished(&self) -> u64 {
        let words = words(&self.words);
        let stored = words[1..].iter().take_while(|word| **word == 7);
        stored.count() as u64
    }
}

/// A hundred jobs of one entity or of four, independent or each behind the one before: all finish, each once.
#[test]
fn drm_sched_basic_test() {
    let cases = [
        ("A queue of jobs in a single entity", 1, false),
        (
            "A chain of dependent jobs across multiple entities",
            1,
            true,
        ),
        ("Multiple independent job queues", 4, false),
        ("Multiple inter-dependent job queues", 4, true),
    ];
    on_monitored_benches(1, NodePolicy::default(), |bench| {
        for (name, number, are_chained) in cases {
            let mut entities: Vec<_> = (0..number).map(|_| queue(bench)).collect();
            let before = bench.initialised(0);
            let mut jobs = Jobs::new(bench, are_chained);
            for job in 0..Jobs::DEPTH as usize {
                jobs.submit(&mut entities[job % number]);
            }
            entities.iter_mut().for_each(finish);
            assert_eq!(jobs.finished(), Jobs::DEPTH, "{name}");
            until("all ends are told", || {
                bench.adapter.os().submission_ids(0) == (before + Jobs::DEPTH, before + Jobs::DEPTH)
            });
        }
    });
}

/// Entities go while half of their jobs are queued, each behind the one before: what was not handed to the engine is
/// never executed, whoever waits for it is told, and others go on.
///
/// Kills `a-wait-that-lasts-goes-to-the-end` and `a-dropped-queue-tells-nobody`.
#[test]
fn drm_sched_basic_entity_cleanup() {
    on_monitored_benches(1, NodePolicy::default(), |bench| {
        let mut entities = [(); 4].map(|()| queue(bench));
        let mut jobs = Jobs::new(bench, true);
        let gate = bench.device.create_monitored_fence(0).unwrap();
        let half = Jobs::DEPTH / 2;
        for job in 0..Jobs::DEPTH {
            let entity = &mut entities[job as usize % 4];
            if job == half {
                entity.wait(&gate, 1).unwrap();
            }
            jobs.submit(entity);
        }
        jobs.done.wait(half, LONG).unwrap();
        let last = entities
            .each_ref()
            .map(|entity| entity.progress_fence().clone());
        drop(entities);
        for progress in last {
            let ended = progress.wait(Jobs::DEPTH, LONG);
            assert!(
                matches!(ended, Err(WaitError::QueueStopped(_) | WaitError::Closed)),
                "{ended:?}"
            );
        }
        gate.signal(1).unwrap();
        let mut other = queue(bench);
        other.submit(CommandList::new().nop()).unwrap();
        finish(&mut other);
        assert_eq!((jobs.finished(), jobs.done.current_value()), (half, half));
    });
}

/// Sixteen threads submit eight jobs each: all are scheduled while the hardware stands; when it goes on, exactly so
/// many complete.
#[test]
fn drm_sched_parallel_submit_test() {
    const WORKERS: usize = 16;
    const JOBS: usize = 8;
    on_every_bench(NodePolicy::default(), |bench| {
        let mut entities: Vec<_> = (0..WORKERS).map(|_| queue(bench)).collect();
        begin(bench);
        let gate = bench.engine.close();
        thread::scope(|scope| {
            for entity in &mut entities {
                scope.spawn(|| {
                    for _ in 0..JOBS {
                        entity.submit(CommandList::new().nop()).unwrap();
                    }
                });
            }
        });
        assert_eq!((scheduled(bench), completed(bench)), (WORKERS * JOBS, 0));
        drop(gate);
        entities.iter_mut().for_each(finish);
        until("all ends are told", || completed(bench) >= WORKERS * JOBS);
        bench.until_parked();
        assert_eq!(
            (scheduled(bench), completed(bench)),
            (WORKERS * JOBS, WORKERS * JOBS)
        );
    });
}

/// Sixteen threads keep eight jobs under way each, of their own lengths, and submit the next when the oldest has
/// finished: all finish.
#[test]
fn drm_sched_interleaved_submit_test() {
    const WORKERS: u64 = 16;
    const WINDOW: u64 = 8;
    on_every_bench(NodePolicy::default(), |bench| {
        let target = bench.device.create_allocation(64 * WORKERS).unwrap();
        let finished = AtomicUsize::new(0);
        // The longer its jobs, the fewer.
        let jobs = |worker| 96 / (worker + 1);
        thread::scope(|scope| {
            for worker in 0..WORKERS {
                let (mut entity, target, finished) = (queue(bench), &target, &finished);
                scope.spawn(move || {
                    let at = 64 * worker;
                    let submit = |entity: &mut KernelQueue, job| {
                        let mut list = CommandList::new();
                        for _ in 0..=worker {
                            list.fill(target, at..at + 64, job);
                        }
                        entity.submit(&list).unwrap();
                    };
                    for job in 1..=WINDOW.min(jobs(worker)) {
                        submit(&mut entity, job);
                    }
                    for job in 1..=jobs(worker) {
                        entity.progress_fence().wait(job, LONG).unwrap();
                        finished.fetch_add(1, Ordering::Relaxed);
                        if job + WINDOW <= jobs(worker) {
                            submit(&mut entity, job + WINDOW);
                        }
                    }
                    finish(&mut entity);
                });
            }
        });
        let all: u64 = (0..WORKERS).map(jobs).sum();
        assert_eq!(finished.load(Ordering::Relaxed) as u64, all);
        for (worker, words) in (0..WORKERS).zip(words(&target).chunks(8)) {
            assert_eq!(words, [jobs(worker); 8], "worker {worker}");
        }
    });
}

fn entity_of(context: &HwContext) -> KernelQueue {
    context.create_kernel_queue().unwrap()
}

/// A hundred jobs over all levels of priority are all done.
#[test]
fn drm_sched_priorities() {
    on_every_bench(NodePolicy::default(), |bench| {
        let contexts = (-7..=7).map(|priority| {
            let context = bench.device.create_context(0, 1).unwrap();
            context.set_priority(priority).unwrap();
            context
        });
        let contexts: Vec<_> = contexts.collect();
        let mut entities: Vec<_> = contexts.iter().map(entity_of).collect();
        let mut jobs = Jobs::new(bench, false);
        let number = entities.len();
        for job in 0..Jobs::DEPTH as usize {
            jobs.submit(&mut entities[job % number]);
        }
        entities.iter_mut().for_each(finish);
        assert_eq!(jobs.finished(), Jobs::DEPTH);
    });
}

/// A thousand jobs are all done while the priorities of their entities change all the time.
#[test]
fn load_drm_sched_change_priority() {
    const JOBS: u64 = 1_000;
    on_every_bench(NodePolicy::default(), |bench| {
        let contexts = [(); 5].map(|()| bench.device.create_context(0, 1).unwrap());
        let mut entities = contexts.each_ref().map(entity_of);
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut random = Random(3);
                while !over.load(Ordering::Acquire) {
                    let priority = random.below(15) as i32 - 7;
                    random.pick(&contexts).set_priority(priority).unwrap();
                }
            });
            let _ended = Ended(&over);
            for job in 0..JOBS as usize {
                entities[job % 5].submit(CommandList::new().nop()).unwrap();
            }
            entities.iter_mut().for_each(finish);
        });
        for entity in &entities {
            assert_eq!(entity.progress_fence().current_value(), JOBS / 5);
        }
    });
}

/// A ring with room for one job takes the second when the first is done, and not before (HQ-03).
#[test]
fn drm_sched_test_credits() {
    on_every_bench(NodePolicy::default(), |bench| {
        // The job and its progress.
        let options = HwQueueOptions {
            ring_capacity: 2,
            ..HwQueueOptions::default()
        };
        let mut queue = bench.device.create_hw_queue_with(options).unwrap();
        bench.until_parked();
        let gate = bench.engine.close();
        let job = CommandList::new().nop().clone();
        let first = queue.submit(&job).unwrap();
        let refused = queue.submit(&job);
        assert!(
            matches!(refused, Err(SubmitError::Full { needed: 2, .. })),
            "{refused:?}"
        );
        assert_eq!(queue.last_queued_value(), first);
        drop(gate);
        queue.progress_fence().wait(first, LONG).unwrap();
        let second = queue.submit_blocking(&job, LONG).unwrap();
        assert_eq!(queue.progress_fence().wait(second, LONG), Ok(()));
    });
}
