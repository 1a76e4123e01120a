//! Kernel file: the kernels of an engine in a process of its own, as they pass to it in a file of memory.
//!
//! Words of 64 bits: the version and how many kernels there are, then of each its slot, its bytes of parameters, how
//! many words of 32 bits its SPIR-V has, and these, two in a word. The child reads the file word by word and believes
//! no count of it: who wrote it is its parent, and a mistake of that shall be told by name.

use super::{KernelCode, KernelError, Kernels};
use crate::abi::MAX_KERNELS;
use crate::shared::{Block, Region, RegionError};
use crate::sync::Arc;

/// Why a file has no kernels.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum KernelFileError {
    /// It ends before what it says that it has.
    #[error("the file of the kernels ends in the midst of them")]
    Cut,
    /// Slots rise, and each is below [`MAX_KERNELS`].
    #[error("the file of the kernels has one in slot {0}, where none can be")]
    Slot(u64),
    /// One is none.
    #[error(transparent)]
    Kernel(#[from] KernelError),
}

/// What it is called.
pub(crate) const KERNEL_FILE: &str = "kernels";

/// The file of kernels.
///
/// # Errors
/// The system has no memory for it.
pub(super) fn file_of(kernels: &Kernels) -> Result<Arc<Region>, RegionError> {
    let words = words_of(kernels);
    let file = Region::new(KERNEL_FILE, words.len() as u64 * 8)?;
    Block::whole(&file.map()?).put_words(0, &words);
    Ok(file)
}

/// The kernels of a file; those that `known` has, whatever their slots, are the same to the engine.
///
/// # Errors
/// It has none, or cannot be mapped.
pub(super) fn kernels_in(
    file: &Arc<Region>,
    known: &Kernels,
) -> Result<Result<Kernels, KernelFileError>, RegionError> {
    let block = Block::whole(&file.map()?);
    // Each word once: nothing that is looked at changes after.
    let offsets = (0..block.bytes() as u64).step_by(8);
    let words: Vec<_> = offsets.map(|offset| block.word(offset).peek()).collect();
    Ok(kernels_of(&words, known))
}

fn words_of(kernels: &Kernels) -> Vec<u64> {
    let mut words = vec![kernels.version(), kernels.len() as u64];
    for (slot, code) in kernels.iter() {
        let spirv = code.spirv();
        let head = [
            slot.into(),
            code.parameter_bytes().into(),
            spirv.len() as u64,
        ];
        words.extend(head);
        words.extend(spirv.chunks(2).map(|pair| {
            let word = |at| pair.get(at).copied().map_or(0, u64::from);
            word(0) | word(1) << 32
        }));
    }
    words
}

fn kernels_of(words: &[u64], known: &Kernels) -> Result<Kernels, KernelFileError> {
    let (head, mut rest) = words.split_first_chunk().ok_or(KernelFileError::Cut)?;
    let [version, count] = *head;
    let mut slots: Vec<Option<Arc<KernelCode>>> = Vec::new();
    for _ in 0..count {
        let (head, behind) = rest.split_first_chunk().ok_or(KernelFileError::Cut)?;
        let [slot, parameter_bytes, length] = *head;
        if slot >= MAX_KERNELS || slot < slots.len() as u64 {
            return Err(KernelFileError::Slot(slot));
        }
        let packed = behind.split_at_checked(length.div_ceil(2) as usize);
        let (packed, behind) = packed.ok_or(KernelFileError::Cut)?;
        let spirv = packed
            .iter()
            .flat_map(|word| [*word as u32, (*word >> 32) as u32]);
        let spirv: Vec<_> = spirv.take(length as usize).collect();
        let parameter_bytes = u32::try_from(parameter_bytes).unwrap_or(u32::MAX);
        let is_it = |(_, code): &(u32, &Arc<KernelCode>)| {
            code.spirv() == spirv && code.parameter_bytes() == parameter_bytes
        };
        let code = match known.iter().find(is_it) {
            Some((_, code)) => Arc::clone(code),
            None => Arc::new(KernelCode::new(&spirv, parameter_bytes)?),
        };
        slots.resize(slot as usize, None);
        slots.push(Some(code));
        rest = behind;
    }
    Ok(Kernels::of(version, slots))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vulkan::shaders;

    fn code(spirv: &[u32], parameter_bytes: u32) -> Arc<KernelCode> {
        Arc::new(KernelCode::new(spirv, parameter_bytes).unwrap())
    }

    /// Two kernels with a place between them where one was.
    fn some() -> Kernels {
        let mut kernels = Kernels::default();
        for (spirv, bytes) in [
            (shaders::ADD_WORDS.words, 32),
            (shaders::SPIN.words, 0),
            (shaders::SPIN.words, 24),
        ] {
            kernels.add(&code(spirv, bytes)).unwrap();
        }
        kernels.remove(1);
        kernels
    }

    fn is_equal(one: &Kernels, other: &Kernels) -> bool {
        words_of(one) == words_of(other)
    }

    #[test]
    fn what_is_written_is_what_is_read() {
        let kernels = some();
        let file = file_of(&kernels).unwrap();
        let read = kernels_in(&file, &Kernels::default()).unwrap().unwrap();
        assert!(is_equal(&read, &kernels));
        assert!(!read.are(&kernels), "they are others, with the same words");
        let again = kernels_in(&file, &read).unwrap().unwrap();
        assert!(again.are(&read), "what is known is not made again");
        let none = Kernels::default();
        let file = file_of(&none).unwrap();
        assert!(kernels_in(&file, &read).unwrap().unwrap().are(&none));
    }

    /// PR-01: a file that is none is an error, whatever its counts are.
    ///
    /// Kills `any-slot-is-a-kernels`.
    #[test]
    fn pr_01_a_file_without_kernels_is_an_error() {
        let none = Kernels::default();
        let words = words_of(&some());
        for length in 0..words.len() {
            assert_eq!(
                kernels_of(&words[..length], &none).err(),
                Some(KernelFileError::Cut)
            );
        }
        let with = |at: usize, word| {
            let mut bent = words.clone();
            bent[at] = word;
            kernels_of(&bent, &none).err()
        };
        for count in [3, u64::MAX] {
            // The next begins with a word that is not there.
            assert_eq!(with(1, count), Some(KernelFileError::Cut));
        }
        for slot in [MAX_KERNELS, u64::MAX] {
            assert_eq!(with(2, slot), Some(KernelFileError::Slot(slot)));
        }
        let second = 2 + 3 + shaders::ADD_WORDS.words.len().div_ceil(2);
        assert_eq!(with(second, 0), Some(KernelFileError::Slot(0)), "twice");
        let bytes = u64::from(u32::MAX) + 33;
        let refused = KernelError::ParameterBytes(u32::MAX);
        assert_eq!(with(3, bytes), Some(refused.into()));
        for length in [words.len() as u64 * 2, u64::MAX] {
            assert_eq!(with(4, length), Some(KernelFileError::Cut));
        }
        assert_eq!(with(4, 0), Some(KernelError::NoSpirv.into()));
        assert_eq!(with(5, 0), Some(KernelError::NoSpirv.into()));
    }
}
