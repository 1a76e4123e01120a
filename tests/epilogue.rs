//! What an epilogue meets, and what it leaves to the engine: kernels that schedule themselves, whose last workgroup does the
//! engine's step between two of them.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
    pub(crate) mod chain;
    pub(crate) mod engines;
    pub(crate) mod kernels;
    pub(crate) mod logged;
}

use native_fence::abi::{FaultCode, MAILBOX_CAPACITY};
use native_fence::gpu::NodePolicy;
use native_fence::os::SuspendError;
use native_fence::{
    Adapter, AdapterOptions, Allocation, CommandList, Device, Fence, Groups, HwQueue,
    HwQueueOptions, Kernel, WaitError,
};
use std::time::Duration;
use support::bench::{Bench, FOR_EVER, LONG, on_every_bench, until, words};
use support::chain::Chain;
use support::engines::{model_cut, on_every_engine, patient};
use support::kernels::{add_words_self_scheduling, spin_self_scheduling, spins, sums};
use support::logged::logged;

/// Longer than any test waits: who comes to its end has waited in vain.
const VERY_LONG: Duration = Duration::from_secs(600);
/// Workgroups that hold an engine until a word is set, also where the driver ends a loop that one of them takes too long
/// for: then the next one begins its own.
const HOLDING: [u32; 3] = [20_000, 1, 1];

/// No time ends a slice: its epilogues go on as long as they may.
fn unhurried() -> NodePolicy {
    NodePolicy {
        slice_time: Duration::from_secs(60),
        ..NodePolicy::default()
    }
}

/// Waits without a word to the engine: who waits otherwise is told by the end of a slice, and these tests are of slices that
/// go on.
fn until_passed(fence: &Fence, value: u64) {
    until("the value is there", || fence.current_value() >= value);
}

/// So many links of a chain more, behind which it is known that kernels schedule themselves.
fn go_on(chain: &mut Chain, kernel: &Kernel, links: u64) {
    chain.submit(&[kernel], links);
    until_passed(chain.fence(chain.links), chain.links);
}

/// Has a kernel run, from one queue alone, so that none is refused: behind this it is known that it schedules itself, and its
/// tables may be large.
fn warm_up(device: &Device, kernel: &Kernel) {
    let counted = device.create_allocation(16).unwrap();
    let mut queue = device.create_hw_queue().unwrap();
    let mut list = CommandList::new();
    for _ in 0..12 {
        list.dispatch(kernel, [1; 3], &spins(&counted, 1)).unwrap();
    }
    let end = queue.submit(&list).unwrap();
    until_passed(queue.progress_fence(), end);
}

/// HQ-08: where the driver cuts loops anywhere, those of epilogues too, each dispatch runs once, after those before.
///
/// Kills `model-epilogues-mark-nothing`.
#[test]
fn hq_08_epilogues_that_are_cut() {
    for (seed, most) in [(1, 400), (2, 2000)] {
        let (adapter, memory) = model_cut(seed, most);
        let device = adapter.create_device();
        let kernel = device.create_kernel(add_words_self_scheduling()).unwrap();
        let mut chains: Vec<_> = (0..2).map(|_| Chain::new(&device)).collect();
        let mut rows: Vec<_> = (0..10)
            .map(|_| {
                let words = [0, 1].map(|_| device.create_allocation(8).unwrap());
                (device.create_hw_queue().unwrap(), words)
            })
            .collect();
        for round in 1..=2 {
            for chain in &mut chains {
                go_on(chain, &kernel, 12);
            }
            let fill = |(queue, [a, b]): &mut (HwQueue, [Allocation; 2])| {
                let mut list = CommandList::new();
                for number in 1..=2 {
                    // There and back.
                    list.dispatch(&kernel, [1; 3], &sums(a, b, number)).unwrap();
                    list.dispatch(&kernel, [1; 3], &sums(b, a, 1)).unwrap();
                }
                queue.submit(&list).unwrap()
            };
            let ends: Vec<_> = rows.iter_mut().map(fill).collect();
            for chain in &chains {
                chain.until_done();
                for (own, queue) in chain.queues.iter().enumerate() {
                    let links = chain.links - 12 + 1..=chain.links;
                    let expected: Vec<_> = links.skip(own).step_by(2).collect();
                    assert_eq!(logged(queue, &chain.fences[own]), expected);
                }
            }
            for ((queue, [a, b]), end) in rows.iter().zip(ends) {
                queue.progress_fence().wait(end, LONG).unwrap();
                assert_eq!((words(a), words(b)), (vec![5 * round], vec![5 * round - 1]));
            }
        }
        drop((rows, chains, kernel, device, adapter));
        assert_eq!(memory.violations(), []);
    }
}

