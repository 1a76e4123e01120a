//! Allocation: memory that hardware queues fill and copy, and the program reads and writes.

use super::CreateError;
use super::bytes_in_words::{get_bytes, put_bytes};
use crate::abi::{Home, LocalHandle};
use crate::os::{self, AllocationMemory, Process, ShareMemoryError, SharedMemory};
use crate::sync::Arc;

/// Memory shared by the program and the engines, in words of 64 bits, zero at first. Cloning gives
/// another reference to the same memory; the last one to go closes its handle.
///
/// The program loads and stores each word by itself. A queue sees what was stored before it was rung,
/// or before a CPU signal that it waited for, and what queues stored before signals that it waited
/// for. The program sees what a queue stored after a wait for a later signal of that queue: promised
/// by Vulkan once the slice has ended, which a waiter that sleeps is told by; before that, to one that
/// looks, practice of coherent memory. Two that store to one word, or one that loads what another
/// stores, must be ordered by fences.
#[derive(Clone, Debug)]
pub struct Allocation {
    object: Arc<os::Allocation>,
}

impl AsRef<Self> for Allocation {
    fn as_ref(&self) -> &Self {
        self
    }
}

impl Allocation {
    /// Makes one for a process.
    pub(super) fn create(
        process: &Arc<Process>,
        memory: AllocationMemory,
        bytes: u64,
    ) -> Result<Self, CreateError> {
        let object = os::Allocation::create(process, memory, bytes)?;
        Ok(Self {
            object: Arc::new(object),
        })
    }

    /// Makes one that can be shared.
    pub(super) fn create_shared(
        process: &Arc<Process>,
        memory: AllocationMemory,
        bytes: u64,
    ) -> Result<Self, CreateError> {
        let object = os::Allocation::create_shared(process, memory, bytes)?;
        Ok(Self {
            object: Arc::new(object),
        })
    }

    /// One more handle on memory that is shared.
    pub(super) fn open(process: &Arc<Process>, shared: &SharedMemory) -> Result<Self, CreateError> {
        let object = os::Allocation::open(process, shared)?;
        Ok(Self {
            object: Arc::new(object),
        })
    }

    /// What other devices and processes open the memory by ([`Device::open_allocation`](super::Device::open_allocation)).
    ///
    /// # Errors
    /// It was not created shared ([`Device::create_shared_allocation`](super::Device::create_shared_allocation)), nor
    /// opened; a closed handle.
    pub fn share(&self) -> Result<SharedMemory, ShareMemoryError> {
        self.object.share(self.bytes())
    }

    /// The OS's object.
    #[must_use]
    pub fn os(&self) -> &Arc<os::Allocation> {
        &self.object
    }

    /// The handle that packets carry.
    #[must_use]
    pub fn handle(&self) -> LocalHandle {
        self.object.handle()
    }

    /// The process whose handle it is.
    pub(super) fn process(&self) -> &Arc<Process> {
        self.object.process()
    }

    /// Its size in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.object.bytes()
    }

    /// The memory that it lies in.
    #[must_use]
    pub fn memory(&self) -> Home {
        self.object.home()
    }

    /// Stores words from byte `offset` on.
    ///
    /// # Panics
    /// If they do not lie in it, or `offset` is no multiple of 8.
    pub fn write(&self, offset: u64, words: &[u64]) {
        let memory = self.object.memory();
        memory.put_words(offset, words);
        memory.keep_order();
    }

    /// Loads as many words as `words` has room for, from byte `offset` on.
    ///
    /// # Panics
    /// If they do not lie in it, or `offset` is no multiple of 8.
    pub fn read(&self, offset: u64, words: &mut [u64]) {
        let memory = self.object.memory();
        memory.keep_order();
        for (at, word) in (offset..).step_by(8).zip(words) {
            *word = memory.word(at).peek();
        }
    }

    /// Stores bytes from byte `offset` on. Bytes beside them that lie in the same words are loaded and stored
    /// again.
    ///
    /// # Panics
    /// If they do not lie in it: a bug of ours.
    pub(super) fn write_bytes(&self, offset: u64, bytes: &[u8]) {
        let memory = self.object.memory();
        put_bytes(memory, offset, bytes);
        memory.keep_order();
    }

    /// Loads bytes from byte `offset` on.
    ///
    /// # Panics
    /// If they do not lie in it: a bug of ours.
    pub(super) fn read_bytes(&self, offset: u64, bytes: &mut [u8]) {
        let memory = self.object.memory();
        memory.keep_order();
        get_bytes(memory, offset, bytes);
    }

    /// Closes the handle: transfers that carry it fault, one under way in its next part at the
    /// latest. The memory can be read and written on.
    pub fn close(&self) {
        self.object.close();
    }
}
