//! Kernels that schedule themselves: the last workgroup of a table of dispatches does the engine's step, and the next table
//! runs without the engine (HQ-08).
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
    pub(crate) mod chain;
    pub(crate) mod engines;
    pub(crate) mod kernels;
    pub(crate) mod logged;
    pub(crate) mod thread_switches;
    pub(crate) mod until {
        pub(crate) use super::bench::until;
    }
}

use native_fence::gpu::{Engine, KernelCode, KernelError, ModelEngine, ModelOptions, NodePolicy};
use native_fence::vulkan::shaders;
use native_fence::{Adapter, AdapterOptions, CommandList, Device, Kernel, Parameters, WaitError};
use std::time::Duration;
use support::bench::{LONG, words};
use support::chain::Chain;
use support::engines::{on_every_engine, patient};
use support::kernels::{
    add_words, add_words_self_scheduling, pass_on_self_scheduling, spin_self_scheduling, sums,
};
use support::logged::logged;
use support::thread_switches::switches;

/// HQ-08: each dispatch of a chain runs once, after the one before, and the logs have each signal once and in order.
///
/// Kills `model-epilogues-mark-nothing`, `shader-epilogues-mark-nothing`, `shader-the-table-before-runs-again`.
#[test]
fn hq_08_a_chain_over_two_queues() {
    on_every_engine(|adapter| {
        let device = adapter.create_device();
        let kernel = device.create_kernel(add_words_self_scheduling()).unwrap();
        let mut chain = Chain::new(&device);
        for _ in 0..10 {
            let before = chain.links;
            chain.submit(&[&kernel], 64);
            chain.until_done();
            for (own, queue) in (0..).zip(&chain.queues) {
                let expected: Vec<_> = (before..chain.links).skip(own).step_by(2).collect();
                let signals = logged(queue, &chain.fences[own]);
                let links: Vec<_> = signals.iter().map(|value| value - 1).collect();
                assert_eq!(links, expected);
            }
        }
    });
}

/// HQ-08: a kernel that signals before it has ended, and has a store that no signal makes available, is refused; the same
/// store in a kernel without an epilogue is none to refuse.
///
/// Kills `private-stores-pass`.
#[test]
fn hq_08_a_kernel_whose_stores_nothing_orders_is_not_registered() {
    // OpStore of five words.
    const OP_STORE: u32 = 0x0005_003e;
    const ALIGNED: u32 = 0x2;
    const NON_PRIVATE: u32 = 0x20;
    let private = |words: &[u32]| {
        let mut words = words.to_vec();
        let is_store = |at: &[u32]| at[0] == OP_STORE && at[3..] == [ALIGNED | NON_PRIVATE, 8];
        let store = words.windows(5).rposition(is_store).unwrap();
        words[store + 3] = ALIGNED;
        KernelCode::new(&words, 64)
    };
    let refused = private(shaders::PASS_ON_SELF_SCHEDULING.words);
    assert!(
        matches!(refused, Err(KernelError::PrivateStores)),
        "{refused:?}"
    );
    assert!(private(shaders::WORK.words).is_ok());
}

/// HQ-08: chains side by side, more queues than an epilogue has lanes.
#[test]
fn hq_08_many_chains_side_by_side() {
    on_every_engine(|adapter| {
        let device = adapter.create_device();
        let kernel = device.create_kernel(add_words_self_scheduling()).unwrap();
        let mut chains: Vec<_> = (0..10).map(|_| Chain::new(&device)).collect();
        for _ in 0..2 {
            for chain in &mut chains {
                chain.submit(&[&kernel], 20);
            }
            chains.iter().for_each(Chain::until_done);
        }
    });
}

/// HQ-08: chains whose links are of kernels of both sorts, and of two programs, which take turns on the engine.
#[test]
fn hq_08_chains_of_several_kernels_and_programs() {
    on_every_engine(|adapter| {
        let devices = [0, 1].map(|_| adapter.create_device());
        let kernels = devices.each_ref().map(|device| {
            let add = |code| device.create_kernel(code).unwrap();
            [
                add(add_words_self_scheduling()),
                add(add_words()),
                add(add_words_self_scheduling()),
            ]
        });
        let mut chains: Vec<_> = (0..6).map(|at| Chain::new(&devices[at % 2])).collect();
        for _ in 0..5 {
            for (at, chain) in (0..).zip(&mut chains) {
                let own = &kernels[at % 2];
                // Two of them are of one kernel alone.
                let of = [&own[0], &own[1], &own[2]];
                chain.submit(if at < 2 { &of[..1] } else { &of }, 24);
            }
            chains.iter().for_each(Chain::until_done);
        }
    });
}

