//! Peers: two operating systems that have one fence open, each with an adapter and engines of its own.
//! Here both are in one process, so that a test can look into both; `tests/peer_processes.rs` has them
//! apart.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    #[allow(clippy::duplicate_mod, reason = "a test may use engines and bench")]
    pub(crate) mod engines;
    pub(crate) mod passing;
    pub(crate) mod until;
}

use native_fence::abi::OpenerSlot;
use native_fence::os::PeerCounters;
use native_fence::shared::Block;
use native_fence::umd::CreateError;
use native_fence::{
    Adapter, CommandList, Device, Fence, FenceOptions, HwQueue, PassFenceError, SignalError,
    WaitError, os,
};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use support::engines::{memory, model, shader};
use support::passing::{passed, shared};
use support::until::{Ended, LONG, until};

/// A fence, as one operating system has it.
struct Side {
    fence: Fence,
    queue: HwQueue,
    device: Device,
    adapter: Adapter,
}

impl Side {
    fn counters(&self) -> PeerCounters {
        self.fence.object().fence().peer_counters()
    }

    fn monitored_value(&self) -> u64 {
        self.fence.object().fence().monitored_value()
    }

    /// A signal by the GPU, executed.
    fn gpu_signal(&mut self, value: u64) {
        let list = CommandList::new().signal(&self.fence, value).clone();
        let end = self.queue.submit(&list).unwrap();
        self.queue.progress_fence().wait(end, LONG).unwrap();
    }

    /// A thread that waits; on return its wait stands.
    fn waiter(&self, value: u64) -> thread::JoinHandle<Result<(), WaitError>> {
        let native = self.fence.object().fence();
        let (before, fence) = (native.waits(), self.fence.clone());
        let waiter = thread::spawn(move || fence.wait(value, LONG));
        until("a wait stands", || native.waits() > before);
        waiter
    }
}

/// Makes a fence on one adapter, opens it on the other, and runs the body: on models, and on the device.
fn on_two(initial: u64, body: impl Fn(&mut Side, &mut Side)) {
    let run = |(a, b): (Adapter, Adapter)| {
        let device = a.create_device();
        let mut a = Side {
            fence: shared(&device, initial),
            queue: device.create_hw_queue().unwrap(),
            device,
            adapter: a,
        };
        let device = b.create_device();
        let mut b = Side {
            fence: device.open_fence(&passed(&a.fence)).unwrap(),
            queue: device.create_hw_queue().unwrap(),
            device,
            adapter: b,
        };
        body(&mut a, &mut b);
    };
    println!("on models");
    run((model().0, model().0));
    // What Vulkan allocated is passed to no other system.
    if !memory::is_usual() {
        return;
    }
    if let (Some(a), Some(b)) = (shader(), shader()) {
        println!("on the shader");
        run((a, b));
    }
}

/// NF-15: another operating system sees the same CurrentValue through a mapping of its own, waits for it
/// and signals it, from the CPU and by its own engine; each direction, each pair.
///
/// Kills `peers-are-told-of-nothing`, `an-imported-fence-starts-anew`.
#[test]
fn nf_15_two_operating_systems_wait_for_and_signal_one_value() {
    on_two(40, |a, b| {
        assert_eq!((a.fence.current_value(), b.fence.current_value()), (40, 40));
        let addresses = [&a.fence, &b.fence].map(Fence::current_value_address);
        assert!(addresses[0].is_some() && addresses[0] != addresses[1]);
        let mut value = 40;
        both_ways(a, b, &mut value);
        both_ways(b, a, &mut value);
        assert_eq!(a.fence.current_value(), b.fence.current_value());
    });
}

fn both_ways(from: &mut Side, to: &mut Side, value: &mut u64) {
    // CPU to CPU.
    *value += 1;
    let waiter = to.waiter(*value);
    from.fence.signal(*value).unwrap();
    assert_eq!(waiter.join().unwrap(), Ok(()));
    // GPU to CPU.
    *value += 1;
    let waiter = to.waiter(*value);
    from.gpu_signal(*value);
    assert_eq!(waiter.join().unwrap(), Ok(()));
    // CPU to a queue that stands at its wait, of an engine that is parked.
    *value += 1;
    let list = CommandList::new().wait(&to.fence, *value).clone();
    let end = to.queue.submit(&list).unwrap();
    until("its engine waits", || to.monitored_value() == *value - 1);
    from.fence.signal(*value).unwrap();
    to.queue.progress_fence().wait(end, LONG).unwrap();
    // GPU to a queue.
    *value += 1;
    let list = CommandList::new().wait(&to.fence, *value).clone();
    let end = to.queue.submit(&list).unwrap();
    until("its engine waits", || to.monitored_value() == *value - 1);
    from.gpu_signal(*value);
    to.queue.progress_fence().wait(end, LONG).unwrap();
}

