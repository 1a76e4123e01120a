//! See `nfence_fuzz::ring`.
#![no_main]

libfuzzer_sys::fuzz_target!(|program: nfence_fuzz::ring::Program| {
    let _ = program.play();
});
