//! Cross-adapter fences with a doorbell, by which the engines of two adapters wake each other (XA-10).

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
    pub(crate) mod two_benches;
}

use native_fence::abi::{CrossDoorbellLine, CrossDoorbells, NO_CPU_WAITER};
use native_fence::gpu::{MemoryAccess, MemoryObserver, ModelOptions, NodePolicy};
use native_fence::os::{OsError, PassFenceError};
use native_fence::{CommandList, CreateError, CrossAdapter, Fence, FenceOptions, HwQueue};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use support::bench::{
    Bench, complete, model_is_asked_for, monitored_value, native, try_until, until, until_completed,
};
use support::two_benches::{
    Nudge, Seen, cross_adapter_by, in_one_slice, on_two_benches, on_two_benches_of,
    on_two_benches_with, on_two_kinds, restless, seen,
};

fn with_doorbell(made: &Bench, opened: &Bench) -> (Fence, Fence) {
    cross_adapter_by(CrossAdapter::Doorbell, made, opened, 0)
}

/// What drivers have seen of a fence: nothing of what the OS would do for a wake-up.
fn assert_unseen(benches: [&Bench; 2], fences: &[(Fence, Fence)]) {
    for (here, there) in fences {
        assert_eq!(seen(&benches[0].spy, here), []);
        assert_eq!(seen(&benches[1].spy, there), []);
    }
}

/// Slices of both: an engine that is not let go has one, and the OS has nothing to do about its waits.
fn slices(benches: [&Bench; 2]) -> u64 {
    benches.iter().map(|bench| bench.counters().slices).sum()
}

/// XA-10: two queues of two adapters hand two fences to and fro, and no driver hears anything of it: neither an
/// interrupt nor a call.
///
/// Kills `the-model-does-not-ring`, `the-shader-does-not-ring`.
#[test]
fn xa_10_a_ring_wakes_without_the_cpu() {
    const ROUNDS: u64 = 200;
    on_two_benches_with(restless(), |one, other| {
        let fences = [with_doorbell(one, other), with_doorbell(one, other)];
        let [(there, there_too), (back, back_too)] = &fences;
        let (mut first, mut second) = (one.queue(), other.queue());
        let mut value = 0;
        // A machine with less than two cores to spare lets an engine go, and then it is the OS that brings it back.
        try_until("nobody is let go", |_| {
            // Both run, and stand at nothing.
            value += 1;
            let awake = second.submit(CommandList::new().wait(there_too, value));
            complete(&mut first, CommandList::new().signal(there, value));
            until_completed(&second, awake.unwrap());
            one.spy.take();
            other.spy.take();
            let before = slices([one, other]);
            let (mut list, mut answers) = (CommandList::new(), CommandList::new());
            for _ in 0..ROUNDS {
                value += 1;
                list.signal(there, value).wait(back, value);
                answers.wait(there_too, value).signal(back_too, value);
            }
            let answered = second.submit(&answers).unwrap();
            let ended = first.submit(&list).unwrap();
            until_completed(&first, ended);
            until_completed(&second, answered);
            let is_alone = slices([one, other]) == before;
            if is_alone {
                assert_unseen([one, other], &fences);
            }
            is_alone
        });
        assert_eq!(there.current_value(), value);
    });
}

/// Stores CurrentValue as nobody does who signals.
fn store_unrung(fence: &Fence, value: u64) {
    let (region, offset) = native(fence).current_value_place();
    region.host().unwrap().word(offset).publish(value);
}

