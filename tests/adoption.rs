//! Adoption: how an engine comes to compare with the MonitoredValue that the OS posted.
//!
//! The gate holds slices in flight, so that a post falls where the test wants it.

#![allow(clippy::unwrap_used, reason = "tests, and their helpers")]

mod support {
    pub(crate) mod bench;
}

use native_fence::kmd::{Interrupt, MonitoredValueUpdate};
use native_fence::shared::Block;
use native_fence::{CommandList, Fence, HwQueue, Timeout};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use support::bench::{
    Bench, Call, Moment, complete, monitored_value, native, until, until_completed, until_sleeping,
};

const NONE: u64 = u64::MAX;

/// What the OS keeps of a fence's values, as memory of the test's own.
struct Words {
    current: Block,
    monitored: Block,
}

impl Words {
    fn of(fence: &Fence) -> Self {
        let block = |(region, offset): (&std::sync::Arc<native_fence::shared::Region>, u64)| {
            Block::whole(&region.map().unwrap()).part(offset, 8)
        };
        Self {
            current: block(native(fence).current_value_place()),
            monitored: block(native(fence).monitored_value_place()),
        }
    }

    /// UpdateMonitoredValues of this one fence, as the OS would call it.
    fn post(&self, bench: &Bench, fence: &Fence, value: u64) {
        let update = MonitoredValueUpdate {
            fence: native(fence).id(),
            value,
            word: self.monitored.word(0),
        };
        bench
            .adapter
            .os()
            .ddi()
            .update_monitored_values(&[update])
            .unwrap();
    }
}

/// One signal by the GPU, completed.
fn signal_on(queue: &mut HwQueue, fence: &Fence, value: u64) {
    complete(queue, CommandList::new().signal(fence, value));
}

/// A store to the MonitoredValue word that the OS did not make, as a user's shader could through
/// the raw address, loses no wake-up: the engine compares with its shadow.
///
/// Kills `engine-compares-with-the-monitored-word`.
#[test]
fn nf_03_a_foreign_store_to_the_word_loses_no_wake_up() {
    let bench = Bench::new();
    let fence = bench.fence(0);
    let mut queue = bench.then_parked(|| bench.queue());
    bench.then_parked(|| queue.submit(CommandList::new().signal(&fence, 1)).unwrap());

    let (region, offset) = native(&fence).monitored_value_place();
    let foreign = Block::whole(&region.map().unwrap());
    // The engine is parked: what the OS posts is adopted at once.
    let waiter = bench.waiter(&fence, 5);
    assert_eq!(monitored_value(&fence), 4);
    foreign.word(offset).publish(u64::MAX);
    queue.submit(CommandList::new().signal(&fence, 5)).unwrap();
    assert_eq!(waiter.join(), Ok(()));
    // The waiter may see the value before the interrupt is told.
    bench.until_told();
    assert_eq!(bench.spy.raised(native(&fence).id()), [5]);
}

/// A raise that is not answered is the only one: the OS learns of no interrupt here, so signals
/// beyond the MonitoredValue raise no more until it is posted again; then the next one does.
///
/// Open: signals of one fence in the same iteration of the engine by several queues may raise more
/// than once before the engine has disarmed itself; such an interrupt unblocks nobody and is
/// allowed (NF-06).
///
/// Kills `raise-leaves-the-engine-armed`.
#[test]
fn nf_05_an_unanswered_raise_raises_no_more() {
    let bench = Bench::new();
    let fence = bench.fence(0);
    let (words, id) = (Words::of(&fence), native(&fence).id());
    let mut queue = bench.then_parked(|| bench.queue());
    bench.spy.keep_interrupts();

    // With no slice in flight: the next signal is compared with it.
    bench.until_parked();
    words.post(&bench, &fence, 4);
    signal_on(&mut queue, &fence, 5);
    for value in 6..60 {
        signal_on(&mut queue, &fence, value);
    }
    bench.until_told();
    assert_eq!(bench.spy.raised(id), [5]);
    // The answer arms it again.
    words.post(&bench, &fence, 59);
    signal_on(&mut queue, &fence, 59);
    signal_on(&mut queue, &fence, 60);
    bench.until_told();
    assert_eq!(bench.spy.raised(id), [5, 60]);
}

