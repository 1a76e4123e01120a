//! See `nfence_fuzz::records`.
#![no_main]

libfuzzer_sys::fuzz_target!(|program: nfence_fuzz::records::Program| {
    let _ = program.play();
});
