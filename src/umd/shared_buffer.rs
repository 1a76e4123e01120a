//! Shared buffers: memory that several devices and processes have.
//!
//! Buffers lie in memory that the host reaches, whether it is the system's or the device's own. Device memory that the
//! host does not reach is not offered: each engine, and there may be several of several Vulkan devices, has a mapping of
//! its own of what all share, which such memory has only where it is exported; and what is not exported goes with the
//! Vulkan device that it is of when an engine is lost, while an allocation outlives every engine.

use super::{Allocation, Buffer, CreateError, Device, NoElements};
use crate::os::{AllocationMemory, ShareMemoryError, SharedMemory};
use bytemuck::Pod;

/// Why shared memory cannot be opened as a buffer.
#[derive(Debug, thiserror::Error)]
pub enum OpenBufferError {
    /// It cannot be opened.
    #[error(transparent)]
    Create(#[from] CreateError),
    /// It is no buffer of such elements.
    #[error(transparent)]
    Elements(#[from] NoElements),
}

impl<T: Pod> Buffer<T> {
    /// What other devices and processes open the buffer by ([`Device::open_buffer`]).
    ///
    /// # Errors
    /// It was not created shared ([`Device::create_shared_buffer`]), nor opened; a closed handle.
    pub fn share(&self) -> Result<SharedMemory, ShareMemoryError> {
        let bytes = self.len() as u64 * size_of::<T>() as u64;
        self.allocation().os().share(bytes)
    }
}

impl Device {
    /// Creates an allocation that others can open: it has pages of its own, whatever its size.
    ///
    /// # Errors
    /// As [`Device::create_allocation_in`].
    pub fn create_shared_allocation(
        &self,
        memory: AllocationMemory,
        bytes: u64,
    ) -> Result<Allocation, CreateError> {
        Allocation::create_shared(self.process(), memory, bytes)
    }

    /// Opens a shared allocation: one more handle of it, of this device. What orders those who have it is what orders
    /// queues: fences, which are shared as well ([`Device::open_fence`]).
    ///
    /// # Errors
    /// No memory or no handle left; memory of a Vulkan device that is another adapter's
    /// ([`PassMemoryError::DeviceMemory`](crate::PassMemoryError::DeviceMemory)).
    pub fn open_allocation(&self, shared: &SharedMemory) -> Result<Allocation, CreateError> {
        Allocation::open(self.process(), shared)
    }

    /// Creates a buffer that others can open, whose bytes are zero.
    ///
    /// # Errors
    /// As [`Device::create_buffer_in`].
    pub fn create_shared_buffer<T: Pod>(
        &self,
        memory: AllocationMemory,
        len: usize,
    ) -> Result<Buffer<T>, CreateError> {
        let bytes = Buffer::<T>::bytes_of_len(len)?;
        Ok(Buffer::of(
            self.create_shared_allocation(memory, bytes)?,
            len,
        ))
    }

    /// Opens a shared buffer, as elements of any type whose size divides its own.
    ///
    /// ```
    /// use native_fence::{Adapter, AllocationMemory};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let adapter = Adapter::open_best()?;
    /// let (producer, consumer) = (adapter.create_device(), adapter.create_device());
    /// let made = producer.create_shared_buffer::<u32>(AllocationMemory::System, 3)?;
    /// let opened = consumer.open_buffer::<u32>(&made.share()?)?;
    /// made.write(0, &[1, 2, 3])?;
    /// assert_eq!(opened.read_vec(..)?, [1, 2, 3]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Device::open_allocation`]; it is no whole number of elements.
    pub fn open_buffer<T: Pod>(&self, shared: &SharedMemory) -> Result<Buffer<T>, OpenBufferError> {
        let (bytes, element) = (shared.bytes(), size_of::<T>() as u64);
        if !shared.is_of(element) {
            return Err(NoElements { bytes, element }.into());
        }
        let allocation = self.open_allocation(shared)?;
        Ok(Buffer::of(allocation, (bytes / element) as usize))
    }
}
