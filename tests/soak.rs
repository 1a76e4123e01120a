//! The soak: rounds that go well on every engine, and a wrong outcome that is found, shrunk and told.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "support/engines.rs"]
mod engines;

use assert_cmd::cargo::cargo_bin_cmd;
use native_fence::CrossAdapter;
use native_fence::abi::FenceId;
use native_fence::conform::spy::{DdiSpy, Moment};
use native_fence::kmd::{Ddi, Interrupt, NativeFenceSignaled};
use native_fence::soak::program::{
    Adder, Command, Held, KernelSignals, Mode, Named, Program, QueueProgram, Words,
};
use native_fence::soak::{
    Awaited, Burst, Cancel, ContextPlan, CpuWait, DeviceChoice, DevicePlan, Disturbance, Expected,
    Failure, FencePlan, Ground, HeirOutcome, How, Joint, Lap, Leaving, Outcome, ROUNDS_OF_A_GROUND,
    Round, Scope, Soak, SoakError, Tally, Target, Visit, WaitEnd, difference,
};
use native_fence::vulkan::validation;
use serde_json::Value;
use std::collections::{BTreeSet, HashSet};
use std::num::NonZeroU32;
use std::process::Output;
use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(200);

fn scope(seed: u64) -> Scope {
    Scope {
        seed,
        burst_signals: 2000,
        faults: false,
    }
}

/// The device that is tested on, if there is one.
fn device() -> Option<Target> {
    engines::shader()?;
    let validation = validation::asked_for_by_environment();
    Some(Target::Device(DeviceChoice {
        validation,
        ..DeviceChoice::default()
    }))
}

fn plays(scope: Scope, target: Target, rounds: impl Iterator<Item = u64>) -> Soak {
    let mut soak = Soak::new(scope, target);
    for round in rounds {
        if let Err(error) = soak.round(round) {
            panic!("{error}");
        }
    }
    soak
}

/// The failure of the first round that has one.
fn failure(soak: &mut Soak, rounds: impl IntoIterator<Item = u64>) -> Failure {
    for round in rounds {
        match soak.round(round) {
            Ok(()) => {}
            Err(SoakError::Failed(failure)) => return *failure,
            Err(error) => panic!("{error}"),
        }
    }
    panic!("nothing was found");
}

/// Rounds that are shrunk in no time.
fn short_rounds(scope: Scope) -> impl Iterator<Item = u64> {
    let is_short = move |round: &u64| scope.round(*round).program.packets() < 150;
    (0..).filter(is_short).take(40)
}

/// Kills `soak-bursts-are-not-executed`, `soak-the-last-submission-is-left-out`, `soak-additions-are-not-made`,
/// `soak-kernel-mode-waits-for-nothing`, `soak-own-words-are-taken`, `soak-nothing-is-rewound`,
/// `soak-a-queue-goes-without-work`.
#[test]
fn rounds_go_well_on_the_model() {
    let soak = plays(scope(1), Target::Model, 0..30);
    let tally = soak.tally();
    assert_eq!((tally.rounds, tally.adapters), (30, 2));
    assert_eq!((tally.faults, tally.recoveries), (0, 0));
    assert!(tally.signals > 30 * 1000, "{tally:?}");
    assert!(tally.cpu_waits > tally.timed_out && tally.timed_out > 0);
    assert!(tally.log_entries > 0 && tally.disturbances > 0);
    assert!(tally.interrupts > 0 && tally.notifications > 0);
    assert!(tally.transfers > 0 && tally.dispatches > 0, "{tally:?}");
    assert_has_kernel_mode(&tally);
    let of_what_goes = [
        tally.cancelled_waits,
        tally.visits,
        tally.visits_with_work,
        tally.rewinds,
    ];
    assert!(of_what_goes.iter().all(|count| *count > 0), "{tally:?}");
}

fn assert_has_kernel_mode(tally: &Tally) {
    assert!(tally.queues > tally.kernel_queues, "{tally:?}");
    let counts = [
        tally.kernel_queues,
        tally.kernel_waits,
        tally.kernel_signals,
        tally.monitored_fences,
    ];
    assert!(counts.iter().all(|count| *count > 0), "{tally:?}");
}

#[test]
fn rounds_go_well_on_the_device() {
    let Some(target) = device() else { return };
    let soak = plays(scope(2), target, 0..20);
    let tally = soak.tally();
    assert_eq!(tally.rounds, 20);
    assert!(tally.dispatches > 0, "{tally:?}");
    assert!(tally.signals > tally.model_signals && tally.model_signals > 0);
    assert_has_kernel_mode(&tally);
    assert_eq!(validation::messages(), Vec::<String>::new());
}

/// HQ-13: what comes of a round is the same where engines have fewer doorbells than queues.
///
/// Kills `soak-doorbells-are-enough`, `soak-no-driver-has-few-doorbells`.
#[test]
fn hq_13_rounds_go_well_with_one_doorbell() {
    let has_one = |number: &u64| scope(14).ground(*number).doorbells == NonZeroU32::new(1);
    let ground = (0..100).map(|ground| ground * ROUNDS_OF_A_GROUND);
    let first = ground.into_iter().find(has_one);
    let first = first.expect("one of some has");
    let targets = [Some(Target::Model), device()];
    for target in targets.into_iter().flatten() {
        let tally = plays(scope(14), target, first..first + 3).tally();
        assert!(tally.doorbells_taken > 0, "{tally:?}");
    }
}

/// The first of three rounds on a ground that is so, whose waiters sleep.
fn first_round_on(scope: Scope, is_so: impl Fn(&Ground) -> bool) -> u64 {
    let mut firsts = (0..100).map(|ground| ground * ROUNDS_OF_A_GROUND);
    let first = firsts.find(|number| {
        let ground = scope.ground(*number);
        !ground.is_polled && is_so(&ground)
    });
    first.expect("one of some is")
}

