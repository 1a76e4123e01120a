//! The corpora of packets and rings, and what chance makes of them, on the shader of a device: judged by the contract as on
//! models; and compared with a model, where nothing depends on who is quicker.
//!
//! Without a device it is left out with a printed line; `NFENCE_REQUIRE_DEVICE` set makes that a failure.
//! `NFENCE_RANDOM_CASES` sets how many cases chance makes, `NFENCE_RANDOM_SEED` where they begin.

mod support {
    pub(crate) mod cases;
    pub(crate) mod corpus;
    #[path = "../../../support/left_out.rs"]
    pub(crate) mod left_out;
    pub(crate) mod random_bytes;
}

use native_fence::vulkan::validation;
use nfence_fuzz::stage::{Pace, Stage};
use nfence_fuzz::{from_bytes, packets, ring};
use std::time::Instant;
use support::cases::{Which, setting};
use support::corpus::corpus;
use support::left_out::opened_or_left_out;
use support::random_bytes::fill;

/// Bytes of a case, as of the corpora's files at most.
const MOST_BYTES: usize = 512;

/// Pieces of the corpus joined, and a few bytes of it others: the same from the same number.
fn mutated(corpus: &[Vec<u8>], number: u64) -> Vec<u8> {
    let mut chance = [0; 256];
    fill(number, &mut chance);
    let mut drawn = chance.chunks(4).map(|bytes| {
        let word = bytes.try_into().expect("four bytes");
        u32::from_le_bytes(word) as usize
    });
    let mut draw = |below: usize| drawn.next().expect("enough of them") % below.max(1);
    let mut bytes = Vec::new();
    for _ in 0..=draw(8) {
        let piece = &corpus[draw(corpus.len())];
        let begin = draw(piece.len());
        bytes.extend_from_slice(&piece[begin..][..draw(piece.len() - begin + 1)]);
    }
    bytes.truncate(MOST_BYTES);
    for _ in 0..draw(9) {
        let at = draw(bytes.len());
        if let Some(byte) = bytes.get_mut(at) {
            *byte = draw(256) as u8;
        }
    }
    bytes
}

/// Plays the corpus of a target and so many cases that chance makes of it, each on a device. `false` without one.
#[must_use]
fn on_device(target: &'static str, usual: u64, mut play: impl FnMut(&[u8], &mut Stage)) -> bool {
    let Some(mut stage) = opened_or_left_out(Stage::of_device()) else {
        return false;
    };
    let (began, files) = (Instant::now(), corpus(target));
    let corpus: Vec<_> = files.into_iter().map(|(_, bytes)| bytes).collect();
    for (at, bytes) in corpus.iter().enumerate() {
        let _which = Which("file", at as u64);
        play(bytes, &mut stage);
    }
    let first = setting("NFENCE_RANDOM_SEED", 0);
    for case in first..first + setting("NFENCE_RANDOM_CASES", usual) {
        let _which = Which(target, case);
        play(&mutated(&corpus, case), &mut stage);
    }
    drop(stage);
    assert_eq!(validation::messages(), Vec::<String>::new());
    println!("{target}: in {:?}", began.elapsed());
    true
}

/// HQ-04, HQ-05, HQ-08: on the shader whatever stands in rings does what the contract says, and what it does on a model.
#[test]
fn packets_do_on_a_device_what_they_do_on_a_model() {
    let (mut put, mut faults, mut transfers, mut dispatches) = (0, 0, 0, 0);
    let mut models = Stage::of_models();
    let is_played = on_device("packets", 150, |bytes, device| {
        let mut play = |stage: &mut Stage, pace| {
            let program = from_bytes::<packets::Program>(bytes)?;
            let played = program.play_on(stage, pace);
            put += played.packets;
            faults += played.faults;
            transfers += played.transfers;
            dispatches += played.dispatches;
            Some(played)
        };
        play(device, Pace::AsSaid);
        let [model, device] = [&mut models, device].map(|stage| {
            let played = play(stage, Pace::Settled);
            played.map(|played| (played.ends, played.values))
        });
        assert_eq!(device, model);
    });
    println!(
        "{put} packets, {transfers} transfers and {dispatches} dispatches done, {faults} queues stopped"
    );
    assert!(!is_played || put > 0 && faults > 0 && transfers > 0 && dispatches > 0);
}

/// HQ-04: and whatever is stored to a ring, at any time.
#[test]
fn rings_do_on_a_device_what_they_do_on_a_model() {
    let mut put = 0;
    let mut models = Stage::of_models();
    let is_played = on_device("ring", 150, |bytes, device| {
        let mut play = |stage: &mut Stage, pace| {
            let played = from_bytes::<ring::Program>(bytes)?.play_on(stage, pace);
            put += played.packets;
            Some(played)
        };
        play(device, Pace::AsSaid);
        let [model, device] = [&mut models, device].map(|stage| play(stage, Pace::Settled));
        assert_eq!(device, model);
    });
    println!("{put} packets");
    assert!(!is_played || put > 0);
}
