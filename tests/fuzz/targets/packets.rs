//! See `nfence_fuzz::packets`.
#![no_main]

libfuzzer_sys::fuzz_target!(|program: nfence_fuzz::packets::Program| {
    let _ = program.play();
});