/// HQ-08: the same where kernels take more passes than a driver lets a loop take, and leave their epilogue one pass of
/// each of its loops.
///
/// Kills `shader-a-table-that-ran-is-given-up`.
#[test]
fn hq_08_kernels_that_leave_their_epilogue_no_passes() {
    const EACH: u64 = 6;
    let options = AdapterOptions {
        policy: unhurried(),
        tdr: patient(),
        ..AdapterOptions::default()
    };
    let shader = support::engines::shader().and_then(|_| Adapter::open(&options).ok());
    let Some(adapter) = shader else {
        return;
    };
    let device = adapter.create_device();
    let kernel = device.create_kernel(spin_self_scheduling()).unwrap();
    let gate = device.create_fence(0).unwrap();
    let mut queues: Vec<_> = (0..12)
        .map(|_| {
            let fence = device.create_fence(0).unwrap();
            let counted = device.create_allocation(16).unwrap();
            (device.create_hw_queue().unwrap(), fence, counted)
        })
        .collect();
    warm_up(&device, &kernel);
    for (round, passes) in (1..).zip([70_000, 70_000, 1]) {
        let fill = |(queue, fence, counted): &mut (HwQueue, Fence, Allocation)| {
            let mut list = CommandList::new();
            list.wait(&gate, round);
            for at in (round - 1) * EACH..round * EACH {
                list.dispatch(&kernel, [1; 3], &spins(counted, passes))
                    .unwrap();
                list.signal(fence, at + 1);
            }
            queue.submit(&list).unwrap()
        };
        let ends: Vec<_> = queues.iter_mut().map(fill).collect();
        gate.signal(round).unwrap();
        for ((queue, fence, counted), end) in queues.iter().zip(ends) {
            until_passed(queue.progress_fence(), end);
            assert_eq!(words(counted)[1], round * EACH);
            let signals: Vec<_> = ((round - 1) * EACH + 1..=round * EACH).collect();
            assert_eq!(logged(queue, fence), signals);
        }
    }
}

