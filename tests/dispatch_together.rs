//! Dispatches that run together: packets of a kernel with the shader library, of several queues, in one dispatch of the
//! device's (HQ-08).
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
    pub(crate) mod engines;
    pub(crate) mod kernels;
}

use native_fence::abi::{Dispatch, FaultCode, MAX_JOBS};
use native_fence::gpu::NodePolicy;
use native_fence::vulkan::shaders;
use native_fence::{
    Adapter, AdapterOptions, Allocation, CommandList, Device, Fence, FenceOptions, Groups, HwQueue,
    Kernel, KernelCode, KernelError, Parameters, WaitError,
};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use support::bench::{LONG, words};
use support::engines::{model_cut, on_every_engine, patient};
use support::kernels::{add_words, add_words_together, count_together, groups_for, sums};

/// A queue that adds to memory of its own.
struct Adder {
    queue: HwQueue,
    memory: Allocation,
    list: CommandList,
}

impl Adder {
    fn new(device: &Device, count: u64) -> Self {
        Self {
            queue: device.create_hw_queue().unwrap(),
            memory: device.create_allocation(count * 8).unwrap(),
            list: CommandList::new(),
        }
    }

    /// Records that all of its words become greater by a number.
    fn add(&mut self, kernel: &Kernel, number: u64) -> &mut Self {
        let sums = sums(&self.memory, &self.memory, number);
        let groups = groups_for(self.memory.bytes() / 8);
        self.list.dispatch(kernel, groups, &sums).unwrap();
        self
    }

    fn submit(&mut self) -> u64 {
        self.queue.submit(&self.list).unwrap()
    }

    fn ended(&self, value: u64, sum: u64) {
        self.queue.progress_fence().wait(value, LONG).unwrap();
        let count = self.memory.bytes() as usize / 8;
        assert_eq!(words(&self.memory), vec![sum; count]);
    }
}

/// Adders that begin together, once the fence that is given is 1.
fn behind(gate: &Fence, device: &Device, counts: impl IntoIterator<Item = u64>) -> Vec<Adder> {
    let adder = |count| {
        let mut adder = Adder::new(device, count);
        adder.list.wait(gate, 1);
        adder
    };
    counts.into_iter().map(adder).collect()
}

/// HQ-08: packets of many queues, of as many sizes, that are ready at a time run once each, in all of their workgroups
/// and with their own parameters: more of them than a round has places for, and several one after another.
///
/// Kills `shader-jobs-begin-at-their-first`, `the-library-takes-the-first-job`,
/// `the-library-finds-no-jobs-of-other-sizes`.
#[test]
fn hq_08_packets_of_many_queues_run_together_and_once() {
    const QUEUES: u64 = MAX_JOBS + 9;
    on_every_engine(|adapter| {
        let device = adapter.create_device();
        let kernel = device.create_kernel(add_words_together()).unwrap();
        let gate = device.create_fence(0).unwrap();
        // One to seven workgroups.
        let mut adders = behind(
            &gate,
            &device,
            (0..QUEUES).map(|number| number % 7 * 64 + 1),
        );
        let values: Vec<_> = (0..)
            .zip(&mut adders)
            .map(|(number, adder)| {
                adder
                    .add(&kernel, number)
                    .add(&kernel, 1000)
                    .add(&kernel, 1);
                adder.submit()
            })
            .collect();
        gate.signal(1).unwrap();
        for ((number, adder), value) in (0..).zip(&adders).zip(values) {
            adder.ended(value, 1001 + number);
        }
    });
}

/// Runs a packet of each of so many queues, which are ready at a time: the most workgroups that ran together.
fn most_together(adapter: &Adapter, queues: usize) -> u64 {
    let device = adapter.create_device();
    let kernel = device.create_kernel(count_together()).unwrap();
    let gate = device.create_fence(0).unwrap();
    let mut adders = behind(&gate, &device, vec![1; queues]);
    let mut most = 0;
    for value in 1..=20 {
        let fill = |adder: &mut Adder| {
            adder.list.clear();
            adder.list.wait(&gate, value);
            let to = Parameters::new().address(&adder.memory, 0);
            adder.list.dispatch(&kernel, [1; 3], &to).unwrap();
            adder.submit()
        };
        let values: Vec<_> = adders.iter_mut().map(fill).collect();
        gate.signal(value).unwrap();
        for (adder, value) in adders.iter().zip(values) {
            adder.queue.progress_fence().wait(value, LONG).unwrap();
            most = most.max(words(&adder.memory)[0]);
        }
    }
    most
}

