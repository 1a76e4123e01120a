//! See `nfence_fuzz::peers`.
#![no_main]

libfuzzer_sys::fuzz_target!(|program: nfence_fuzz::peers::Program| {
    let _ = program.play();
});