/// IN-07: what comes of a round is the same where interrupts name queues, and whom they wake is found in logs.
///
/// Kills `soak-interrupts-name-fences`.
#[test]
fn in_07_rounds_go_well_where_interrupts_name_queues() {
    let first = first_round_on(scope(15), |ground| ground.names_queues);
    let targets = [Some(Target::Model), device()];
    for target in targets.into_iter().flatten() {
        let tally = plays(scope(15), target, first..first + 3).tally();
        assert_eq!(tally.optimized_adapters, tally.adapters, "{tally:?}");
        assert!(tally.interrupts > 0, "{tally:?}");
    }
}

/// NF-16: what comes of a round is the same where engines adopt and log at addresses of the system process.
///
/// Kills `soak-all-is-mapped-once`.
#[test]
fn nf_16_rounds_go_well_where_all_is_mapped_twice() {
    let first = first_round_on(scope(16), |ground| ground.is_mapped_twice);
    let targets = [Some(Target::Model), device()];
    for target in targets.into_iter().flatten() {
        let tally = plays(scope(16), target, first..first + 3).tally();
        assert_eq!(tally.twice_mapped_adapters, tally.adapters, "{tally:?}");
    }
}

/// The first rounds of the scope that have a fault.
fn rounds_with_faults(scope: Scope, count: usize) -> Vec<u64> {
    let has_fault = |round: &u64| scope.round(*round).fault.is_some();
    (0..).filter(has_fault).take(count).collect()
}

/// TD-06, TD-14: the one whose packet was aborted is in error, and what comes of everybody else is the same as
/// without: nothing is lost, done twice or told wrongly.
///
/// Kills `soak-nobody-is-struck`, `soak-a-reset-that-was-not-asked-for-is-none`.
#[test]
fn td_06_a_fault_changes_nothing_for_others() {
    let faulty = Scope {
        faults: true,
        ..scope(3)
    };
    let targets = [Some(Target::Model), device()];
    for target in targets.into_iter().flatten() {
        let rounds = rounds_with_faults(faulty, 2);
        let soak = plays(faulty, target, rounds.into_iter());
        let tally = soak.tally();
        assert_eq!((tally.faults, tally.recoveries), (2, 2), "{tally:?}");
    }
    // Messages of the layers are about a device that is lost, and expected.
}

/// A round is drawn from the seed and its number, and from nothing else.
///
/// Kills `soak-all-rounds-are-one`.
#[test]
fn the_same_seed_gives_the_same_rounds() {
    let rounds = |seed| (0..40).map(move |number| scope(seed).round(number));
    assert!(rounds(7).eq(rounds(7)));
    assert!(rounds(7).zip(rounds(8)).all(|(a, b)| a != b));
    let texts: BTreeSet<_> = rounds(7).map(|round| format!("{round:?}")).collect();
    assert_eq!(texts.len(), 40);
}

