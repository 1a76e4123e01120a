//! Cross-adapter doorbells (XA-10), in every order that loom finds: the page, the engines that ring and hear, and the OS
//! that rings for the CPU. Two engines of one adapter stand for those of two. As `tests/loom.rs` otherwise.
#![cfg(loom)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    #[allow(dead_code, reason = "several programs share it")]
    pub(crate) mod loom_rig;
}

use loom::thread;
use native_fence::abi::CrossDoorbellLine;
use native_fence::gpu::ExploredDoorbells;
use native_fence::{CommandList, Timeout};
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, PoisonError};
use support::loom_rig::{Rig, RigOptions, explore};

/// There is one page in a process, and loom explores a scenario a thread.
static PAGE: Mutex<()> = Mutex::new(());

fn explore_alone(preemptions: RangeInclusive<usize>, scenario: impl Fn() + Send + Sync + 'static) {
    let _page = PAGE.lock().unwrap_or_else(PoisonError::into_inner);
    explore(preemptions, scenario);
}

/// A queue comes to a wait and is closed while another engine signals and rings: it is opened by that alone, since its
/// slice does not end. What loom has seen before a thread yields it sees no more after it, so of a ring the order of its
/// stores is explored, and not their visibility.
#[test]
fn loom_an_engine_rings_while_another_closes_a_queue() {
    explore_alone(2..=2, || {
        let rig = Rig::new(RigOptions {
            nodes: 2,
            stays_for_rings: true,
            ..RigOptions::default()
        });
        let fence = rig.doorbell_fence();
        let (mut waits, mut signals) = (rig.queue_on(0), rig.queue_on(1));
        let done = waits.progress_fence().arm(1);
        rig.rest();
        signals
            .submit(CommandList::new().signal(&fence, 1))
            .unwrap();
        rig.hold_at_look(1);
        waits.submit(CommandList::new().wait(&fence, 1)).unwrap();
        loom::explore();
        rig.let_go(1);
        done.wait(Timeout::Never).unwrap();
        loom::stop_exploring();
    });
}

/// The same of a signal of the CPU, for which the OS rings.
#[test]
fn loom_the_cpu_rings_while_an_engine_closes_a_queue() {
    explore_alone(2..=3, || {
        let rig = Rig::new(RigOptions {
            stays_for_rings: true,
            ..RigOptions::default()
        });
        let fence = rig.doorbell_fence();
        let mut waits = rig.queue();
        let done = waits.progress_fence().arm(1);
        rig.rest();
        waits.submit(CommandList::new().wait(&fence, 1)).unwrap();
        loom::explore();
        fence.signal(1).unwrap();
        done.wait(Timeout::Never).unwrap();
        loom::stop_exploring();
    });
}

/// A line goes round while an engine hears: two lanes ring there in one execution, one for what is waited for, and one a
/// whole lap for something else, so that of two numbers either may be what stands in their one place in the end. The queue
/// that waits goes on.
#[test]
fn loom_a_line_goes_round_while_an_engine_hears() {
    explore(2..=3, || {
        let doorbells = Arc::new(ExploredDoorbells::new().unwrap());
        loom::explore();
        let signals = {
            let doorbells = Arc::clone(&doorbells);
            thread::spawn(move || doorbells.signal(1).unwrap())
        };
        let goes_round = {
            let doorbells = Arc::clone(&doorbells);
            thread::spawn(move || {
                (0..CrossDoorbellLine::PLACES).for_each(|_| doorbells.ring_for_another().unwrap());
                signals.join().unwrap();
                doorbells.end_execution().unwrap();
            })
        };
        doorbells.wait(1).unwrap();
        goes_round.join().unwrap();
        loom::stop_exploring();
    });
}
