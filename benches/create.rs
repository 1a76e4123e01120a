//! Create: what it costs to make a fence from memory that is there already, a queue and an event
//! handle; and an async wait, for a value that is there and for one that is not yet.
//!
//! A fence is made and destroyed as a program does it: while an engine is parked, beside others that
//! keep its page. Creation is timed by itself and with the destruction.

mod support;

use criterion::{BatchSize, BenchmarkId, Criterion, criterion_group, criterion_main};
use native_fence::{Adapter, AdapterOptions, Device, EventHandle};
use std::task::{Context, Poll, Waker};

/// Other fences of the process.
const OTHERS: [u64; 3] = [1, 1_000, 10_000];
/// Made at a time, and then destroyed.
const FEW: u64 = 64;

fn poll<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    std::pin::Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
}

fn fences(criterion: &mut Criterion, adapter: &Adapter) {
    let mut create = criterion.benchmark_group("create, a fence");
    let with_others = |others| {
        let device = adapter.create_device();
        let fences: Vec<_> = (0..others)
            .map(|_| device.create_fence(0).expect("a fence"))
            .collect();
        // As many as are made at a time have been there, so that their memory and handles have.
        drop((0..FEW).map(|_| device.create_fence(0)).collect::<Vec<_>>());
        (device, fences)
    };
    for others in OTHERS {
        create.bench_function(BenchmarkId::from_parameter(others), |bencher| {
            let (device, _others) = with_others(others);
            bencher.iter_batched(
                || (),
                |()| device.create_fence(0).expect("a fence"),
                BatchSize::NumIterations(FEW),
            );
        });
    }
    create.finish();
    let mut both = criterion.benchmark_group("create, a fence, and destroy it");
    for others in OTHERS {
        both.bench_function(BenchmarkId::from_parameter(others), |bencher| {
            let (device, _others) = with_others(others);
            bencher.iter(|| device.create_fence(0).expect("a fence"));
        });
    }
    both.finish();
}

fn others(criterion: &mut Criterion, device: &Device) {
    let mut create = criterion.benchmark_group("create");
    let _first = device.create_hw_queue().expect("a queue");
    create.bench_function("a queue, and destroy it", |bencher| {
        bencher.iter(|| device.create_hw_queue().expect("a queue"));
    });
    create.bench_function("an event handle, and close it", |bencher| {
        bencher.iter(|| EventHandle::new().expect("an event handle"));
    });
    create.finish();
}

fn async_waits(criterion: &mut Criterion, device: &Device) {
    let fence = device.create_fence(1).expect("a fence");
    let event = EventHandle::new().expect("an event handle");
    let mut group = criterion.benchmark_group("async wait");
    group.bench_function("ready", |bencher| {
        bencher.iter(|| assert_eq!(poll(&mut fence.wait_async(1)), Poll::Ready(Ok(()))));
    });
    group.bench_function("pending, and dropped", |bencher| {
        // Among others, so that MonitoredValue stays.
        let _least = fence.arm(2);
        bencher.iter(|| assert!(poll(&mut fence.wait_async(u64::MAX)).is_pending()));
    });
    let mut value = 1;
    let mut next = || {
        value += 1;
        value
    };
    group.bench_function("a CPU signal without it", |bencher| {
        bencher.iter(|| fence.signal(next()).expect("a forward signal"));
    });
    group.bench_function("pending, signalled by the CPU, ready", |bencher| {
        bencher.iter(|| {
            let value = next();
            let mut wait = fence.wait_async(value);
            assert!(poll(&mut wait).is_pending());
            fence.signal(value).expect("a forward signal");
            assert_eq!(poll(&mut wait), Poll::Ready(Ok(())));
        });
    });
    group.bench_function(
        "armed with an event, signalled by the CPU, reset",
        |bencher| {
            bencher.iter(|| {
                let value = next();
                let wait = fence.wait_event(value, &event);
                fence.signal(value).expect("a forward signal");
                assert_eq!((event.reset(), wait.outcome()), (1, Some(Ok(()))));
            });
        },
    );
    group.finish();
}

fn create(criterion: &mut Criterion) {
    let Some(bench) = support::bench() else {
        return;
    };
    let adapter = Adapter::open_on(&bench.instance, &bench.adapter, &AdapterOptions::default());
    let adapter = match adapter {
        Ok(adapter) => adapter,
        Err(why) => return eprintln!("left out: everything: {why}"),
    };
    fences(criterion, &adapter);
    let device = adapter.create_device();
    others(criterion, &device);
    async_waits(criterion, &device);
}

criterion_group!(benches, create);
criterion_main!(benches);