/// HQ-08: what is ready at a time of a kernel with the library is one dispatch of the device's. (The engine may come in
/// the midst of the signal, and has to learn that the kernel is short: once of twenty times is enough.)
///
/// Kills `model-jobs-are-alone`, `shader-jobs-are-alone`.
#[test]
fn hq_08_what_is_ready_together_is_one_dispatch() {
    on_every_engine(|adapter| assert!(most_together(adapter, 20) > 10));
}

/// PR-08: a table of packets that lasts longer than a slice should gets smaller, down to one packet: together they are not
/// preempted, and are watched as one packet is. (On a device: the model's kernels take no time to speak of.)
///
/// Kills `shader-tables-last-as-long-as-they-like`.
#[test]
fn pr_08_tables_that_last_long_become_single_packets() {
    let options = AdapterOptions {
        policy: NodePolicy {
            slice_time: Duration::from_nanos(100),
            ..NodePolicy::default()
        },
        tdr: patient(),
        ..AdapterOptions::default()
    };
    match Adapter::open(&options) {
        Ok(adapter) => assert_eq!(most_together(&adapter, 20), 1),
        Err(error) => {
            assert!(
                std::env::var_os("NFENCE_REQUIRE_DEVICE").is_none(),
                "{error}"
            );
            println!("left out: {error}");
        }
    }
}

/// HQ-08: two processes whose packets are ready all the time take turns, and so do kernels that run alone: none waits
/// for the other to have nothing left, and none is passed over for good. (They begin together, by a fence that both have.)
///
/// Kills `model-who-came-first-comes-first`, `shader-who-came-first-comes-first`.
#[test]
fn hq_08_processes_and_kernels_take_turns() {
    const PACKETS: u64 = 4 * Dispatch::ROUNDS;
    on_every_engine(|adapter| {
        let devices = [adapter.create_device(), adapter.create_device()];
        let kernels = devices
            .each_ref()
            .map(|device| device.create_kernel(add_words_together()).unwrap());
        let alone = devices[1].create_kernel(add_words()).unwrap();
        let shared = FenceOptions {
            shared: true,
            ..FenceOptions::default()
        };
        let gate = devices[0].create_fence_with(shared).unwrap();
        let gates = [
            gate.clone(),
            devices[1].open_fence(&gate.share().unwrap()).unwrap(),
        ];
        let mut adders = Vec::new();
        for ((device, kernel), gate) in devices.iter().zip(&kernels).zip(&gates) {
            let behind = behind(gate, device, [64, 200, 64]);
            adders.extend(behind.into_iter().map(|adder| (adder, kernel)));
        }
        adders.extend(
            behind(&gates[1], &devices[1], [130])
                .into_iter()
                .map(|adder| (adder, &alone)),
        );
        let fill = |(adder, kernel): &mut (Adder, &Kernel)| {
            for _ in 0..PACKETS {
                adder.add(kernel, 1);
            }
            adder.submit()
        };
        let values: Vec<_> = adders.iter_mut().map(fill).collect();
        gate.signal(1).unwrap();
        // However far the first is, the last has not stood still.
        let (first, last) = (&adders[0].0.queue, &adders[6].0.queue);
        first.progress_fence().wait(values[0], LONG).unwrap();
        let behind = last.read_index();
        for ((adder, _), value) in adders.iter().zip(values) {
            adder.ended(value, PACKETS);
        }
        assert!(
            behind > PACKETS / 8,
            "{behind} of {PACKETS} were executed meanwhile"
        );
    });
}

/// HQ-08: packets that are too large to run together take turns: none is passed over until the other queue has nothing
/// left.
///
/// Kills `model-who-finds-no-room-has-no-turn`, `shader-who-finds-no-room-has-no-turn`.
#[test]
fn hq_08_packets_that_do_not_fit_beside_each_other_take_turns() {
    const MANY: u64 = 100;
    on_every_engine(|adapter| {
        let device = adapter.create_device();
        let kernel = device.create_kernel(add_words_together()).unwrap();
        let gate = device.create_fence(0).unwrap();
        let mut adders = behind(&gate, &device, [64; 2]);
        let ends = [0; 2].map(|_| device.create_allocation(8).unwrap());
        let fill = |((adder, end), count): ((&mut Adder, &Allocation), u64)| {
            for _ in 0..count {
                let sums = sums(&adder.memory, &adder.memory, 1);
                adder.list.dispatch(&kernel, [40_000, 1, 1], &sums).unwrap();
            }
            adder.list.timestamp(end, 0);
            adder.submit()
        };
        // Both of them are the first in the run list, one after the other.
        for (value, counts) in [(1, [MANY, 3]), (2, [3, MANY])] {
            for adder in &mut adders {
                adder.list.clear();
                adder.list.wait(&gate, value);
            }
            let lists = adders.iter_mut().zip(&ends).zip(counts);
            let values: Vec<_> = lists.map(fill).collect();
            gate.signal(value).unwrap();
            for (adder, value) in adders.iter().zip(values) {
                adder.queue.progress_fence().wait(value, LONG).unwrap();
            }
            let [first, second] = ends.each_ref().map(|end| words(end)[0]);
            let few_first = (first < second) == (counts[0] < counts[1]);
            assert!(few_first, "{counts:?}: the few came last");
        }
    });
}

