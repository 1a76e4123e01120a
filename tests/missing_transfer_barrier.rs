//! HQ-08 of engines that execute command buffers, by data: what they record for copies, fills and values of fences is
//! played on memory that keeps what Vulkan promises and no more (`support/weak_memory.rs`).

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod command_order;
    pub(crate) mod weak_memory;
}
mod vulkan_support;

use native_fence::gpu::{CommandEngine, CommandMemory, StoredValue};
use native_fence::shared::{Providers, Region};
use native_fence::vulkan::{CommandRecorder, Recorded};
use std::sync::{Arc, Mutex};
use support::command_order::{CommandOrder, Step, steps, unneeded};
use support::weak_memory::{WeakDevice, words};
use vulkan_support::Bench;

type Does = native_fence::gpu::Step;

/// Places in the region, which is one.
const FENCE: u64 = 0;
const COPIED: [u64; 3] = [8, 16, 24];
const FIRST: u64 = 64;
/// Longer than what one command stores of a word whose halves differ.
const LONG: u64 = CommandRecorder::MOST_UPDATED as u64 + 8;
const SECOND: u64 = FIRST + LONG;
const END: u64 = SECOND + LONG;

const ODD: u64 = 0x0123_4567_89ab_cdef;
const EVEN: u64 = 5 << 32 | 5;

/// Two commands of an engine, each step of which depends on the one before: it reads what that stored, or overwrites what it
/// read. And who looks: a host that polls the fence, after each of its values, and one that waits for the end of each command.
/// With the device, which ends after the data are looked at: what the validation layers say comes last.
fn story() -> (Bench, Vec<Step>) {
    let bench = Bench::new();
    let queue = Arc::new(Mutex::new(bench.device.queue(0).unwrap()));
    let engine = CommandEngine::new(queue, &Arc::new(Providers::default())).unwrap();
    let region = Region::new("transfers", END.next_multiple_of(4096)).unwrap();
    let memory: Arc<CommandMemory> = Arc::new(engine.map(&region).unwrap());
    let at = |place| (Arc::clone(&memory), place);
    let store = |place, value| Does::Store(Arc::clone(&memory), place, StoredValue::Whole(value));
    let fill = |place, bytes, word| Does::Fill(Arc::clone(&memory), place, bytes, word);
    let copy = |from, to, bytes| Does::Copy(at(to), at(from), bytes);
    let first = [
        fill(FIRST, LONG, ODD),
        copy(FIRST, SECOND, LONG),
        store(FENCE, 1),
        copy(FENCE, COPIED[0], 8),
        store(FENCE, 2),
    ];
    let second = [
        copy(FENCE, COPIED[1], 8),
        copy(COPIED[1], COPIED[2], 8),
        fill(COPIED[1], 8, EVEN),
        store(FENCE, 3),
    ];
    let mut all = Vec::new();
    for command in [&first[..], &second] {
        for step in steps(engine.record(command).unwrap().recorded()) {
            let value = fence_value(&step);
            all.push(step);
            if value.is_some() {
                all.push(Step::Polls);
            }
        }
        all.push(Step::Host);
    }
    (bench, all)
}

/// The value of the fence that it stores.
fn fence_value(step: &Step) -> Option<u64> {
    match step {
        Step::Transfer(Recorded::Update { offset, data }) if *offset == FENCE => {
            words(data).first().copied()
        }
        _ => None,
    }
}

/// What a host finds that has seen the fence's value, at its last.
fn found_behind(value: u64) -> &'static [(u64, u64)] {
    match value {
        1 => &[(SECOND, ODD), (SECOND + LONG - 8, ODD)],
        2 => &[(COPIED[0], 1)],
        _ => &[(COPIED[1], EVEN), (COPIED[2], 2)],
    }
}

/// What is wrong with what the hosts find, on a device.
fn wrong_data(steps: &[Step]) -> Option<String> {
    let order = CommandOrder::new(steps);
    WeakDevice::ALL.into_iter().find_map(|device| {
        let mut wrong = None;
        device.play((steps, &order), 0, &mut |turn| {
            let before = &steps[..turn.at];
            let seen = before
                .iter()
                .filter_map(fence_value)
                .max()
                .unwrap_or_default();
            let known = if *turn.step == Step::Polls {
                seen..=seen
            } else {
                1..=seen
            };
            for (place, value) in known.flat_map(found_behind).copied() {
                let found = turn.read(place);
                if found != value {
                    let step = turn.step;
                    wrong = Some(format!("{device:?}: {step:?} finds {found:#x} at {place}"));
                }
            }
            let found = turn.read(FENCE);
            if *turn.step == Step::Host && found < seen {
                wrong = Some(format!(
                    "{device:?}: {found} is found at the end, not {seen}"
                ));
            }
        });
        wrong
    })
}

/// HQ-08: transfers come in the order of their queue, each sees what was stored before it, and a host finds what came before
/// a value of a fence, and at a command's end all of it.
///
/// Kills `a-transfer-begins-without-a-barrier`, `a-fill-doubles-what-is-not-there-yet`, `transfers-end-without-a-barrier`,
/// `transfers-wait-for-no-transfer`, `transfers-make-nothing-available`, `transfers-hold-no-transfer-back`,
/// `transfers-are-not-for-the-host`, `transfers-read-what-was-there-before`, `transfers-store-in-any-order`,
/// `transfers-show-the-host-nothing`, `copies-end-for-nobody`, `copies-end-unavailable`.
#[test]
fn hq_08_transfers_come_in_queue_order_and_see_what_was_stored() {
    let (_bench, story) = story();
    assert_eq!(wrong_data(&story), None);
}

/// Without any one of the barriers, and with any bit less in the masks of all of a kind, wrong data come out. What stands
/// before the first is nothing.
///
/// Kills `a-transfer-begins-with-two-barriers`.
#[test]
fn hq_08_each_barrier_of_transfers_is_missed() {
    let (_bench, story) = story();
    let misleads = |steps: &[Step]| wrong_data(steps).is_some();
    assert_eq!(unneeded(&story, misleads), Vec::<String>::new());
}
