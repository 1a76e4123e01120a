//! Plays what is checked in through the targets, with any Rust: the seeds that a fuzzer has found,
//! each of which goes where no other goes.

mod support {
    pub(crate) mod corpus;
}

use nfence_fuzz::{
    capi, from_bytes, log, packets, peers, records, reply, report, request, ring, spirv, trace,
};
use support::corpus::corpus;

/// Plays each file of a target's corpus; says which one it was, if it fails.
fn play(target: &str, mut play: impl FnMut(&[u8])) {
    for (path, bytes) in corpus(target) {
        println!("{}", path.display());
        play(&bytes);
    }
}

#[test]
fn packets() {
    play("packets", |bytes| {
        if let Some(program) = from_bytes::<packets::Program>(bytes) {
            let _ = program.play();
        }
    });
}

#[test]
fn ring() {
    play("ring", |bytes| {
        if let Some(program) = from_bytes::<ring::Program>(bytes) {
            let _ = program.play();
        }
    });
}

#[test]
fn log() {
    play("log", |bytes| {
        if let Some(program) = from_bytes::<log::Program>(bytes) {
            let _ = program.play();
        }
    });
}

#[test]
fn records() {
    play("records", |bytes| {
        if let Some(program) = from_bytes::<records::Program>(bytes) {
            let _ = program.play();
        }
    });
}

#[test]
fn reply() {
    play("reply", |bytes| {
        if let Some(program) = from_bytes::<reply::Program>(bytes) {
            let _ = program.play();
        }
    });
}

#[test]
fn request() {
    play("request", |bytes| {
        if let Some(program) = from_bytes::<request::Program>(bytes) {
            let _ = program.play();
        }
    });
}

#[test]
fn peers() {
    play("peers", |bytes| {
        if let Some(program) = from_bytes::<peers::Program>(bytes) {
            let _ = program.play();
        }
    });
}

#[test]
fn report() {
    play("report", |bytes| {
        if let Some(file) = from_bytes::<report::File>(bytes) {
            let _ = file.play();
        }
    });
}

#[test]
fn spirv() {
    play("spirv", |bytes| {
        if let Some(program) = from_bytes::<spirv::Program>(bytes) {
            let _ = program.play();
        }
    });
}

#[test]
fn trace() {
    play("trace", |bytes| {
        if let Some(file) = from_bytes::<trace::File>(bytes) {
            let _ = file.play();
        }
    });
}

#[test]
fn capi() {
    play("capi", |bytes| {
        if let Some(program) = from_bytes::<capi::Program>(bytes) {
            let _ = program.play();
        }
    });
}
