//! Random bytes through the targets, in bulk: what a fuzzer without a compass finds.
//!
//! `NFENCE_RANDOM_CASES` sets how many cases of each target there are, `NFENCE_RANDOM_SEED` where
//! they begin. A case that fails is printed with its number, and played alone with that as seed.

mod support {
    pub(crate) mod cases;
    pub(crate) mod random_bytes;
}

use nfence_fuzz::{
    capi, from_bytes, log, packets, peers, records, reply, report, request, ring, spirv, trace,
};
use std::time::Instant;
use support::cases::{Which, setting};
use support::random_bytes::fill;

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
    let (began, mut put, mut faults) = (Instant::now(), 0, 0);
    let (mut transfers, mut dispatches) = (0, 0);
    cases("packets", 300, |bytes| {
        if let Some(program) = from_bytes::<packets::Program>(bytes) {
            let played = program.play();
            put += played.packets;
            faults += played.faults;
            transfers += played.transfers;
            dispatches += played.dispatches;
        }
    });
    println!(
        "{put} packets, {transfers} transfers and {dispatches} dispatches done, {faults} queues stopped, in {:?}",
        began.elapsed()
    );
    assert!(put > 0 && faults > 0 && transfers > 0 && dispatches > 0);
}

#[test]
fn ring() {
    let mut put = 0;
    cases("ring", 300, |bytes| {
        if let Some(program) = from_bytes::<ring::Program>(bytes) {
            put += program.play().packets;
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
fn request() {
    let (mut taken, mut refused, mut files) = (0, 0, 0);
    cases("request", 1000, |bytes| {
        if let Some(program) = from_bytes::<request::Program>(bytes) {
            let played = program.play();
            taken += played.taken;
            refused += played.refused;
            files += played.files;
        }
    });
    println!("{taken} requests taken, {refused} refused, {files} files of kernels");
    assert!(taken > 0 && refused > 0 && files > 0);
}

#[test]
fn peers() {
    let began = Instant::now();
    let mut all = peers::Played::default();
    cases("peers", 300, |bytes| {
        if let Some(program) = from_bytes::<peers::Program>(bytes) {
            let played = program.play();
            all.satisfied += played.satisfied;
            all.failed += played.failed;
            all.scribbled += played.scribbled;
            all.refused += played.refused;
        }
    });
    println!("{all:?}, in {:?}", began.elapsed());
    assert!(all.satisfied > 0 && all.failed > 0 && all.scribbled > 0 && all.refused > 0);
}

#[test]
fn report() {
    let (mut read, mut refused) = (0, 0);
    cases("report", 1000, |bytes| {
        if let Some(file) = from_bytes::<report::File>(bytes) {
            if file.play() {
                read += 1;
            } else {
                refused += 1;
            }
        }
    });
    println!("{read} reports read, {refused} refused");
    assert!(read > 0 && refused > 0);
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
