//! Peers that are killed: a process that has a shared fence open is killed at each store that it makes to the
//! fence's pages, one after the other, and the others go on.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod child;
    pub(crate) mod doomed;
    #[allow(clippy::duplicate_mod, reason = "a test may use engines and bench")]
    pub(crate) mod engines;
    pub(crate) mod passing;
    pub(crate) mod until;
}

use native_fence::abi::{OpenerSlot, SharedFenceHeader};
use native_fence::shared::Block;
use native_fence::{ArmedWait, Device, Fence};
use support::child::{Child, Word, obey, socket};
use support::doomed::{self, Act, die_at};
use support::engines::model;
use support::passing::shared;
use support::until::{LONG, until};

/// The process that goes on, and nobody else.
#[test]
#[ignore = "part of the tests of this file"]
fn child_that_obeys() {
    obey();
}

/// The process that is killed, and nobody else.
#[test]
#[ignore = "part of the tests of this file"]
fn child_that_is_killed() {
    if let Some(socket) = socket() {
        doomed::obey(&socket);
    }
}

/// Who goes on: this process, which has the fence open, and another.
struct Survivors {
    fence: Fence,
    other: Child,
    page: Block,
    _device: Device,
}

impl Survivors {
    fn new() -> Self {
        let device = model().0.create_device();
        let fence = shared(&device, 41);
        // From now on waiters come each with a reached word of their own.
        fence.rewind(40).unwrap();
        Self::of(fence, device)
    }

    fn of(fence: Fence, device: Device) -> Self {
        let (other, _) = Child::start("child_that_obeys", "model", &fence);
        let (region, _) = fence.object().fence().monitored_value_place();
        let page = Block::whole(&region.map().unwrap());
        Self {
            fence,
            other,
            page,
            _device: device,
        }
    }

    /// A value that was not there yet.
    fn next(&self) -> u64 {
        self.fence.current_value() + 1
    }

    /// Both wait for a value.
    fn wait(&self, value: u64) -> ArmedWait {
        self.other.does(Word::Wait, value);
        self.fence.arm(value)
    }

    /// Both have had it.
    fn had(&self, wait: &ArmedWait) {
        assert_eq!(wait.wait(LONG), Ok(()));
        assert_eq!(self.other.until(Word::Ended), 0);
    }

    /// Another process is killed at a store of what it does; whether it was not through before.
    fn dies(&self, act: Act, value: u64, store: u64) -> bool {
        let fence = Some(&self.fence);
        die_at("child_that_is_killed", (act, value), store, fence).0
    }

    /// They go on with each other, and nothing of the dead is left: no slot, and no wait.
    fn go_on(&self) {
        let next = self.next();
        let wait = self.wait(next);
        self.fence.signal(next).unwrap();
        self.had(&wait);
        let wait = self.fence.arm(next + 1);
        self.other.does(Word::GpuSignal, next + 1);
        assert_eq!(wait.wait(LONG), Ok(()));
        until("nothing of the dead is left", || {
            let owner = |slot: &u64| {
                let owner = self.page.word(slot * OpenerSlot::BYTES + OpenerSlot::OWNER);
                owner.observe() != 0
            };
            let owners = (0..OpenerSlot::SLOTS).filter(owner).count();
            owners == 2 && self.fence.object().fence().monitored_value() == u64::MAX
        });
    }
}

/// Has `dies` done for each store in turn, until the process comes through; there are more than `least`.
fn at_each_store(least: u64, mut dies: impl FnMut(u64) -> bool) {
    let mut store = 1;
    while dies(store) {
        store += 1;
    }
    println!("killed at each of {} stores", store - 1);
    assert!(store > least, "it came through at store {store}");
}

/// A process that is killed while it opens the fence: its slot taken, and some of its words written.
///
/// Kills `the-dead-keep-their-slots`.
#[test]
fn nf_15_a_process_is_killed_at_each_store_of_its_opening() {
    let survivors = Survivors::new();
    at_each_store(10, |store| {
        let value = survivors.next();
        let wait = survivors.wait(value);
        let killed = survivors.dies(Act::Open, 0, store);
        survivors.fence.signal(value).unwrap();
        survivors.had(&wait);
        survivors.go_on();
        killed
    });
}