/// XA-10: only the queues are looked at that wait for the fence which was rung for. Others stand though what they wait
/// for has come, since that was stored without a ring; until they are rung for.
///
/// Kills `closed-queues-are-looked-at`, `every-ring-opens-all`, `closed-registers-are-looked-at`, `any-name-opens`.
#[test]
fn xa_10_only_the_queues_that_wait_for_it_are_looked_at() {
    // More than an engine has lanes: some share one, and are looked at in memory; and more than it has places for names.
    const QUEUES: usize = 40;
    // A driver that cuts loops, as lavapipe 22, ends slices all the time, and each begins with a look at all.
    const ATTEMPTS: u64 = 3;
    on_two_benches_with(restless(), |one, other| {
        let fences: Vec<_> = (0..QUEUES).map(|_| with_doorbell(one, other)).collect();
        let mut nudge = Nudge::new(one, other);
        let mut signaller = one.queue();
        let mut queues: Vec<_> = fences.iter().map(|_| other.queue()).collect();
        other.initialised(0);
        let is_cut = !other.is_model() && other.info().ends_loops();
        try_until("no slice begins meanwhile", |attempt| {
            let waited = 2 * attempt;
            let submit = |(queue, (_, there)): (&mut HwQueue, &(Fence, Fence))| {
                queue
                    .submit(CommandList::new().wait(there, waited))
                    .unwrap()
            };
            let ends: Vec<_> = queues.iter_mut().zip(&fences).map(submit).collect();
            // The engine has looked at all that came before.
            nudge.times(3);
            let slices = other.counters().slices;
            for (here, _) in &fences {
                store_unrung(here, waited);
            }
            nudge.times(50);
            let goes_on =
                |(queue, end): &(&HwQueue, &u64)| queue.progress_fence().current_value() >= **end;
            let looked_at = queues.iter().zip(&ends).filter(goes_on).count();
            let is_undisturbed = other.counters().slices == slices;
            if is_undisturbed {
                assert_eq!(looked_at, 0, "queues were looked at that nobody rang for");
            }
            for ((here, _), (queue, end)) in fences.iter().zip(queues.iter().zip(&ends)) {
                complete(&mut signaller, CommandList::new().signal(here, waited + 1));
                until_completed(queue, *end);
            }
            let is_left_out = !is_undisturbed && is_cut && attempt == ATTEMPTS;
            if is_left_out {
                println!("the driver has ended slices all the time: left out");
            }
            is_undisturbed || is_left_out
        });
    });
}

/// XA-10: signals that nobody on a CPU waits for interrupt nobody, of whichever adapter; and MonitoredValue says that
/// nobody waits.
///
/// Kills `a-doorbell-fence-is-propagated`.
#[test]
fn xa_10_unwatched_signals_interrupt_nobody() {
    const SIGNALS: u64 = 100;
    on_two_benches(|one, other| {
        let fences = with_doorbell(one, other);
        let (mut here, mut there) = (one.queue(), other.queue());
        one.spy.take();
        other.spy.take();
        for value in 1..=SIGNALS {
            complete(&mut here, CommandList::new().signal(&fences.0, 2 * value));
            complete(
                &mut there,
                CommandList::new().signal(&fences.1, 2 * value + 1),
            );
        }
        one.until_told();
        other.until_told();
        assert_eq!(fences.0.current_value(), 2 * SIGNALS + 1);
        assert_eq!(monitored_value(&fences.0), NO_CPU_WAITER);
        assert_eq!(monitored_value(&fences.1), NO_CPU_WAITER);
        assert_unseen([one, other], &[fences]);
    });
}

/// XA-10: MonitoredValue on each adapter is what waits on either ask for, as NF-04 has it: so a signal on one interrupts
/// for who waits on a CPU of the other, and not before.
///
/// Kills `a-doorbell-fence-is-propagated`.
#[test]
fn xa_10_monitored_values_follow_nf_04() {
    on_two_benches(|one, other| {
        let (here, there) = with_doorbell(one, other);
        let mut queue = one.queue();
        let waiter = other.waiter(&there, 5);
        until("the other adapter waits", || monitored_value(&here) == 4);
        assert_eq!(monitored_value(&there), 4);
        one.spy.take();
        complete(&mut queue, CommandList::new().signal(&here, 4));
        one.until_told();
        assert!(!seen(&one.spy, &here).contains(&Seen::Raised(4)));
        complete(&mut queue, CommandList::new().signal(&here, 5));
        waiter.join().unwrap();
        until("nobody waits", || {
            monitored_value(&here) == NO_CPU_WAITER && monitored_value(&there) == NO_CPU_WAITER
        });
        // Another interrupt may have let the waiter go before.
        until("it is raised", || {
            seen(&one.spy, &here).contains(&Seen::Raised(5))
        });
        assert_eq!(
            seen(&other.spy, &there)
                .iter()
                .filter(|seen| matches!(seen, Seen::Notified(_) | Seen::Stored(_)))
                .count(),
            0
        );
    });
}

