//! Preemption: a wait that was taken out and came back against one that stood there all the time; suspend and
//! resume of a context that has something on the engine against one that has nothing; a signal of high
//! priority while a low one has endless work against one on an engine that has nothing else. Besides the times,
//! the slices that the engine began meanwhile: until a preemption was acknowledged, and until the CPU saw the
//! signal.

mod support;

use criterion::{Criterion, criterion_group, criterion_main};
use native_fence::{Adapter, Allocation, CommandList, Device, Fence, HwContext, HwQueue};
use std::time::{Duration, Instant};
use support::slices::Slices;

const PATIENCE: Duration = Duration::from_secs(20);
/// Bytes of a fill that keeps an engine for longer than a signal takes, and how many are queued at a time.
const BYTES: u64 = 16 << 20;
const FILLS: u64 = 32;

/// A queue of a context of its own, which waits for one fence and signals another.
struct Waiting {
    context: HwContext,
    queue: HwQueue,
    gate: Fence,
    done: Fence,
    value: u64,
}

impl Waiting {
    fn new(device: &Device) -> Self {
        let context = device.create_context(0, 1).expect("a context");
        Self {
            queue: context.create_hw_queue(64).expect("a queue"),
            context,
            gate: device.create_fence(0).expect("a fence"),
            done: device.create_fence(0).expect("a fence"),
            value: 0,
        }
    }

    /// The queue stands at its wait; a signal before it says so.
    fn stand(&mut self) {
        self.value += 2;
        let mut list = CommandList::new();
        list.signal(&self.done, self.value - 1)
            .wait(&self.gate, self.value)
            .signal(&self.done, self.value);
        self.queue.submit(&list).expect("it is submitted");
        let begun = self.done.wait(self.value - 1, PATIENCE);
        begun.expect("the queue comes to its wait");
    }

    /// Slices that began before the preemption was acknowledged.
    fn preempt(&self, adapter: &Adapter) -> u64 {
        let before = Slices::begun(adapter);
        self.context.suspend(PATIENCE).expect("it is suspended");
        let slices = Slices::begun(adapter) - before;
        self.context.resume();
        slices
    }

    /// From the CPU's signal to the CPU's sight of the queue's.
    fn release(&self) -> Duration {
        let begin = Instant::now();
        self.gate.signal(self.value).expect("a forward signal");
        let done = self.done.wait(self.value, PATIENCE);
        done.expect("the wait is over");
        begin.elapsed()
    }
}

fn waits(criterion: &mut Criterion, adapter: &Adapter) {
    let device = adapter.create_device();
    let mut group = criterion.benchmark_group("a wait, released by the CPU");
    for (name, is_preempted) in [
        ("preempted and resumed before", true),
        ("never preempted", false),
    ] {
        let (mut waiting, mut slices) = (Waiting::new(&device), Slices::default());
        group.bench_function(name, |bencher| {
            bencher.iter_custom(|times| {
                let once = |_| {
                    waiting.stand();
                    if is_preempted {
                        slices.note(waiting.preempt(adapter));
                    }
                    waiting.release()
                };
                (0..times).map(once).sum()
            });
        });
        slices.say("until its preemption was acknowledged");
    }
    group.finish();
}

fn suspend(criterion: &mut Criterion, adapter: &Adapter) {
    let device = adapter.create_device();
    let mut group = criterion.benchmark_group("suspend and resume a context");
    let (mut standing, idle) = (Waiting::new(&device), Waiting::new(&device));
    standing.stand();
    for (name, waiting, has_load) in [
        ("whose queue stands at a wait", &standing, false),
        ("the same beside endless work", &standing, true),
        ("whose queue has nothing", &idle, false),
    ] {
        let mut low = has_load.then(|| Endless::new(&device));
        let mut slices = Slices::default();
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                if let Some(low) = &mut low {
                    low.go_on();
                }
                slices.note(waiting.preempt(adapter));
            });
        });
        slices.say("until it was acknowledged");
    }
    group.finish();
    standing.release();
}

/// A queue of low priority that has work all the time.
struct Endless {
    _context: HwContext,
    queue: HwQueue,
    memory: Allocation,
}

impl Endless {
    fn new(device: &Device) -> Self {
        let context = device.create_context(0, 1).expect("a context");
        context.set_priority(-7).expect("a priority");
        let queue = context.create_hw_queue(2 * FILLS.next_power_of_two());
        Self {
            _context: context,
            queue: queue.expect("a queue"),
            memory: device.create_allocation(BYTES).expect("memory"),
        }
    }

    /// More of it, where it has come to the last half.
    fn go_on(&mut self) {
        if self.queue.room() >= FILLS {
            let mut list = CommandList::new();
            for value in 0..FILLS - 2 {
                list.fill(&self.memory, 0..BYTES, value);
            }
            self.queue.submit(&list).expect("it is submitted");
        }
    }
}

fn priority(criterion: &mut Criterion, adapter: &Adapter) {
    let device = adapter.create_device();
    let mut group = criterion.benchmark_group("a signal of high priority");
    let high = device.create_context(0, 1).expect("a context");
    high.set_priority(7).expect("a priority");
    let mut queue = high.create_hw_queue(64).expect("a queue");
    let fence = device.create_fence(0).expect("a fence");
    let mut value = 0;
    for (name, has_load) in [
        ("on an engine that has nothing else", false),
        ("beside endless work of low priority", true),
    ] {
        let mut low = has_load.then(|| Endless::new(&device));
        let mut slices = Slices::default();
        group.bench_function(name, |bencher| {
            bencher.iter_custom(|times| {
                let mut time = Duration::ZERO;
                for _ in 0..times {
                    if let Some(low) = &mut low {
                        low.go_on();
                    }
                    value += 1;
                    let before = Slices::begun(adapter);
                    let begin = Instant::now();
                    let signal = queue.submit(CommandList::new().signal(&fence, value));
                    signal.expect("it is submitted");
                    fence.wait(value, PATIENCE).expect("it is signalled");
                    time += begin.elapsed();
                    slices.note(Slices::begun(adapter) - before);
                }
                time
            });
        });
        slices.say("until it was seen");
    }
    group.finish();
}

fn preemption(criterion: &mut Criterion) {
    let Some(adapter) = support::adapter() else {
        return;
    };
    waits(criterion, &adapter);
    suspend(criterion, &adapter);
    priority(criterion, &adapter);
}

criterion_group!(benches, preemption);
criterion_main!(benches);
