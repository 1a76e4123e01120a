//! Shared memory: what others open an allocation by, in this process or in another.
//!
//! An allocation that can be shared has a region to itself: who opens it sees its bytes, and of the last page what is
//! behind them, which nobody else has. It keeps the memory and not the handle: the memory lives while anybody has
//! it. Passed to another process it is the file of memory that the region is, and the size; all of it is looked at
//! when it comes.
//!
//! Who has the memory can store what it likes to every byte, at any time: the words are data, of which no engine and
//! no operating system takes an address or an index. It can cut nothing off under a mapping of another's, and from
//! when it came nobody can seal it any more.

use super::adapter::OsError;
use super::allocation::Allocation;
use super::process::Process;
#[cfg(not(loom))]
use crate::abi::{PAGE_BYTES, WordGroup};
use crate::os::Adapter;
use crate::shared::{PassError, PoolPlace, Region, RegionError};
#[cfg(not(loom))]
use crate::shared::{receive_message, send_descriptors};
use crate::sync::Arc;
#[cfg(not(loom))]
use std::os::unix::net::UnixStream;
use std::sync::Weak;

/// Before the size in a message: what it is, and by which version.
#[cfg(not(loom))]
const TEXT: &[u8; 16] = b"native-memory 1\n";

/// Why an allocation cannot be shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShareMemoryError {
    /// It was not made to be: it may lie in one region with others.
    #[error(
        "the memory was not created shared: make it with create_shared_allocation or create_shared_buffer"
    )]
    NotShared,
    /// The handle was closed.
    #[error("the allocation's handle is closed")]
    Closed,
}

/// Why memory cannot be passed to another process or adapter, or what came is none.
#[derive(Debug, thiserror::Error)]
pub enum PassMemoryError {
    /// The region could not be looked at or mapped.
    #[error(transparent)]
    Memory(#[from] RegionError),
    /// The socket, or another message on it.
    #[error(transparent)]
    Message(#[from] PassError),
    /// It is no file of memory.
    #[error(
        "the memory is of a Vulkan device, which is passed to no other process or adapter: make it in system memory \
         (AllocationMemory::System)"
    )]
    DeviceMemory,
    /// What came is no memory of this version.
    #[error("what was received is no shared memory: {0}")]
    NoMemory(&'static str),
}

#[derive(Clone, Debug)]
enum Named {
    /// A place of this process's, which has its region to itself.
    Here {
        place: Arc<PoolPlace>,
        adapter: Weak<Adapter>,
    },
    /// What another process sent.
    #[cfg_attr(loom, allow(dead_code, reason = "under loom no socket lies between"))]
    Received(Arc<Region>),
}

/// See the file's head. Clones are the same handle.
#[derive(Clone, Debug)]
pub struct SharedMemory {
    named: Named,
    bytes: u64,
}

impl SharedMemory {
    /// Of a place that has its region to itself; of which so many bytes are meant.
    pub(super) fn of(place: &Arc<PoolPlace>, adapter: &Arc<Adapter>, bytes: u64) -> Self {
        let (place, adapter) = (Arc::clone(place), Arc::downgrade(adapter));
        let named = Named::Here { place, adapter };
        Self { named, bytes }
    }

    /// Its size in bytes, as who shared it said.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether all of it is so many elements of this size.
    #[must_use]
    pub fn is_of(&self, element: u64) -> bool {
        element != 0 && self.bytes.is_multiple_of(element)
    }

    fn region(&self) -> &Arc<Region> {
        match &self.named {
            Named::Here { place, .. } => place.region(),
            Named::Received(region) => region,
        }
    }

    fn is_file(&self) -> Result<bool, RegionError> {
        Ok(self.region().file()?.is_some())
    }

    /// The place, for engines of an adapter.
    fn place_for(&self, of: &Arc<Adapter>) -> Result<Arc<PoolPlace>, PassMemoryError> {
        match &self.named {
            Named::Here { place, adapter } => {
                // Engines of another adapter import nothing of this one's devices.
                if std::ptr::eq(adapter.as_ptr(), Arc::as_ptr(of)) || self.is_file()? {
                    Ok(Arc::clone(place))
                } else {
                    Err(PassMemoryError::DeviceMemory)
                }
            }
            Named::Received(region) => Ok(Arc::new(PoolPlace::of_region(region)?)),
        }
    }
}

impl Allocation {
    /// `D3DKMTOpenResource`: one more handle, of this process, on memory that is shared.
    ///
    /// # Errors
    /// It is another adapter's and no file of memory, or it cannot be mapped; no handle left, the driver's reason, or a
    /// lost device.
    pub fn open(process: &Arc<Process>, shared: &SharedMemory) -> Result<Self, OsError> {
        process.adapter().check_up()?;
        process.state().check()?;
        let place = shared.place_for(process.adapter())?;
        Self::shareable(process, place, shared.bytes.next_multiple_of(8))
    }
}

/// Between processes.
#[cfg(not(loom))]
impl SharedMemory {
    /// Sends the memory to the process at the other end of a socket: one message of 24 bytes with one file
    /// descriptor. Who gets it can store what it likes to these bytes, and can keep them for as long as it likes.
    ///
    /// # Errors
    /// Memory of a Vulkan device; the socket's.
    pub fn send(&self, socket: &UnixStream) -> Result<(), PassMemoryError> {
        let region = self.region();
        // A descriptor of a device's memory says nothing to another process.
        let file = region
            .descriptor()
            .filter(|_| region.device_memory().is_none());
        let descriptor = file.ok_or(PassMemoryError::DeviceMemory)?;
        let text = [&TEXT[..], &self.bytes.to_le_bytes()].concat();
        Ok(send_descriptors(socket, &text, &[descriptor])?)
    }

    /// Receives memory that another process sends: waits for the message where the socket blocks.
    ///
    /// Nobody is trusted to send what he says: that it is a file of memory of this size, which nobody can cut or
    /// seal against writing, is looked at. Nothing is mapped yet: who does not want so many [`SharedMemory::bytes`]
    /// does not open it. (A file of memory may have fewer pages than bytes: those that are missing are made when they
    /// are first touched, and count as of who touches them.)
    ///
    /// # Errors
    /// The socket's, or what came is no such memory: then it is closed.
    pub fn receive(socket: &UnixStream) -> Result<Self, PassMemoryError> {
        let mut message = [0; TEXT.len() + 8];
        let descriptor = receive_message(socket, &mut message)?;
        let no_memory = PassMemoryError::NoMemory;
        let (text, bytes) = message.split_at(TEXT.len());
        if text != TEXT {
            return Err(no_memory("the message is another one"));
        }
        let bytes = bytes.try_into().map(u64::from_le_bytes);
        let bytes = bytes.map_err(|_| no_memory("the message is another one"))?;
        let descriptor = descriptor.ok_or(no_memory("its descriptor is missing"))?;
        let pages = Some(bytes).filter(|bytes| *bytes != 0);
        let pages = pages.and_then(|bytes| bytes.checked_next_multiple_of(PAGE_BYTES));
        let pages = pages.ok_or(no_memory("no memory has its size"))?;
        let region = match Region::received(WordGroup::Allocation.name(), descriptor, pages) {
            Err(RegionError::Received { reason, .. }) => return Err(no_memory(reason)),
            region => region?,
        };
        let named = Named::Received(region);
        Ok(Self { named, bytes })
    }
}
