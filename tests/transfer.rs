//! Transfers: TIMESTAMP, FILL and COPY, which all lanes of an engine do together, in parts.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
    pub(crate) mod engines;
}

use native_fence::{Adapter, CommandList};
use support::bench::{LONG, words};
use support::engines::{Random, model, model_cut, on_every_engine, random_cases, shader};

/// Fills and copies take effect in the order of their queue, on every word of their ranges and on no
/// other, also where a range is no whole number of parts or of lanes.
///
/// Kills `model-fill-goes-on-early`, `shader-rest-of-a-part-is-left`,
/// `shader-copy-takes-the-value`, `shader-parts-begin-at-the-start`.
#[test]
fn hq_08_transfers_run_in_queue_order() {
    on_every_engine(|adapter| {
        let device = adapter.create_device();
        let mut queue = device.create_hw_queue().unwrap();
        let done = device.create_fence(0).unwrap();
        let (a, b) = (
            device.create_allocation(100_008).unwrap(),
            device.create_allocation(200_000).unwrap(),
        );
        assert!(words(&a).iter().all(|word| *word == 0), "zero at first");
        b.write(8, &[5]);
        queue
            .submit(
                CommandList::new()
                    .fill(&a, 0..100_008, 7)
                    .fill(&a, 8..16, 9)
                    .copy(&a, 0..100_008, &b, 16)
                    .fill(&a, 0..8, 1)
                    .fill(&b, 0..0, 3)
                    .signal(&done, 1),
            )
            .unwrap();
        done.wait(1, LONG).unwrap();
        let (a, b) = (words(&a), words(&b));
        assert_eq!(a[..3], [1, 9, 7]);
        assert_eq!(b[..5], [0, 5, 7, 9, 7]);
        assert!(a[2..].iter().all(|word| *word == 7));
        assert!(b[4..2 + 12_501].iter().all(|word| *word == 7));
        assert!(b[2 + 12_501..].iter().all(|word| *word == 0));
    });
}

/// One queue's random fills and copies among a few allocations, and what a program makes of them.
fn random_transfers(adapter: &Adapter, case: u64) {
    let random = &mut Random(case);
    let device = adapter.create_device();
    let mut queue = device.create_hw_queue().unwrap();
    let sizes = [8, 8 * 63, 8 * 64, 8 * 65, 4096 * 9 + 8, 4096 * 40];
    let memory: Vec<_> = (0..3)
        .map(|_| device.create_allocation(*random.pick(&sizes)).unwrap())
        .collect();
    let mut model: Vec<_> = memory.iter().map(words).collect();
    let mut list = CommandList::new();
    for _ in 0..10 {
        let (to, from) = (random.below(3) as usize, random.below(3) as usize);
        let (length, other) = (model[to].len() as u64, model[from].len() as u64);
        let start = random.below(length);
        let source = random.below(other);
        if random.below(2) == 0 || to == from {
            let (count, value) = (random.below(length - start + 1), random.bits());
            list.fill(&memory[to], start * 8..(start + count) * 8, value);
            model[to][start as usize..(start + count) as usize].fill(value);
        } else {
            let count = random.below((length - start).min(other - source) + 1);
            let range = source * 8..(source + count) * 8;
            list.copy(&memory[from], range, &memory[to], start * 8);
            let words = model[from][source as usize..(source + count) as usize].to_vec();
            model[to][start as usize..(start + count) as usize].copy_from_slice(&words);
        }
    }
    let end = queue.submit(&list).unwrap();
    queue.progress_fence().wait(end, LONG).unwrap();
    for (memory, model) in memory.iter().zip(&model) {
        assert!(words(memory) == *model, "case {case}");
    }
}

/// Whatever is transferred, and wherever a driver cuts the loops of the engine, each word is what the
/// packets say: a part counts when every lane has done its share, and one that is done again
/// changes nothing.
///
/// Kills `model-part-counts-without-every-lane`, `model-transferred-is-not-saved`,
/// `shader-transferred-is-not-saved`.
#[test]
fn hq_08_random_transfers_give_what_the_packets_say() {
    let mut engines = vec![model(), model_cut(3, 90), model_cut(4, 400)];
    for (adapter, memory) in engines.drain(..) {
        for case in 0..random_cases(12) {
            random_transfers(&adapter, case);
            assert_eq!(memory.violations(), [], "case {case}");
        }
    }
    if let Some(adapter) = shader() {
        for case in 0..random_cases(40) {
            random_transfers(&adapter, case);
        }
    }
}

/// The time of a TIMESTAMP is the clock of the log, between the ends of the signals around it.
///
/// Kills `model-timestamp-is-the-value`, `shader-timestamp-is-the-value`.
#[test]
fn lg_08_a_timestamp_lies_between_the_log_times_around_it() {
    on_every_engine(|adapter| {
        let device = adapter.create_device();
        let mut queue = device.create_hw_queue().unwrap();
        let fence = device.create_fence(0).unwrap();
        let times = device.create_allocation(64).unwrap();
        let mut list = CommandList::new();
        list.signal(&fence, 1)
            .timestamp(&times, 8)
            .timestamp(&times, 56)
            .signal(&fence, 2);
        let end = queue.submit(&list).unwrap();
        queue.progress_fence().wait(end, LONG).unwrap();
        let log = queue.read_signal_log().unwrap().entries;
        let (before, after) = (log[0].end_ticks, log[1].end_ticks);
        let times = words(&times);
        assert!(before <= times[1] && times[1] <= times[7] && times[7] <= after);
        assert!(before > 0, "{before}");
        let others = [0, 2, 3, 4, 5, 6].map(|other| times[other]);
        assert_eq!(others, [0; 6], "no other word");
    });
}
