//! Peer processes: a fence that several processes have open, each with an operating system and an engine
//! of its own; and processes that are killed.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod child;
    #[allow(clippy::duplicate_mod, reason = "a test may use engines and bench")]
    pub(crate) mod engines;
    pub(crate) mod passing;
    pub(crate) mod until;
}

use native_fence::abi::OpenerSlot;
use native_fence::os::NativeFence;
use native_fence::os::OsError;
use native_fence::shared::Block;
use native_fence::umd::CreateError;
use native_fence::{CommandList, Device, Fence, PassFenceError};
use support::child::{Child, Word, obey};
use support::engines::{engines, memory, model};
use support::passing::{passed, shared};
use support::until::{LONG, until};

/// The process that the tests below start, and nobody else.
#[test]
#[ignore = "part of the tests of this file"]
fn child_that_obeys() {
    obey();
}

/// Runs a body with a fence of this process: on a model, and on the device.
fn on_every_engine(body: impl Fn(&str, &Device, &Fence)) {
    for (engine, adapter) in engines() {
        // What Vulkan allocated is passed to no other system.
        if engine != "model" && !memory::is_usual() {
            continue;
        }
        println!("on the {engine}");
        let device = adapter.create_device();
        body(engine, &device, &shared(&device, 40));
    }
}

fn child(engine: &str, fence: &Fence) -> Child {
    let (child, value) = Child::start("child_that_obeys", engine, fence);
    assert_eq!(value, fence.current_value());
    child
}

fn native(fence: &Fence) -> &NativeFence {
    fence.object().fence()
}

fn until_monitored(fence: &Fence, value: u64) {
    until("MonitoredValue follows", || {
        native(fence).monitored_value() == value
    });
}

fn gpu_signal(device: &Device, fence: &Fence, value: u64) {
    let mut queue = device.create_hw_queue().unwrap();
    let list = CommandList::new().signal(fence, value).clone();
    let end = queue.submit(&list).unwrap();
    queue.progress_fence().wait(end, LONG).unwrap();
}

/// NF-15: a second process opens the fence over a socket, sees the same value, waits for it and signals it,
/// from its CPU and by an engine of its own; each direction.
///
/// Kills `peers-are-told-of-nothing`.
#[test]
fn nf_15_another_process_waits_for_and_signals_the_same_value() {
    on_every_engine(|engine, device, fence| {
        let other = child(engine, fence);
        // From here to there: CPU and GPU, to its CPU and its queue.
        other.does(Word::Wait, 41);
        fence.signal(41).unwrap();
        assert_eq!(other.until(Word::Ended), 0);
        other.does(Word::Wait, 42);
        gpu_signal(device, fence, 42);
        assert_eq!(other.until(Word::Ended), 0);
        other.does(Word::GpuWait, 43);
        until_monitored(fence, 42);
        fence.signal(43).unwrap();
        fence.wait(44, LONG).unwrap();
        other.does(Word::GpuWait, 45);
        until_monitored(fence, 44);
        gpu_signal(device, fence, 45);
        // And back, which its queue's signals did already.
        fence.wait(46, LONG).unwrap();
        let wait = fence.arm(47);
        other.does(Word::Signal, 47);
        wait.wait(LONG).unwrap();
        let mut queue = device.create_hw_queue().unwrap();
        let list = CommandList::new().wait(fence, 48).signal(fence, 49).clone();
        queue.submit(&list).unwrap();
        other.does(Word::GpuSignal, 48);
        fence.wait(49, LONG).unwrap();
        assert_eq!(other.does(Word::Value, 0), 49);
    });
}

/// NF-05 across processes: a waiter in B makes A's signal notify B, and only then.
///
/// Kills `peers-are-always-told`.
#[test]
fn nf_05_a_waiter_of_another_process_makes_a_signal_notify_it_and_only_then() {
    on_every_engine(|engine, device, fence| {
        let other = child(engine, fence);
        until_monitored(fence, u64::MAX);
        let heard = other.does(Word::Heard, 0);
        for value in 41..80 {
            fence.signal(value).unwrap();
        }
        gpu_signal(device, fence, 80);
        assert_eq!(native(fence).peer_counters().told, 0);
        assert_eq!(other.does(Word::Heard, 0), heard, "it was not woken");
        other.does(Word::Wait, 101);
        until_monitored(fence, 100);
        gpu_signal(device, fence, 100);
        assert_eq!(native(fence).peer_counters().told, 0);
        gpu_signal(device, fence, 101);
        assert_eq!(other.until(Word::Ended), 0);
        assert!(native(fence).peer_counters().told >= 1);
        until_monitored(fence, u64::MAX);
    });
}

/// Waits until the slot of a process is free: whoever of those that live has cleared it.
fn until_slot_is_free(fence: &Fence, of: &Child) {
    let (region, _) = native(fence).monitored_value_place();
    let page = Block::whole(&region.map().unwrap());
    let process = u64::from(of.id());
    until("its end is noticed", || {
        (0..OpenerSlot::SLOTS).all(|slot| {
            let owner = page.word(slot * OpenerSlot::BYTES + OpenerSlot::OWNER);
            owner.observe() & ((1 << OpenerSlot::PROCESS_BITS) - 1) != process
        })
    });
}

