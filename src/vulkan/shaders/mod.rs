//! The device runs SPIR-V, which is compiled from `shaders/*.comp` and checked in beside them.
//!
//! Source and binary are tied together by hashes: an edited shader that was not rebuilt with
//! `cargo run --locked -p nfence-shaders` is a compile error. Building the library needs no shader
//! compiler.
//!
//! `table` is the generated list, `embed` makes words of bytes and hashes them.

#![forbid(unsafe_code)]
// A large binary takes more steps than the lint likes; the loops of `embed` end with their input.
#![allow(long_running_const_eval)]

mod embed;
#[rustfmt::skip]
mod table;

pub use embed::Shader;
pub use table::*;