/// HQ-04, TD-06: a packet that is found to be wrong while it is given its place is its queue's alone, also where nothing else
/// ends the slice and it is the first that the engine ever sees.
///
/// Kills `shader-a-closed-reference-is-followed`.
#[test]
fn hq_04_a_first_packet_that_is_wrong_is_its_queues_alone() {
    on_every_engine(|adapter| {
        let (guilty, innocent) = (adapter.create_device(), adapter.create_device());
        let kernel = guilty.create_kernel(add_words_together()).unwrap();
        let (memory, gone) = (
            guilty.create_allocation(512).unwrap(),
            guilty.create_allocation(512).unwrap(),
        );
        let mut queue = guilty.create_hw_queue().unwrap();
        let mut list = CommandList::new();
        list.dispatch(&kernel, [1; 3], &sums(&memory, &gone, 1))
            .unwrap();
        gone.close();
        let value = queue.submit(&list).unwrap();
        match queue.progress_fence().wait(value, LONG) {
            Err(WaitError::QueueFaulted(fault)) => assert_eq!(fault.code, FaultCode::StaleHandle),
            ended => panic!("{ended:?}"),
        }
        let kernel = innocent.create_kernel(add_words_together()).unwrap();
        let mut adder = Adder::new(&innocent, 100);
        let value = adder.add(&kernel, 4).submit();
        adder.ended(value, 4);
    });
}

/// HQ-08, NF-05: queues whose signals are waited for on the CPU all the time, each an end of a slice, do not keep others
/// from dispatching.
///
/// Kills `model-interrupts-always-come-first`, `shader-interrupts-always-come-first`.
#[test]
fn hq_08_signals_that_are_waited_for_starve_no_dispatch() {
    const SIGNALLERS: usize = 8;
    const DISPATCHES: u64 = 32;
    on_every_engine(|adapter| {
        let (device, other) = (adapter.create_device(), adapter.create_device());
        let kernel = device.create_kernel(add_words_together()).unwrap();
        let mut adder = Adder::new(&device, 64);
        for _ in 0..DISPATCHES {
            adder.add(&kernel, 1);
        }
        let slices = || adapter.node_counters().slices;
        let ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..SIGNALLERS {
                let fence = other.create_fence(0).unwrap();
                let mut queue = other.create_hw_queue().unwrap();
                let ended = &ended;
                scope.spawn(move || {
                    let mut value = 0;
                    while !ended.load(Ordering::Relaxed) {
                        let values = value + 1..=value + 50;
                        let mut list = CommandList::new();
                        values.clone().for_each(|value| {
                            list.signal(&fence, value);
                        });
                        let armed: Vec<_> = values.map(|value| fence.arm(value)).collect();
                        queue.submit(&list).unwrap();
                        for armed in armed {
                            armed.wait(LONG).unwrap();
                        }
                        value += 50;
                    }
                });
            }
            let before = slices();
            let value = adder.submit();
            adder.queue.progress_fence().wait(value, LONG).unwrap();
            let needed = slices() - before;
            ended.store(true, Ordering::Relaxed);
            // Every second slice releases what the one before has kept back; a few more come before each looks at it.
            assert!(
                needed < 6 * DISPATCHES,
                "{needed} slices for {DISPATCHES} dispatches"
            );
        });
        adder.ended(adder.queue.last_queued_value(), DISPATCHES);
    });
}