/// A changed MonitoredValue that an engine adopts raises if, and only if, CurrentValue is greater,
/// and is what signals are compared with from then on. The slice in flight began before the value
/// was posted; CurrentValue was stored without a raise, as by a signal that compared with the old
/// shadow.
///
/// Open: the barrier between shadow and CurrentValue, and the two meetings of all lanes around an
/// adoption, cannot be seen to fail on a CPU; `tests/engine_shader.rs` reads them in the shipped
/// SPIR-V, and random arms run through them.
///
/// Kills `adoption-raises-at-the-value` and `adoption-writes-no-shadow`.
#[test]
fn nf_07_an_adoption_raises_iff_current_value_is_greater() {
    for (current, raises) in [(7, true), (5, true), (4, false), (0, false)] {
        let bench = Bench::new();
        let fence = bench.fence(0);
        let (words, id) = (Words::of(&fence), native(&fence).id());
        let mut queue = bench.then_parked(|| bench.queue());
        bench.spy.keep_interrupts();
        let gate = bench.engine.close();
        queue.submit(&CommandList::new()).unwrap();
        until("a slice is in flight", || bench.engine.at_gate() > 0);

        words.post(&bench, &fence, 4);
        words.current.word(0).publish(current);
        assert!(bench.spy.raised(id).is_empty(), "the slice has not run");
        drop(gate);
        // Two slices later it has adopted.
        let value = queue.submit(&CommandList::new()).unwrap();
        until_completed(&queue, value);
        bench.until_told();
        let expected: &[u64] = if raises { &[current] } else { &[] };
        assert_eq!(bench.spy.raised(id), expected, "CV {current}, MV 4");

        if !raises {
            signal_on(&mut queue, &fence, 4);
            signal_on(&mut queue, &fence, 5);
            bench.until_told();
            assert_eq!(bench.spy.raised(id), [5], "compared with the new shadow");
        }
        // No CPU waiter: nothing raises, whatever it was before.
        words.post(&bench, &fence, NONE);
        let before = bench.spy.raised(id);
        signal_on(&mut queue, &fence, u64::MAX);
        signal_on(&mut queue, &fence, u64::MAX);
        bench.until_told();
        assert_eq!(bench.spy.raised(id), before);
    }
}

/// UpdateMonitoredValues returns while a slice is in flight that does not end, with the
/// MonitoredValue stored; many times over, more often than the mailbox has room, and for a batch.
/// The CurrentValue of a signal before the call can be read when it returns; a signal after it is
/// compared with the new value, or the engine adopts and raises.
///
/// Kills `post-waits-for-a-held-slice` and `full-mailbox-forgets`.
#[test]
fn nf_08_update_monitored_values_waits_for_no_engine() {
    let bench = Bench::new();
    let fences: Vec<Fence> = (0..40).map(|_| bench.fence(0)).collect();
    let words: Vec<Words> = fences.iter().map(Words::of).collect();
    let mut queue = bench.then_parked(|| bench.queue());
    bench.spy.keep_interrupts();

    // Of the first kind: signalled before the call, unwatched.
    bench.then_parked(|| signal_on(&mut queue, &fences[0], 3));

    let gate = bench.engine.close();
    // Of the second or third kind: the signals are in flight, and run when the gate opens.
    let mut list = CommandList::new();
    for fence in &fences[1..] {
        list.signal(fence, 9);
    }
    let value = queue.submit(&list).unwrap();
    until("a slice is in flight", || bench.engine.at_gate() > 0);
    let ended_before = bench.counters().records;
    let returned = AtomicBool::new(false);
    thread::scope(|scope| {
        // Opens with a failed test, or the thread would never end.
        let gate = gate;
        scope.spawn(|| {
            words[1].post(&bench, &fences[1], 1000);
            returned.store(true, Ordering::Release);
        });
        until("the call returns", || returned.load(Ordering::Acquire));
        let last = fences.len() - 1;
        for turn in 1..20 {
            // All but the last, whose first post finds the mailbox full.
            for (fence, words) in fences[..last].iter().zip(&words) {
                words.post(&bench, fence, 1000 - turn);
                assert_eq!(words.monitored.word(0).observe(), 1000 - turn);
            }
        }
        post_whole_batch(&bench, &fences, &words);
        assert_eq!(words[0].current.word(0).observe(), 3, "the first kind");
        // All of this while the slice was in flight: nothing of it has run.
        assert!(bench.engine.at_gate() > 0);
        assert_eq!(queue.progress_fence().current_value(), value - 1);
        assert_eq!(bench.counters().records, ended_before);
        drop(gate);
    });
    until("the OS learns of every fence", || {
        fences.iter().all(|fence| os_learns_of(&bench, fence))
    });
}

