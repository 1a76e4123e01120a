//! See `nfence_fuzz::spirv`.
#![no_main]

libfuzzer_sys::fuzz_target!(|program: nfence_fuzz::spirv::Program| {
    let _ = program.play();
});
