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

/// Fewer laps and signals, by queues of one process that lasts, where it is the same then.
fn shrink_visit(least: &mut Round, visit: usize, fails: &impl Fn(&Round) -> bool) {
    try_it(least, fails, |round| {
        let visit = &mut round.visits[visit];
        visit.is_apart &= visit.leaving == Leaving::Terminated;
        (visit.is_local, visit.waiter) = (false, visit.signaller);
    });
    let keeps_one = |round: &Round| !round.visits[visit].laps.is_empty() && fails(round);
    shrink_list(least, |round| &mut round.visits[visit].laps, &keeps_one);
    try_it(least, fails, |round| {
        for lap in &mut round.visits[visit].laps {
            lap.signals = 1;
        }
    });
    try_it(least, fails, |round| {
        round.visits[visit].leaving = Leaving::InOrder;
    });
}
