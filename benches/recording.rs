//! Recording: what it costs to record all that happens.
//!
//! A storm on an adapter that is recorded and one on an adapter that is not take turns, batch by batch, and the median of
//! the ratios is said, with how many events were kept and how many were lost. The collector works on another core than
//! the engine and the thread that submits where there is one.

mod support;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use native_fence::workload::native::{Storm, StormForm};
use native_fence::workload::{Bench, Runner};
use native_fence::{Adapter, AdapterOptions, Recording, RecordingOptions};
use std::time::Duration;
use support::turns;

/// Turns of one recording: it keeps all of their events.
const TURNS: u64 = 8;

struct Party {
    adapter: Adapter,
    runner: Storm,
}

impl Party {
    fn new(bench: &Bench, form: StormForm) -> Self {
        let options = AdapterOptions::default();
        let adapter = Adapter::open_on(&bench.instance, &bench.adapter, &options);
        let adapter = adapter.expect("an adapter");
        let runner = Storm::new(adapter.clone(), form).expect("a storm");
        Self { adapter, runner }
    }

    fn batch(&mut self) -> Duration {
        turns::batch(&mut self.runner)
    }

    fn record(&self) -> Recording {
        let options = RecordingOptions::default();
        self.adapter.record(&options).expect("a recording")
    }
}

#[allow(
    clippy::cast_precision_loss,
    reason = "operations of a bench are far below 2^52"
)]
fn recording(criterion: &mut Criterion) {
    let Some(bench) = support::bench() else {
        return;
    };
    let mut group = criterion.benchmark_group("a storm that is recorded");
    for form in [StormForm::Filled, StormForm::Live] {
        let mut parties = None;
        let (mut ratios, mut events, mut lost) = (Vec::new(), 0, 0);
        group.bench_function(BenchmarkId::from_parameter(form.name()), |bencher| {
            let (plain, recorded) =
                parties.get_or_insert_with(|| (Party::new(&bench, form), Party::new(&bench, form)));
            let per_batch = recorded.runner.ops_per_batch();
            bencher.iter_custom(|operations| {
                let batches = operations.div_ceil(per_batch);
                let mut wall = Duration::ZERO;
                let mut recording = None;
                let mut stop = |recording: Recording| {
                    let trace = recording.stop(Vec::new());
                    events += trace.events.len() as u64;
                    lost += trace.lost().map(|lost| lost.count).sum::<u64>();
                };
                for turn in 0..batches {
                    if turn % TURNS == 0 {
                        if let Some(recording) = recording.take() {
                            stop(recording);
                        }
                        recording = Some(recorded.record());
                    }
                    let (without, with) = turns::take(turn, || plain.batch(), || recorded.batch());
                    ratios.push(with.as_secs_f64() / without.as_secs_f64());
                    wall += with;
                }
                if let Some(recording) = recording.take() {
                    stop(recording);
                }
                wall.mul_f64(operations as f64 / (batches * per_batch) as f64)
            });
        });
        if !ratios.is_empty() {
            eprintln!(
                "{}: {:.3} times as long as without, the median of {} turns; {events} events, {lost} lost",
                form.name(),
                turns::median(&ratios),
                ratios.len()
            );
        }
    }
    group.finish();
}

criterion_group!(benches, recording);
criterion_main!(benches);