/// HQ-08: a packet of more workgroups than one dispatch has in a row runs by itself, in three dimensions; one of none
/// runs nothing, and those beside it run.
///
/// Kills `shader-many-workgroups-run-together`.
#[test]
fn hq_08_packets_of_many_workgroups_and_of_none() {
    on_every_engine(|adapter| {
        let device = adapter.create_device();
        let kernel = device.create_kernel(add_words_together()).unwrap();
        let gate = device.create_fence(0).unwrap();
        let counts = device.create_allocation(32).unwrap();
        // 0 in y; and 41 · 41 · 41.
        counts.write(0, &[5, 7, 0x29 | 0x29 << 32, 0x29]);
        let mut adders = behind(&gate, &device, [64, 70_000 * 64, 64]);
        let groups = [
            Groups::Indirect(&counts, 0),
            Groups::Indirect(&counts, 16),
            [1; 3].into(),
        ];
        let fill = |(adder, groups): (&mut Adder, Groups<'_>)| {
            for _ in 0..3 {
                let sums = sums(&adder.memory, &adder.memory, 1);
                adder.list.dispatch(&kernel, groups, &sums).unwrap();
            }
            adder.submit()
        };
        let values: Vec<_> = adders.iter_mut().zip(groups).map(fill).collect();
        gate.signal(1).unwrap();
        let of = |adder: &Adder, value| {
            adder.queue.progress_fence().wait(value, LONG).unwrap();
            words(&adder.memory)
        };
        assert_eq!(
            of(&adders[0], values[0]),
            [0; 64],
            "nothing runs where there are no workgroups"
        );
        assert_eq!(of(&adders[2], values[2]), [3; 64]);
        let many = of(&adders[1], values[1]);
        let invocations = 41 * 41 * 41 * 64;
        assert!(many[..invocations].iter().all(|word| *word == 3));
        assert!(many[invocations..].iter().all(|word| *word == 0));
    });
}

/// HQ-08, NF-05: a slice that ends for an interrupt while packets have places in its table runs them later, and once.
///
/// Kills `model-what-has-a-place-is-done`, `shader-what-has-a-place-is-done`.
#[test]
fn hq_08_what_an_interrupt_keeps_back_runs_later() {
    on_every_engine(|adapter| {
        let device = adapter.create_device();
        let kernel = device.create_kernel(add_words_together()).unwrap();
        let fence = device.create_fence(0).unwrap();
        let mut signals = device.create_hw_queue().unwrap();
        let mut adders: Vec<_> = (0..12).map(|_| Adder::new(&device, 100)).collect();
        let mut sum = 0;
        for value in 1..=20 {
            let armed = fence.arm(value);
            let fill = |adder: &mut Adder| {
                adder.list.clear();
                adder.add(&kernel, 1).add(&kernel, 2);
                adder.submit()
            };
            let values: Vec<_> = adders.iter_mut().map(fill).collect();
            signals
                .submit(CommandList::new().signal(&fence, value))
                .unwrap();
            armed.wait(LONG).unwrap();
            sum += 3;
            for (adder, value) in adders.iter().zip(values) {
                adder.ended(value, sum);
            }
        }
    });
}

/// HQ-04: a kernel that was compiled with a library of other layouts is refused by name.
///
/// Kills `another-library-is-taken-for-this`.
#[test]
fn hq_04_a_kernel_of_another_library_is_refused() {
    let mut words = shaders::ADD_WORDS_TOGETHER.words.to_vec();
    // OpSpecConstant of four words, whose last is the version.
    let constant = words
        .windows(4)
        .position(|at| at[0] == 0x4_0032 && at[3] == 1);
    words[constant.unwrap() + 3] = 2;
    let refused = KernelCode::new(&words, 32).unwrap_err();
    assert_eq!(refused, KernelError::Library(2));
}

/// HQ-08: where the driver cuts the engine's loops anywhere, packets run once all the same.
///
/// Kills `model-what-has-run-is-not-marked`.
#[test]
fn hq_08_dispatches_of_slices_that_are_cut() {
    for (seed, most) in [(1, 400), (2, 900), (3, 2000)] {
        let (adapter, memory) = model_cut(seed, most);
        let device = adapter.create_device();
        let kernel = device.create_kernel(add_words_together()).unwrap();
        let mut adders: Vec<_> = (0..12).map(|_| Adder::new(&device, 70)).collect();
        let fill = |adder: &mut Adder| {
            for number in 1..=10 {
                adder.add(&kernel, number);
            }
            adder.submit()
        };
        let values: Vec<_> = adders.iter_mut().map(fill).collect();
        for (adder, value) in adders.iter().zip(values) {
            adder.ended(value, 55);
        }
        drop((adders, kernel, device, adapter));
        assert_eq!(memory.violations(), []);
    }
}
