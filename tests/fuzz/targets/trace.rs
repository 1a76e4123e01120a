//! See `nfence_fuzz::trace`.
#![no_main]

libfuzzer_sys::fuzz_target!(|file: nfence_fuzz::trace::File| {
    let _ = file.play();
});