/// HQ-04: whatever is wrong with a packet that an epilogue comes to, its queue stops there, with what is wrong, and nothing
/// of it is done; a chain goes on.
///
/// Kills `shader-epilogues-take-what-is-wrong`, `model-epilogues-take-what-is-wrong`.
#[test]
fn hq_04_an_epilogue_comes_to_a_bad_packet() {
    const BEFORE: u64 = 21;
    on_every_engine(|adapter| {
        let device = adapter.create_device();
        let mut good = Chain::new(&device);
        let [kernel, gone] =
            [0; 2].map(|_| device.create_kernel(add_words_self_scheduling()).unwrap());
        let closed_fence = device.create_fence(0).unwrap();
        let [memory, closed, counts] = [0; 3].map(|_| device.create_allocation(16).unwrap());
        counts.write(0, &[1 | 65_536 << 32, 1]);
        let gate = device.create_fence(0).unwrap();
        let own = sums(&memory, &memory, 1);
        let bad = |at: usize, list: &mut CommandList| match at {
            0 => {
                list.signal(&closed_fence, 1);
            }
            1 => {
                list.wait(&closed_fence, 1);
            }
            2 => list.dispatch(&gone, [1; 3], &own).map(drop).unwrap(),
            3 => list
                .dispatch(&kernel, [1; 3], &sums(&closed, &memory, 1))
                .map(drop)
                .unwrap(),
            _ => list
                .dispatch(&kernel, Groups::Indirect(&counts, 0), &own)
                .map(drop)
                .unwrap(),
        };
        let mut queues: Vec<_> = (0..5)
            .map(|at| {
                let mut list = CommandList::new();
                list.wait(&gate, at as u64 + 1);
                for _ in 0..BEFORE {
                    list.dispatch(&kernel, [1; 3], &own).unwrap();
                }
                bad(at, &mut list);
                list.dispatch(&kernel, [1; 3], &own).unwrap();
                let mut queue = device.create_hw_queue().unwrap();
                queue.submit(&list).unwrap();
                queue
            })
            .collect();
        closed_fence.close();
        gone.close();
        closed.close();
        let faults = [
            FaultCode::StaleHandle,
            FaultCode::StaleHandle,
            FaultCode::StaleHandle,
            FaultCode::StaleHandle,
            FaultCode::Groups,
        ];
        for ((queue, expected), at) in queues.iter_mut().zip(faults).zip(1..) {
            go_on(&mut good, &kernel, 20);
            gate.signal(at).unwrap();
            match queue.progress_fence().wait(1, LONG) {
                Err(WaitError::QueueFaulted(fault)) => {
                    assert_eq!((fault.code, fault.packet), (expected, BEFORE + 1), "{at}");
                }
                ended => panic!("{at}: {ended:?}"),
            }
            assert_eq!(words(&memory), [at * BEFORE; 2], "{at}");
            go_on(&mut good, &kernel, 20);
        }
    });
}

/// NF-21: signals behind such kernels that store a lower value store it, and each is counted once.
///
/// Kills `shader-epilogues-store-backwards`, `model-epilogues-store-backwards`.
#[test]
fn nf_21_an_epilogue_comes_to_a_lower_value() {
    on_every_bench(unhurried(), |bench| {
        let spin = bench.device.create_kernel(spin_self_scheduling()).unwrap();
        warm_up(&bench.device, &spin);
        let code = add_words_self_scheduling();
        let kernel = bench.device.create_kernel(code).unwrap();
        let fence = bench.fence(0);
        let memory = bench.device.create_allocation(8).unwrap();
        let mut queue = bench.queue();
        let mut list = CommandList::new();
        let values: Vec<_> = (0..30).map(|at| [9, 9, 5][at % 3]).collect();
        for value in &values {
            list.dispatch(&kernel, [1; 3], &sums(&memory, &memory, 1))
                .unwrap();
            list.signal(&fence, *value);
        }
        let end = queue.submit(&list).unwrap();
        until_passed(queue.progress_fence(), end);
        assert_eq!((words(&memory), fence.current_value()), (vec![30], 5));
        assert_eq!(logged(&queue, &fence), values);
        bench.until_parked();
        assert_eq!(bench.counters().backward_signals, 10);
    });
}

/// HQ-08: a dispatch of a kernel that schedules itself may have no workgroup, and then none is the last: nothing runs, and
/// what is behind it does. The counts are what the kernel before it stored.
///
/// Kills `shader-nobody-is-the-last-of-none`.
#[test]
fn hq_08_an_epilogue_comes_to_a_dispatch_of_no_workgroups() {
    on_every_engine(|adapter| {
        let device = adapter.create_device();
        let spin = device.create_kernel(spin_self_scheduling()).unwrap();
        warm_up(&device, &spin);
        let kernel = device.create_kernel(add_words_self_scheduling()).unwrap();
        let [memory, counts, ones, none] = [0; 4].map(|_| device.create_allocation(16).unwrap());
        ones.write(0, &[1 | 1 << 32, 1]);
        none.write(0, &[1, 1]);
        let mut queue = device.create_hw_queue().unwrap();
        let mut list = CommandList::new();
        for at in 0..30 {
            let from = if at % 3 == 0 { &ones } else { &none };
            list.dispatch(&kernel, [1; 3], &sums(from, &counts, 0))
                .unwrap();
            let own = sums(&memory, &memory, 1);
            list.dispatch(&kernel, Groups::Indirect(&counts, 0), &own)
                .unwrap();
        }
        let end = queue.submit(&list).unwrap();
        queue.progress_fence().wait(end, LONG).unwrap();
        assert_eq!(words(&memory), [10; 2]);
    });
}