/// XA-10: what the CPU stores rings as well: the driver of the other adapter is not called.
///
/// Kills `the-cpu-does-not-ring`.
#[test]
fn xa_10_a_signal_of_the_cpu_rings() {
    on_two_benches_with(restless(), |one, other| {
        let (here, there) = with_doorbell(one, other);
        let (mut nudge, mut queue) = (Nudge::new(one, other), other.queue());
        other.initialised(0);
        for value in 1..=50 {
            let end = queue
                .submit(CommandList::new().wait(&there, value))
                .unwrap();
            // Its queue is closed by now.
            nudge.times(2);
            in_one_slice(other, || {
                here.signal(value).unwrap();
                until_completed(&queue, end);
            });
        }
        let calls = seen(&other.spy, &there);
        assert!(
            !calls
                .iter()
                .any(|seen| matches!(seen, Seen::Notified(_) | Seen::Stored(_)))
        );
    });
}

/// XA-10: of forty signals behind each other no waiter is forgotten, whoever hears of how many at a time.
///
/// Kills `the-model-does-not-ring`, `what-was-rung-for-is-forgotten`, `a-name-without-a-place-is-forgotten`.
#[test]
fn xa_10_more_rings_than_looks_lose_nobody() {
    const FENCES: usize = 40;
    on_two_benches_with(restless(), |one, other| {
        let fences: Vec<_> = (0..FENCES).map(|_| with_doorbell(one, other)).collect();
        let mut signaller = one.queue();
        let mut queues: Vec<_> = fences.iter().map(|_| other.queue()).collect();
        let mut nudge = Nudge::new(one, other);
        // From now on nothing has its slice end.
        other.initialised(0);
        let is_cut = !other.is_model() && other.info().ends_loops();
        let mut undisturbed = 0;
        for value in 1..=40 {
            let submit = |(queue, (_, there)): (&mut HwQueue, &(Fence, Fence))| {
                queue.submit(CommandList::new().wait(there, value)).unwrap()
            };
            let ends: Vec<_> = queues.iter_mut().zip(&fences).map(submit).collect();
            nudge.times(2);
            let mut list = CommandList::new();
            for (here, _) in &fences {
                list.signal(here, value);
            }
            let slices = other.counters().slices;
            in_one_slice(other, || {
                complete(&mut signaller, &list);
                for (queue, end) in queues.iter().zip(&ends) {
                    until_completed(queue, *end);
                }
            });
            undisturbed += u32::from(other.counters().slices == slices);
            if value >= 10 && undisturbed > 0 {
                break;
            }
        }
        assert!(
            is_cut || undisturbed > 0,
            "the next slice has found who was forgotten"
        );
    });
}

/// XA-10: an engine stays as long as a queue waits for what another adapter may ring for, since the OS there and here
/// would have to bring it back; and no longer.
///
/// Kills `an-awaited-engine-is-let-go`, `an-awaited-engine-is-let-go-by-the-shader`, `a-ring-in-vain-ends-the-stay`,
/// `an-engine-stays-for-nothing`.
#[test]
fn xa_10_an_engine_stays_for_who_may_ring() {
    const VALUES: u64 = 10;
    let stays = NodePolicy {
        idle_window: NodePolicy::default().idle_window,
        ..restless()
    };
    on_two_benches_of([NodePolicy::default(), stays], |one, other| {
        let (here, there) = with_doorbell(one, other);
        let (mut signaller, mut queue) = (one.queue(), other.queue());
        let mut nudge = Nudge::new(one, other);
        let mut stayed = 0;
        for value in 1..=VALUES {
            let end = queue
                .submit(CommandList::new().wait(&there, 2 * value))
                .unwrap();
            other.initialised(0);
            // The slice that has begun since executes this.
            nudge.times(1);
            let slices = other.counters().slices;
            // Its own window is no longer than that of the other engine, which is over each time.
            one.until_parked();
            complete(
                &mut signaller,
                CommandList::new().signal(&here, 2 * value - 1),
            );
            one.until_parked();
            complete(&mut signaller, CommandList::new().signal(&here, 2 * value));
            until_completed(&queue, end);
            stayed += u64::from(other.counters().slices == slices);
            other.until_parked();
        }
        // A driver may cut a slice now and then.
        let least = if other.is_model() { VALUES } else { 1 };
        assert!(stayed >= least, "{stayed} times");
    });
}

