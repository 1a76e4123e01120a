//! Cross-adapter fences with a doorbell, signalled by what is not an engine's plain step: kernels, engines that schedule
//! kernels, and an engine that has taken another's place (XA-10).

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
    pub(crate) mod fence_kernels;
    pub(crate) mod kernels;
    pub(crate) mod queue_of;
    pub(crate) mod two_benches;
}

use native_fence::gpu::{EngineUnit, ModelOptions};
use native_fence::kmd::DriverOptions;
use native_fence::{
    Adapter, AdapterOptions, CommandList, CrossAdapter, Fence, FenceOptions, HwQueue,
};
use support::bench::{
    Bench, complete, hang, on_recovering_benches, soon, try_until, until, until_completed,
};
use support::fence_kernels::{Named, handles, signal_values};
use support::kernels::{add_words_self_scheduling, sums};
use support::queue_of::queue_of;
use support::two_benches::{Nudge, cross_adapter_by, in_one_slice, on_two_benches_with, restless};

/// XA-10: a signal that a kernel makes rings when the kernel has ended.
///
/// Kills `the-model-does-not-ring-for-kernels`.
#[test]
fn xa_10_a_signal_of_a_kernel_rings() {
    on_two_benches_with(restless(), |one, other| {
        let (here, there) = cross_adapter_by(CrossAdapter::Doorbell, one, other, 0);
        let kernel = signal_values(&one.device);
        let named = Named::new(&one.device, &handles([&here]));
        let (mut signaller, mut queue) = (one.queue(), other.queue());
        let mut nudge = Nudge::new(one, other);
        other.initialised(0);
        for value in 1..=5 {
            let end = queue
                .submit(CommandList::new().wait(&there, value))
                .unwrap();
            nudge.times(2);
            let mut list = CommandList::new();
            named.signal(&mut list, &kernel, (value, 1));
            in_one_slice(other, || {
                complete(&mut signaller, &list);
                until_completed(&queue, end);
            });
        }
    });
}

/// XA-10: signals behind kernels that schedule themselves ring, each of them, though an epilogue executes packets and has
/// no line.
///
/// Kills `model-epilogues-do-not-leave-rings`.
#[test]
fn xa_10_signals_behind_kernels_that_schedule_themselves_ring() {
    const WORDS: u64 = 8;
    const FENCES: usize = 4;
    on_two_benches_with(restless(), |one, other| {
        let kernel = one
            .device
            .create_kernel(add_words_self_scheduling())
            .unwrap();
        let memory = one.device.create_allocation(WORDS * 8).unwrap();
        let with_doorbell = || cross_adapter_by(CrossAdapter::Doorbell, one, other, 0);
        let fences: Vec<_> = (0..FENCES).map(|_| with_doorbell()).collect();
        let mut signaller = one.queue();
        let mut queues: Vec<_> = fences.iter().map(|_| other.queue()).collect();
        let mut nudge = Nudge::new(one, other);
        other.initialised(0);
        // The first slices have no epilogue.
        for value in 1..=12 {
            let submit = |(queue, (_, there)): (&mut HwQueue, &(Fence, Fence))| {
                queue.submit(CommandList::new().wait(there, value)).unwrap()
            };
            let ends: Vec<_> = queues.iter_mut().zip(&fences).map(submit).collect();
            nudge.times(2);
            let mut list = CommandList::new();
            for (here, _) in &fences {
                list.dispatch(&kernel, [1; 3], &sums(&memory, &memory, 1))
                    .unwrap()
                    .signal(here, value);
            }
            in_one_slice(other, || {
                complete(&mut signaller, &list);
                for (queue, end) in queues.iter().zip(&ends) {
                    until_completed(queue, *end);
                }
            });
        }
    });
}

/// XA-10: an engine that has taken another's place rings on that one's line, and hears.
///
/// Kills `another-engine-rings-nowhere`.
#[test]
fn xa_10_another_engine_goes_on_ringing() {
    on_recovering_benches(1, soon(), &DriverOptions::default(), |one| {
        let (other, memory) = Bench::on_model(ModelOptions::default(), restless());
        let innocent = one.adapter.create_device();
        let (there, here) = cross_adapter_by(CrossAdapter::Doorbell, &other, one, 0);
        let here = innocent.open_fence(&here.share().unwrap()).unwrap();
        let mut queue = other.queue();
        let mut signal_to = |values| {
            let mut signaller = queue_of(&innocent, 0);
            for value in values {
                let end = queue
                    .submit(CommandList::new().wait(&there, value))
                    .unwrap();
                complete(&mut signaller, CommandList::new().signal(&here, value));
                until_completed(&queue, end);
            }
        };
        signal_to(1..=20);
        let guilty = one.adapter.create_device();
        let mut hanging = queue_of(&guilty, 0);
        hang(&mut hanging);
        until("the engine is replaced", || one.counters().resets > 0);
        signal_to(21..=40);
        one.take_records();
        drop(other);
        assert_eq!(memory.violations(), []);
    });
}

/// XA-10: an engine in a process of its own rings and hears, of one in this process and the other way round.
///
/// Kills `a-process-is-not-told-of-doorbells`.
#[test]
fn xa_10_an_engine_in_a_process_of_its_own_rings() {
    const HAND_OFFS: u64 = 40;
    let options = AdapterOptions {
        unit: Some(EngineUnit::Process),
        engine_program: Some(env!("CARGO_BIN_EXE_nfence").into()),
        policy: restless(),
        ..AdapterOptions::default()
    };
    let Some(other) = Bench::on_device(1, restless()) else {
        return;
    };
    let one = Adapter::open(&options).unwrap();
    let device = one.create_device();
    let with_doorbell = || {
        let options = FenceOptions {
            cross_adapter: Some(CrossAdapter::Doorbell),
            ..FenceOptions::default()
        };
        let made = device.create_fence_with(options).unwrap();
        let opened = other.device.open_fence(&made.share().unwrap()).unwrap();
        (made, opened)
    };
    // One for each way: an engine hears itself as well.
    let (to, back) = (with_doorbell(), with_doorbell());
    let (mut there, mut here) = (device.create_hw_queue().unwrap(), other.queue());
    let slices = || one.node_counters().slices + other.counters().slices;
    let mut value = 0;
    // A driver that cuts loops ends slices, and each begins with a look at all.
    try_until("no slice ends meanwhile", |_| {
        let (mut list, mut answers) = (CommandList::new(), CommandList::new());
        for _ in 0..HAND_OFFS {
            value += 1;
            list.signal(&to.0, value).wait(&back.0, value);
            answers.wait(&to.1, value).signal(&back.1, value);
        }
        let before = slices();
        let answered = here.submit(&answers).unwrap();
        let ended = there.submit(&list).unwrap();
        until_completed(&there, ended);
        until_completed(&here, answered);
        slices() == before
    });
}
