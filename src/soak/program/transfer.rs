//! Transfers of a program: how they are drawn.

use super::super::Random;
use super::{Command, Held, MalformedTransfer, TIMES_BYTES, WORDS_BYTES, Words, WrongHandle};

/// A transfer that is done. Few are of several parts: `has_parts` is whether the program has had
/// those it may have.
pub(super) fn transfer(random: &mut Random, has_parts: &mut bool) -> Command {
    let long = !*has_parts && random.below(3) == 0;
    if long {
        *has_parts = random.below(2) == 0;
    }
    match random.below(7) {
        0 => Command::Timestamp(random.below(TIMES_BYTES / 8)),
        1..=3 => {
            let of = if long {
                Held::Parts
            } else {
                *random.pick(&Held::ALL)
            };
            let (first, count) = range(random, of.words(), long);
            let value = random.bits();
            Command::Fill(Words { of, first, count }, value)
        }
        _ => {
            let (from, first, to) = disjoint(random, long);
            Command::Copy(from, first, to)
        }
    }
}

/// The first of some words, and how many; none now and then.
fn range(random: &mut Random, words: u64, long: bool) -> (u64, u64) {
    let most = if long { words } else { words.min(130) };
    let count = match random.below(8) {
        0..=5 if long => most - random.below(most / 4),
        0 => 0,
        1 => most,
        2 => 1 + random.below(8),
        _ => random.below(most + 1),
    };
    (random.below(words - count + 1), count)
}

/// Words, and as many others: within one allocation of the other half of it, else anywhere.
pub(super) fn disjoint(random: &mut Random, long: bool) -> (Held, u64, Words) {
    let (from, of) = if long {
        (Held::Parts, Held::Parts)
    } else {
        (*random.pick(&Held::ALL), *random.pick(&Held::ALL))
    };
    let both = from.words().min(of.words());
    if from != of {
        let (source, count) = range(random, both, long);
        let first = random.below(of.words() - count + 1);
        return (from, source, Words { of, first, count });
    }
    let half = of.words() / 2;
    let (source, count) = range(random, half, long);
    // At the nearest, or as far as it goes.
    let nearest = source + count;
    let first = match random.below(2) {
        0 => nearest,
        _ => nearest + random.below(of.words() - nearest - count + 1),
    };
    let turned = random.below(2) == 0;
    let (source, first) = if turned {
        (first, source)
    } else {
        (source, first)
    };
    (from, source, Words { of, first, count })
}

/// A transfer that stops its queue.
pub(super) fn malformed_transfer(random: &mut Random) -> MalformedTransfer {
    let huge = u64::MAX - 7;
    let ranges = [
        (0, WORDS_BYTES + 8),
        (8, WORDS_BYTES),
        (WORDS_BYTES, 8),
        (WORDS_BYTES + 8, 0),
        (0, 12),
        (4, 8),
        (1, 8),
        (huge, 16),
        (16, huge),
        (8, huge),
        (1 << 32, 8),
        (0, 1 << 32),
    ];
    let (first, bytes) = *random.pick(&ranges);
    match random.below(10) {
        0 => MalformedTransfer::Length(*random.pick(&[0, 2, 0x101, 0xff_ffff])),
        1..=3 => MalformedTransfer::Handle {
            of_source: random.below(2) == 0,
            wrong: *random.pick(&[
                WrongHandle::NeverOpened,
                WrongHandle::NoGeneration,
                WrongHandle::OfAnother,
                WrongHandle::Fence,
                WrongHandle::Closed,
            ]),
        },
        4 => MalformedTransfer::HighHalf(*random.pick(&[1, 1 << 31, u32::MAX])),
        5 => MalformedTransfer::Fill { first, bytes },
        6 => MalformedTransfer::Source { first, bytes },
        7 => MalformedTransfer::Timestamp(*random.pick(&[4, WORDS_BYTES, WORDS_BYTES - 4, huge])),
        _ => {
            let count = 2 + random.below(30);
            let (near, far) = (random.below(4), random.below(count));
            let (from, to) = *random.pick(&[(near, near + far), (near + far, near)]);
            MalformedTransfer::Overlap { from, to, count }
        }
    }
}
