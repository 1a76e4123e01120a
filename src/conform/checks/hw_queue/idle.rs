//! Idle: a system in which nothing can run.

use crate::CommandList;
use crate::conform::bench::until_completed;
use crate::conform::seen::same;
use crate::conform::until::until_tried;
use crate::conform::{Check, Ground, Unfit};
use anyhow::{Context, ensure};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::DirEntry;
use std::time::Duration;

pub(super) const CHECKS: &[Check] = &[Check::by(
    "HQ-09",
    "an idle system costs nothing: no thread wakes, nothing is submitted",
    idle,
)];

/// What is seen of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Thread {
    name: String,
    /// How often it was put on a processor.
    switches: u64,
    /// It is the first thread of a process that this one has started, and has that one's name.
    is_child: bool,
}

/// Threads by the number of their process and their own.
type Threads = BTreeMap<(u32, u32), Thread>;

/// All threads of this process but the one that looks, and of the processes that it has started, and they.
fn threads() -> anyhow::Result<Threads> {
    let this = rustix::thread::gettid().as_raw_nonzero().get();
    let (mut threads, mut is_this_met) = (BTreeMap::new(), false);
    for process in processes()? {
        let tasks = match std::fs::read_dir(format!("/proc/{process}/task")) {
            Ok(tasks) => tasks,
            Err(error) if process == std::process::id() => {
                let why = format!("the system lists no threads of this process: {error}");
                return Err(Unfit(why).into());
            }
            // One that has ended since has none.
            Err(_) => continue,
        };
        for thread in tasks.filter_map(|task| number(&task.ok()?)) {
            let status = std::fs::read_to_string(format!("/proc/{process}/task/{thread}/status"));
            let status = status.unwrap_or_default();
            let count = |line: &str| {
                let (name, value) = line.split_once(':')?;
                let counts = name.ends_with("voluntary_ctxt_switches");
                counts.then(|| value.trim().parse::<u64>().ok()).flatten()
            };
            if thread.cast_signed() == this {
                is_this_met = true;
            } else {
                let seen = Thread {
                    name: field(&status, "Name:").to_owned(),
                    switches: status.lines().filter_map(count).sum(),
                    is_child: thread == process && process != std::process::id(),
                };
                threads.insert((process, thread), seen);
            }
        }
    }
    if !is_this_met {
        let why = "the system lists threads by other numbers than this process has";
        return Err(Unfit(why.into()).into());
    }
    Ok(threads)
}

/// This process, and those that it has started, and they: an engine may be in one of its own.
fn processes() -> anyhow::Result<BTreeSet<u32>> {
    let all = std::fs::read_dir("/proc")?.filter_map(|entry| number(&entry.ok()?));
    let with_parent = all.filter_map(|process| {
        let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
        Some((process, field(&status, "PPid:").parse().ok()?))
    });
    let with_parent: Vec<(u32, u32)> = with_parent.collect();
    let mut ours = BTreeSet::from([std::process::id()]);
    loop {
        let of_ours = with_parent
            .iter()
            .filter(|(_, parent)| ours.contains(parent));
        let more: BTreeSet<_> = of_ours.map(|(process, _)| *process).collect();
        if more.is_subset(&ours) {
            return Ok(ours);
        }
        ours.extend(more);
    }
}

/// The number that an entry of the system's table is named by, if it is one of a process or thread.
fn number(entry: &DirEntry) -> Option<u32> {
    entry.file_name().to_str()?.parse().ok()
}

/// What a status says behind a word.
fn field<'a>(status: &'a str, word: &str) -> &'a str {
    let said = status.lines().find_map(|line| line.strip_prefix(word));
    said.unwrap_or_default().trim()
}

/// Those that were put on a processor between two looks, for people.
fn names_of_woken(before: &Threads, after: &Threads) -> String {
    let woken = after.iter().filter_map(|(numbers, thread)| {
        // Another thread may have the number by now.
        let before = before.get(numbers).map_or(0, |before| before.switches);
        let times = thread.switches.saturating_sub(before);
        (times > 0).then(|| format!("{} {times} times", thread.name))
    });
    woken.collect::<Vec<_>>().join(", ")
}

/// Queues that are empty, queues that stand at waits which the CPU alone ends, and threads in waits: there is a third of a
/// second in which no thread is put on a processor that was not there before the adapter, be it of this process or of one
/// that it has started since, and no call or interrupt passes. It watches for a time, since what is to be seen is that nothing
/// comes; a busy machine only makes it watch again. A timer that goes off more seldom is not seen, and submissions that no
/// thread takes part in are the driver's alone (`tests/idle.rs` counts those of this crate's). Threads of what lies below
/// the subject are not its own: where such a one looks nevertheless, that is told as what was left out.
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
        let mut new = threads()?;
        new.retain(|numbers, _| !others.contains_key(numbers));
        let (of_driver, below): (Threads, Threads) = new.into_iter().partition(|(_, thread)| {
            if thread.is_child {
                ground.may_be_its_process(&thread.name)
            } else {
                ground.may_be_its_thread(&thread.name)
            }
        });
        Ok(((of_driver, bench.spy.calls().len()), below))
    };
    let mut woken_below = String::new();
    let quiet = until_tried(
        "for a third of a second no thread of the driver is put on a processor",
        || {
            let before = look()?;
            std::thread::sleep(Duration::from_millis(333));
            let after = look()?;
            woken = names_of_woken(&before.0.0, &after.0.0);
            woken_below = names_of_woken(&before.1, &after.1);
            Ok(before.0 == after.0)
        },
    );
    quiet.with_context(|| format!("woken at last: {woken}"))?;
    if !woken_below.is_empty() {
        let why =
            format!("what lies below the driver has threads that it has no hand in: {woken_below}");
        ground.if_fit::<()>(Err(Unfit(why).into()))?;
    }
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
