//! See `nfence_fuzz::request`.
#![no_main]

libfuzzer_sys::fuzz_target!(|program: nfence_fuzz::request::Program| {
    let _ = program.play();
});