/// NF-04: a process that is killed while it comes to wait leaves no MonitoredValue.
///
/// Kills `the-dead-are-not-noticed`.
#[test]
fn nf_04_a_process_is_killed_at_each_store_of_its_waiting() {
    let survivors = Survivors::new();
    at_each_store(3, |store| {
        let value = survivors.next();
        let wait = survivors.wait(value + 5);
        let killed = survivors.dies(Act::Wait, value, store);
        until("its wait is gone", || {
            survivors.fence.object().fence().monitored_value() == value + 4
        });
        survivors.fence.signal(value + 5).unwrap();
        survivors.had(&wait);
        survivors.go_on();
        killed
    });
}

/// NF-06: a process that is killed while it signals has stored the value or not. If it has, whoever waits for
/// it wakes, told or not; if not, the value comes from another. One that is killed when it is about to tell has
/// said so, for those that come to wait.
///
/// Kills `the-dead-are-not-noticed`, `who-tells-does-not-say-so`.
#[test]
fn nf_06_a_process_is_killed_at_each_store_of_its_signalling() {
    let survivors = Survivors::new();
    let mut told = false;
    at_each_store(4, |store| {
        let value = survivors.next();
        let wait = survivors.wait(value);
        let killed = survivors.dies(Act::Signal, value, store);
        // In the slot of the dead.
        let telling = 2 * OpenerSlot::BYTES + OpenerSlot::TELLING;
        told |= survivors.page.word(telling).observe() != 0;
        if survivors.fence.current_value() < value {
            survivors.fence.signal(value).unwrap();
        }
        survivors.had(&wait);
        survivors.go_on();
        killed
    });
    assert!(told, "it was never killed when it was about to tell");
}

/// NF-26: one that is killed while it stores the fence backwards has told everybody of the value before.
///
/// Kills `the-dead-are-not-noticed`.
#[test]
fn nf_26_a_process_is_killed_at_each_store_of_its_rewinding() {
    let survivors = Survivors::new();
    let rewinds = survivors.page.word(SharedFenceHeader::REWINDS);
    at_each_store(6, |store| {
        let value = survivors.next();
        let (wait, before) = (survivors.wait(value), rewinds.observe());
        let killed = survivors.dies(Act::Rewind, value, store);
        let was_there = survivors.fence.current_value() >= value || rewinds.observe() != before;
        if !was_there {
            survivors.fence.signal(value).unwrap();
        }
        survivors.had(&wait);
        survivors.go_on();
        killed
    });
}

/// NF-14: a process that is killed while it closes the fence and leaves.
///
/// Kills `the-dead-are-not-noticed`.
#[test]
fn nf_14_a_process_is_killed_at_each_store_of_its_leaving() {
    let survivors = Survivors::new();
    at_each_store(2, |store| {
        let killed = survivors.dies(Act::Leave, 0, store);
        survivors.go_on();
        killed
    });
}

/// NF-15: the maker of a fence that is killed while it sends it for the first time, or signals it then, has
/// sent it or not. If it has, those that got it go on with it.
///
/// Kills `the-dead-keep-their-slots`.
#[test]
fn nf_15_the_maker_is_killed_at_each_store_of_its_sending() {
    let mut orphaned = 0;
    at_each_store(8, |store| {
        let (killed, sent) = die_at("child_that_is_killed", (Act::Send, 40), store, None);
        assert!(killed || sent.is_some());
        if let Some(handle) = sent {
            orphaned += u64::from(killed);
            let device = model().0.create_device();
            let fence = device.open_fence(&handle).unwrap();
            assert!((40..=41).contains(&fence.current_value()));
            Survivors::of(fence, device).go_on();
        }
        killed
    });
    assert!(orphaned > 0, "it was always killed before it had sent it");
}