/// What a program could ask for is asked for, sooner or later.
///
/// Kills `soak-no-queue-is-of-kernel-mode`, `soak-no-fence-is-monitored`, `soak-an-adapter-is-alone`,
/// `soak-no-fence-has-a-doorbell`, `soak-no-driver-names-queues`, `soak-no-driver-maps-twice`,
/// `soak-all-fences-start-at-0`, `soak-bursts-start-at-0`, `soak-nothing-is-taken`,
/// `soak-samples-of-bursts-pass-no-edge`, `soak-nobody-visits`, `soak-no-wait-is-dropped`, `soak-no-handle-is-closed`,
/// `soak-the-guilty-has-no-heir`.
#[test]
fn rounds_are_of_every_kind() {
    let rounds: Vec<_> = (0..200).map(|number| scope(9).round(number)).collect();
    let any = |is: &dyn Fn(&Round) -> bool| rounds.iter().any(is);
    for how in [How::Blocked, How::Event, How::Future] {
        for joint in [Joint::One, Joint::Any, Joint::All] {
            let is = |wait: &native_fence::soak::CpuWait| (wait.how, wait.joint) == (how, joint);
            assert!(
                any(&|round| round.waits.iter().any(is)),
                "{how:?} {joint:?}"
            );
        }
    }
    for disturbance in Disturbance::ALL {
        assert!(any(&|round| round.disturbances.contains(&disturbance)));
    }
    for adder in Adder::ALL {
        let adds = |command: &Command| matches!(command, Command::Add { by, .. } if *by == adder);
        let has_it = |round: &Round| {
            let queues = round.program.queues.iter();
            queues.flat_map(|queue| &queue.commands).any(adds)
        };
        assert!(any(&has_it), "{adder:?}");
    }
    for signals in KernelSignals::ALL {
        let both = |round: &Round| {
            let queues = round.program.queues.iter();
            let mut queues = queues.filter(|queue| queue.mode == Mode::Kernel(signals));
            queues.any(|queue| {
                let any = |is: fn(&Command) -> bool| queue.commands.iter().any(is);
                any(|command| matches!(command, Command::Wait(..)))
                    && any(|command| matches!(command, Command::Signal(..)))
            })
        };
        assert!(any(&both), "{signals:?}");
    }
    // Monitored fences that are signalled in each way, by the CPU, and that both wait for.
    let monitored = |round: &Round, fence: &usize| round.fences[*fence].is_monitored;
    for signals in KernelSignals::ALL {
        let is = |round: &Round| {
            let queues = round.program.queues.iter();
            let queues = queues.filter(|queue| queue.mode == Mode::Kernel(signals));
            let mut commands = queues.flat_map(|queue| &queue.commands);
            commands.any(
                |command| matches!(command, Command::Signal(fence, _) if monitored(round, fence)),
            )
        };
        assert!(any(&is), "{signals:?}");
    }
    assert!(any(&|round| {
        let mut signals = round.program.cpu.iter();
        signals.any(|(fence, _)| monitored(round, fence))
    }));
    assert!(any(&|round| {
        let mut awaited = round.waits.iter().flat_map(|wait| &wait.of);
        awaited.any(|of| matches!(&of.named, Named::Fence(fence) if monitored(round, fence)))
    }));
    assert!(any(&|round| {
        let mut commands = round
            .program
            .queues
            .iter()
            .flat_map(|queue| &queue.commands);
        commands.any(
            |command| matches!(command, Command::Wait(Named::Fence(fence), 1..) if monitored(round, fence)),
        )
    }));
    let is_of_user_mode = |round: &Round| {
        let mut queues = round.program.queues.iter();
        queues.all(|queue| queue.mode == Mode::User)
    };
    assert!(any(&is_of_user_mode));
    assert!(any(
        &|round| (0..round.fences.len()).any(|at| round.openers(at).len() > 1)
    ));
    assert!(any(&|round| round
        .fences
        .iter()
        .any(|fence| fence.is_local)));
    assert!(any(&|round| round.devices.len() == 3));
    for mode in [CrossAdapter::Propagated, CrossAdapter::Doorbell] {
        assert!(any(
            &|round| (0..round.fences.len()).any(|at| round.crosses(at) == Some(mode))
        ));
    }
    let grounds: Vec<_> = (0..200)
        .map(|number| scope(9).ground(16 * number))
        .collect();
    for nodes in 1..=3 {
        assert!(grounds.iter().any(|ground| ground.nodes == nodes));
    }
    assert!(grounds.iter().any(|ground| ground.is_polled));
    for names_queues in [false, true] {
        for is_mapped_twice in [false, true] {
            let form = (names_queues, is_mapped_twice);
            let is_so = |ground: &Ground| (ground.names_queues, ground.is_mapped_twice) == form;
            assert!(grounds.iter().any(is_so), "{form:?}");
        }
    }
    for taker in [false, true] {
        let takes = |round: &Round| {
            let mut queues = round.program.queues.iter();
            queues.any(|queue| {
                let mut commands = queue.commands.iter();
                queue.mode.is_kernel() == taker
                    && commands.any(|command| matches!(command, Command::Take { .. }))
            })
        };
        assert!(any(&takes), "of kernel mode: {taker}");
    }
    // Values that pass each edge of their arithmetic, but that monitored fences are narrow.
    let passes = |edge: u64, from: u64, to: u64| from < edge && edge <= to;
    for edge in [1 << 32, 1 << 63] {
        let by_program = |monitored: bool| {
            any(&|round| {
                let to = Expected::of(round).program.values;
                let mut fences = round
                    .fences
                    .iter()
                    .zip(round.program.initial.iter().zip(to));
                fences.any(|(fence, (from, to))| {
                    fence.is_monitored == monitored && passes(edge, *from, to)
                })
            })
        };
        assert!(by_program(false), "{edge:#x}");
        assert_eq!(by_program(true), edge == 1 << 32, "{edge:#x}");
        let by_burst = |burst: &Burst| passes(edge, burst.initial, burst.last());
        let bursts = || rounds.iter().flat_map(|round| &round.bursts);
        assert!(bursts().any(by_burst), "{edge:#x}");
        // What the model executes of it does as well.
        let mut of_both = bursts().filter(|burst| by_burst(burst));
        assert!(of_both.all(|burst| by_burst(&burst.sample())), "{edge:#x}");
    }
    let is_high = |value: &u64| *value > u64::MAX - (1 << 32);
    assert!(any(&|round| round.program.initial.iter().any(is_high)));
    assert!(any(&|round| {
        let mut bursts = round.bursts.iter();
        bursts.any(|burst| is_high(&burst.initial))
    }));
    assert!(any(&|round| round.program.initial.contains(&0)));
    for how in [How::Blocked, How::Event, How::Future] {
        for joint in [Joint::One, Joint::Any, Joint::All] {
            for cancel in [Cancel::Dropped, Cancel::Closed] {
                let form = (how, joint, Some(cancel));
                let is = |wait: &CpuWait| (wait.how, wait.joint, wait.cancel) == form;
                let can_be = (how, cancel) != (How::Blocked, Cancel::Dropped);
                let drawn = any(&|round| round.waits.iter().any(is));
                assert_eq!(drawn, can_be, "{form:?}");
            }
        }
    }
    let any_visit = |is: &dyn Fn(&Round, &Visit) -> bool| {
        any(&|round| round.visits.iter().any(|visit| is(round, visit)))
    };
    for leaving in Leaving::ALL {
        assert!(
            any_visit(&|_, visit| visit.leaving == leaving),
            "{leaving:?}"
        );
    }
    assert!(any_visit(&|_, visit| visit.rewinds() > 1));
    assert!(any_visit(&|_, visit| visit.thread > 0));
    assert!(any_visit(&|_, visit| visit
        .laps
        .iter()
        .any(|lap| lap.by_cpu)));
    let crosses = |round: &Round, one: usize, other: usize| {
        let adapter = |context: usize| round.devices[round.contexts[context].device].adapter;
        adapter(one) != adapter(other)
    };
    for crossing in [CrossAdapter::Propagated, CrossAdapter::Doorbell] {
        assert!(any_visit(&|round, visit| {
            visit.crosses == crossing && crosses(round, visit.signaller, visit.waiter)
        }));
    }
    assert!(any_visit(&|_, visit| {
        let mut falls = visit
            .laps
            .windows(2)
            .map(|pair| pair[0].to() - pair[1].from);
        falls.any(|fall| fall > 1 << 32)
    }));
    // What rises again passes each value that it fell back below.
    assert!(
        rounds
            .iter()
            .flat_map(|round| &round.visits)
            .all(|visit| { !visit.laps.is_empty() && visit.falls() })
    );
    // And some rise above what was waited for in vain before, by a wait that was dropped.
    assert!(any_visit(&|_, visit| {
        let mut pairs = visit.laps.windows(2);
        pairs.any(|pair| pair[1].to() > pair[0].to())
    }));
    let faulty = Scope {
        faults: true,
        ..scope(9)
    };
    let heirs = (0..200).filter_map(|number| {
        let round = faulty.round(number);
        let heir = round.fault?.heir?;
        let device = round.contexts[heir.context].device;
        Some((heir.goes_on, round.devices[device].adapter))
    });
    let heirs: BTreeSet<_> = heirs.collect();
    assert_eq!(heirs.len(), 4, "{heirs:?}");
    // All of it comes to its end, as command lists can say it.
    for round in &rounds {
        let expected = Expected::of(round);
        for (at, (queue, end)) in round
            .program
            .queues
            .iter()
            .zip(&expected.program.queues)
            .enumerate()
        {
            assert_eq!(queue.commands.len() as u64, end.read);
            assert!(round.submissions(at).all(|commands| {
                commands.len() as u64 <= queue.capacity
                    && matches!(commands.last(), Some(Command::Progress(_)))
            }));
        }
    }
}

