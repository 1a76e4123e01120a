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
use native_fence::{Adapter, AdapterOptions, CommandList, CrossAdapter, FenceOptions};
use support::bench::{Bench, complete, hang, on_recovering_benches, soon, until, until_completed};
use support::fence_kernels::{Named, handles, signal_values};
use support::kernels::{add_words_self_scheduling, sums};
use support::queue_of::queue_of;
use support::two_benches::{Nudge, cross_adapter_by, on_two_benches_with, restless};

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
            complete(&mut signaller, &list);
            until_completed(&queue, end);
        }
    });
}

/// XA-10: packets behind a kernel that schedules itself ring, though its epilogue executes packets and has no line.
///
/// Kills `model-epilogues-do-not-leave-rings`.
#[test]
fn xa_10_signals_behind_kernels_that_schedule_themselves_ring() {
    const WORDS: u64 = 8;
    on_two_benches_with(restless(), |one, other| {
        let kernel = one
            .device
            .create_kernel(add_words_self_scheduling())
            .unwrap();
        let memory = one.device.create_allocation(WORDS * 8).unwrap();
        let (here, there) = cross_adapter_by(CrossAdapter::Doorbell, one, other, 0);
        let (mut signaller, mut queue) = (one.queue(), other.queue());
        let mut nudge = Nudge::new(one, other);
        other.initialised(0);
        for round in 0..5 {
            let mut list = CommandList::new();
            let mut waits = CommandList::new();
            for value in 4 * round + 1..=4 * round + 4 {
                list.dispatch(&kernel, [1; 3], &sums(&memory, &memory, 1))
                    .unwrap()
                    .signal(&here, value);
                waits.wait(&there, value);
            }
            let end = queue.submit(&waits).unwrap();
            nudge.times(2);
            complete(&mut signaller, &list);
            until_completed(&queue, end);
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
    let made = device
        .create_fence_with(FenceOptions {
            cross_adapter: Some(CrossAdapter::Doorbell),
            ..FenceOptions::default()
        })
        .unwrap();
    let opened = other.device.open_fence(&made.share().unwrap()).unwrap();
    let (mut there, mut here) = (device.create_hw_queue().unwrap(), other.queue());
    let (mut list, mut answers) = (CommandList::new(), CommandList::new());
    for value in (1..=40).step_by(2) {
        list.signal(&made, value).wait(&made, value + 1);
        answers.wait(&opened, value).signal(&opened, value + 1);
    }
    let answered = here.submit(&answers).unwrap();
    let ended = there.submit(&list).unwrap();
    until_completed(&there, ended);
    until_completed(&here, answered);
}