/// HQ-08: chains of one program, which an epilogue finds ready side by side: of one kernel each, and of kernels of both
/// sorts.
///
/// Kills `shader-kernels-share-a-table-of-an-epilogue`, `shader-the-engine-marks-again`.
#[test]
fn hq_08_chains_of_several_kernels_of_a_program() {
    on_every_engine(|adapter| {
        let device = adapter.create_device();
        let add = |code| device.create_kernel(code).unwrap();
        let first = add(add_words_self_scheduling());
        let plain = add(add_words());
        let other = add(add_words_self_scheduling());
        let of: [&[&Kernel]; 3] = [&[&first], &[&other], &[&first, &plain, &other]];
        let mut chains: Vec<_> = of.iter().map(|_| Chain::new(&device)).collect();
        for beside in [2, 3, 2, 2] {
            for (chain, of) in chains.iter_mut().zip(of).take(beside) {
                chain.submit(of, 80);
            }
            chains[..beside].iter().for_each(Chain::until_done);
        }
        // And a row of them in one queue.
        let memory = device.create_allocation(8).unwrap();
        let mut queue = device.create_hw_queue().unwrap();
        let mut list = CommandList::new();
        for kernel in of[2].iter().cycle().take(60) {
            let sums = sums(&memory, &memory, 1);
            list.dispatch(kernel, [1; 3], &sums).unwrap();
        }
        let end = queue.submit(&list).unwrap();
        queue.progress_fence().wait(end, LONG).unwrap();
        assert_eq!(words(&memory), [60]);
        // And one that links of a chain let go, beside the links that follow.
        let count = add(spin_self_scheduling());
        let counted = device.create_allocation(16).unwrap();
        let chain = &mut chains[0];
        let mut list = CommandList::new();
        for link in (chain.links + 1..=chain.links + 60).step_by(3) {
            list.wait(chain.fence(link), link);
            let once = support::kernels::spins(&counted, 1);
            list.dispatch(&count, [1; 3], &once).unwrap();
        }
        let end = queue.submit(&list).unwrap();
        chain.submit(of[0], 60);
        chain.until_done();
        queue.progress_fence().wait(end, LONG).unwrap();
        assert_eq!(words(&counted)[1], 20);
    });
}

/// Of a chain that shows how often the engine comes.
const LINKS: u64 = 256;

/// HQ-08: once it is known that kernels schedule themselves, the engine comes once in many tables: a chain takes fewer
/// slices than it would if each table were a round of the engine's.
///
/// Kills `slices-are-never-long`, `model-epilogues-serve-one-queue`, `shader-the-engine-comes-behind-each-table`,
/// `shader-epilogues-look-once`, `shader-a-table-given-up-has-run`, `model-a-table-given-up-has-run`.
#[test]
fn hq_08_dispatches_are_made_without_the_engine() {
    on_engines_that_are_not_cut(|adapter, device, kernel| {
        let mut chain = Chain::new(device);
        chain.submit(&[kernel], 4);
        chain.until_done();
        goes_without_the_engine(adapter, || {
            chain.submit(&[kernel], LINKS);
            chain.until_done();
        });
    });
}

/// Links of a chain that a slice has room for, and those from one look at it to the next.
const OF_A_SLICE: u64 = 60;
const FROM_LOOK_TO_LOOK: u64 = 20;

/// HQ-08, HQ-09: from link to link nothing is submitted, nobody is notified, and the thread that hears of engines sleeps:
/// looks at a chain on its way find what they found twenty links before. (Where a slice ends its successor is submitted,
/// which has to be between two looks now and then: not as often as a look is taken.)
///
/// Kills `slices-are-never-long`.
#[test]
fn hq_08_between_links_nothing_is_submitted_and_nobody_is_woken() {
    on_engines_that_are_not_cut(|adapter, device, kernel| {
        let mut chain = Chain::new(device);
        let look = |chain: &Chain| {
            let switches = switches("nf-irq-0");
            assert!(!switches.is_empty(), "no thread hears of the engine");
            let woken: u64 = switches.values().sum();
            let notified = adapter.os().interrupts().fences_named();
            let slices = adapter.node_counters().slices;
            // Last: what is counted was there by then.
            (chain.links_done(), [slices, notified, woken])
        };
        let (mut undisturbed, mut looks) = (0, 0);
        for _ in 0..500 {
            let before = chain.links;
            chain.submit(&[kernel], OF_A_SLICE);
            let mut last = None;
            while chain.links_done() < chain.links {
                let (done, counted) = look(&chain);
                // Once it is on its way, and not near its end, which is waited for by nobody.
                let is_midway = done > before && done < chain.links - 1;
                match last {
                    None if is_midway => last = Some((done, counted)),
                    Some((first, at_first)) if is_midway && done >= first + FROM_LOOK_TO_LOOK => {
                        looks += 1;
                        undisturbed += u64::from(counted == at_first);
                        last = Some((done, counted));
                    }
                    _ => std::thread::yield_now(),
                }
            }
            chain.until_done();
            if looks >= 20 {
                break;
            }
        }
        assert!(looks >= 5, "{looks} looks at 500 chains on their way");
        assert!(2 * undisturbed > looks, "{undisturbed} of {looks} looks");
    });
}

