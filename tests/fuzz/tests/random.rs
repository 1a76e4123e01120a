//! Random bytes through the targets, in bulk: what a fuzzer without a compass finds.
//!
//! `NFENCE_RANDOM_CASES` sets how many cases of each target there are, `NFENCE_RANDOM_SEED` where
//! they begin. A case that fails is printed with its number, and played alone with that as seed.

use nfence_fuzz::{capi, from_bytes, log, packets, records, reply, ring, spirv, trace};
use std::time::Instant;

fn setting(name: &str, usual: u64) -> u64 {
    let asked = std::env::var(name).ok();
    asked.map_or(usual, |asked| asked.parse().expect("a number"))
}

/// SplitMix64.
fn fill(seed: u64, bytes: &mut [u8]) {
    let mut state = seed.wrapping_mul(0x2545_f491_4f6c_dd1d);
    for word in bytes.chunks_mut(8) {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word.copy_from_slice(&(z ^ (z >> 31)).to_le_bytes()[..word.len()]);
    }
}

/// Says which case it was, if it panics.
struct Which(&'static str, u64);

impl Drop for Which {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}: case {}", self.0, self.1);
        }
    }
}

fn cases(target: &'static str, usual: u64, mut play: impl FnMut(&[u8])) {
    let first = setting("NFENCE_RANDOM_SEED", 0);
    let mut bytes = vec![0; 4096];
    for case in first..first + setting("NFENCE_RANDOM_CASES", usual) {
        let _which = Which(target, case);
        fill(case, &mut bytes);
        let length = if case % 8 == 0 { 64 } else { 4096 };
        play(&bytes[..length]);
    }
}

#[test]
fn packets() {
    let (began, mut put, mut faults, mut transfers) = (Instant::now(), 0, 0, 0);
    cases("packets", 300, |bytes| {
        if let Some(program) = from_bytes::<packets::Program>(bytes) {
            let played = program.play();
            put += played.packets;
            faults += played.faults;
            transfers += played.transfers;
        }
    });
    println!(
        "{put} packets, {transfers} transfers done, {faults} queues stopped, in {:?}",
        began.elapsed()
    );
    assert!(put > 0 && faults > 0 && transfers > 0);
}

#[test]
fn ring() {
    let mut put = 0;
    cases("ring", 300, |bytes| {
        if let Some(program) = from_bytes::<ring::Program>(bytes) {
            put += program.play();
        }
    });
    println!("{put} packets");
    assert!(put > 0);
}

#[test]
fn log() {
    let mut told = 0;
    cases("log", 300, |bytes| {
        if let Some(program) = from_bytes::<log::Program>(bytes) {
            told += u128::from(program.play());
        }
    });
    println!("{told} entries");
    assert!(told > 0);
}

#[test]
fn records() {
    let mut waits = 0;
    cases("records", 200, |bytes| {
        if let Some(program) = from_bytes::<records::Program>(bytes) {
            waits += program.play();
        }
    });
    println!("{waits} waits");
    assert!(waits > 0);
}

#[test]
fn reply() {
    let (mut taken, mut refused) = (0, 0);
    cases("reply", 1000, |bytes| {
        if let Some(program) = from_bytes::<reply::Program>(bytes) {
            let played = program.play();
            taken += played.taken;
            refused += played.refused;
        }
    });
    println!("{taken} messages taken, {refused} refused");
    assert!(taken > 0 && refused > 0);
}

#[test]
fn spirv() {
    let (mut taken, mut refused) = (0, 0);
    cases("spirv", 3000, |bytes| {
        if let Some(program) = from_bytes::<spirv::Program>(bytes) {
            if program.play() {
                taken += 1;
            } else {
                refused += 1;
            }
        }
    });
    println!("{taken} kernels taken, {refused} refused");
    assert!(taken > 0 && refused > 0);
}

#[test]
fn trace() {
    let (mut read, mut refused) = (0, 0);
    cases("trace", 3000, |bytes| {
        if let Some(file) = from_bytes::<trace::File>(bytes) {
            if file.play() {
                read += 1;
            } else {
                refused += 1;
            }
        }
    });
    println!("{read} traces read, {refused} refused");
    assert!(read > 0 && refused > 0);
}

#[test]
fn capi() {
    let (mut taken, mut refused) = (0, 0);
    cases("capi", 200, |bytes| {
        if let Some(program) = from_bytes::<capi::Program>(bytes) {
            let played = program.play();
            taken += played.taken;
            refused += played.refused;
        }
    });
    println!("{taken} calls taken, {refused} refused");
    assert!(taken > 0 && refused > 0);
}
