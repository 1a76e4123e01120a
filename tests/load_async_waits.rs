//! A million waits outstanding in one process, without a thread: each is released exactly once.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
    pub(crate) mod task;
}

use native_fence::{CommandList, Fence, WaitFuture};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Poll, Wake, Waker};
use std::time::Instant;
use support::bench::{Bench, LONG, fences, monitored_values, native, nobody_waits, until};

const FENCES: u64 = 1_000;
/// Of one fence.
const WAITS: u64 = 1_000;

/// A task, which counts how often it was woken.
#[derive(Debug, Default)]
struct Task(AtomicU32);

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// A wait that stands, and its task.
struct Standing {
    wait: WaitFuture,
    task: Arc<Task>,
}

impl Standing {
    fn new(fence: &Fence, value: u64) -> Self {
        let mut standing = Self {
            wait: fence.wait_async(value),
            task: Arc::default(),
        };
        assert_eq!(standing.poll(), Poll::Pending);
        standing
    }

    fn poll(&mut self) -> Poll<Result<(), native_fence::WaitError>> {
        let waker = Waker::from(Arc::clone(&self.task));
        std::pin::Pin::new(&mut self.wait).poll(&mut std::task::Context::from_waker(&waker))
    }

    fn woken(&self) -> u32 {
        self.task.0.load(Ordering::Relaxed)
    }
}

/// Bytes of memory that this process has.
fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = statm.split(' ').nth(1).unwrap().parse().unwrap();
    pages * rustix::param::page_size() as u64
}

/// A million futures stand on a thousand fences, each with a task of its own. The GPU's signals wake
/// those that they satisfy, once each, and no other; so do the CPU's; those that are dropped are
/// woken by nobody; and MonitoredValue follows.
///
/// Kills `one-of-many-is-not-told`.
#[test]
fn nf_22_load_a_million_waits_are_released_once_each() {
    let bench = Bench::new();
    let (fences, mut queue) = (fences(&bench, FENCES as usize), bench.queue());
    let (begun, before) = (Instant::now(), resident());
    let mut standing: Vec<Vec<Standing>> = fences
        .iter()
        .map(|fence| {
            let waits = (1..=WAITS).map(|value| Standing::new(fence, value));
            waits.collect()
        })
        .collect();
    let armed = begun.elapsed();
    let each = (resident() - before) / (FENCES * WAITS);
    assert!(
        fences.iter().all(|fence| native(fence).waits() == WAITS)
            && monitored_values(&fences).iter().all(|value| *value == 0)
    );
    println!("{FENCES} × {WAITS} waits, armed in {armed:?}, {each} bytes each");
    assert!(each < 600, "{each} bytes a wait, with its task");

    let half = WAITS as usize / 2;
    let begun = Instant::now();
    for fence in &fences {
        let list = CommandList::new().signal(fence, half as u64).clone();
        queue.submit_blocking(&list, LONG).unwrap();
    }
    until("the GPU's half is released", || {
        let mut first = standing.iter().map(|waits| waits[half - 1].woken());
        first.all(|woken| woken == 1)
    });
    bench.until_told();
    let woken = |waits: &[Standing], times| waits.iter().all(|wait| wait.woken() == times);
    for waits in &standing {
        assert!(woken(&waits[..half], 1) && woken(&waits[half..], 0));
    }
    println!("half released by the GPU in {:?}", begun.elapsed());
    assert!(
        monitored_values(&fences)
            .iter()
            .all(|value| *value == half as u64)
    );

    // Of the rest every other one is dropped.
    let begun = Instant::now();
    let mut dropped = Vec::new();
    for waits in &mut standing {
        for (number, wait) in std::mem::take(waits).into_iter().enumerate() {
            if number >= half && number % 2 == 0 {
                dropped.push(wait.task);
            } else {
                waits.push(wait);
            }
        }
    }
    println!("a quarter cancelled in {:?}", begun.elapsed());
    let begun = Instant::now();
    for (fence, waits) in fences.iter().zip(&mut standing) {
        fence.signal(WAITS).unwrap();
        assert!(woken(waits, 1), "by a CPU signal, when it returns");
        for wait in waits {
            assert_eq!(wait.poll(), Poll::Ready(Ok(())));
        }
    }
    println!("a quarter released by the CPU in {:?}", begun.elapsed());
    let quiet = |task: &Arc<Task>| task.0.load(Ordering::Relaxed) == 0;
    assert!(dropped.len() as u64 == FENCES * WAITS / 4 && dropped.iter().all(quiet));
    assert!(dropped.iter().all(|task| Arc::strong_count(task) == 1));
    assert!(nobody_waits(&fences));
}
