//! See `nfence_fuzz::reply`.
#![no_main]

libfuzzer_sys::fuzz_target!(|program: nfence_fuzz::reply::Program| {
    let _ = program.play();
});