/// A wrong word in what a queue copied is found; the case that is told has the copy and hardly more, and the seed.
///
/// Kills `soak-transfers-are-not-compared`, `soak-nothing-is-shrunk`, `soak-a-case-that-cannot-end-is-the-least`.
#[test]
fn a_wrong_word_is_found_shrunk_and_told() {
    let copies = |round: &Round| {
        let queues = round.program.queues.iter();
        queues
            .flat_map(|queue| &queue.commands)
            .filter(|command| matches!(command, Command::Copy(..)))
            .count()
    };
    let spoil = move |round: &Round, outcome: &mut Outcome| {
        if copies(round) > 0 {
            outcome.queues[0].memory.0[2][7] ^= 1;
        }
    };
    let mut soak = Soak::new(scope(4), Target::Model).spoilt(Arc::new(spoil));
    let failure = failure(&mut soak, short_rounds(scope(4)));
    assert_eq!(failure.seed, 4);
    assert!(failure.what.contains("allocation 2, word 7"), "{failure}");
    assert_eq!(copies(&failure.least), 1, "{failure}");
    // The copy, and what ends its submission.
    assert_eq!(failure.least.program.packets(), 2, "{failure}");
    assert!(failure.least.waits.is_empty() && failure.least.bursts.is_empty());
    let told = failure.to_string();
    assert!(told.contains("seed 4, round "), "{told}");
    assert!(told.contains("copy "), "{told}");
    assert!(failure.shows.is_some());
}

/// What the operating system did for a kernel-mode queue is compared as well: a signal too many is found, and the case that
/// is told has the queue, of its mode.
///
/// Kills `soak-a-case-says-no-mode`.
#[test]
fn a_kernel_mode_queue_that_goes_wrong_is_found_shrunk_and_told() {
    let signals = |round: &Round| {
        let mut queues = round.program.queues.iter();
        queues.position(|queue| {
            let mut commands = queue.commands.iter();
            queue.mode.is_kernel() && commands.any(|of| matches!(of, Command::Signal(..)))
        })
    };
    let spoil = move |round: &Round, outcome: &mut Outcome| {
        if let Some(queue) = signals(round) {
            let entries = &mut outcome.queues[queue].logs[1].entries;
            entries.extend(entries.last().copied());
        }
    };
    let mut soak = Soak::new(scope(12), Target::Model).spoilt(Arc::new(spoil));
    let failure = failure(&mut soak, short_rounds(scope(12)));
    assert!(failure.what.contains("log of signals"), "{failure}");
    // The signal, and what ends its submission.
    assert_eq!(failure.least.program.packets(), 2, "{failure}");
    assert!(signals(&failure.least).is_some());
    let told = failure.to_string();
    assert!(told.contains("of kernel mode, signals "), "{told}");
    assert!(told.contains("signal fence "), "{told}");
}

/// A monitored fence that stands elsewhere than it must is found, and the case that is told says that it is one.
///
/// Kills `soak-a-case-says-no-monitored-fence`.
#[test]
fn a_monitored_fence_that_stands_elsewhere_is_found_shrunk_and_told() {
    let monitored = |round: &Round| {
        let mut commands = round
            .program
            .queues
            .iter()
            .flat_map(|queue| &queue.commands);
        commands.find_map(|command| match command {
            Command::Signal(fence, _) => round.fences[*fence].is_monitored.then_some(*fence),
            _ => None,
        })
    };
    let spoil = move |round: &Round, outcome: &mut Outcome| {
        if let Some(fence) = monitored(round) {
            outcome.values[fence] -= 1;
        }
    };
    let mut soak = Soak::new(scope(13), Target::Model).spoilt(Arc::new(spoil));
    let failure = failure(&mut soak, short_rounds(scope(13)));
    assert!(failure.what.contains("fence "), "{failure}");
    assert_eq!(failure.least.program.packets(), 2, "{failure}");
    let told = failure.to_string();
    assert!(told.contains("monitored, of device 0"), "{told}");
}