/// A process that is killed when it has opened the fence leaves the others working, and its slot free.
///
/// Kills `the-dead-are-not-noticed`.
#[test]
fn a_process_killed_after_it_opened_leaves_the_others_working() {
    on_every_engine(|engine, _device, fence| {
        let mut dies = child(engine, fence);
        let lives = child(engine, fence);
        dies.kill();
        until_slot_is_free(fence, &dies);
        lives.does(Word::Wait, 41);
        fence.signal(41).unwrap();
        assert_eq!(lives.until(Word::Ended), 0);
        let wait = fence.arm(42);
        lives.does(Word::GpuSignal, 42);
        wait.wait(LONG).unwrap();
    });
}

/// NF-04: the waiters of a process that is killed, on its CPU and of its engine, are gone from
/// MonitoredValue; those of others stand.
///
/// Kills `the-dead-are-not-noticed`, `the-others-waiters-do-not-count`.
#[test]
fn nf_04_the_waiters_of_a_killed_process_are_gone() {
    on_every_engine(|engine, _device, fence| {
        let mut dies = child(engine, fence);
        let lives = child(engine, fence);
        dies.does(Word::Wait, 50);
        dies.does(Word::GpuWait, 60);
        lives.does(Word::Wait, 70);
        until_monitored(fence, 49);
        dies.kill();
        until_monitored(fence, 69);
        fence.signal(70).unwrap();
        assert_eq!(lives.until(Word::Ended), 0);
        until_monitored(fence, u64::MAX);
    });
}

/// NF-06: a process that is killed in the middle of a storm of signals, which it made by its CPU and its
/// engine, has let nobody wait for what it stored: whoever's value was reached wakes.
///
/// Kills `the-dead-are-not-noticed`.
#[test]
fn nf_06_a_process_killed_while_it_signals_loses_nobody() {
    on_every_engine(|engine, _device, fence| {
        let lives = child(engine, fence);
        for round in 0..4 {
            let mut dies = child(engine, fence);
            let from = fence.current_value() + 1;
            dies.does(Word::Storm, from);
            fence.wait(from + 10 + round, LONG).unwrap();
            let wait = fence.arm(from + 40);
            until("it is there", || fence.current_value() >= from + 40);
            dies.kill();
            wait.wait(LONG).unwrap();
            until_slot_is_free(fence, &dies);
            // What was stored last stays, and others go on from there.
            let last = fence.current_value();
            lives.does(Word::Wait, last + 1);
            fence.signal(last + 1).unwrap();
            assert_eq!(lives.until(Word::Ended), 0);
        }
    });
}

/// There is no lock in the page that a process could be killed with. What it can leave is a slot that it
/// has taken and not written yet, with the words of who had it before: here made by hand, with the name
/// of a process that is dead. Nobody waits for what those words say.
///
/// Kills `the-dead-keep-their-slots`.
#[test]
fn a_slot_that_a_killed_process_has_just_taken_counts_for_nothing() {
    on_every_engine(|engine, _device, fence| {
        let lives = child(engine, fence);
        let (region, _) = native(fence).monitored_value_place();
        let page = Block::whole(&region.map().unwrap());
        let word = |slot: u64, offset| page.word(slot * OpenerSlot::BYTES + offset);
        // Its name: that of the slot that it had when it lived.
        let mut dies = child(engine, fence);
        let name = word(2, OpenerSlot::OWNER).observe();
        assert_eq!(
            name & ((1 << OpenerSlot::PROCESS_BITS) - 1),
            u64::from(dies.id())
        );
        dies.kill();
        until_slot_is_free(fence, &dies);
        for owner in [name, u64::MAX, 1 << OpenerSlot::PROCESS_BITS] {
            word(3, OpenerSlot::AWAITED).publish(45);
            page.word(OpenerSlot::reached(3, 0)).publish(9);
            word(3, OpenerSlot::OWNER).publish(owner);
            // Whatever has them look: here that a wait begins and ends.
            let wait = fence.arm(90);
            assert_eq!(native(fence).monitored_value(), 89);
            drop(wait);
            assert_eq!(word(3, OpenerSlot::OWNER).observe(), 0, "the slot is free");
        }
        lives.does(Word::Wait, 41);
        fence.signal(41).unwrap();
        assert_eq!(lives.until(Word::Ended), 0);
    });
}

/// NF-02, NF-03: the user's view of CurrentValue in another process, as the system shows that process to
/// others: the page of CurrentValue, for reading alone.
///
/// Kills `the-received-view-can-be-written`.
#[test]
fn nf_02_another_processes_view_is_read_only() {
    on_every_engine(|engine, _device, fence| {
        let other = child(engine, fence);
        let address = other.does(Word::Address, 0);
        assert_ne!(address, 0, "there is none");
        let maps = std::fs::read_to_string(format!("/proc/{}/maps", other.id())).unwrap();
        let has_it = |line: &&str| {
            let (range, _) = line.split_once(' ').unwrap();
            let (start, end) = range.split_once('-').unwrap();
            let number = |hex| u64::from_str_radix(hex, 16).unwrap();
            (number(start)..number(end)).contains(&address)
        };
        let line = maps.lines().find(has_it).unwrap();
        assert_eq!(line.split_whitespace().nth(1), Some("r--s"), "{line}");
        assert!(line.contains("fence-cv"), "{line}");
    });
}