/// HQ-08: and where a slice ended before it had released what was ready, which gives queues their turns, these come to an
/// end.
///
/// Kills `model-turns-never-end`, `shader-turns-never-end`.
#[test]
fn hq_08_turns_end() {
    on_engines_that_are_not_cut(|adapter, device, kernel| {
        let mut chain = Chain::new(device);
        let mut beside = device.create_hw_queue().unwrap();
        let memory = device.create_allocation(8).unwrap();
        let mut dispatches = |links| {
            let mut list = CommandList::new();
            for _ in 0..links {
                let sums = sums(&memory, &memory, 1);
                list.dispatch(kernel, [1; 3], &sums).unwrap();
            }
            let end = beside.submit(&list).unwrap();
            (beside.progress_fence().clone(), end)
        };
        let (ended, end) = dispatches(8);
        ended.wait(end, LONG).unwrap();
        goes_without_the_engine(adapter, || {
            let (ended, end) = dispatches(LINKS);
            let wait = chain.fence(3).arm(3);
            chain.submit(&[kernel], LINKS);
            wait.wait(LONG).unwrap();
            chain.until_done();
            ended.wait(end, LONG).unwrap();
        });
    });
}

/// HQ-08: nor does the engine come where there are more queues than lanes of an epilogue: a lane that had none that could
/// go on looks again when another one's signal has let one go.
///
/// Kills `shader-lanes-look-no-more`.
#[test]
fn hq_08_idle_queues_are_no_hindrance() {
    on_engines_that_are_not_cut(|adapter, device, kernel| {
        let mut chain = Chain::new(device);
        let _idle = [0; 20].map(|_| device.create_hw_queue().unwrap());
        chain.submit(&[kernel], 4);
        chain.until_done();
        goes_without_the_engine(adapter, || {
            chain.submit(&[kernel], LINKS);
            chain.until_done();
        });
    });
}

/// The links take fewer slices than if each table were a round of the engine's, and hardly any notifies anybody: those
/// for which somebody waits, and who has parked meanwhile.
fn goes_without_the_engine(adapter: &Adapter, chain: impl FnOnce()) {
    let count = || {
        let notified = adapter.os().interrupts().fences_named();
        (adapter.node_counters().slices, notified)
    };
    let before = count();
    chain();
    let after = count();
    let slices = after.0 - before.0;
    assert!(slices < LINKS / 16, "{slices} slices for {LINKS} links");
    let notified = after.1 - before.1;
    assert!(
        notified < LINKS / 16,
        "{notified} notifications for {LINKS} links"
    );
}

/// With a kernel that schedules itself.
fn on_engines_that_are_not_cut(mut test: impl FnMut(&Adapter, &Device, &Kernel)) {
    // Neither time ends a slice, nor a driver's cuts.
    let policy = NodePolicy {
        slice_time: Duration::from_secs(60),
        ..NodePolicy::default()
    };
    let options = AdapterOptions {
        policy,
        tdr: patient(),
        ..AdapterOptions::default()
    };
    let model: Box<dyn Engine> = Box::new(ModelEngine::new(ModelOptions::default()));
    let model = Adapter::with_engines(vec![model], policy).unwrap();
    let shader = support::engines::shader().and_then(|_| Adapter::open(&options).ok());
    for adapter in [Some(model), shader].into_iter().flatten() {
        let device = adapter.create_device();
        let kernel = device.create_kernel(add_words_self_scheduling()).unwrap();
        test(&adapter, &device, &kernel);
    }
}

/// NF-05, IN-01: who waits on the CPU for a link in the midst of a chain is woken, though its signal comes behind a kernel
/// that schedules itself, and finds it in the log; the chain goes on.
///
/// Kills `model-epilogues-take-signals-that-raise`, `shader-epilogues-take-signals-that-raise`.
#[test]
fn nf_05_a_signal_behind_such_a_kernel_wakes_who_waits() {
    on_every_engine(|adapter| {
        let device = adapter.create_device();
        let kernel = device.create_kernel(add_words_self_scheduling()).unwrap();
        let mut chain = Chain::new(&device);
        chain.submit(&[&kernel], 8);
        chain.until_done();
        for _ in 0..5 {
            let middle = chain.links + 41;
            let waits = [middle, middle + 1, middle + 2].map(|at| chain.fence(at).arm(at));
            chain.submit(&[&kernel], 80);
            for (wait, at) in waits.into_iter().zip(middle..) {
                assert_eq!(wait.wait(LONG), Ok(()));
                assert!(chain.fence(at).current_value() >= at);
            }
            chain.until_done();
        }
    });
}

