//! See `nfence_fuzz::capi`.
#![no_main]

libfuzzer_sys::fuzz_target!(|program: nfence_fuzz::capi::Program| {
    let _ = program.play();
});
