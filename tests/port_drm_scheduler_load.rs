//! What the kunit tests of DRM's scheduler measure, of kernel-mode queues: deep queues, two that hand over to each
//! other, and pairs of clients with loads of their own. Here they are asked whether all is done and nobody starves:
//! times are `nfence compare`'s. `tests/ports/README.md` has the table.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
}

use native_fence::gpu::NodePolicy;
use native_fence::{CommandList, KernelQueue};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use support::bench::{Bench, LONG, finish, on_every_bench, words};

const JOBS: u64 = 1_000;

/// A thousand jobs, each of which stores to a word of its own, behind one that holds them up: none stores. When that goes
/// on, all are done, in their order, and what is said to be done has stored.
///
/// Kills `a-recorded-list-is-not-executed`.
#[test]
fn drm_sched_scheduler_queue_overhead() {
    on_every_bench(NodePolicy::default(), |bench| {
        let (gate, done) = (
            bench.fence(0),
            bench.device.create_monitored_fence(0).unwrap(),
        );
        let target = bench.device.create_allocation(8 * JOBS).unwrap();
        let mut entity = bench.device.create_kernel_queue().unwrap();
        entity.wait_native(&gate, 1).unwrap();
        let mut end = 0;
        for job in 1..=JOBS {
            let mut list = CommandList::new();
            list.fill(&target, 8 * (job - 1)..8 * job, job);
            entity.record(&list).unwrap();
            entity.signal(&done, job).unwrap();
            end = entity.flush().unwrap();
        }
        assert_eq!(done.current_value(), 0);
        assert_eq!(words(&target), [0; JOBS as usize]);
        gate.signal(1).unwrap();
        let mut last = 0;
        for job in (1..=JOBS).step_by(99) {
            done.wait(job, LONG).unwrap();
            let now = done.current_value();
            assert!(last <= now && job <= now);
            let stored = words(&target).into_iter().take(now as usize);
            assert!(stored.eq(1..=now), "{now} jobs are done");
            last = now;
        }
        finish(&mut entity);
        assert_eq!(done.current_value(), JOBS);
        assert_eq!(entity.progress_fence().current_value(), end);
    });
}

/// Two entities, each job of which is behind one of the other: a word goes to and fro, one more each time.
#[test]
fn drm_sched_scheduler_ping_pong() {
    on_every_bench(NodePolicy::default(), |bench| {
        let done = bench.device.create_monitored_fence(0).unwrap();
        let passed = bench.device.create_allocation(8 * (JOBS + 1)).unwrap();
        passed.write(0, &[9]);
        let mut entities = [(); 2].map(|()| bench.device.create_kernel_queue().unwrap());
        for job in 1..=JOBS {
            let entity = &mut entities[job as usize % 2];
            entity.wait(&done, job - 1).unwrap();
            let (from, to) = (8 * (job - 1), 8 * job);
            entity
                .record(CommandList::new().copy(&passed, from..to, &passed, to))
                .unwrap();
            entity.signal(&done, job).unwrap();
            entity.flush().unwrap();
        }
        entities.iter_mut().for_each(finish);
        assert_eq!(done.current_value(), JOBS);
        assert!(words(&passed).iter().all(|word| *word == 9));
    });
}

const LOW: i32 = -1;
const NORMAL: i32 = 0;
const HIGH: i32 = 1;

/// One that submits batches of jobs, again and again.
#[derive(Clone, Copy, Debug)]
struct Client {
    priority: i32,
    /// Of a batch.
    jobs: u64,
    /// Words that a job fills.
    length: u64,
    /// Waits for a batch before it submits the next.
    is_sync: bool,
}

const fn client(priority: i32, jobs: u64, length: u64, is_sync: bool) -> Client {
    Client {
        priority,
        jobs,
        length,
        is_sync,
    }
}

impl Client {
    /// Batches that one is ahead of the engine, if it does not wait.
    const AHEAD: u64 = 4;