/// Two kernels, each of which holds the engine until its word is set, and of which the second is behind a wait for a signal
/// behind the first: the first one's epilogue makes the second one's table, if nobody wants something of the engine.
struct Holding {
    first: Allocation,
    second: Allocation,
    /// Is 1 between them.
    fence: Fence,
    _kernel: Kernel,
    queues: [HwQueue; 2],
    ends: [u64; 2],
}

impl Holding {
    /// Until the first one holds the engine.
    fn new(bench: &Bench, mut queues: [HwQueue; 2]) -> Self {
        let hold = bench.device.create_kernel(spin_self_scheduling()).unwrap();
        bench.until_parked();
        warm_up(&bench.device, &hold);
        let [first, second] = [0; 2].map(|_| bench.device.create_allocation(16).unwrap());
        let fence = bench.fence(0);
        let mut lists = [CommandList::new(), CommandList::new()];
        let holds = |of| spins(of, FOR_EVER);
        lists[0].dispatch(&hold, HOLDING, &holds(&first)).unwrap();
        lists[0].signal(&fence, 1);
        lists[1].wait(&fence, 1);
        lists[1].dispatch(&hold, HOLDING, &holds(&second)).unwrap();
        let end_of_second = queues[1].submit(&lists[1]).unwrap();
        let ends = [queues[0].submit(&lists[0]).unwrap(), end_of_second];
        until_named(bench, &queues[0], 0);
        Self {
            first,
            second,
            fence,
            _kernel: hold,
            queues,
            ends,
        }
    }

    /// So many workgroups of the second one have ended.
    fn ended(&self) -> u64 {
        words(&self.second)[1]
    }

    fn let_end(&self) {
        self.second.write(0, &[1]);
        for (queue, end) in self.queues.iter().zip(self.ends) {
            queue.progress_fence().wait(end, LONG).unwrap();
        }
        let all = u64::from(HOLDING[0]);
        assert_eq!((words(&self.first)[1], self.ended()), (all, all));
    }
}

/// Waits until the engine says that it is in the kernel of this packet.
fn until_named(bench: &Bench, queue: &HwQueue, packet: u64) {
    let named = (queue.os().handle().number, packet);
    let driver = bench.parking_driver();
    until("the kernel is named", || {
        let at = driver.node(0).unwrap().stalled_at();
        at.is_some_and(|at| (at.hw_queue, at.packet) == named)
    });
}

/// NF-06, NF-08: a waiter that comes while a kernel runs, and a few others before it, is woken by the signal behind the
/// kernel, though a long one follows; where more come than the mailbox has places, when that one has ended.
///
/// Kills `shader-epilogues-do-not-look-for-posts`, `model-epilogues-do-not-look-for-posts`.
#[test]
fn nf_08_an_epilogue_looks_for_waiters_that_came() {
    for crowd in [10, 300] {
        on_every_bench(unhurried(), |bench| {
            let others: Vec<_> = (0..crowd).map(|_| bench.fence(0)).collect();
            let holding = Holding::new(bench, [bench.queue(), bench.queue()]);
            let waits: Vec<_> = others.iter().map(|fence| fence.arm(1)).collect();
            let armed = holding.fence.arm(1);
            holding.first.write(0, &[1]);
            if crowd > MAILBOX_CAPACITY {
                holding.let_end();
            }
            assert_eq!(armed.wait(VERY_LONG), Ok(()));
            if crowd < MAILBOX_CAPACITY {
                assert!(holding.ended() < u64::from(HOLDING[0]), "it goes on");
                holding.let_end();
            }
            for (fence, wait) in others.iter().zip(waits) {
                fence.signal(1).unwrap();
                assert_eq!(wait.wait(LONG), Ok(()));
            }
        });
    }
}

