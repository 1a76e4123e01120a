//! Bytes in words: bytes at any place of memory that is loaded and stored in whole words.
//!
//! Engines store to the memory while the program has it, so none of it is ever lent as a slice: each word is
//! one access, which is never torn. Where bytes fill a word in part, the others of that word are loaded and
//! stored with them.

use crate::shared::Block;

/// Bytes of a word.
const WORD: usize = 8;

/// Stores `bytes` from byte `offset` on; orders nothing.
///
/// # Panics
/// If they do not lie in the block: a bug of ours.
pub(super) fn put_bytes(block: &Block, offset: u64, bytes: &[u8]) {
    let (lead, first, rest) = parted(offset, bytes.len());
    let (head, bytes) = bytes.split_at(first);
    put_some(block, offset - lead as u64, lead, head);
    let (words, tail) = bytes.as_chunks::<WORD>();
    let mut at = rest;
    for word in words {
        block.word(at).put(u64::from_ne_bytes(*word));
        at += WORD as u64;
    }
    put_some(block, at, 0, tail);
}

/// Loads `bytes` from byte `offset` on, each word by itself; orders nothing.
///
/// # Panics
/// If they do not lie in the block: a bug of ours.
pub(super) fn get_bytes(block: &Block, offset: u64, bytes: &mut [u8]) {
    let (lead, first, rest) = parted(offset, bytes.len());
    let (head, bytes) = bytes.split_at_mut(first);
    get_some(block, offset - lead as u64, lead, head);
    let (words, tail) = bytes.as_chunks_mut::<WORD>();
    let mut at = rest;
    for word in words {
        *word = block.word(at).peek().to_ne_bytes();
        at += WORD as u64;
    }
    get_some(block, at, 0, tail);
}

/// How far into its word a range begins, how many of its bytes lie in that word if it is not all theirs, and
/// where the word begins that follows.
fn parted(offset: u64, bytes: usize) -> (usize, usize, u64) {
    let lead = offset as usize % WORD;
    let first = bytes.min((WORD - lead) % WORD);
    (lead, first, offset.next_multiple_of(WORD as u64))
}

/// Stores a part of the word at `at`, from its byte `lead` on.
fn put_some(block: &Block, at: u64, lead: usize, bytes: &[u8]) {
    if bytes.is_empty() {
        return;
    }
    let word = block.word(at);
    let mut whole = word.peek().to_ne_bytes();
    whole[lead..lead + bytes.len()].copy_from_slice(bytes);
    word.put(u64::from_ne_bytes(whole));
}

/// Loads a part of it.
fn get_some(block: &Block, at: u64, lead: usize, bytes: &mut [u8]) {
    if bytes.is_empty() {
        return;
    }
    let whole = block.word(at).peek().to_ne_bytes();
    bytes.copy_from_slice(&whole[lead..lead + bytes.len()]);
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::{get_bytes, put_bytes};
    use crate::shared::{Block, Region};

    /// Every range of five words: what is stored is loaded again, and no other byte changes.
    #[test]
    fn bytes_beside_those_that_are_stored_stay() {
        const BYTES: usize = 40;
        let block = Block::whole(&Region::new("bytes", 4096).unwrap().map().unwrap());
        for begin in 0..=BYTES {
            for end in begin..=BYTES {
                let mut expected = [0xee; BYTES];
                put_bytes(&block, 0, &expected);
                let stored: Vec<u8> = (1..).take(end - begin).collect();
                put_bytes(&block, begin as u64, &stored);
                expected[begin..end].copy_from_slice(&stored);
                let (mut all, mut some) = ([0; BYTES], vec![0; end - begin]);
                get_bytes(&block, 0, &mut all);
                get_bytes(&block, begin as u64, &mut some);
                assert_eq!((all, some), (expected, stored), "{begin}..{end}");
            }
        }
    }
}