    /// Goes on until both have done enough; then each job has been done.
    fn run(self, bench: &Bench, batches: [&AtomicU64; 2]) {
        let context = bench.device.create_context(0, 1).unwrap();
        context.set_priority(self.priority).unwrap();
        let mut entity = context.create_kernel_queue().unwrap();
        let target = bench.device.create_allocation(8 * self.length).unwrap();
        let are_enough = || {
            batches
                .iter()
                .all(|done| done.load(Ordering::Acquire) >= ENOUGH)
        };
        let mut submitted = 0;
        while !are_enough() {
            for _ in 0..self.jobs {
                submitted += 1;
                let mut list = CommandList::new();
                list.fill(&target, 0..target.bytes(), submitted);
                assert_eq!(entity.submit(&list), Ok(submitted));
            }
            let behind = if self.is_sync {
                0
            } else {
                Self::AHEAD * self.jobs
            };
            let due: u64 = submitted.saturating_sub(behind);
            wait_for(&entity, due);
            batches[0].store(due / self.jobs, Ordering::Release);
        }
        finish(&mut entity);
        assert!(words(&target).iter().all(|word| *word == submitted));
    }
}

fn wait_for(entity: &KernelQueue, job: u64) {
    assert_eq!(entity.progress_fence().wait(job, LONG), Ok(()));
}

/// Batches of each client, the other having work all the time.
const ENOUGH: u64 = 12;

/// Pairs of clients, of equal and of different priorities, of short jobs and of long ones, with something to do always
/// or by turns: neither starves, and each job is done. What a client sleeps between two batches is left out.
#[test]
fn load_drm_sched_scheduler_two_clients_test() {
    let pairs = [
        (
            "Normal priority and normal priority",
            [
                client(NORMAL, 1, 8_000, false),
                client(NORMAL, 1, 8_000, false),
            ],
        ),
        (
            "Normal priority and low priority",
            [
                client(NORMAL, 1, 8_000, false),
                client(LOW, 1, 8_000, false),
            ],
        ),
        (
            "High priority and normal priority",
            [
                client(HIGH, 1, 8_000, false),
                client(NORMAL, 1, 8_000, false),
            ],
        ),
        (
            "High priority and low priority",
            [client(HIGH, 1, 8_000, false), client(LOW, 1, 8_000, false)],
        ),
        (
            "50% and 50%",
            [
                client(NORMAL, 1, 1_500, true),
                client(NORMAL, 1, 2_500, true),
            ],
        ),
        (
            "50% and 50% low priority",
            [client(NORMAL, 1, 1_500, true), client(LOW, 1, 2_500, true)],
        ),
        (
            "50% high priority and 50%",
            [client(HIGH, 1, 1_500, true), client(NORMAL, 1, 2_500, true)],
        ),
        (
            "Low priority hog and interactive client",
            [client(LOW, 3, 2_500, false), client(NORMAL, 1, 500, true)],
        ),
        (
            "Heavy rendering and interactive client",
            [
                client(NORMAL, 3, 2_500, true),
                client(NORMAL, 1, 1_000, true),
            ],
        ),
        (
            "Very heavy rendering and interactive client",
            [
                client(NORMAL, 4, 50_000, true),
                client(NORMAL, 1, 1_000, true),
            ],
        ),
    ];
    on_every_bench(NodePolicy::default(), |bench| {
        for (name, clients) in pairs {
            println!("{name}");
            let [first, second] = [const { AtomicU64::new(0) }; 2];
            thread::scope(|scope| {
                scope.spawn(|| clients[0].run(bench, [&first, &second]));
                scope.spawn(|| clients[1].run(bench, [&second, &first]));
            });
            let done = [first, second].map(|batches| batches.load(Ordering::Acquire));
            assert!(
                done.iter().all(|batches| *batches >= ENOUGH),
                "{name}: {done:?}"
            );
        }
    });
}
