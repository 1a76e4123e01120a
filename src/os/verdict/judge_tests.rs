//! Small graphs, walked in full.

use super::*;
use crate::abi::FenceId;
use crate::kmd::ProcessId;
use crate::os::verdict::signallers::Signallers;

const QUEUES: u32 = 3;

fn handle(number: u32) -> HwQueueHandle {
    HwQueueHandle {
        node_ordinal: number,
        number,
    }
}

fn fence(slot: u32) -> FenceId {
    FenceId {
        slot,
        generation: 1,
    }
}

/// The progress fence of a queue has its number; then come one that nobody may signal, one that a process may,
/// and one that is open elsewhere.
const NOBODY: u32 = QUEUES;
const PROCESS: u32 = QUEUES + 1;
const ELSEWHERE: u32 = QUEUES + 2;
const FENCES: u32 = QUEUES + 3;

/// What a queue may be doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Does {
    Idle,
    Runs,
    Stopped,
    WaitsFor(u32),
    Reached { is_awaited: bool },
}

fn all_doings() -> Vec<Does> {
    let mut all = vec![Does::Idle, Does::Runs, Does::Stopped];
    all.extend((0..FENCES).map(Does::WaitsFor));
    all.extend([false, true].map(|is_awaited| Does::Reached { is_awaited }));
    all
}

fn standing(slot: u32, number: u32) -> Standing {
    Standing {
        fence: fence(slot),
        value: 1,
        since: u64::from(number),
        is_reached: false,
        is_awaited: true,
        has_in_flight: false,
    }
}

fn seen(number: u32, does: Does, answers: bool) -> QueueSeen {
    let stands_at = match does {
        Does::Idle | Does::Runs | Does::Stopped => None,
        Does::WaitsFor(slot) => Some(standing(slot, number)),
        Does::Reached { is_awaited } => Some(Standing {
            is_reached: true,
            is_awaited,
            ..standing(NOBODY, number)
        }),
    };
    QueueSeen {
        queue: handle(number),
        is_stopped: does == Does::Stopped,
        has_work: does != Does::Idle,
        answers,
        stands_at,
        queued_signals: Vec::new(),
    }
}

fn graph(doings: &[Does], answers: bool) -> WaitGraph {
    let mut graph = WaitGraph::default();
    for (number, does) in (0..).zip(doings) {
        graph.add(seen(number, *does, answers));
    }
    for number in 0..QUEUES {
        let queue = Some(handle(number));
        let by = Signallers {
            queue,
            ..Signallers::default()
        };
        graph.fences.insert(fence(number), by);
    }
    let by_process = Signallers {
        processes: vec![ProcessId(1)],
        ..Signallers::default()
    };
    let elsewhere = Signallers {
        is_open_elsewhere: true,
        ..Signallers::default()
    };
    graph.fences.insert(fence(NOBODY), Signallers::default());
    graph.fences.insert(fence(PROCESS), by_process);
    graph.fences.insert(fence(ELSEWHERE), elsewhere);
    graph
}

/// How following the waits of a queue ends, told without the judge: each waits for one thing.
#[derive(Debug, PartialEq, Eq)]
enum Ends {
    Able,
    Nobody,
    Circle(BTreeSet<u32>),
}

fn follow(doings: &[Does], from: u32) -> Ends {
    let mut path = Vec::new();
    let mut at = from;
    loop {
        match doings[at as usize] {
            Does::Stopped | Does::WaitsFor(NOBODY) => return Ends::Nobody,
            Does::Idle
            | Does::Runs
            | Does::Reached { .. }
            | Does::WaitsFor(PROCESS | ELSEWHERE) => return Ends::Able,
            Does::WaitsFor(next) => {
                path.push(at);
                if let Some(begin) = path.iter().position(|on| *on == next) {
                    return Ends::Circle(path[begin..].iter().copied().collect());
                }
                at = next;
            }
        }
    }
}

fn each_graph(check: impl Fn(&[Does], bool)) {
    let all = all_doings();
    for a in &all {
        for b in &all {
            for c in &all {
                for answers in [true, false] {
                    check(&[*a, *b, *c], answers);
                }
            }
        }
    }
}

