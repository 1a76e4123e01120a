//! Batch: several fences signalled from the CPU by one call.

#![allow(clippy::unwrap_used, reason = "tests, and their helpers")]

mod support {
    pub(crate) mod bench;
}

use native_fence::kmd::{CurrentValueUpdate, Ddi, UpdateCurrentValuesFlags};
use native_fence::shared::Block;
use native_fence::{CommandList, Fence, HwQueue};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use support::bench::{Bench, Call, Ended, native, until, until_completed};

/// UpdateCurrentValuesFromCpu takes the whole batch in its order, whatever the order of the fences'
/// ids, and tells the GPU once: one call, and one submission for all the queues that stand at waits.
///
/// Kills `batch-is-stored-backward` and `batch-is-a-call-a-fence`.
#[test]
fn nf_17_a_batch_of_current_values_takes_effect_in_order_with_one_notification() {
    const FENCES: usize = 32;
    let bench = Bench::new();
    let fences: Vec<Fence> = (0..FENCES).map(|_| bench.fence(0)).collect();
    let mut queues: Vec<HwQueue> = (0..4)
        .map(|_| bench.then_parked(|| bench.queue()))
        .collect();
    for (i, queue) in queues.iter_mut().enumerate() {
        let list = &mut CommandList::new();
        for fence in fences.iter().skip(8 * i).take(8) {
            list.wait(fence, 1);
        }
        bench.then_parked(|| queue.submit(list).unwrap());
    }

    // Neither the order of the ids nor its reverse.
    let order: Vec<usize> = (0..FENCES).map(|i| (i * 13 + 5) % FENCES).collect();
    let batch =
        |value: u64| -> Vec<(&Fence, u64)> { order.iter().map(|i| (&fences[*i], value)).collect() };
    let before = bench.engine.submitted_here();
    let gate = bench.engine.close();
    Fence::signal_all(&batch(1)).unwrap();
    assert_eq!(
        bench.engine.submitted_here(),
        before + 1,
        "one notification"
    );
    assert!(fences.iter().all(|fence| fence.current_value() == 1));
    let named = order
        .iter()
        .map(|i| (native(&fences[*i]).id(), 1))
        .collect();
    let call = Call::UpdateCurrentValuesFromCpu(named, UpdateCurrentValuesFlags::default());
    assert_eq!(calls_of_cpu_signals(&bench), [call]);
    drop(gate);
    for queue in &queues {
        until_completed(queue, 1);
    }

    // One word twice, as no OS would have it: the later value stands.
    let fence = bench.fence(0);
    let (region, offset) = native(&fence).current_value_place();
    let words = Block::whole(&region.map().unwrap());
    let update = |value| CurrentValueUpdate {
        fence: native(&fence).id(),
        value,
        word: words.word(offset),
    };
    let twice = [update(2), update(1)];
    let store = UpdateCurrentValuesFlags::default();
    bench
        .spy
        .update_current_values_from_cpu(&twice, store)
        .unwrap();
    assert_eq!(fence.current_value(), 1);

    // In order, for a thread that looks: who sees the last sees those before.
    let (over, looks) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        let _over = Ended(&over);
        scope.spawn(|| {
            while !over.load(Ordering::Acquire) {
                let mut least = 0;
                for i in order.iter().rev() {
                    let seen = fences[*i].current_value();
                    assert!(seen >= least, "{seen} is seen after {least} behind it");
                    least = seen;
                }
                looks.fetch_add(1, Ordering::Release);
            }
        });
        until("the reader reads", || looks.load(Ordering::Acquire) > 0);
        for value in 2..3000 {
            Fence::signal_all(&batch(value)).unwrap();
        }
    });
}

fn calls_of_cpu_signals(bench: &Bench) -> Vec<Call> {
    let is_signal = |call: &Call| matches!(call, Call::UpdateCurrentValuesFromCpu(..));
    bench.spy.calls().into_iter().filter(is_signal).collect()
}
