//! See `nfence_fuzz::log`.
#![no_main]

libfuzzer_sys::fuzz_target!(|program: nfence_fuzz::log::Program| {
    let _ = program.play();
});
