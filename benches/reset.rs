//! Reset: from the report that an engine is lost or hung to what goes on there, by each mechanism; and engines
//! that are lost one after another, on one adapter, with what the process holds before and after.

mod support;

use criterion::{Criterion, criterion_group, criterion_main};
use native_fence::gpu::{EngineUnit, Injection, SparePolicy};
use native_fence::workload::Scenario;
use native_fence::{Adapter, AdapterOptions, CommandList, TdrPolicy};
use std::sync::Arc;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(20);

/// An adapter of one engine that is lost as often as one likes.
struct Losing {
    adapter: Adapter,
    injection: Arc<Injection>,
}

impl Losing {
    fn open(spares: SparePolicy) -> Option<Self> {
        let bench = support::bench()?;
        let injection = Injection::new(1).expect("a page");
        let options = AdapterOptions {
            unit: Some(EngineUnit::Instance),
            spares,
            injection: Some(Arc::clone(&injection)),
            tdr: TdrPolicy {
                limit_count: u32::MAX,
                ..TdrPolicy::default()
            },
            ..AdapterOptions::default()
        };
        match Adapter::open_on(&bench.instance, &bench.adapter, &options) {
            Ok(adapter) => Some(Self { adapter, injection }),
            Err(why) => {
                eprintln!("left out: {why}");
                None
            }
        }
    }

    /// The engine is lost with a packet under way; from there to the end of another program's packet.
    fn lose_once(&self, is_kept: bool) -> Duration {
        let (guilty, innocent) = (self.adapter.create_device(), self.adapter.create_device());
        let mut queue = guilty.create_hw_queue().expect("a queue");
        let mut other = innocent.create_hw_queue().expect("a queue");
        if is_kept {
            run(&mut other);
            while !self.adapter.has_spare() {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        let records = self.adapter.os().records().len();
        let begin = Instant::now();
        self.injection.device_loss(0).lose();
        queue
            .submit(CommandList::new().nop())
            .expect("it is submitted");
        let done = run(&mut other);
        let took = begin.elapsed();
        // Whose packet it was that found the loss is not said.
        if !done {
            eprintln!("the other program's packet was under way");
        }
        while self.adapter.os().records().len() == records {
            std::thread::yield_now();
        }
        took
    }
}

fn run(queue: &mut native_fence::HwQueue) -> bool {
    let submitted = queue.submit(CommandList::new().nop());
    submitted.is_ok_and(|value| queue.progress_fence().wait(value, PATIENCE).is_ok())
}

fn held() -> String {
    let count = |what| std::fs::read_dir(what).map_or(0, Iterator::count);
    let (threads, descriptors) = (count("/proc/self/task"), count("/proc/self/fd"));
    format!("{threads} threads, {descriptors} descriptors")
}

fn losses(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("an engine is lost, until its other queue goes on");
    for (name, spares) in [
        ("another stands ready", SparePolicy::Kept),
        ("another is made", SparePolicy::OnSuspicion),
    ] {
        let Some(losing) = Losing::open(spares) else {
            return;
        };
        let is_kept = spares == SparePolicy::Kept;
        losing.lose_once(is_kept);
        let before = held();
        group.bench_function(name, |bencher| {
            bencher.iter_custom(|times| (0..times).map(|_| losing.lose_once(is_kept)).sum());
        });
        let resets = losing.adapter.node_counters().resets;
        eprintln!("{name}: {resets} resets, from {before} to {}", held());
    }
    group.finish();
}

fn scenario(criterion: &mut Criterion) {
    support::scenarios(criterion, &[Scenario::Reset]);
}

criterion_group! {
    name = benches;
    // Each takes up to two seconds, most of which is to make it ready.
    config = Criterion::default().sample_size(10);
    targets = losses, scenario
}
criterion_main!(benches);
