//! Random bytes from a number: the same from the same.

/// SplitMix64.
pub(crate) fn fill(seed: u64, bytes: &mut [u8]) {
    let mut state = seed.wrapping_mul(0x2545_f491_4f6c_dd1d);
    for word in bytes.chunks_mut(8) {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word.copy_from_slice(&(z ^ (z >> 31)).to_le_bytes()[..word.len()]);
    }
}
