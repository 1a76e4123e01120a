//! Idle: a system in which nothing can run.

use crate::CommandList;
use crate::conform::bench::until_completed;
use crate::conform::seen::same;
use crate::conform::until::until_tried;
use crate::conform::{Check, Ground};
use anyhow::{Context, ensure};
use std::collections::BTreeMap;
use std::time::Duration;

pub(super) const CHECKS: &[Check] = &[Check::by(
    "HQ-09",
    "an idle system costs nothing: no thread wakes, nothing is submitted",
    idle,
)];

/// Threads by their numbers: their names, and how often each was put on a processor.
type Threads = BTreeMap<String, (String, u64)>;

/// All threads of the process but this one.
fn threads() -> anyhow::Result<Threads> {
    let this = rustix::thread::gettid().as_raw_nonzero().to_string();
    let mut threads = BTreeMap::new();
    for task in std::fs::read_dir("/proc/self/task")? {
        let thread = task?.file_name().to_string_lossy().into_owned();
        // One that has ended since has none.
        let status = std::fs::read_to_string(format!("/proc/self/task/{thread}/status"));
        let count = |line: &str| {
            let (name, value) = line.split_once(':')?;
            let counts = name.ends_with("voluntary_ctxt_switches");
            counts.then(|| value.trim().parse::<u64>().ok()).flatten()
        };
        if thread != this {
            let status = status.unwrap_or_default();
            let name = status.lines().find_map(|line| line.strip_prefix("Name:"));
            let name = name.unwrap_or_default().trim().to_owned();
            let switches = status.lines().filter_map(count).sum();
            threads.insert(thread, (name, switches));
        }
    }
    Ok(threads)
}

/// Those that were put on a processor between two looks, for people.
fn names_of_woken(before: &Threads, after: &Threads) -> String {
    let woken = after.iter().filter_map(|(thread, (name, count))| {
        // Another thread may have the number by now.
        let times = count.saturating_sub(before.get(thread).map_or(0, |(_, count)| *count));
        (times > 0).then(|| format!("{name} {times} times"))
    });
    woken.collect::<Vec<_>>().join(", ")
}

/// Queues that are empty, queues that stand at waits which the CPU alone ends, and threads in waits: there is a third of a
/// second in which no thread is put on a processor that was not there before the adapter, and no call or interrupt passes.
/// It watches for a time, since what is to be seen is that nothing comes; a busy machine only makes it watch again. A
/// timer that goes off more seldom is not seen, and submissions that no thread takes part in are the driver's alone
/// (`tests/idle.rs` counts those of this crate's). Threads of what lies below the subject are not its own.
fn idle(ground: &Ground) -> anyhow::Result<()> {
    let others = threads()?;
    let bench = ground.bench()?;
    let gates = [bench.fence(0)?, bench.fence(0)?];
    let mut stand = Vec::new();
    for gate in &gates {
        let mut queue = bench.queue()?;
        let end = queue.submit(CommandList::new().wait(gate, 1))?;
        stand.push((queue, end));
    }
    let _empty = bench.queue()?;
    let waiters = [bench.waiter(&gates[0], 2)?, bench.waiter(&gates[1], 3)?];
    for waiter in &waiters {
        waiter.until_asleep()?;
    }
    let mut woken = String::new();
    let look = || -> anyhow::Result<_> {
        let mut of_driver = threads()?;
        of_driver.retain(|thread, (name, _)| {
            !others.contains_key(thread) && ground.may_be_its_thread(name)
        });
        Ok((of_driver, bench.spy.calls().len()))
    };
    let quiet = until_tried(
        "for a third of a second no thread of the driver is put on a processor",
        || {
            let before = look()?;
            std::thread::sleep(Duration::from_millis(333));
            let after = look()?;
            woken = names_of_woken(&before.0, &after.0);
            Ok(before == after)
        },
    );
    quiet.with_context(|| format!("woken at last: {woken}"))?;
    for gate in &gates {
        gate.signal(3)?;
    }
    for (queue, end) in &stand {
        until_completed(queue, *end)?;
    }
    for waiter in waiters {
        same(
            "a wait of the idle system, when it goes on",
            &waiter.join(),
            &Ok(()),
        )?;
    }
    ensure!(
        stand.iter().all(|(queue, _)| queue.error().is_none()),
        "a queue was stopped"
    );
    Ok(())
}