/// Each part of an outcome is compared: one that is spoilt in it is found.
///
/// Kills `soak-logs-are-not-compared`, `soak-a-burst-is-not-counted`, `soak-a-waiter-that-was-not-woken-is-well`,
/// `soak-values-are-not-compared`, `soak-an-entry-that-was-lost-is-well`, `soak-a-burst-may-lose-all`,
/// `soak-a-value-left-low-is-well`, `soak-interrupts-for-nobody-are-well`, `soak-backward-signals-are-well`,
/// `soak-a-rewound-fence-is-anywhere`, `soak-a-queue-may-pass-its-wait`, `soak-a-satisfied-wait-is-forgotten`,
/// `soak-a-cancelled-wait-may-come`, `soak-what-is-left-undone-is-done`, `soak-words-of-a-visit-are-not-compared`,
/// `soak-logs-of-a-visit-are-not-compared`, `soak-what-goes-is-not-told`, `soak-a-closed-handle-tells-nobody`.
#[test]
fn whatever_is_wrong_is_found() {
    type Spoil = fn(&Expected, &mut Outcome) -> Option<()>;
    let spoils: [(&str, Spoil); 28] = [
        ("fence ", |_, outcome| {
            outcome.values[0] += 1;
            Some(())
        }),
        ("and came to progress", |_, outcome| {
            outcome.queues[0].progress += 1;
            Some(())
        }),
        ("packets and came to", |_, outcome| {
            outcome.queues[0].read += 1;
            Some(())
        }),
        ("was not woken", |_, outcome| {
            let mut ends = outcome.waits.iter_mut();
            *ends.find(|end| **end == WaitEnd::Came)? = WaitEnd::TimedOut;
            Some(())
        }),
        ("its value never came", |_, outcome| {
            let mut ends = outcome.waits.iter_mut();
            *ends.find(|end| **end == WaitEnd::TimedOut)? = WaitEnd::Came;
            Some(())
        }),
        ("is not due there", |_, outcome| {
            let mut queues = outcome.queues.iter_mut();
            let log = queues.find_map(|queue| {
                let log = &mut queue.logs[1].entries;
                (log.len() > 1 && log[0] != log[1]).then_some(log)
            })?;
            log.swap(0, 1);
            Some(())
        }),
        ("entries instead of", |_, outcome| {
            outcome.queues[0].logs[0].lost += 1;
            Some(())
        }),
        ("entries logged", |_, outcome| {
            outcome.bursts[0].logged -= 1;
            Some(())
        }),
        ("was stopped", |_, outcome| {
            outcome.queues[0].stopped = Some("by nobody".into());
            Some(())
        }),
        ("and holds as many", |expected, outcome| {
            let logs = outcome.queues.iter_mut().flat_map(|queue| &mut queue.logs);
            let mut logs = logs.filter(|log| (1..84).contains(&log.entries.len()) && log.lost == 0);
            let log = logs.next().filter(|_| expected.logs_stay)?;
            log.entries.pop();
            log.lost = 1;
            Some(())
        }),
        ("when it had room for", |expected, outcome| {
            let look = &mut outcome.bursts[0].last_look;
            let all = Some(look[0] + look[1]).filter(|all| *all > 0 && expected.logs_stay)?;
            *look = [0, all];
            Some(())
        }),
        ("and its MonitoredValue is 7", |_, outcome| {
            let fence = outcome.fences.iter_mut().flatten().next()?;
            fence.monitored_value = 7;
            Some(())
        }),
        ("its fence: nobody waits", |_, outcome| {
            outcome.bursts[0].fence.monitored_value = 7;
            Some(())
        }),
        ("interrupts named it", |_, outcome| {
            let mut fences = outcome.fences.iter_mut().flatten();
            fences.find(|fence| !fence.was_awaited)?.named = 1;
            Some(())
        }),
        ("below the value before", |_, outcome| {
            outcome.backward_signals = 1;
            Some(())
        }),
        ("is not told that its handle is closed", |_, outcome| {
            let mut ends = outcome.waits.iter_mut();
            *ends.find(|end| **end == WaitEnd::Closed)? = WaitEnd::TimedOut;
            Some(())
        }),
        ("ended otherwise: Closed", |_, outcome| {
            let mut ends = outcome.waits.iter_mut();
            *ends.find(|end| **end == WaitEnd::Dropped)? = WaitEnd::Closed;
            Some(())
        }),
        ("its fence stood at", |_, outcome| {
            outcome.visits.first_mut()?.values[0][1] += 1;
            Some(())
        }),
        ("the queue that waits had done", |_, outcome| {
            outcome.visits.first_mut()?.passed[0] = 1;
            Some(())
        }),
        ("the wait for the end of lap 0", |_, outcome| {
            outcome.visits.first_mut()?.waits[0][0] = WaitEnd::TimedOut;
            Some(())
        }),
        ("satisfied in lap 0 is not any more", |_, outcome| {
            outcome.visits.first_mut()?.waits[0][1] = WaitEnd::TimedOut;
            Some(())
        }),
        ("more than comes in lap 0: Came", |_, outcome| {
            outcome.visits.first_mut()?.waits[0][2] = WaitEnd::Came;
            Some(())
        }),
        ("behind its waits stands", |_, outcome| {
            outcome.visits.first_mut()?.words[0] = 9;
            Some(())
        }),
        ("its log of signals: ", |_, outcome| {
            outcome.visits.first_mut()?.logs[1].lost += 1;
            Some(())
        }),
        ("its fence: nobody waits for it", |_, outcome| {
            let mut visits = outcome.visits.iter_mut();
            let fence = visits.find_map(|visit| visit.fence.as_mut())?;
            fence.monitored_value = 7;
            Some(())
        }),
        ("progress of the queue that goes", |_, outcome| {
            let end = &mut outcome.visits.first_mut()?.left[0];
            let is_well = *end == WaitEnd::Came;
            *end = if is_well {
                WaitEnd::Lost
            } else {
                WaitEnd::Came
            };
            Some(())
        }),
        ("by the handle of the queue that goes", |_, outcome| {
            let mut ends = outcome.visits.iter_mut().map(|visit| &mut visit.left[1]);
            *ends.find(|end| **end == WaitEnd::Came)? = WaitEnd::TimedOut;
            Some(())
        }),
        ("in the end instead of", |_, outcome| {
            outcome.visits.first_mut()?.last += 1;
            Some(())
        }),
    ];
    let of_the_foretold_alone = [
        "is not due there",
        "entries instead of",
        "entries logged",
        "and holds as many",
        "when it had room for",
        "and its MonitoredValue is 7",
        "its fence: nobody waits",
        "interrupts named it",
        "below the value before",
        "its log of signals: ",
        "its fence: nobody waits for it",
    ];
    let mut soak = Soak::new(scope(5), Target::Model);
    let (sent, outcomes) = std::sync::mpsc::channel();
    soak = soak.spoilt(Arc::new(move |round: &Round, outcome: &mut Outcome| {
        sent.send((round.clone(), outcome.clone())).unwrap();
    }));
    for round in 0..20 {
        soak.round(round).unwrap();
    }
    let mut found = BTreeSet::new();
    while let Ok((round, outcome)) = outcomes.try_recv() {
        let expected = Expected::of(&round);
        assert_eq!(expected.difference(&outcome, &round, &round.bursts), None);
        for (number, (what, spoil)) in spoils.iter().enumerate() {
            let mut spoilt = outcome.clone();
            if spoil(&expected, &mut spoilt).is_none() {
                continue;
            }
            let how = expected.difference(&spoilt, &round, &round.bursts);
            let how = how.unwrap_or_else(|| panic!("{what} was not found"));
            assert!(how.contains(what), "{how}");
            let is_of_both = !of_the_foretold_alone.contains(what);
            assert_eq!(
                difference(&outcome, &spoilt).is_some(),
                is_of_both,
                "{what}"
            );
            found.insert(number);
        }
    }
    assert_eq!(found.len(), spoils.len(), "{found:?}");
}