/// XA-10: the end of a slice's time ends no stay, so that who signals meanwhile need call nobody; and a stay that is over
/// ends, in however many slices it was.
///
/// Kills `a-stay-ends-with-its-slice`, `a-stay-ends-with-its-slice-in-the-model`, `a-stay-is-not-counted-on`,
/// `a-stay-is-not-counted-on-in-the-model`.
#[test]
fn xa_10_a_stay_goes_on_in_the_next_slice() {
    let in_slices = |doorbell_window| NodePolicy {
        slice_time: Duration::from_micros(500),
        doorbell_window,
        ..NodePolicy::default()
    };
    let policies = |window| [NodePolicy::default(), in_slices(window)];
    on_two_benches_of(policies(Duration::from_secs(100)), |one, other| {
        let (here, there) = with_doorbell(one, other);
        let (mut signaller, mut queue) = (one.queue(), other.queue());
        let end = queue.submit(CommandList::new().wait(&there, 1)).unwrap();
        let after = |slices| {
            let most = other.counters().slices + slices;
            until("slices end", || other.counters().slices > most);
        };
        // Those of before the submission have ended.
        after(4);
        let parks = other.counters().parks;
        after(20);
        assert_eq!(other.counters().parks, parks);
        complete(&mut signaller, CommandList::new().signal(&here, 1));
        until_completed(&queue, end);
    });
    // Longer than a processor that is taken away may make one slice.
    on_two_benches_of(policies(Duration::from_secs(2)), |one, other| {
        let (here, there) = with_doorbell(one, other);
        let (mut signaller, mut queue) = (one.queue(), other.queue());
        let end = queue.submit(CommandList::new().wait(&there, 1)).unwrap();
        other.until_parked();
        complete(&mut signaller, CommandList::new().signal(&here, 1));
        until_completed(&queue, end);
    });
}

/// XA-10: an engine that was let go at its waits is brought back by the OS, as a waiter of a CPU is.
///
/// Kills `a-doorbell-fence-is-propagated`.
#[test]
fn xa_10_an_engine_that_was_let_go_is_brought_back() {
    on_two_benches(|one, other| {
        let (here, there) = with_doorbell(one, other);
        let (mut signaller, mut queue) = (one.queue(), other.queue());
        for value in 1..=3 {
            let end = queue
                .submit(CommandList::new().wait(&there, value))
                .unwrap();
            other.until_parked();
            until("the engine waits", || monitored_value(&here) == value - 1);
            complete(&mut signaller, CommandList::new().signal(&here, value));
            until_completed(&queue, end);
        }
    });
}

/// XA-10: both adapters must have native fences; the refusal says so by name.
///
/// Kills `a-doorbell-anywhere`.
#[test]
fn xa_10_both_adapters_have_native_fences() {
    on_two_kinds(|without, with| {
        let options = FenceOptions {
            cross_adapter: Some(CrossAdapter::Doorbell),
            ..FenceOptions::default()
        };
        let assert_refused = |refused: CreateError| {
            let by_name = CreateError::Os(OsError::DoorbellNeedsNativeFences).to_string();
            assert_eq!(refused.to_string(), by_name);
        };
        assert_refused(without.device.create_fence_with(options).unwrap_err());
        let fence = with.device.create_fence_with(options).unwrap();
        let shared = fence.share().unwrap();
        assert_refused(without.device.open_fence(&shared).unwrap_err());
        assert_refused(without.device.open_monitored_fence(&shared).unwrap_err());
        // It is of the adapters of one process.
        let (socket, _other) = UnixStream::pair().unwrap();
        let refused = shared.send(&socket).unwrap_err();
        assert!(matches!(refused, PassFenceError::CrossAdapter), "{refused}");
    });
}

/// XA-10: there are as many lines as there are, and one is free again when its adapter is gone.
///
/// Kills `lines-are-not-given-back`.
#[test]
fn xa_10_lines_run_out_by_name() {
    if model_is_asked_for() {
        let bench = || Bench::on_model(ModelOptions::default(), NodePolicy::default()).0;
        let doorbell = |bench: &Bench| {
            bench.device.create_fence_with(FenceOptions {
                cross_adapter: Some(CrossAdapter::Doorbell),
                ..FenceOptions::default()
            })
        };
        let most = CrossDoorbells::LINES - 1;
        let mut benches: Vec<_> = (0..most).map(|_| bench()).collect();
        for bench in &benches {
            doorbell(bench).unwrap();
        }
        let one_more = bench();
        let refused = doorbell(&one_more).unwrap_err();
        assert!(
            matches!(
                refused,
                CreateError::Os(OsError::DoorbellLines { wanted: 1, free: 0 })
            ),
            "{refused}"
        );
        benches.pop();
        doorbell(&one_more).unwrap();
    }
}

