//! The model engine under the whole stack, and side by side with the shader.
#![allow(clippy::unwrap_used, reason = "a test")]

#[path = "support/engines.rs"]
mod engines;

use engines::{Random, model, model_cut, model_with, on_every_engine, random_cases, shader};
use native_fence::gpu::{CutPlan, ModelOptions, ModelThreads};
use native_fence::{Adapter, CommandList};
use std::time::Duration;

const LONG: Duration = Duration::from_secs(20);

#[test]
fn two_queues_hand_off_and_the_cpu_waits() {
    on_every_engine(|adapter| {
        let device = adapter.create_device();
        let (ping, echo) = (
            device.create_fence(0).unwrap(),
            device.create_fence(0).unwrap(),
        );
        let mut a = device.create_hw_queue().unwrap();
        let mut b = device.create_hw_queue().unwrap();
        let (mut to_a, mut to_b) = (CommandList::new(), CommandList::new());
        for value in 1..=100 {
            to_a.signal(&ping, value).wait(&echo, value);
            to_b.wait(&ping, value).signal(&echo, value);
        }
        b.submit(&to_b).unwrap();
        let end = a.submit(&to_a).unwrap();
        a.progress_fence().wait(end, LONG).unwrap();
        assert_eq!(echo.current_value(), 100);
    });
}

#[test]
fn a_clock_of_32_bits_is_extended() {
    let (adapter, memory) = model_with(ModelOptions {
        clock_bits: 32,
        ..ModelOptions::default()
    });
    let device = adapter.create_device();
    let fence = device.create_fence(0).unwrap();
    let mut queue = device.create_hw_queue().unwrap();
    let end = queue
        .submit(CommandList::new().signal(&fence, 1).wait(&fence, 1))
        .unwrap();
    queue.progress_fence().wait(end, LONG).unwrap();
    let entry = queue.read_wait_log().unwrap().entries[0];
    assert_eq!(entry.observed_ticks, entry.end_ticks);
    assert_eq!(memory.violations(), []);
}

/// Many more queues than lanes, waiting in the worst order: each queue waits for the one after.
#[test]
fn a_chain_of_queues_that_share_lanes_completes() {
    for cut in [
        CutPlan::Never,
        CutPlan::Random {
            seed: 3,
            most: 4000,
        },
    ] {
        let (adapter, memory) = model_with(ModelOptions {
            lanes: 4,
            cut,
            ..ModelOptions::default()
        });
        let device = adapter.create_device();
        let fences: Vec<_> = (0..=24).map(|_| device.create_fence(0).unwrap()).collect();
        let mut queues: Vec<_> = (0..24).map(|_| device.create_hw_queue().unwrap()).collect();
        for (i, queue) in queues.iter_mut().enumerate() {
            let list = CommandList::new()
                .wait(&fences[i + 1], 1)
                .signal(&fences[i], 1)
                .clone();
            queue.submit(&list).unwrap();
        }
        fences[24].signal(1).unwrap();
        fences[0].wait(1, LONG).unwrap();
        assert_eq!(memory.violations(), []);
    }
}

/// A command of a random program: queue, whether it waits, fence, value.
#[derive(Clone, Copy, Debug)]
enum Step {
    Nop,
    Wait(usize, u64),
    Signal(usize, u64),
}

/// A random program: for each submission its queue and its steps, in the order of submission.
struct Program {
    queues: usize,
    fences: usize,
    submissions: Vec<(usize, Vec<Step>)>,
    /// Queues with a wait that nobody satisfies, and all behind them.
    stuck: Vec<bool>,
}

/// Draws a program by executing it: each step is taken by some queue in one global order, so that
/// an order exists; every fence is signalled by one queue alone, so that final values do not
/// depend on the order that is taken. Some programs get a wait that nobody satisfies.
fn draw(random: &mut Random) -> Program {
    let queues = 1 + random.below(5) as usize;
    let fences = queues * (1 + random.below(2) as usize);
    let mut values = vec![0u64; fences];
    let mut steps: Vec<Vec<Step>> = vec![Vec::new(); queues];
    let mut stuck = vec![false; queues];
    for _ in 0..random.below(160) {
        let queue = random.below(queues as u64) as usize;
        if stuck[queue] {
            continue;
        }
        let step = match random.below(20) {
            0 => Step::Nop,
            1..=9 => {
                let fence = random.below(fences as u64) as usize;
                Step::Wait(fence, random.below(values[fence] + 1))
            }
            10..=18 => {
                // A fence of the queue's own.
                let fence = queue + queues * random.below((fences / queues) as u64) as usize;
                values[fence] += 1 + random.below(3);
                Step::Signal(fence, values[fence])
            }
            _ if random.below(4) == 0 => {
                stuck[queue] = true;
                Step::Wait(random.below(fences as u64) as usize, 1 << 40)
            }
            _ => Step::Nop,
        };
        steps[queue].push(step);
    }
    // Submissions: each queue's steps in pieces, the pieces of all queues shuffled together.
    let mut submissions = Vec::new();
    let mut next = vec![0; queues];
    while (0..queues).any(|queue| next[queue] < steps[queue].len()) {
        let queue = random.below(queues as u64) as usize;
        let left = steps[queue].len() - next[queue];
        if left > 0 {
            let take = 1 + random.below(left as u64) as usize;
            let piece = steps[queue][next[queue]..next[queue] + take].to_vec();
            next[queue] += take;
            submissions.push((queue, piece));
        }
    }
    Program {
        queues,
        fences,
        submissions,
        stuck,
    }
}

