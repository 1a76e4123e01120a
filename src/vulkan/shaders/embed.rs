//! A shader in the program is a name and its SPIR-V words.
//!
//! The generated table hands over bytes, which have no alignment; the words are made of them while
//! compiling, as are the hashes that the table asserts.

/// One variant of a shader, ready for `vkCreateShaderModule`.
#[derive(Debug, Clone, Copy)]
pub struct Shader {
    /// File name in `shaders/spv/` without `.spv`: `engine`, `engine.narrow`.
    pub name: &'static str,
    /// SPIR-V.
    pub words: &'static [u32],
}

/// FNV-1a in steps of eight little-endian bytes, the last of them filled up with the length:
/// a step a byte would cost seconds of build time. As in `scripts/shaders/src/table.rs`.
#[allow(dead_code, reason = "a table without shaders calls it not")]
pub(super) const fn fnv1a(bytes: &[u8]) -> u64 {
    let (chunks, rest) = bytes.as_chunks::<8>();
    let mut hash = 0xcbf2_9ce4_8422_2325;
    let mut index = 0;
    while index < chunks.len() {
        hash = step(hash, u64::from_le_bytes(chunks[index]));
        index += 1;
    }
    let mut last = [rest.len() as u8; 8];
    last.split_at_mut(rest.len()).0.copy_from_slice(rest);
    step(hash, u64::from_le_bytes(last))
}

const fn step(hash: u64, value: u64) -> u64 {
    (hash ^ value).wrapping_mul(0x0000_0100_0000_01b3)
}

/// The little-endian words of `bytes`.
#[allow(dead_code, reason = "a table without shaders calls it not")]
pub(super) const fn words<const COUNT: usize>(bytes: &[u8]) -> [u32; COUNT] {
    let (chunks, rest) = bytes.as_chunks::<4>();
    assert!(
        chunks.len() == COUNT && rest.is_empty(),
        "not a whole number of words"
    );
    let mut words = [0; COUNT];
    let mut index = 0;
    while index < COUNT {
        words[index] = u32::from_le_bytes(chunks[index]);
        index += 1;
    }
    words
}