/// Sees what a model does about doorbells, and holds it when it reads one.
#[derive(Debug, Default)]
struct Watch {
    fence: OnceLock<Fence>,
    /// What is being signalled.
    value: AtomicU64,
    rung_early: AtomicBool,
    /// Words that it has read.
    reads: AtomicU64,
    holds: AtomicBool,
    held: AtomicBool,
}

impl MemoryObserver for Watch {
    fn touched(&self, access: MemoryAccess, region: &'static str, offset: u64) {
        // The words, and not how many numbers were taken, which is said later.
        let in_line = offset.checked_sub(CrossDoorbells::BYTES);
        let in_line = in_line.map(|offset| offset % CrossDoorbellLine::BYTES);
        if region != "cross-doorbells" || in_line.is_none_or(|at| at < CrossDoorbellLine::WORDS) {
            return;
        }
        if let (MemoryAccess::Store, Some(fence)) = (access, self.fence.get()) {
            let is_early = fence.current_value() < self.value.load(Ordering::SeqCst);
            self.rung_early.fetch_or(is_early, Ordering::SeqCst);
        }
        self.reads
            .fetch_add(u64::from(access == MemoryAccess::Load), Ordering::SeqCst);
        while access == MemoryAccess::Load && self.holds.load(Ordering::SeqCst) {
            self.held.store(true, Ordering::SeqCst);
            std::thread::yield_now();
        }
    }
}

/// A model that is watched, and another.
fn watched_and_other(body: impl Fn(&Watch, &Bench, &Bench)) {
    if model_is_asked_for() {
        let watch = Arc::new(Watch::default());
        let options = ModelOptions {
            observer: Some(Arc::clone(&watch) as _),
            ..ModelOptions::default()
        };
        let (watched, its_memory) = Bench::on_model(options, restless());
        let (other, others_memory) = Bench::on_model(ModelOptions::default(), restless());
        body(&watch, &watched, &other);
        drop((watched, other));
        assert_eq!(its_memory.violations(), []);
        assert_eq!(others_memory.violations(), []);
    }
}

/// XA-10: a signal rings when its value is stored.
///
/// Kills `the-model-rings-before-it-stores`.
#[test]
fn xa_10_a_ring_comes_after_the_value() {
    watched_and_other(|watch, watched, other| {
        let (here, _there) = with_doorbell(watched, other);
        let mut queue = watched.queue();
        watch.fence.set(here.clone()).unwrap();
        for value in 1..=20 {
            watch.value.store(value, Ordering::SeqCst);
            complete(&mut queue, CommandList::new().signal(&here, value));
        }
        assert!(!watch.rung_early.load(Ordering::SeqCst));
    });
}

/// XA-10: who comes so late to a line that it was stored over looks at all.
///
/// Kills `a-missed-ring-is-not-noticed`.
#[test]
fn xa_10_a_line_that_is_stored_over_opens_all() {
    watched_and_other(|watch, watched, other| {
        let (waited, waited_here) = with_doorbell(other, watched);
        let (noise, _noise_here) = with_doorbell(other, watched);
        let (mut queue, mut signaller) = (watched.queue(), other.queue());
        watched.initialised(0);
        for value in 1..=10 {
            let wait = CommandList::new().wait(&waited_here, value).clone();
            let end = queue.submit(&wait).unwrap();
            // Until each lane has looked at its queues and heard, many times: its queue is closed.
            let reads = watch.reads.load(Ordering::SeqCst);
            until("it looks", || {
                watch.reads.load(Ordering::SeqCst) > reads + 500
            });
            watch.held.store(false, Ordering::SeqCst);
            watch.holds.store(true, Ordering::SeqCst);
            until("it hears", || watch.held.load(Ordering::SeqCst));
            let mut list = CommandList::new();
            list.signal(&waited, value);
            for more in 0..=CrossDoorbellLine::PLACES {
                list.signal(&noise, value * 1000 + more);
            }
            complete(&mut signaller, &list);
            watch.holds.store(false, Ordering::SeqCst);
            until_completed(&queue, end);
        }
    });
}