/// PR-08, NF-08: what the operating system asks of an engine whose kernels go on without it is answered while they do: a
/// waiter that comes is armed, and a queue that stands still otherwise is served.
///
/// Kills `shader-epilogues-mark-nothing`.
#[test]
fn nf_08_a_waiter_that_comes_while_kernels_go_on_is_woken() {
    on_every_engine(|adapter| {
        let device = adapter.create_device();
        let kernel = device.create_kernel(spin_self_scheduling()).unwrap();
        let counted = device.create_allocation(16).unwrap();
        let fence = device.create_fence(0).unwrap();
        let mut queue = device.create_hw_queue().unwrap();
        let mut list = CommandList::new();
        for value in 1..=200 {
            let spins = support::kernels::spins(&counted, 200);
            list.dispatch(&kernel, [1; 3], &spins).unwrap();
            list.signal(&fence, value);
        }
        queue.submit(&list).unwrap();
        for value in [50, 120, 199] {
            assert_eq!(fence.wait(value, LONG), Ok(()));
        }
        queue.progress_fence().wait(1, LONG).unwrap();
        assert_eq!(words(&counted)[1], 200);
    });
}

/// LG-01, NF-05: signals that such a kernel makes itself are the engine's to finish: each is logged once, before its
/// packet's, and wakes who waits.
///
/// Kills `shader-epilogues-mark-who-has-signalled`, `model-epilogues-mark-who-has-signalled`.
#[test]
fn lg_01_signals_of_kernels_that_schedule_themselves_are_logged() {
    on_every_engine(|adapter| {
        let device = adapter.create_device();
        let kernel = device.create_kernel(pass_on_self_scheduling()).unwrap();
        let memory = device.create_allocation(8).unwrap();
        let fence = device.create_fence(0).unwrap();
        let mut queue = device.create_hw_queue().unwrap();
        for batch in 0..4 {
            let mut list = CommandList::new();
            let values: Vec<_> = (batch * 40 + 1..=batch * 40 + 40).collect();
            for value in values.iter().step_by(2) {
                let given = Parameters::new()
                    .address(&memory, 0)
                    .fence(&fence)
                    .word(*value);
                list.dispatch(&kernel, [1; 3], &given).unwrap();
                list.signal(&fence, value + 1);
            }
            let end = queue.submit(&list).unwrap();
            let armed: Vec<_> = values.iter().map(|value| fence.arm(*value)).collect();
            for wait in armed {
                assert_eq!(wait.wait(LONG), Ok(()));
            }
            queue.progress_fence().wait(end, LONG).unwrap();
            assert_eq!(logged(&queue, &fence), values);
            assert_eq!(words(&memory), [batch * 40 + 39]);
        }
    });
}

/// HQ-04: what is wrong with a packet in the midst of a chain faults its own queue, and nothing of it is done; other chains
/// go on.
///
/// Kills `shader-epilogues-take-what-is-wrong`.
#[test]
fn hq_04_a_bad_packet_behind_such_a_kernel_faults_its_queue() {
    on_every_engine(|adapter| {
        let device = adapter.create_device();
        let kernel = device.create_kernel(add_words_self_scheduling()).unwrap();
        let mut good = Chain::new(&device);
        good.submit(&[&kernel], 8);
        good.until_done();
        let closed = device.create_fence(0).unwrap();
        let memory = device.create_allocation(8).unwrap();
        let mut bad = device.create_hw_queue().unwrap();
        let mut list = CommandList::new();
        for _ in 0..21 {
            list.dispatch(&kernel, [1; 3], &sums(&memory, &memory, 1))
                .unwrap();
        }
        list.signal(&closed, 1);
        list.dispatch(&kernel, [1; 3], &sums(&memory, &memory, 1))
            .unwrap();
        let gate = device.create_fence(0).unwrap();
        bad.submit(CommandList::new().wait(&gate, 1)).unwrap();
        bad.submit(&list).unwrap();
        closed.close();
        good.submit(&[&kernel], 100);
        gate.signal(1).unwrap();
        let ended = bad.progress_fence().wait(2, LONG);
        assert!(
            matches!(ended, Err(WaitError::QueueFaulted(_))),
            "{ended:?}"
        );
        assert_eq!(words(&memory), [21]);
        good.until_done();
    });
}
