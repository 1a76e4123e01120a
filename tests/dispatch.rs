//! Dispatches: kernels of the program's own between fences (HQ-08).
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
    pub(crate) mod engine_processes;
    pub(crate) mod engines;
    pub(crate) mod kernels;
}

use native_fence::abi::Dispatch;
use native_fence::gpu::{ModelOptions, ModelThreads, ShaderTuning};
use native_fence::{Adapter, AdapterOptions, Allocation, CommandList, Groups, HwQueue, Parameters};
use support::bench::{LONG, words};
use support::engine_processes::on_every_engine_and_process;
use support::engines::{model_with, patient};
use support::kernels::{add_words, groups_for, sum_parameters, sums};

/// More words than an engine has lanes, or a workgroup invocations.
const WORDS: u64 = 1000;

/// HQ-08: kernels, fills and copies of a queue run in its order, each on all that those before stored; more of them
/// than a slice has rounds.
///
/// Kills `model-a-dispatch-is-passed-over`, `shader-a-dispatch-is-passed-over`.
#[test]
fn hq_08_dispatches_run_in_queue_order() {
    on_every_engine_and_process(|adapter| {
        let device = adapter.create_device();
        let kernel = device.create_kernel(add_words()).unwrap();
        let mut queue = device.create_hw_queue().unwrap();
        let [a, b, c] = [0, 1, 2].map(|_| device.create_allocation(WORDS * 8).unwrap());
        let rounds = 3 * Dispatch::ROUNDS;
        let mut list = CommandList::new();
        list.fill(&a, 0..a.bytes(), 5);
        for round in 1..=rounds {
            let (there, back) = (sums(&a, &b, round), sums(&b, &a, 1));
            list.dispatch(&kernel, groups_for(WORDS), &there).unwrap();
            list.dispatch(&kernel, groups_for(WORDS), &back).unwrap();
        }
        list.copy(&a, 0..a.bytes(), &c, 0);
        let end = queue.submit(&list).unwrap();
        queue.progress_fence().wait(end, LONG).unwrap();
        let sum = 5 + rounds * (rounds + 1) / 2 + rounds;
        assert_eq!(words(&c), [sum; WORDS as usize]);
    });
}

/// HQ-08: a kernel has all 256 bytes of its parameters, the last word among them, and those of its own packet: others of
/// the queue lie before and behind them.
///
/// Kills `parameters-lie-closer-than-they-are-long`, `model-the-last-parameter-is-the-first`,
/// `shader-the-last-parameter-is-the-first`.
#[test]
fn hq_08_a_kernel_reads_all_of_256_bytes_of_parameters() {
    on_every_engine_and_process(|adapter| {
        let device = adapter.create_device();
        let kernel = device.create_kernel(sum_parameters()).unwrap();
        assert_eq!(
            u64::from(kernel.parameter_bytes()),
            Dispatch::MOST_PARAMETER_BYTES
        );
        let mut queue = device.create_hw_queue().unwrap();
        let found = device.create_allocation(8 * 8).unwrap();
        let mut list = CommandList::new();
        for packet in 0..8 {
            let given = Parameters::new().address(&found, 8 * packet);
            // Each word is a bit of the sum, above what tells the packets apart.
            let given = (1..32).fold(given, |given, word| given.word((1 << (word + 8)) + packet));
            list.dispatch(&kernel, [1, 1, 1], &given).unwrap();
        }
        let end = queue.submit(&list).unwrap();
        queue.progress_fence().wait(end, LONG).unwrap();
        let bits: u64 = (1..32).map(|word| 1 << (word + 8)).sum();
        let sums: [u64; 8] = std::array::from_fn(|packet| bits + 31 * packet as u64);
        assert_eq!(words(&found), sums);
    });
}

/// HQ-08: each dispatch runs once, in all of its workgroups, however many rounds its slice has left.
///
/// Kills `shader-a-kernel-runs-on`.
#[test]
fn hq_08_a_dispatch_runs_once() {
    on_every_engine_and_process(|adapter| {
        let device = adapter.create_device();
        let kernel = device.create_kernel(add_words()).unwrap();
        let mut queue = device.create_hw_queue().unwrap();
        let memory = device.create_allocation(WORDS * 8).unwrap();
        let mut sum = 0;
        for dispatches in [1, 2, Dispatch::ROUNDS, Dispatch::ROUNDS + 1, 40] {
            let mut list = CommandList::new();
            for _ in 0..dispatches {
                list.dispatch(&kernel, groups_for(WORDS), &sums(&memory, &memory, 1))
                    .unwrap();
            }
            let end = queue.submit(&list).unwrap();
            queue.progress_fence().wait(end, LONG).unwrap();
            sum += dispatches;
            assert_eq!(words(&memory), [sum; WORDS as usize], "{dispatches}");
        }
    });
}