/// NF-05 between operating systems: signals of one, by CPU and engine, notify the other if it has a waiter
/// that they satisfy, and only then.
///
/// Kills `peers-are-always-told`.
#[test]
fn nf_05_a_signal_notifies_another_system_only_if_it_has_a_waiter() {
    on_two(0, |a, b| {
        until("nobody waits", || a.monitored_value() == u64::MAX);
        let before = b.counters();
        for value in 1..=100 {
            a.fence.signal(2 * value - 1).unwrap();
            a.gpu_signal(2 * value);
        }
        assert_eq!(a.counters().told, 0);
        assert_eq!(b.counters().heard, before.heard, "nobody woke the other");

        let waiter = b.waiter(301);
        until("the first knows", || a.monitored_value() == 300);
        for value in 201..=300 {
            a.fence.signal(value).unwrap();
        }
        a.gpu_signal(300);
        assert_eq!(a.counters().told, 0, "the waiter waits for more");
        assert!(!waiter.is_finished());
        a.gpu_signal(301);
        assert_eq!(waiter.join().unwrap(), Ok(()));
        let told = a.counters().told;
        assert!(told >= 1);
        until("nobody waits", || a.monitored_value() == u64::MAX);
        let told = a.counters().told.max(told);
        a.gpu_signal(302);
        a.fence.signal(303).unwrap();
        assert_eq!(a.counters().told, told);
    });
}

/// NF-04 between operating systems: what each one's engines compare with is the least of what both wait
/// for, right after each add, satisfied wait, cancelled wait, and close.
///
/// Kills `the-others-waiters-do-not-count`, `a-change-calls-nobody`.
#[test]
fn nf_04_monitored_value_is_the_least_of_all_systems() {
    on_two(0, |a, b| {
        let both = |value: u64| {
            until("both have the least", || {
                (a.monitored_value(), b.monitored_value()) == (value, value)
            });
        };
        both(u64::MAX);
        let of_a = a.fence.arm(10);
        both(9);
        let of_b = b.fence.arm(7);
        both(6);
        let lower = a.fence.arm(3);
        both(2);
        drop(lower);
        both(6);
        a.fence.signal(7).unwrap();
        both(9);
        until("it is told", || of_b.outcome() == Some(Ok(())));
        drop(of_a);
        both(u64::MAX);
        let of_b = b.fence.arm(20);
        both(19);
        b.fence.close();
        assert_eq!(of_b.outcome(), Some(Err(WaitError::Closed)));
        both(u64::MAX);
    });
}

/// NF-26 between operating systems: a wait that a signal of another satisfied is satisfied, although the
/// value is stored backwards before this one has looked.
///
/// Kills `peers-tell-no-value`.
#[test]
fn nf_26_a_wait_that_another_system_satisfied_stays_satisfied() {
    on_two(0, |a, b| {
        for _ in 0..100 {
            let waiter = b.waiter(5);
            a.fence.signal(5).unwrap();
            a.fence.rewind(0).unwrap();
            assert_eq!(waiter.join().unwrap(), Ok(()));
            // Nor does it satisfy one that comes after the rewind.
            let later = b.fence.arm(5);
            assert_eq!(later.outcome(), None);
        }
    });
}

/// NF-26 between operating systems: the same of an engine's signals, of which the record alone tells that
/// the greater value was there. The values grow, since of an engine's going back nobody is told: what
/// the two systems still tell each other of one round may come to waiters of the next.
///
/// Kills `peers-are-told-no-records-value`.
#[test]
fn nf_26_a_wait_that_another_systems_engine_satisfied_stays_satisfied() {
    on_two(0, |a, b| {
        let run = |a: &mut Side, there_and_back: [u64; 2]| {
            let mut list = CommandList::new();
            for value in there_and_back {
                list.signal(&a.fence, value);
            }
            let end = a.queue.submit(&list).unwrap();
            a.queue.progress_fence().wait(end, LONG).unwrap();
        };
        for start in (0..200).step_by(10) {
            let there = b.fence.arm(start + 5);
            let here = a.fence.arm(start + 6);
            until("the first knows", || a.monitored_value() == start + 4);
            run(a, [start + 6, start]);
            until("both are told", || {
                (here.outcome(), there.outcome()) == (Some(Ok(())), Some(Ok(())))
            });
        }
    });
}