/// One call for all of them.
fn post_whole_batch(bench: &Bench, fences: &[Fence], words: &[Words]) {
    let updates: Vec<MonitoredValueUpdate<'_>> = fences
        .iter()
        .zip(words)
        .map(|(fence, words)| MonitoredValueUpdate {
            fence: native(fence).id(),
            value: 2,
            word: words.monitored.word(0),
        })
        .collect();
    let ddi = bench.adapter.os().ddi();
    ddi.update_monitored_values(&updates).unwrap();
    for (fence, words) in fences.iter().zip(words) {
        assert_eq!(monitored_value(fence), 2);
        assert_eq!(words.monitored.word(0).observe(), 2);
    }
}

/// An interrupt told the OS to look at the fence: named it, named none, or named it among those
/// whose post the slice did not come to adopt.
fn os_learns_of(bench: &Bench, fence: &Fence) -> bool {
    let id = native(fence).id();
    bench.spy.calls().iter().any(|call| match call {
        Call::Interrupt(Interrupt::NativeFenceSignaled(signaled)) => signaled
            .fences
            .as_ref()
            .is_none_or(|named| named.iter().any(|named| named.fence == id)),
        Call::Interrupt(Interrupt::ResampleFences { slots, .. }) => slots.contains(&id.slot),
        _ => false,
    })
}

/// The OS reads CurrentValue again when UpdateMonitoredValues has returned: a value that was stored
/// without a raise just then releases the waiter, although no engine says anything.
///
/// Kills `no-second-look-after-the-post`.
#[test]
fn nf_08_the_os_reads_current_value_again_after_the_post() {
    let bench = Bench::new();
    let fence = bench.fence(0);
    // No slice is in flight, in which the engine would adopt, see the value and raise.
    let _queue = bench.then_parked(|| bench.queue());
    let words = Words::of(&fence);
    bench
        .spy
        .once(Moment::AfterUpdateOfMonitoredValues, move || {
            words.current.word(0).publish(5);
        });
    // Nothing but the second look satisfies it; at a time-out it would look once more.
    let waiter = bench.waiter_with(&fence, 5, Timeout::Never);
    until("the wait is over", || waiter.is_finished());
    assert_eq!(waiter.join(), Ok(()));
    assert_eq!(bench.spy.monitored_values(native(&fence).id()), [4, NONE]);
    assert_eq!(monitored_value(&fence), NONE);
    assert_eq!(bench.interrupts(), 0);
}

