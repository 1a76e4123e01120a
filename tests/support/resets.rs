//! Resets in a row: as many as `NFENCE_RESETS` asks for.

/// So many, where nobody asks for another number.
pub(crate) fn resets_or(usual: usize) -> usize {
    let asked = std::env::var("NFENCE_RESETS").ok();
    asked.map_or(usual, |resets| {
        resets.parse().expect("NFENCE_RESETS is a number")
    })
}