/// A CPU signal returns, and a waiter comes to stand, whatever another process stores in the page
/// meanwhile, and although it never answers: here one that changes what it waits for without end, and
/// never looks. (`tests/peer_settling.rs` counts how often it is asked.)
#[test]
fn a_restless_peer_holds_nobody_up() {
    on_two(0, |a, b| {
        let (region, _) = a.fence.object().fence().monitored_value_place();
        let page = Block::whole(&region.map().unwrap());
        let word = |slot: u64, offset| page.word(slot * OpenerSlot::BYTES + offset);
        word(2, OpenerSlot::AWAITED).publish(0);
        word(2, OpenerSlot::OWNER).publish(word(1, OpenerSlot::OWNER).observe());
        let ended = AtomicBool::new(false);
        thread::scope(|threads| {
            threads.spawn(|| {
                let mut awaited = 1 << 40;
                while !ended.load(Ordering::Acquire) {
                    awaited += 1;
                    word(2, OpenerSlot::AWAITED).publish(awaited);
                }
            });
            let _ended = Ended(&ended);
            for value in 1..=500 {
                let waiter = b.fence.arm(value);
                a.fence.signal(value).unwrap();
                waiter.wait(LONG).unwrap();
            }
        });
        word(2, OpenerSlot::OWNER).publish(0);
    });
}

/// A system whose slot another has cleared by mistake takes it again when it looks; one whose slot has
/// another owner ends its waits with an error, and leaves that one's words alone.
///
/// Kills `a-cleared-slot-is-not-taken-again`, `a-lost-slot-is-slept-on`.
#[test]
fn who_has_lost_its_slot_takes_it_again_or_says_so() {
    on_two(0, |a, b| {
        let (region, _) = a.fence.object().fence().monitored_value_place();
        let page = Block::whole(&region.map().unwrap());
        let word = |slot: u64, offset| page.word(slot * OpenerSlot::BYTES + offset);
        let own = word(1, OpenerSlot::OWNER).observe();
        let waiter = b.fence.arm(5);
        until("the first knows", || a.monitored_value() == 4);
        word(1, OpenerSlot::OWNER).publish(0);
        // Whatever has it look.
        drop(b.fence.arm(9));
        until("it has its slot", || {
            word(1, OpenerSlot::OWNER).observe() == own
        });
        a.fence.signal(5).unwrap();
        waiter.wait(LONG).unwrap();

        let waiter = b.fence.arm(7);
        // Another process's, which lives: nobody clears its slot.
        let mut lives = Command::new("sleep").arg("1000").spawn().unwrap();
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", lives.id())).unwrap();
        let mut fields = stat.rsplit(')').next().unwrap().split_whitespace();
        let started: u64 = fields.nth(19).unwrap().parse().unwrap();
        let other = started << OpenerSlot::PROCESS_BITS | u64::from(lives.id());
        word(1, OpenerSlot::OWNER).publish(other);
        let second = b.fence.arm(8);
        assert_eq!(waiter.wait(LONG), Err(WaitError::SlotLost));
        assert_eq!(second.wait(LONG), Err(WaitError::SlotLost));
        assert_eq!(b.fence.wait(9, LONG), Err(WaitError::SlotLost));
        word(1, OpenerSlot::AWAITED).publish(77);
        // Whatever it had: it is told now, in a word of its own.
        b.fence.rewind(0).unwrap();
        word(1, OpenerSlot::REACHED_WORD).publish(3);
        page.word(OpenerSlot::reached(1, 3)).publish(6);
        let values = [
            OpenerSlot::AWAITED,
            OpenerSlot::MONITORED_VALUE,
            OpenerSlot::REACHED_WORD,
            OpenerSlot::TELLING,
        ];
        let values = values.map(|offset| OpenerSlot::BYTES + offset);
        let reached = (0..OpenerSlot::REACHED_WORDS).map(|word| OpenerSlot::reached(1, word));
        let places: Vec<_> = values.into_iter().chain(reached).collect();
        let seen = || -> Vec<_> { places.iter().map(|at| page.word(*at).observe()).collect() };
        let before = seen();
        drop(b.fence.arm(9));
        b.fence.signal(2).unwrap();
        b.fence.close();
        let after = seen();
        lives.kill().unwrap();
        lives.wait().unwrap();
        assert_eq!(after, before);
    });
}

