//! See `nfence_fuzz::report`.
#![no_main]

libfuzzer_sys::fuzz_target!(|file: nfence_fuzz::report::File| {
    let _ = file.play();
});
