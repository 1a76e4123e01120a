//! Message: what another process sends instead of a fence.

use arbitrary::{Arbitrary, Result, Unstructured};
use native_fence::abi::PAGE_BYTES;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use std::os::fd::OwnedFd;

/// What stands before the descriptors of a message.
pub(super) const TEXT: &[u8] = b"native-fence 4\r\n";

/// What is sent instead of a fence, and whoever is to open it.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) side: bool,
    pub(super) text: Text,
    pub(super) files: Vec<File>,
    /// It stays in the socket, as that of a handle that is a descriptor.
    pub(super) is_kept: bool,
}

#[derive(Debug, Arbitrary)]
pub(super) enum Text {
    Good,
    Cut(u8),
    Bent { at: u8, byte: u8 },
    Longer(u8),
    Any([u8; 16]),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Arbitrary)]
pub(super) enum File {
    Current,
    Monitored,
    OtherCurrent,
    OtherMonitored,
    /// Memory of the sender's.
    Memory {
        size: u8,
        seals: u8,
    },
    Pipe,
    Socket,
}

impl<'a> Arbitrary<'a> for Message {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let side = u.arbitrary()?;
        // Most messages shall have the right words before them.
        let text = if u.ratio(3, 4)? {
            Text::Good
        } else {
            u.arbitrary()?
        };
        let files = if u.ratio(1, 4)? {
            vec![File::OtherCurrent, File::OtherMonitored]
        } else {
            let files = (0..u.int_in_range(0..=3)?).map(|_| u.arbitrary());
            files.collect::<Result<_>>()?
        };
        Ok(Self {
            side,
            text,
            files,
            is_kept: u.arbitrary()?,
        })
    }
}

impl Text {
    /// The bytes before the descriptors.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut bytes = TEXT.to_vec();
        match *self {
            Self::Good => {}
            Self::Cut(at) => bytes.truncate(usize::from(at) % TEXT.len()),
            Self::Bent { at, byte } => bytes[usize::from(at) % TEXT.len()] = byte,
            // On a socket that keeps no messages apart it is the next one's beginning.
            Self::Longer(by) => bytes.resize(TEXT.len() + usize::from(by), 0xa5),
            Self::Any(any) => return any.to_vec(),
        }
        bytes
    }
}

impl File {
    /// What is made to be sent, if it is that.
    pub(super) fn made(self) -> Option<OwnedFd> {
        let Self::Memory { size, seals } = self else {
            return None;
        };
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let memory = memfd_create("not-a-fence", flags).expect("memory");
        let sizes = [0, 1, PAGE_BYTES - 1, PAGE_BYTES, PAGE_BYTES, 2 * PAGE_BYTES];
        ftruncate(&memory, sizes[usize::from(size) % sizes.len()]).expect("memory");
        let all = [
            SealFlags::SHRINK,
            SealFlags::GROW,
            SealFlags::WRITE,
            SealFlags::FUTURE_WRITE,
            SealFlags::SEAL,
        ];
        let chosen = all.into_iter().enumerate();
        let chosen = chosen.filter(|(bit, _)| seals >> bit & 1 == 1);
        // What seals there are depends on the system.
        let _ = fcntl_add_seals(&memory, chosen.map(|(_, seal)| seal).collect());
        Some(memory)
    }
}