/// What is the same on every engine.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    current_values: Vec<u64>,
    read_indices: Vec<u64>,
    /// For each queue: waits, then signals; value, handle, operation.
    logs: Vec<Vec<(u64, u32, u32)>>,
    faults: Vec<Option<String>>,
}

fn run(adapter: &Adapter, program: &Program) -> Outcome {
    let device = adapter.create_device();
    let fences: Vec<_> = (0..program.fences)
        .map(|_| device.create_fence(0).unwrap())
        .collect();
    let mut queues: Vec<_> = (0..program.queues)
        .map(|_| device.create_hw_queue().unwrap())
        .collect();
    let mut ends = vec![0; program.queues];
    let mut stuck_at = vec![0u64; program.queues];
    for (queue, steps) in &program.submissions {
        let mut list = CommandList::new();
        for step in steps {
            match *step {
                Step::Nop => list.nop(),
                Step::Wait(fence, value) => list.wait(&fences[fence], value),
                Step::Signal(fence, value) => list.signal(&fences[fence], value),
            };
        }
        // The stuck wait is its queue's last step; everything before it completes.
        let completes = !program.stuck[*queue]
            || !matches!(steps.last(), Some(Step::Wait(_, value)) if *value == 1 << 40);
        let before = stuck_at[*queue];
        let end = queues[*queue].submit(&list).unwrap();
        stuck_at[*queue] = before + steps.len() as u64 + u64::from(completes);
        if completes {
            ends[*queue] = end;
        } else {
            stuck_at[*queue] -= 1;
        }
    }
    for (queue, end) in queues.iter().zip(&ends) {
        queue.progress_fence().wait(*end, LONG).unwrap();
    }
    // What a stuck queue does before it stands still is told by its read index alone.
    for (queue, at) in queues.iter().zip(&stuck_at) {
        let deadline = std::time::Instant::now() + LONG;
        while queue.read_index() < *at {
            assert!(
                std::time::Instant::now() < deadline,
                "a queue stands at {} and not at {at}",
                queue.read_index()
            );
            std::thread::yield_now();
        }
    }
    let entry = |entry: &native_fence::abi::LogEntry| {
        (entry.fence_value, entry.native_fence, entry.operation)
    };
    Outcome {
        current_values: fences
            .iter()
            .map(native_fence::Fence::current_value)
            .collect(),
        read_indices: queues
            .iter()
            .map(native_fence::HwQueue::read_index)
            .collect(),
        logs: queues
            .iter()
            .map(|queue| {
                let waits = queue.read_wait_log().unwrap();
                let signals = queue.read_signal_log().unwrap();
                assert_eq!((waits.refused, signals.refused), (0, 0));
                waits
                    .entries
                    .iter()
                    .chain(&signals.entries)
                    .map(entry)
                    .collect()
            })
            .collect(),
        faults: queues
            .iter()
            .map(|queue| queue.error().map(|error| error.to_string()))
            .collect(),
    }
}

#[test]
fn random_programs_end_the_same_on_the_model_and_on_the_shader() {
    let shader = shader();
    let (model, memory) = model();
    for case in 0..random_cases(30) {
        let program = draw(&mut Random(case));
        let expected = run(&model, &program);
        assert!(expected.faults.iter().all(Option::is_none), "case {case}");
        if let Some(shader) = &shader {
            assert_eq!(run(shader, &program), expected, "case {case}");
        }
    }
    assert_eq!(memory.violations(), []);
}

/// As lavapipe 22 ends slices: at any loop pass, without a word.
#[test]
fn a_slice_that_is_cut_anywhere_loses_nothing() {
    let (whole, _) = model();
    let mut cuts = 0;
    for case in 0..random_cases(30) {
        let program = draw(&mut Random(case));
        let (cut, memory) = model_cut(case, [20, 60, 400][case as usize % 3]);
        let outcome = run(&cut, &program);
        assert_eq!(outcome, run(&whole, &program), "case {case}");
        assert_eq!(memory.violations(), [], "case {case}");
        cuts += cut.node_counters().cut;
    }
    assert!(cuts > 0, "no slice was cut");
}

/// A model that executes its slices on the threads of those who ask for them: here the interrupt
/// thread and the test's, by turns.
#[test]
fn a_model_without_threads_does_the_same() {
    let (own, _) = model();
    let (callers, memory) = model_with(ModelOptions {
        threads: ModelThreads::Callers,
        ..ModelOptions::default()
    });
    for case in 0..random_cases(30) {
        let program = draw(&mut Random(case));
        assert_eq!(run(&callers, &program), run(&own, &program), "case {case}");
    }
    assert_eq!(memory.violations(), []);
}