/// NF-06 between operating systems: under a storm of signals by the engine and the CPU of one, each waiter
/// of the other wakes.
///
/// Kills `peers-are-told-of-nothing`.
#[test]
fn nf_06_no_wake_up_is_lost_between_systems() {
    on_two(0, |a, b| {
        let (most, step) = (if cfg!(debug_assertions) { 400 } else { 2000 }, 7);
        thread::scope(|threads| {
            let fence = &b.fence;
            let waiter = threads.spawn(move || {
                for value in (step..=most).step_by(step as usize) {
                    fence.wait(value, LONG).unwrap();
                }
            });
            let mut list = CommandList::new();
            for value in 1..=most {
                if value % 3 == 0 {
                    a.fence.signal(value).unwrap();
                } else {
                    list.clear();
                    list.signal(&a.fence, value);
                    let end = a.queue.submit(&list).unwrap();
                    a.queue.progress_fence().wait(end, LONG).unwrap();
                }
            }
            waiter.join().unwrap();
        });
    });
}

/// NF-14, NF-15: a fence that came from another system is one object here however often it is opened, and
/// goes with its last opener; one that comes back is the one that was made here.
///
/// Kills `each-handle-makes-a-fence`.
#[test]
fn nf_14_a_fence_that_came_twice_is_one_fence() {
    on_two(3, |a, b| {
        let other = b.adapter.create_device();
        let again = other.open_fence(&passed(&b.fence)).unwrap();
        let id = |fence: &Fence| fence.object().fence().id();
        assert_eq!(id(&again), id(&b.fence));
        let back = a.device.open_fence(&passed(&again)).unwrap();
        assert_eq!(id(&back), id(&a.fence));
        // The creator goes; what it made does not.
        a.fence.close();
        drop(back);
        again.signal(4).unwrap();
        b.fence.wait(4, LONG).unwrap();
    });
}

/// NF-23, NF-30: what the creation forbids goes with the fence to another system.
///
/// Kills `access-is-not-passed`.
#[test]
fn nf_30_the_access_goes_with_the_fence() {
    let (a, b) = (model().0, model().0);
    let (a, b) = (a.create_device(), b.create_device());
    for (no_signal, no_wait) in [(true, false), (false, true)] {
        let options = FenceOptions {
            initial: 3,
            no_signal,
            no_wait,
            shared: true,
            ..FenceOptions::default()
        };
        let made = a.create_fence_with(options).unwrap();
        let opened = b.open_fence(&passed(&made)).unwrap();
        let signalled = opened.signal(4);
        let waited = opened.wait(3, LONG);
        if no_signal {
            assert_eq!(
                (signalled, waited),
                (Err(SignalError::AccessDenied), Ok(()))
            );
        } else {
            assert_eq!((signalled, waited), (Ok(()), Err(WaitError::AccessDenied)));
        }
    }
}

/// As many systems as the page has slots may have a fence open; one more is refused with what to do, and
/// has room when one of them has left.
///
/// Kills `a-leaver-keeps-its-slot`.
#[test]
fn more_systems_than_slots_are_refused_and_a_left_slot_is_used_again() {
    let first = model().0.create_device();
    let fence = shared(&first, 0);
    let handle = passed(&fence);
    let mut others: Vec<_> = (1..16)
        .map(|_| {
            let device = model().0.create_device();
            device.open_fence(&handle).unwrap()
        })
        .collect();
    let last = model().0.create_device();
    match last.open_fence(&handle) {
        Err(CreateError::Os(os::OsError::Passing(PassFenceError::TooManyOpeners))) => {}
        other => panic!("{other:?}"),
    }
    drop(others.pop());
    let last = last.open_fence(&handle).unwrap();
    others[0].signal(9).unwrap();
    last.wait(9, LONG).unwrap();
    let waits: Vec<_> = others.iter().map(|fence| fence.arm(10)).collect();
    fence.signal(10).unwrap();
    until("all are told", || {
        waits.iter().all(|wait| wait.outcome() == Some(Ok(())))
    });
}