/// PR-01, PR-09: a suspension that comes while a kernel runs is answered when it has ended, and not when the one behind it
/// has: that one does not begin before its queue is resumed.
///
/// Kills `shader-epilogues-look-for-nothing`, `model-epilogues-look-for-nothing`.
#[test]
fn pr_09_a_suspension_comes_before_the_next_table() {
    on_every_bench(unhurried(), |bench| {
        // Now and then the epilogue leaves the second kernel to the engine anyway, which says nothing.
        for _ in 0..5 {
            let context = bench.device.create_context(0, 1).unwrap();
            let queues = [0; 2].map(|_| context.create_hw_queue(64).unwrap());
            let holding = Holding::new(bench, queues);
            let early = context.suspend(Duration::ZERO);
            assert!(matches!(early, Err(SuspendError::TimedOut)), "{early:?}");
            holding.first.write(0, &[1]);
            context.suspend(VERY_LONG).unwrap();
            assert_eq!(holding.ended(), 0, "it has not begun");
            context.resume();
            holding.let_end();
        }
    });
}

/// TD-06: of an engine that does not come back the OS knows whose kernel it is in, also where an epilogue has released it: by
/// its own queue, and its packet.
///
/// Kills `shader-epilogues-name-nobody`, `model-epilogues-name-nobody`.
#[test]
fn td_06_a_kernel_that_an_epilogue_released_is_named() {
    on_every_bench(unhurried(), |bench| {
        let holding = Holding::new(bench, [bench.queue(), bench.queue()]);
        holding.first.write(0, &[1]);
        until_named(bench, &holding.queues[1], 1);
        assert!(holding.ended() < u64::from(HOLDING[0]), "it is under way");
        holding.let_end();
    });
}

/// HQ-08: where more queues are there than the lanes of an epilogue look at, those that it does not come to are not left
/// behind by one that it does.
///
/// Kills `shader-an-epilogue-has-no-more-queues`.
#[test]
fn hq_08_more_queues_than_an_epilogue_looks_at() {
    const QUEUES: usize = 70;
    const FIRST: u64 = 600;
    const LAST: u64 = 10;
    on_every_bench(unhurried(), |bench| {
        // Of one invocation.
        let kernel = bench.device.create_kernel(spin_self_scheduling()).unwrap();
        let gate = bench.fence(0);
        let options = HwQueueOptions {
            ring_capacity: 1024,
            ..HwQueueOptions::default()
        };
        let mut queues: Vec<_> = (0..QUEUES)
            .map(|_| {
                let counted = bench.device.create_allocation(16).unwrap();
                let queue = bench.device.create_hw_queue_with(options);
                (queue.unwrap(), counted)
            })
            .collect();
        warm_up(&bench.device, &kernel);
        let seen = bench.device.create_allocation(16).unwrap();
        let each = |at| match at {
            0 => FIRST,
            _ if at + 1 == QUEUES => LAST,
            _ => 0,
        };
        let first = queues[0].1.clone();
        let fill = |(at, (queue, counted)): (usize, &mut (HwQueue, Allocation))| {
            let mut list = CommandList::new();
            list.wait(&gate, 1);
            for _ in 0..each(at) {
                list.dispatch(&kernel, [1; 3], &spins(counted, 1)).unwrap();
            }
            if at + 1 == QUEUES {
                list.copy(&first, 0..16, &seen, 0);
            }
            queue.submit(&list).unwrap()
        };
        let ends: Vec<_> = queues.iter_mut().enumerate().map(fill).collect();
        gate.signal(1).unwrap();
        for (at, ((queue, counted), end)) in queues.iter().zip(ends).enumerate() {
            until_passed(queue.progress_fence(), end);
            assert_eq!(words(counted)[1], each(at));
        }
        let seen = words(&seen)[1];
        assert!(seen < FIRST / 2, "{seen} before {LAST}");
    });
}
