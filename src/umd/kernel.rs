//! Kernel: a compute shader of the program's, which command lists dispatch.

use super::named_by::NamedBy;
use super::{Allocation, Fence};
use crate::abi::{Dispatch, LocalHandle};
use crate::os::{self, Process};
use crate::sync::Arc;

/// A registered kernel. Cloning gives another reference to the same one; the last one to go closes its handle.
///
/// That one takes the kernel from the engines, which registrations and removals do by turns: it may have to wait while
/// another kernel is registered, as long as [`Device::create_kernel`](crate::Device::create_kernel) does.
/// [`Kernel::close`] waits for no registration: a thread that must not wait closes the kernel, and lets the last
/// reference go on another thread.
#[derive(Clone, Debug)]
pub struct Kernel {
    object: Arc<os::Kernel>,
}

impl Kernel {
    pub(super) fn new(object: os::Kernel) -> Self {
        Self {
            object: Arc::new(object),
        }
    }

    /// The handle that packets carry.
    #[must_use]
    pub fn handle(&self) -> LocalHandle {
        self.object.handle()
    }

    /// Bytes of parameters that it takes.
    #[must_use]
    pub fn parameter_bytes(&self) -> u32 {
        self.object.parameter_bytes()
    }

    /// The process whose handle it is.
    pub(super) fn process(&self) -> &Arc<Process> {
        self.object.process()
    }

    /// Closes the handle: dispatches that carry it fault. One that is under way runs to its end. The kernel's place on the
    /// adapter is free when the last reference has gone.
    pub fn close(&self) {
        self.object.close();
    }
}

/// How many workgroups a dispatch runs.
#[derive(Clone, Copy, Debug)]
pub enum Groups<'a> {
    /// So many in x, y and z: 1 to 65,535 each.
    Direct([u32; 3]),
    /// What the three words of 32 bits at a byte of an allocation say when the queue comes to it; it is a multiple of
    /// 8, and 16 bytes from there on lie in the allocation. Where one of them is 0 nothing runs.
    Indirect(&'a Allocation, u64),
}

impl From<[u32; 3]> for Groups<'_> {
    fn from(groups: [u32; 3]) -> Self {
        Self::Direct(groups)
    }
}

/// Why a dispatch cannot be recorded. Nothing of it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DispatchError {
    /// No workgroups, or more than every device runs.
    #[error(
        "a dispatch of {0:?} workgroups: each number must be 1 to {most}",
        most = Dispatch::MOST_GROUPS
    )]
    Groups([u32; 3]),
    /// The kernel takes another number of bytes.
    #[error("{given} bytes of parameters for a kernel that takes {takes}")]
    Parameters {
        /// What was given.
        given: u64,
        /// What the kernel was registered with.
        takes: u32,
    },
    /// The byte that is referred to, or the counts, lie outside of the allocation, or not at a multiple of 8.
    #[error(
        "byte {offset} of an allocation of {bytes}: it must be a multiple of 8, and what is there must lie in the \
         allocation"
    )]
    Offset {
        /// What was given.
        offset: u64,
        /// The allocation's size.
        bytes: u64,
    },
}

/// What a kernel is given: words, addresses of allocations, and fences.
#[derive(Clone, Debug, Default)]
pub struct Parameters {
    words: Vec<u64>,
    /// By word: it is a reference.
    references: u32,
    named_by: NamedBy,
    wrong: Option<DispatchError>,
}

impl Parameters {
    /// None.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A word of 64 bits, as it is.
    #[must_use]
    pub fn word(mut self, word: u64) -> Self {
        self.words.push(word);
        self
    }

    /// The address of a byte of an allocation or a buffer, a multiple of 8 below 2^32, in the space of the engine that runs the
    /// kernel. The dispatch faults if the allocation is closed when the queue comes to it.
    #[must_use]
    pub fn address(mut self, of: &impl AsRef<Allocation>, offset: u64) -> Self {
        let of = of.as_ref();
        let word = self.words.len();
        match u32::try_from(offset) {
            Ok(at) if offset.is_multiple_of(8) && offset <= of.bytes() && word < 32 => {
                self.references |= 1 << word;
                self.words.push(Dispatch::reference(of.handle(), at));
                self.named_by.add(of.process());
            }
            _ => {
                let bytes = of.bytes();
                let wrong = DispatchError::Offset { offset, bytes };
                self.wrong.get_or_insert(wrong);
                self.words.push(0);
            }
        }
        self
    }

    /// A fence, by its handle, for the functions of the shader library: `nf_fence(job, word)`. What a kernel may do
    /// with it the handle says when it is looked up.
    #[must_use]
    pub fn fence(mut self, fence: &Fence) -> Self {
        self.words.push(u64::from(fence.handle().raw()));
        self.named_by.add(fence.object().process());
        self
    }

    /// Bytes so far.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.words.len() as u64 * 8
    }

    pub(super) fn words(&self) -> &[u64] {
        &self.words
    }

    pub(super) fn references(&self) -> u32 {
        self.references
    }

    pub(super) fn named_by(&self) -> &NamedBy {
        &self.named_by
    }

    /// Whether they are what a kernel takes.
    pub(super) fn check(&self, kernel: &Kernel) -> Result<(), DispatchError> {
        let takes = kernel.parameter_bytes();
        if self.bytes() != u64::from(takes) {
            let given = self.bytes();
            return Err(DispatchError::Parameters { given, takes });
        }
        self.wrong.map_or(Ok(()), Err)
    }
}

impl Groups<'_> {
    /// Whether a device runs so many, and the counts lie in their allocation.
    pub(super) fn check(&self) -> Result<(), DispatchError> {
        match *self {
            Self::Direct(groups) => {
                let can_be = |groups: &u32| (1..=Dispatch::MOST_GROUPS).contains(groups);
                if groups.iter().all(can_be) {
                    return Ok(());
                }
                Err(DispatchError::Groups(groups))
            }
            Self::Indirect(counts, offset) => {
                let end = offset.checked_add(Dispatch::COUNTS_BYTES);
                let bytes = counts.bytes();
                if offset.is_multiple_of(8) && end.is_some_and(|end| end <= bytes) {
                    return Ok(());
                }
                Err(DispatchError::Offset { offset, bytes })
            }
        }
    }
}