/// A fence that is not where it was rewound to is found; the case that is told has one visit, with one rewind.
///
/// Kills `soak-visits-are-not-shrunk`, `soak-a-case-says-no-visit`.
#[test]
fn a_rewind_that_goes_wrong_is_found_shrunk_and_told() {
    let spoil = |_: &Round, outcome: &mut Outcome| {
        let mut visits = outcome.visits.iter_mut();
        if let Some(visit) = visits.find(|visit| visit.values.len() > 2) {
            visit.values[2][0] += 1;
        }
    };
    let mut soak = Soak::new(scope(21), Target::Model).spoilt(Arc::new(spoil));
    let failure = failure(&mut soak, short_rounds(scope(21)));
    assert!(failure.what.contains("its fence stood at"), "{failure}");
    assert_eq!(failure.least.program.packets(), 0, "{failure}");
    assert!(failure.least.waits.is_empty() && failure.least.bursts.is_empty());
    let visits = &failure.least.visits;
    assert_eq!(visits.len(), 1, "{failure}");
    assert!(matches!(visits[0].laps[..], [_, Lap { signals: 1, .. }]));
    let told = failure.to_string();
    assert!(
        told.contains("visit 0, thread ") && told.contains(", rewound to "),
        "{told}"
    );
}

/// TD-14, XA-11: who has a fence open that a lost device could signal is told of the loss, and its queue goes on, on the
/// adapter of the loss and on the other; unless the fence was made to go on.
///
/// Kills `soak-what-an-heir-sees-is-well`, `soak-no-fence-goes-on`, `soak-an-heir-may-be-told-late`,
/// `soak-an-heirs-queue-may-pass-late`.
#[test]
fn td_14_heirs_of_a_lost_fence_are_told_or_go_on() {
    let faulty = Scope {
        faults: true,
        burst_signals: 0,
        ..scope(22)
    };
    let form = |number: &u64| {
        let round = faulty.round(*number);
        let heir = round.fault?.heir?;
        let device = round.contexts[heir.context].device;
        Some((heir.goes_on, round.devices[device].adapter))
    };
    let commands = |number: &u64| {
        let queues = faulty.round(*number).program.queues;
        queues
            .iter()
            .map(|queue| queue.commands.len())
            .sum::<usize>()
    };
    let targets = [Some(Target::Model), device()];
    for target in targets.into_iter().flatten() {
        // Engines of a device are the same on both adapters.
        let forms = match target {
            Target::Model => &[(false, 0), (true, 1), (true, 0), (false, 1)][..],
            Target::Device(_) => &[(false, 1), (true, 0)],
        };
        for wanted in forms.iter().copied() {
            let numbers = (0..10_000).filter(|number| form(number) == Some(wanted));
            // The rest of the round is not what this is about.
            let number = numbers.take(20).min_by_key(commands).unwrap();
            let (sent, outcomes) = mpsc::channel();
            let told = move |_: &Round, outcome: &mut Outcome| {
                sent.send(outcome.heir.clone()).unwrap_or_default();
            };
            let mut soak = Soak::new(faulty, target.clone()).spoilt(Arc::new(told));
            soak.round(number).unwrap();
            assert_eq!(soak.tally().heirs, soak.tally().faults, "{wanted:?}");
            let Ok(seen) = outcomes.try_recv() else {
                // The guilty had done all before.
                assert_eq!(soak.tally().unforetold, 1);
                continue;
            };
            let seen = seen.expect("there is one");
            let heir = faulty.round(number).fault.unwrap().heir.unwrap();
            assert_eq!(heir.difference(&seen), None);
            let otherwise = HeirOutcome {
                by_loss: seen.by_loss.clone().map(|_| WaitEnd::Closed),
                ..seen.clone()
            };
            assert!(heir.difference(&otherwise).is_some());
            let elsewhere = HeirOutcome {
                values: [1, 1],
                ..seen.clone()
            };
            assert!(heir.difference(&elsewhere).is_some());
            let [first, ..] = seen.by_signal.clone();
            let is_left = HeirOutcome {
                by_signal: [first, WaitEnd::Came, WaitEnd::TimedOut],
                ..seen.clone()
            };
            assert!(heir.difference(&is_left).is_some());
            // What is told after the look, as of a fence that does the other.
            let first = if heir.goes_on {
                WaitEnd::Lost
            } else {
                WaitEnd::Came
            };
            let too_late = HeirOutcome {
                by_signal: [first, WaitEnd::Came, WaitEnd::Came],
                ..seen.clone()
            };
            assert!(heir.difference(&too_late).is_some());
            let passed_otherwise = HeirOutcome {
                word: 1 - seen.word,
                ..seen
            };
            assert!(heir.difference(&passed_otherwise).is_some());
        }
    }
}

