//! A system in which nothing can run.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
}

use native_fence::gpu::NodePolicy;
use native_fence::{CommandList, Fence};
use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;
use support::bench::{LONG, on_benches_of, until, until_completed};

/// How often each thread of the process, but this one, was put on a processor, by its number and
/// name; `None` while one runs, or has not come so far as to have its name.
fn switches_of_sleepers() -> Option<BTreeMap<String, u64>> {
    let threads = switches();
    let interrupt_threads = threads.keys().filter(|name| name.contains("nf-irq"));
    let asleep = |name: &String| {
        let thread = name.split(' ').next().unwrap();
        let stat = fs::read_to_string(format!("/proc/self/task/{thread}/stat"));
        stat.is_ok_and(|stat| stat.rsplit(") ").next().unwrap().starts_with('S'))
    };
    let ready = interrupt_threads.count() == 2 && threads.keys().all(asleep);
    (ready && switches() == threads).then_some(threads)
}

fn switches() -> BTreeMap<String, u64> {
    let this = rustix::thread::gettid().as_raw_nonzero().to_string();
    let mut threads = BTreeMap::new();
    for task in fs::read_dir("/proc/self/task").unwrap() {
        let thread = task.unwrap().file_name().into_string().unwrap();
        let status = fs::read_to_string(format!("/proc/self/task/{thread}/status")).unwrap();
        let count = |line: &str| -> Option<u64> {
            let (name, value) = line.split_once(':')?;
            name.ends_with("voluntary_ctxt_switches")
                .then(|| value.trim().parse().unwrap())
        };
        if thread != this {
            let name = fs::read_to_string(format!("/proc/self/task/{thread}/comm")).unwrap();
            let switches = status.lines().filter_map(count).sum();
            threads.insert(format!("{thread} {}", name.trim()), switches);
        }
    }
    threads
}

/// Queues that are empty, queues that stand at waits which only the CPU ends, on two engines, and
/// threads in waits: for a second nothing is submitted, and no thread of the process, the driver's
/// among them, is put on a processor. Afterwards all goes on.
///
/// This test watches for a time, since what it shows is that nothing comes; it is right on a machine
/// of any speed.
///
/// Open: that no timer is armed is shown by none that goes off; a timer of more than a second is not
/// seen.
///
/// Kills `a-standing-queue-keeps-the-engine`.
#[test]
fn hq_09_load_an_idle_system_submits_nothing_and_wakes_nobody() {
    on_benches_of(2, NodePolicy::default(), |bench| {
        let gates: Vec<Fence> = (0..4).map(|_| bench.fence(0)).collect();
        let mut queues = Vec::new();
        for (number, gate) in gates.iter().enumerate() {
            let mut queue = bench.queue_on(number as u32 % 2);
            let end = queue.submit(CommandList::new().wait(gate, 1)).unwrap();
            queues.push((queue, end));
        }
        let _empty = [bench.queue_on(0), bench.queue_on(1)];
        let waiters = [1, 2, 3].map(|value| bench.waiter(&gates[0], value));
        for waiter in &waiters {
            waiter.until_asleep();
        }
        bench.until_told();
        let mut asleep = None;
        // Those that wait for an engine that does nothing have their last turn after a while.
        until("all threads sleep, and go on sleeping", || {
            asleep = switches_of_sleepers();
            std::thread::sleep(Duration::from_millis(250));
            asleep.as_ref().is_some_and(|asleep| switches() == *asleep)
        });
        let (slices, before) = (bench.counters().slices, asleep.unwrap());
        std::thread::sleep(Duration::from_secs(1));
        assert_eq!(switches(), before);
        assert_eq!(bench.counters().slices, slices);

        for gate in &gates {
            gate.signal(3).unwrap();
        }
        for (queue, end) in &queues {
            until_completed(queue, *end);
        }
        assert!(waiters.into_iter().all(|waiter| waiter.join().is_ok()));
        assert_eq!(gates[0].wait(3, LONG), Ok(()));
    });
}
