//! Idle kernels: what registered kernels cost that nothing dispatches.
//!
//! Signals of a storm, beside kernels that were never used and beside such as were used once; and a chain of dispatches
//! of one kernel, beside others that are idle. Each is done in turns with an adapter that has none of the idle ones,
//! batch by batch, and the median of the ratios is said: of the last half of the turns, and of the first ones, in which
//! a slice still holds kernels that it has not found to be idle.

mod support;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use native_fence::vulkan::shaders;
use native_fence::workload::native::{Storm, StormForm, Work, WorkKernel};
use native_fence::workload::{Bench, Runner, WorkForm};
use native_fence::{Adapter, AdapterOptions, CommandList, Device, Kernel, KernelCode, Parameters};
use std::time::Duration;
use support::turns;

const PATIENCE: Duration = Duration::from_secs(20);
/// Idle ones: an adapter has 64, one of which the chain's own.
const KERNELS: [usize; 4] = [0, 1, 16, 63];
/// Passes of a link of the chain: some ten microseconds.
const PASSES: u64 = 128;
/// Turns that count as the first.
const FIRST: usize = 16;

/// What is done beside them.
#[derive(Clone, Copy, Debug)]
enum Beside {
    Storm,
    Chain,
}

/// An adapter with idle kernels, and who works on it.
struct Party {
    runner: Box<dyn Runner>,
    _idle: Vec<Kernel>,
}

impl Party {
    fn new(bench: &Bench, beside: Beside, kernels: usize, used: bool) -> Self {
        let options = AdapterOptions::default();
        let adapter = Adapter::open_on(&bench.instance, &bench.adapter, &options);
        let adapter = adapter.expect("an adapter");
        let device = adapter.create_device();
        let code = || KernelCode::new(shaders::WORK.words, 24).expect("a kernel");
        let idle = |_| device.create_kernel(code()).expect("it is registered");
        let idle: Vec<_> = (0..kernels).map(idle).collect();
        if used {
            use_once(&device, &idle);
        }
        let runner: Box<dyn Runner> = match beside {
            Beside::Storm => Box::new(Storm::new(adapter, StormForm::Filled).expect("a storm")),
            Beside::Chain => {
                let (form, kernel) = (WorkForm::ALL[1], WorkKernel::Merged);
                Box::new(Work::new(adapter, form, kernel, PASSES).expect("a chain"))
            }
        };
        Self {
            runner,
            _idle: idle,
        }
    }

    fn batch(&mut self) -> Duration {
        turns::batch(self.runner.as_mut())
    }
}

/// Each kernel has one dispatch, which is waited for.
fn use_once(device: &Device, kernels: &[Kernel]) {
    let words = device.create_allocation(32 * 8).expect("memory");
    let parameters = Parameters::new().address(&words, 0).word(1).word(1);
    let mut queue = device.create_hw_queue().expect("a queue");
    for kernel in kernels {
        let mut list = CommandList::new();
        let dispatch = list.dispatch(kernel, [1, 1, 1], &parameters);
        dispatch.expect("a packet");
        let value = queue.submit(&list).expect("it is submitted");
        let done = queue.progress_fence().wait(value, PATIENCE);
        done.expect("it is executed");
    }
}

#[allow(
    clippy::cast_precision_loss,
    reason = "operations of a bench are far below 2^52"
)]
fn beside(criterion: &mut Criterion, bench: &Bench, (beside, used): (Beside, bool), name: &str) {
    let mut group = criterion.benchmark_group(name);
    for kernels in KERNELS {
        let mut parties = None;
        let mut ratios = Vec::new();
        group.bench_function(BenchmarkId::from_parameter(kernels), |bencher| {
            let (none, some) = parties.get_or_insert_with(|| {
                let party = |kernels| Party::new(bench, beside, kernels, used);
                (party(0), party(kernels))
            });
            let per_batch = some.runner.ops_per_batch();
            bencher.iter_custom(|operations| {
                let batches = operations.div_ceil(per_batch);
                let mut wall = Duration::ZERO;
                for turn in 0..batches {
                    let (without, with) = turns::take(turn, || none.batch(), || some.batch());
                    ratios.push(with.as_secs_f64() / without.as_secs_f64());
                    wall += with;
                }
                wall.mul_f64(operations as f64 / (batches * per_batch) as f64)
            });
        });
        if !ratios.is_empty() {
            let (first, turns) = (FIRST.min(ratios.len()), ratios.len());
            let (first, last) = (
                turns::median(&ratios[..first]),
                turns::median(&ratios[turns / 2..]),
            );
            eprintln!(
                "{name}, {kernels}: {last:.3} times as long as without, of the last half of {turns} turns; {first:.3} \
                 times in the first ones"
            );
        }
    }
    group.finish();
}

fn idle_kernels(criterion: &mut Criterion) {
    let Some(bench) = support::bench() else {
        return;
    };
    for (state, name) in [
        ((Beside::Storm, false), "a storm beside kernels never used"),
        ((Beside::Storm, true), "a storm beside kernels used once"),
        ((Beside::Chain, false), "a chain beside kernels never used"),
        ((Beside::Chain, true), "a chain beside kernels used once"),
    ] {
        beside(criterion, &bench, state, name);
    }
}

criterion_group!(benches, idle_kernels);
criterion_main!(benches);