/// What is shrunk is the failure that was found, and not another that comes with less.
///
/// Kills `soak-the-least-shows-something-else`.
#[test]
fn the_least_shows_what_was_found() {
    let copies = |round: &Round| {
        let mut commands = round
            .program
            .queues
            .iter()
            .flat_map(|queue| &queue.commands);
        commands.any(|command| matches!(command, Command::Copy(..)))
    };
    let spoil = move |round: &Round, outcome: &mut Outcome| {
        if copies(round) {
            outcome.queues[0].memory.0[2][7] ^= 1;
        } else {
            outcome.values[0] += 1;
        }
    };
    let with_copies = short_rounds(scope(4)).filter(|round| copies(&scope(4).round(*round)));
    let mut soak = Soak::new(scope(4), Target::Model).spoilt(Arc::new(spoil));
    let failure = failure(&mut soak, with_copies);
    assert!(failure.what.contains("allocation 2, word 7"), "{failure}");
    assert!(copies(&failure.least), "{failure}");
    let shows = failure.shows.as_deref().unwrap();
    assert!(shows.contains("allocation 2, word 7"), "{failure}");
}

/// Words that one queue takes of another are there behind the taker's wait, and stay: a take without that wait is left out,
/// and one of words that their owner stores to later.
///
/// Kills `soak-takes-are-not-guarded`, `soak-words-that-change-are-taken`.
#[test]
fn what_is_taken_is_there_and_stays() {
    let takes = |program: &Program| {
        let commands = program.queues.iter().flat_map(|queue| &queue.commands);
        let takes = commands.filter_map(|command| match *command {
            Command::Take {
                queue,
                from,
                first,
                to,
            } => Some((
                queue,
                Words {
                    of: from,
                    first,
                    count: to.count,
                },
            )),
            _ => None,
        });
        takes.collect::<Vec<_>>()
    };
    let mut seen = 0;
    for number in 0..60 {
        let program = scope(9).round(number).program;
        let all = takes(&program);
        seen += all.len();
        let left = |change: &dyn Fn(&mut Program)| {
            let mut changed = program.clone();
            change(&mut changed);
            changed.leave_out_unguarded(|_, _| true);
            takes(&changed).len()
        };
        assert_eq!(left(&|_| {}), all.len());
        let no_waits = |program: &mut Program| {
            let queues = program.queues.iter_mut();
            for command in queues.flat_map(|queue| &mut queue.commands) {
                if matches!(command, Command::Wait(..)) {
                    *command = Command::Nop;
                }
            }
        };
        assert_eq!(left(&no_waits), 0);
        let stores_later = |program: &mut Program| {
            for (owner, words) in &all {
                let later = Command::Fill(*words, 1);
                program.queues[*owner].commands.push(later);
            }
        };
        assert_eq!(left(&stores_later), 0);
    }
    assert!(seen > 20, "{seen}");
}

/// Nobody is told of values above this where [`deaf`] stands before a driver.
const UNTOLD: u64 = 1000;

/// Within this all comes that does, where [`deaf`] stands before a driver.
const IN_TIME: Duration = Duration::from_secs(4);

/// Loses the names of fences in interrupts, of such values, and keeps the CPU's signals until so many fences are waited for:
/// a wait that begins late needs no wake-up.
fn deaf(driver: Arc<dyn Ddi>, waits: usize) -> Arc<dyn Ddi> {
    let spy = DdiSpy::over(driver);
    spy.on_interrupt(|interrupt| {
        if let Interrupt::NativeFenceSignaled(NativeFenceSignaled {
            fences: Some(fences),
            ..
        }) = interrupt
        {
            fences.retain(|fence| fence.value <= UNTOLD);
        }
    });
    let awaited: Mutex<HashSet<FenceId>> = Mutex::default();
    let is_posted = Condvar::new();
    spy.hook(move |moment, values| {
        let mut awaited = awaited.lock().unwrap();
        if moment == Moment::AfterUpdateOfMonitoredValues {
            // Who waits for the next value is told of it above this one.
            let posted = values.iter().filter(|(_, value)| *value == UNTOLD);
            awaited.extend(posted.map(|(fence, _)| *fence));
            is_posted.notify_all();
        } else if moment == Moment::BeforeUpdateOfCurrentValues {
            // No longer than the round has: another one is played then.
            let is_missing = |awaited: &mut HashSet<_>| awaited.len() < waits;
            let all = is_posted.wait_timeout_while(awaited, IN_TIME / 2, is_missing);
            drop(all.unwrap());
        }
    });
    spy
}

/// A wait for the fence of this number, by a thread of its own, of whose value nobody is told.
fn untold_wait(fence: usize, how: How, joint: Joint) -> CpuWait {
    CpuWait {
        thread: fence,
        how,
        joint,
        of: vec![Awaited {
            named: Named::Fence(fence),
            device: 0,
            value: UNTOLD + 1,
        }],
        cancel: None,
    }
}

/// A queue that signals a fence for each wait, of which nobody is told then: once the CPU has let it, and it was at work for
/// a while.
fn late_signals(waits: Vec<CpuWait>, bursts: Vec<Burst>) -> Round {
    let all = Words {
        of: Held::Parts,
        first: 0,
        count: Held::Parts.words(),
    };
    let let_on = waits.len();
    let mut commands = vec![Command::Wait(Named::Fence(let_on), 1)];
    commands.extend([Command::Fill(all, 1); 20]);
    commands.extend((0..let_on).map(|fence| Command::Signal(fence, UNTOLD + 1)));
    commands.push(Command::Progress(1));
    let fence = FencePlan {
        home: 0,
        is_local: false,
        is_monitored: false,
        crosses: CrossAdapter::Propagated,
    };
    let mut initial = vec![UNTOLD; let_on];
    initial.push(0);
    Round {
        devices: vec![DevicePlan { adapter: 0 }],
        contexts: vec![ContextPlan { device: 0, node: 0 }],
        places: vec![0],
        fences: vec![fence; initial.len()],
        program: Program {
            initial,
            queues: vec![QueueProgram {
                mode: Mode::User,
                capacity: 64,
                commands,
                bad_index: None,
            }],
            cpu: vec![(let_on, 1)],
        },
        waits,
        disturbances: Vec::new(),
        bursts,
        visits: Vec::new(),
        fault: None,
    }
}

