//! Shrinking a round that shows something: what can be left out is.

use super::program::{Mode, foretell, shrink_list, try_it};
use super::round::{DevicePlan, Round};
use super::visit::Leaving;
use std::time::{Duration, Instant};

/// A smaller round that still `fails`, as far as one is found within `patience`.
#[must_use]
pub fn shrink(round: &Round, patience: Duration, fails: impl Fn(&Round) -> bool) -> Round {
    let deadline = Instant::now() + patience;
    let fails = |candidate: &Round| {
        let mut ordered = candidate.clone();
        ordered.put_in_order();
        // What was left out may be what others wait for: queues that stand for ever are told so, which is another failure.
        let all_end = foretell(&ordered.program).ends(&ordered.program);
        all_end && Instant::now() < deadline && fails(&ordered)
    };
    let mut least = round.clone();
    try_it(&mut least, &fails, |round| round.fault = None);
    try_it(&mut least, &fails, |round| {
        if let Some(fault) = &mut round.fault {
            fault.heir = None;
        }
    });
    try_it(&mut least, &fails, |round| round.disturbances.clear());
    try_it(&mut least, &fails, |round| round.bursts.clear());
    try_it(&mut least, &fails, |round| round.visits.clear());
    try_it(&mut least, &fails, |round| round.waits.clear());
    for queue in 0..least.places.len() {
        try_it(&mut least, &fails, |round| {
            round.program.queues[queue].commands.clear();
        });
    }
    try_it(&mut least, &fails, |round| round.program.cpu.clear());
    try_it(&mut least, &fails, |round| {
        for device in &mut round.devices {
            device.adapter = 0;
        }
    });
    try_it(&mut least, &fails, |round| {
        for context in &mut round.contexts {
            (context.device, context.node) = (0, 0);
        }
        for fence in &mut round.fences {
            (fence.home, fence.is_local) = (0, false);
        }
        for awaited in round.waits.iter_mut().flat_map(|wait| &mut wait.of) {
            awaited.device = 0;
        }
        round.devices = vec![DevicePlan { adapter: 0 }];
    });
    try_it(&mut least, &fails, |round| {
        for queue in &mut round.program.queues {
            queue.mode = Mode::User;
        }
    });
    try_it(&mut least, &fails, |round| {
        for fence in &mut round.fences {
            fence.is_monitored = false;
        }
    });
    try_it(&mut least, &fails, |round| {
        round.start_at(vec![0; round.fences.len()]);
        for burst in &mut round.bursts {
            burst.initial = 0;
        }
    });
    shrink_list(&mut least, |round| &mut round.bursts, &fails);
    shrink_list(&mut least, |round| &mut round.disturbances, &fails);
    shrink_list(&mut least, |round| &mut round.waits, &fails);
    shrink_list(&mut least, |round| &mut round.visits, &fails);
    for visit in 0..least.visits.len() {
        shrink_visit(&mut least, visit, &fails);
    }
    // A submission can go once nobody waits for it any more.
    loop {
        let before = least.clone();
        for queue in 0..least.places.len() {
            shrink_list(
                &mut least,
                |round| &mut round.program.queues[queue].commands,
                &fails,
            );
        }
        shrink_list(&mut least, |round| &mut round.program.cpu, &fails);
        if least == before {
            break;
        }
    }
    for burst in 0..least.bursts.len() {
        try_it(&mut least, &fails, |round| round.bursts[burst].lists = 1);
    }
    least.put_in_order();
    least
}

/// Fewer laps and signals, by queues of one process that lasts, where it is the same then. A fence that is rewound falls by
/// that, as in all rounds that are drawn: one that rises is another thing.
fn shrink_visit(least: &mut Round, visit: usize, fails: &impl Fn(&Round) -> bool) {
    let fails = &|round: &Round| {
        let visit = &round.visits[visit];
        !visit.laps.is_empty() && visit.falls() && fails(round)
    };
    shrink_list(least, |round| &mut round.visits[visit].laps, fails);
    try_it(least, fails, |round| {
        let laps = &mut round.visits[visit].laps;
        for at in 0..laps.len() {
            // As many as the next one falls by.
            let next = laps.get(at + 1).map_or(0, |next| next.from + 1);
            laps[at].signals = next.saturating_sub(laps[at].from).max(1);
        }
    });
    try_it(least, fails, |round| {
        round.visits[visit].leaving = Leaving::InOrder;
    });
    // What is terminated is a process of its own.
    try_it(least, fails, |round| {
        let visit = &mut round.visits[visit];
        visit.is_apart &= visit.leaving == Leaving::Terminated;
        (visit.is_local, visit.waiter) = (false, visit.signaller);
    });
}

#[cfg(test)]
mod tests {
    use super::super::Scope;
    use super::super::visit::{Lap, Visit};
    use super::*;
    use crate::CrossAdapter;

    /// A round of a visit whose queue's process is terminated, with these laps.
    fn visited(laps: &[[u64; 2]]) -> Round {
        let scope = Scope {
            seed: 1,
            burst_signals: 0,
            faults: false,
        };
        let lap = |[from, signals]: &[u64; 2]| Lap {
            from: *from,
            signals: *signals,
            by_cpu: false,
        };
        let mut round = scope.round(0);
        round.visits = vec![Visit {
            thread: 0,
            signaller: 0,
            waiter: 0,
            is_apart: true,
            is_local: true,
            crosses: CrossAdapter::Propagated,
            laps: laps.iter().map(lap).collect(),
            leaving: Leaving::Terminated,
        }];
        round
    }

    fn least(round: &Round, fails: impl Fn(&Visit) -> bool) -> Visit {
        let fails = |round: &Round| {
            let visit = round.visits.first();
            visit.is_some_and(|visit| {
                assert!(visit.falls(), "{visit:?}");
                fails(visit)
            })
        };
        let least = shrink(round, Duration::from_secs(60), fails);
        least.visits[0].clone()
    }

    /// However a visit is shrunk, its fence falls when it is rewound; and nothing of its end stays that is of no matter.
    ///
    /// Kills `soak-what-is-shrunk-rises`, `soak-signals-of-a-visit-are-not-shrunk`, `soak-a-process-apart-is-not-shrunk`.
    #[test]
    fn a_visit_that_is_shrunk_is_one_that_could_be_drawn() {
        // Without the one between them the last would begin above the end of the first.
        let round = visited(&[[0, 5], [2, 12], [9, 3]]);
        let shrunk = least(&round, |visit| {
            let [first, .., last] = visit.laps[..] else {
                return false;
            };
            [first.from, last.from] == [0, 9]
        });
        let signals: Vec<_> = shrunk.laps.iter().map(|lap| lap.signals).collect();
        assert_eq!(signals, [3, 8, 1]);
        assert!(!shrunk.is_apart && !shrunk.is_local, "{shrunk:?}");
        assert_eq!(shrunk.leaving, Leaving::InOrder);
        // What shows in a process of its own alone keeps it.
        let shrunk = least(&round, |visit| visit.leaving == Leaving::Terminated);
        assert!(shrunk.is_apart && shrunk.laps.len() == 1, "{shrunk:?}");
    }
}
