//! The C header that is checked in is the one that the sources make.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod c_header;
}

use support::c_header;

/// `NFENCE_WRITE_HEADER=1`, which `scripts/capi` sets, writes it instead.
///
/// Kills `the-header-is-old`.
#[test]
fn the_checked_in_header_is_what_the_sources_make() {
    let made = c_header::made();
    let path = c_header::path();
    if std::env::var_os("NFENCE_WRITE_HEADER").is_some() {
        std::fs::write(&path, made).unwrap();
        println!("wrote {}", path.display());
        return;
    }
    let checked_in = std::fs::read_to_string(&path).unwrap_or_default();
    let differs = made.lines().zip(checked_in.lines()).find(|(a, b)| a != b);
    assert!(
        made == checked_in,
        "{} is not what the sources make ({differs:?}): run scripts/capi",
        path.display()
    );
}