/// TD-15: every graph of three queues, each idle, at work, stopped, at a wait for the progress of each of them,
/// for what nobody or somebody may signal here or elsewhere, or for what is reached; with engines that answer
/// and that do not. A wait is never a hang, and nothing certain is said of who may still go on.
///
/// Kills `a-wait-is-a-hang`, `another-system-cannot-signal`, `a-process-cannot-signal`,
/// `a-stopped-queue-may-signal` and `a-circle-is-left-to-itself`.
#[test]
fn td_15_every_small_graph_is_judged_rightly() {
    each_graph(|doings, answers| {
        let verdicts = judge(&graph(doings, answers));
        for number in 0..QUEUES {
            let mut of_queue = verdicts.iter().filter(|v| v.hw_queue == handle(number));
            let verdict = of_queue.next().map(|v| &v.verdict);
            assert!(of_queue.next().is_none());
            let does = doings[number as usize];
            let right = match (does, verdict) {
                (Does::Idle | Does::Stopped, None) => true,
                (Does::Runs, None) => answers,
                (Does::Runs, Some(Verdict::Hung)) => !answers,
                (Does::Reached { is_awaited }, Some(Verdict::LostNotification)) => is_awaited,
                (Does::Reached { is_awaited }, Some(Verdict::Waiting { suspicion: None })) => {
                    !is_awaited
                }
                (Does::WaitsFor(_), Some(Verdict::Waiting { suspicion: None })) => {
                    follow(doings, number) == Ends::Able
                }
                (Does::WaitsFor(_), Some(Verdict::Orphaned)) => {
                    follow(doings, number) == Ends::Nobody
                }
                (Does::WaitsFor(_), Some(Verdict::Deadlocked { cycle })) => {
                    let queues = cycle.0.iter().map(|link| link.hw_queue.number);
                    follow(doings, number) == Ends::Circle(queues.collect())
                }
                _ => false,
            };
            assert!(
                right,
                "{doings:?}, answers: {answers}: {number} is {verdict:?}"
            );
        }
    });
}

/// TD-15: the youngest wait of a circle is that of one of its queues, and of no other.
///
/// Kills `the-oldest-wait-fails`.
#[test]
fn td_15_the_youngest_wait_of_a_circle_is_told() {
    each_graph(|doings, answers| {
        let graph = graph(doings, answers);
        for verdict in judge(&graph) {
            let Verdict::Deadlocked { cycle } = verdict.verdict else {
                continue;
            };
            // They are as old as their numbers say.
            let last = cycle.0.iter().map(|link| link.hw_queue).max();
            assert_eq!(youngest(&graph, &cycle), last, "{doings:?}");
            assert!(
                cycle
                    .0
                    .windows(2)
                    .all(|pair| pair[0].hw_queue != pair[1].hw_queue)
            );
        }
    });
}

/// TD-15: the same circle through fences that somebody could signal as well is a suspicion: the queues have
/// signals for each other behind their waits. One whose signal is too small, or that stands at what is reached,
/// or one that nobody waits behind, makes none.
///
/// Kills `a-suspicion-is-not-told`, `any-queued-signal-makes-a-circle`.
#[test]
fn td_15_a_circle_that_somebody_could_open_is_a_suspicion() {
    let queued = |first: u64, second: u64| {
        let mut graph = graph(&[Does::WaitsFor(PROCESS), Does::WaitsFor(ELSEWHERE)], true);
        let values = [(ELSEWHERE, first), (PROCESS, second)];
        for (queue, (slot, value)) in graph.queues.values_mut().zip(values) {
            queue.queued_signals = vec![(fence(slot), value)];
        }
        graph
    };
    for (first, second) in [(0, 0), (0, 1), (1, 0), (1, 1), (2, 1)] {
        let suspected = first >= 1 && second >= 1;
        for verdict in judge(&queued(first, second)) {
            let Verdict::Waiting { suspicion } = verdict.verdict else {
                panic!("{verdict:?}");
            };
            let queues = |cycle: Cycle| {
                let queues = cycle.0.into_iter().map(|link| link.hw_queue);
                queues.collect::<Vec<_>>()
            };
            let expected = suspected.then(|| vec![handle(0), handle(1)]);
            assert_eq!(suspicion.map(queues), expected, "{first} {second}");
        }
    }
    let mut reached = queued(1, 1);
    if let Some(wait) = reached
        .queues
        .get_mut(&handle(1))
        .and_then(|q| q.stands_at.as_mut())
    {
        wait.is_reached = true;
        wait.is_awaited = false;
    }
    let none = Verdict::Waiting { suspicion: None };
    assert!(
        judge(&reached)
            .iter()
            .all(|verdict| verdict.verdict == none)
    );
}

/// What an engine has of a queue may end the wait at which the OS holds back the rest of it.
#[test]
fn td_15_a_queue_with_something_in_flight_waits_in_no_circle() {
    let mut waits = graph(&[Does::WaitsFor(0), Does::WaitsFor(0)], true);
    assert!(
        judge(&waits)
            .iter()
            .all(|verdict| !matches!(verdict.verdict, Verdict::Waiting { .. }))
    );
    let first = waits.queues.get_mut(&handle(0));
    if let Some(wait) = first.and_then(|queue| queue.stands_at.as_mut()) {
        wait.has_in_flight = true;
    }
    let none = Verdict::Waiting { suspicion: None };
    let verdicts = judge(&waits);
    assert_eq!(verdicts.len(), 2);
    assert!(verdicts.iter().all(|verdict| verdict.verdict == none));
}