/// HQ-08: more queues than lanes dispatch side by side, whichever lanes they are of: each of its dispatches runs once.
///
/// Kills `shader-a-round-ends-with-its-leader`.
#[test]
fn hq_08_many_queues_dispatch_side_by_side() {
    const QUEUES: usize = 20;
    let body = |adapter: &Adapter| {
        let device = adapter.create_device();
        let kernel = device.create_kernel(add_words()).unwrap();
        let mut queues: Vec<_> = (0..QUEUES)
            .map(|_| {
                let memory = device.create_allocation(WORDS * 8).unwrap();
                (device.create_hw_queue().unwrap(), memory)
            })
            .collect();
        for round in 1..=2 {
            let end_of = |(queue, memory): &mut (HwQueue, Allocation)| {
                let mut list = CommandList::new();
                for _ in 0..4 {
                    let sums = sums(memory, memory, 1);
                    list.dispatch(&kernel, groups_for(WORDS), &sums).unwrap();
                }
                queue.submit(&list).unwrap()
            };
            let ends: Vec<_> = queues.iter_mut().map(end_of).collect();
            for ((queue, memory), end) in queues.iter().zip(ends) {
                queue.progress_fence().wait(end, LONG).unwrap();
                assert_eq!(words(memory), [4 * round; WORDS as usize]);
            }
        }
    };
    on_every_engine_and_process(body);
    let (threads, memory) = model_with(ModelOptions {
        threads: ModelThreads::OneALane,
        lanes: 3,
        ..ModelOptions::default()
    });
    body(&threads);
    drop(threads);
    assert_eq!(memory.violations(), []);
    // Two subgroups, where the driver takes them.
    let tuning = ShaderTuning {
        lanes: Some(16),
        ..ShaderTuning::default()
    };
    let options = AdapterOptions {
        tuning,
        tdr: patient(),
        ..AdapterOptions::default()
    };
    match Adapter::open(&options) {
        Ok(adapter) => body(&adapter),
        Err(error) => println!("left out with 16 lanes: {error}"),
    }
}

/// HQ-08: a kernel behind a wait sees what the kernel before the signal stored, on another queue.
///
/// Kills `model-a-dispatch-is-passed-over`, `shader-a-dispatch-is-passed-over`.
#[test]
fn hq_08_a_dispatch_sees_what_the_work_that_it_waited_for_stored() {
    on_every_engine_and_process(|adapter| {
        const HANDS: u64 = 40;
        let device = adapter.create_device();
        let kernel = device.create_kernel(add_words()).unwrap();
        let mut queues = [0, 1].map(|_| device.create_hw_queue().unwrap());
        let memory = [0, 1].map(|_| device.create_allocation(WORDS * 8).unwrap());
        let fence = device.create_fence(0).unwrap();
        for (me, queue) in queues.iter_mut().enumerate() {
            let mut list = CommandList::new();
            for hand in (me as u64..HANDS).step_by(2) {
                let sums = sums(&memory[me], &memory[1 - me], 1);
                list.wait(&fence, hand);
                list.dispatch(&kernel, groups_for(WORDS), &sums).unwrap();
                list.signal(&fence, hand + 1);
            }
            queue.submit(&list).unwrap();
        }
        fence.wait(HANDS, LONG).unwrap();
        assert_eq!(words(&memory[0]), [HANDS; WORDS as usize]);
    });
}

/// HQ-08: the counts of an indirect dispatch are those that stand there when the queue comes to it: what a kernel
/// before stored. None runs nothing.
///
/// Kills `model-counts-are-the-packets`, `shader-counts-are-the-packets`.
#[test]
fn hq_08_counts_are_what_stands_there_when_the_queue_comes_to_them() {
    on_every_engine_and_process(|adapter| {
        let device = adapter.create_device();
        let kernel = device.create_kernel(add_words()).unwrap();
        let mut queue = device.create_hw_queue().unwrap();
        let [a, b] = [0, 1].map(|_| device.create_allocation(WORDS * 8).unwrap());
        let counts = device.create_allocation(64).unwrap();
        // x and y, then z.
        counts.write(24, &[1 | 1 << 32, 1]);
        let more = Parameters::new()
            .address(&counts, 24)
            .address(&counts, 40)
            .word(2)
            .word(0);
        let mut list = CommandList::new();
        let all = sums(&a, &b, 3);
        list.dispatch(&kernel, Groups::Indirect(&counts, 24), &all)
            .unwrap();
        list.dispatch(&kernel, Groups::Indirect(&counts, 0), &sums(&b, &a, 9))
            .unwrap();
        // Two, one, one are copied to where the next looks.
        list.fill(&counts, 24..32, 2 | 1 << 32);
        list.dispatch(&kernel, [1, 1, 1], &more).unwrap();
        list.copy(&b, 0..8, &a, 0);
        list.dispatch(&kernel, Groups::Indirect(&counts, 40), &sums(&a, &b, 4))
            .unwrap();
        let end = queue.submit(&list).unwrap();
        queue.progress_fence().wait(end, LONG).unwrap();
        let (a, b) = (words(&a), words(&b));
        assert_eq!(
            (a[0], a[1]),
            (3, 0),
            "nothing ran where no workgroup was asked for"
        );
        assert_eq!((b[0], b[1], b[127], b[128]), (7, 4, 4, 0));
    });
}

/// HQ-08: a dispatch of no workgroups runs nothing of a kernel, whatever that does besides its words; what follows goes on.
///
/// Kills `model-no-workgroups-run-the-kernel`.
#[test]
fn hq_08_no_workgroups_run_nothing() {
    on_every_engine_and_process(|adapter| {
        let device = adapter.create_device();
        let kernel = device.create_kernel(sum_parameters()).unwrap();
        let mut queue = device.create_hw_queue().unwrap();
        let found = device.create_allocation(3 * 8).unwrap();
        // Of none in x, of none in z, and of one.
        let counts = device
            .create_allocation(3 * Dispatch::COUNTS_BYTES)
            .unwrap();
        counts.write(0, &[1 << 32, 1, 1 | 1 << 32, 0, 1 | 1 << 32, 1]);
        let mut list = CommandList::new();
        for packet in 0..3 {
            let given = Parameters::new().address(&found, 8 * packet);
            let given = (1..32).fold(given, |given, _| given.word(1));
            let groups = Groups::Indirect(&counts, Dispatch::COUNTS_BYTES * packet);
            list.dispatch(&kernel, groups, &given).unwrap();
        }
        let end = queue.submit(&list).unwrap();
        queue.progress_fence().wait(end, LONG).unwrap();
        assert_eq!(words(&found), [0, 0, 31]);
    });
}