/// UpdateMonitoredValues and the interrupt's service routine exclude each other: while the routine
/// is in the middle of its work, held in the submission of the next slice, the call neither stores
/// nor returns.
///
/// Kills `post-beside-the-service-routine`.
#[test]
fn nf_08_the_call_and_the_service_routine_exclude_each_other() {
    let bench = Bench::new();
    let fence = bench.fence(0);
    let words = Words::of(&fence);
    let mut queue = bench.then_parked(|| bench.queue());
    bench.spy.keep_interrupts();
    words.post(&bench, &fence, 0);
    // The slice ends to interrupt with packets left: its service routine submits the next.
    let mut list = CommandList::new();
    list.signal(&fence, 1);
    for _ in 0..600 {
        list.nop();
    }
    let gate = bench.engine.close();
    let value = queue.submit(&list).unwrap();
    until("the slice is in flight", || bench.engine.at_gate() > 0);
    let stopped = bench.engine.stop_submissions();
    gate.let_pass(1);
    until("the service routine submits", || bench.engine.inside() == 1);

    let returned = AtomicBool::new(false);
    let (tell, number) = mpsc::channel();
    thread::scope(|scope| {
        // Goes on with a failed test, or the thread would never end.
        let stopped = stopped;
        scope.spawn(|| {
            tell.send(rustix::thread::gettid()).unwrap();
            words.post(&bench, &fence, 6);
            returned.store(true, Ordering::Release);
        });
        // It can sleep in the call alone.
        until_sleeping(number.recv().unwrap());
        for _ in 0..2000 {
            thread::yield_now();
            assert!(!returned.load(Ordering::Acquire));
            assert_eq!(words.monitored.word(0).observe(), 0);
        }
        drop(stopped);
        until("the call returns", || returned.load(Ordering::Acquire));
        assert_eq!(words.monitored.word(0).observe(), 6);
    });
    drop(gate);
    until_completed(&queue, value);
}

/// UpdateMonitoredValues takes a batch in its order: every value is stored, and every engine adopts
/// all of it, with no slice in flight and with one.
///
/// Kills `batch-posts-the-first-only`, `batch-adopts-the-first-only`,
/// `batch-stores-one-monitored-value` and `broken-the-driver-posts-half-a-batch`.
#[test]
fn nf_17_a_batch_of_monitored_values_takes_effect_whole() {
    for in_flight in [false, true] {
        let bench = Bench::new();
        let mut queue = bench.then_parked(|| bench.queue());
        bench.spy.keep_interrupts();
        let fences: Vec<Fence> = (0..6).map(|_| bench.fence(0)).collect();
        let words: Vec<Block> = fences
            .iter()
            .map(|fence| {
                let (region, offset) = native(fence).monitored_value_place();
                Block::whole(&region.map().unwrap()).part(offset, 8)
            })
            .collect();
        let gate = in_flight.then(|| bench.engine.close());
        if in_flight {
            queue.submit(&CommandList::new()).unwrap();
            until("a slice is in flight", || bench.engine.at_gate() > 0);
        }
        // Two for the first fence: the later one counts.
        let values = [(0, 99), (0, 0), (1, 1), (2, 2), (3, 3), (4, 4), (5, 5)];
        let updates: Vec<MonitoredValueUpdate<'_>> = values
            .iter()
            .map(|(i, value)| MonitoredValueUpdate {
                fence: native(&fences[*i]).id(),
                value: *value,
                word: words[*i].word(0),
            })
            .collect();
        let ddi = bench.adapter.os().ddi();
        ddi.update_monitored_values(&updates).unwrap();
        for (i, fence) in fences.iter().enumerate() {
            assert_eq!(monitored_value(fence), i as u64);
        }
        drop(gate);

        // Not greater: none. Greater: every one.
        for more in [0, 1] {
            for (i, fence) in fences.iter().enumerate() {
                signal_on(&mut queue, fence, i as u64 + more);
            }
            bench.until_told();
            // Two threads take reports, so interrupts have no order between them.
            let mut named: Vec<_> = bench.spy.named().iter().map(|named| named.0).collect();
            named.sort_unstable();
            let mut all: Vec<_> = fences.iter().map(|fence| native(fence).id()).collect();
            all.sort_unstable();
            assert_eq!(named, all[..more as usize * all.len()]);
        }
    }
}