/// Plays a round where wake-ups are lost, until they are.
fn played_deaf(round: &Round, lost: impl Fn(&Failure, Option<Vec<WaitEnd>>) -> bool) -> bool {
    let waits = round.waits.len();
    (17..20).any(|seed| {
        let is_plain = |ground: &Ground| ground.adapters == 1 && !ground.names_queues;
        let number = first_round_on(scope(seed), is_plain);
        let (sent, outcomes) = mpsc::channel();
        let told = move |_: &Round, outcome: &mut Outcome| {
            sent.send(outcome.waits.clone()).unwrap_or_default();
        };
        let mut soak = Soak::new(scope(seed), Target::Model)
            .over(Arc::new(move |driver| deaf(driver, waits)))
            .within(IN_TIME)
            .spoilt(Arc::new(told));
        match soak.play(number, round) {
            Ok(()) => false,
            Err(SoakError::Failed(failure)) => lost(&failure, outcomes.try_recv().ok()),
            Err(error) => panic!("{error}"),
        }
    })
}

/// A value that is there when a wait's time is over has not ended it in time, by whatever it is waited for: nobody was
/// told. So a wake-up that is lost is found.
///
/// Kills `soak-a-thread-that-looks-itself-is-woken`, `soak-an-event-that-tells-nothing-is-well`,
/// `soak-a-future-that-nobody-wakes-is-well`.
#[test]
fn a_wait_that_nobody_woke_has_not_come() {
    let mut waits = Vec::new();
    for how in [How::Blocked, How::Event, How::Future] {
        for joint in [Joint::One, Joint::Any, Joint::All] {
            waits.push(untold_wait(waits.len(), how, joint));
        }
    }
    let count = waits.len();
    let is_lost = played_deaf(&late_signals(waits, Vec::new()), |failure, ends| {
        let all = vec![WaitEnd::TimedOut; count];
        failure.what.contains("CPU wait 0 was not woken") && ends == Some(all)
    });
    assert!(is_lost, "some wait has come though nobody was told");
}

/// The same of those that sleep in the midst of a burst.
///
/// Kills `soak-a-sleeper-of-a-burst-that-looks-itself-is-woken`.
#[test]
fn a_sleeper_of_a_burst_that_nobody_woke_is_found() {
    let burst = Burst {
        context: 0,
        capacity: 2048,
        signals: 1000,
        lists: 40,
        is_local: false,
        initial: UNTOLD,
    };
    let is_lost = played_deaf(&late_signals(Vec::new(), vec![burst]), |failure, _| {
        failure.what.contains("burst 0: a wait for ") && failure.what.contains(" was not woken")
    });
    assert!(is_lost, "all sleepers are said to be woken");
}

fn soak(arguments: &[&str]) -> Output {
    let mut command = cargo_bin_cmd!("nfence");
    command.arg("soak").args(arguments).timeout(PATIENCE);
    command.output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn the_command_says_what_was_done() {
    let arguments = [
        "--engine",
        "model",
        "--signals",
        "3e4",
        "--seed",
        "6",
        "--json",
        "-",
    ];
    let output = soak(&arguments);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["ended"], "reached");
    assert_eq!((&json["seed"], &json["faults"]), (&6.into(), &false.into()));
    assert!(json["tally"]["signals"].as_u64().unwrap() >= 30_000);
    assert!(json["signals_per_second"].as_f64().unwrap() > 0.0);
    assert_eq!(json["failure"], Value::Null);
    let said = text(&output.stderr);
    assert!(said.contains("All was as foretold."), "{said}");
}

/// A failure is told with its seed and round, the case, and the line that plays it again; that line fails as well.
///
/// Kills `soak-a-failure-is-no-failure`.
#[test]
fn the_command_tells_of_a_failure_and_how_to_see_it_again() {
    let output = soak(&["--engine", "model", "--seed", "8", "--spoil"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = text(&output.stdout);
    let again = said
        .lines()
        .find_map(|line| line.strip_prefix("again: nfence soak "));
    let again = again.unwrap_or_else(|| panic!("{said}"));
    assert!(said.contains("Differs: seed 8, round "), "{said}");
    assert!(said.contains("    copy "), "{said}");
    let arguments: Vec<_> = again.split(' ').chain(["--spoil", "--json", "-"]).collect();
    let output = soak(&arguments);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["ended"], "failed");
    assert!(
        again.contains(&format!("--round {} ", json["failure"]["round"])),
        "{again}"
    );
    assert!(
        json["failure"]["what"]
            .as_str()
            .unwrap()
            .contains("allocation 1, word 0")
    );
}

#[test]
fn the_command_refuses_what_cannot_be() {
    for (arguments, complaint) in [
        (&["--signals", "0"][..], "a whole number above 0"),
        (&["--signals", "1.5e9"], "a whole number above 0"),
        (&["--for", "ten"], "a time above 0"),
        (&["--seconds", "0"], "--seconds"),
        (&["--seconds", "3", "--for", "3s"], "cannot be used with"),
        (&["--round", "3", "--signals", "9"], "cannot be used with"),
        (&["--engine", "abacus"], "[possible values: shader, model]"),
    ] {
        let output = soak(arguments);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(text(&output.stderr).contains(complaint), "{output:?}");
    }
    let help = text(&soak(&["--help"]).stdout);
    for part in [
        "Examples:",
        "Exit codes:",
        "--faults",
        "--signals",
        "forever",
    ] {
        assert!(help.contains(part), "{help}");
    }
    let output = soak(&["--engine", "model", "--device", "x"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(text(&output.stderr).contains("--device is of no use"));
    let output = soak(&["--device", "no such device"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
}