/// NF-15: as many processes as the fence has slots have it open at once. Each signals, by its CPU or its
/// engine, and all wake; one more is refused. When one has left, or was killed, another has its place.
///
/// Kills `peers-are-told-of-nothing`.
#[test]
fn nf_15_as_many_processes_as_there_are_slots() {
    let device = model().0.create_device();
    let fence = shared(&device, 40);
    let mut others: Vec<_> = (1..OpenerSlot::SLOTS)
        .map(|_| child("model", &fence))
        .collect();
    let one_more_is_refused = || {
        let handle = passed(&fence);
        match model().0.create_device().open_fence(&handle) {
            Err(CreateError::Os(OsError::Passing(PassFenceError::TooManyOpeners))) => {}
            other => panic!("{other:?}"),
        }
    };
    let each_signals = |others: &[Child]| {
        for (number, signals) in others.iter().enumerate() {
            let value = fence.current_value() + 1;
            let wait = fence.arm(value);
            let wait_for_it = others
                .iter()
                .enumerate()
                .filter(|(other, _)| *other != number);
            let waiting: Vec<_> = wait_for_it.map(|(_, other)| other).collect();
            for other in &waiting {
                other.does(Word::Wait, value);
            }
            let how = [Word::Signal, Word::GpuSignal][number % 2];
            signals.does(how, value);
            for other in &waiting {
                assert_eq!(other.until(Word::Ended), 0);
            }
            assert_eq!(wait.wait(LONG), Ok(()));
        }
    };
    each_signals(&others);
    one_more_is_refused();
    others.pop().unwrap().ends();
    others.push(child("model", &fence));
    one_more_is_refused();
    let mut dies = others.remove(0);
    dies.kill();
    drop(dies);
    others.push(child("model", &fence));
    one_more_is_refused();
    each_signals(&others[others.len() - 3..]);
}

/// NF-15: the maker of a fence closes its handle, and those who have it open go on with it.
///
/// Kills `peers-are-told-of-nothing`.
#[test]
fn nf_15_a_fence_that_its_maker_has_closed_goes_on() {
    on_every_engine(|engine, _device, fence| {
        let (one, other) = (child(engine, fence), child(engine, fence));
        one.does(Word::Wait, 50);
        fence.close();
        other.does(Word::GpuSignal, 50);
        assert_eq!(one.until(Word::Ended), 0);
        one.does(Word::Close, 0);
        assert_eq!(other.does(Word::Value, 0), 50);
    });
}

/// NF-14, NF-15: the maker of a fence is killed while it signals, waits and has a queue that waits. The
/// others, to whom the fence was passed on, go on with it: what it stored is there, its waiters count no
/// more, one more can open it, and gets the maker's slot.
///
/// Kills `the-dead-are-not-noticed`.
#[test]
fn nf_15_the_maker_is_killed_and_the_others_go_on() {
    for (engine, adapter) in engines() {
        if engine != "model" && !memory::is_usual() {
            continue;
        }
        println!("on the {engine}");
        let (mut maker, handle) = Child::start_maker("child_that_obeys", engine, 40);
        let device = adapter.create_device();
        let fence = device.open_fence(&handle).unwrap();
        let other = child(engine, &fence);
        maker.does(Word::Wait, 60);
        until_monitored(&fence, 59);
        maker.does(Word::GpuWait, 50);
        until_monitored(&fence, 49);
        other.does(Word::Wait, 45);
        let wait = fence.arm(45);
        until_monitored(&fence, 44);
        maker.does(Word::Storm, 41);
        wait.wait(LONG).unwrap();
        assert_eq!(other.until(Word::Ended), 0);
        maker.kill();
        until_slot_is_free(&fence, &maker);
        until_monitored(&fence, u64::MAX);
        let last = fence.current_value();
        assert!(last >= 45);
        // To and fro between those that live, by CPU and GPU.
        other.does(Word::Wait, last + 1);
        gpu_signal(&device, &fence, last + 1);
        assert_eq!(other.until(Word::Ended), 0);
        let wait = fence.arm(last + 2);
        other.does(Word::GpuSignal, last + 2);
        wait.wait(LONG).unwrap();
        // And one that comes later, in the slot of the dead.
        let next = child(engine, &fence);
        next.does(Word::GpuWait, last + 3);
        until_monitored(&fence, last + 2);
        other.does(Word::Signal, last + 3);
        fence.wait(last + 4, LONG).unwrap();
        assert_eq!(native(&fence).monitored_value_place().1, OpenerSlot::BYTES);
    }
}
