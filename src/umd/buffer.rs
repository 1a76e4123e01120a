//! Buffer: an allocation seen as elements of one type.

use super::{Allocation, CreateError, Device};
use crate::abi::Home;
use crate::os::AllocationMemory;
use bytemuck::Pod;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Bound, Range, RangeBounds};

/// Elements that are not a buffer's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "elements {begin} to {end} of a buffer of {len}: begin must not lie behind end, nor end behind {len}"
)]
pub struct OutOfBuffer {
    /// The first that was asked for.
    pub begin: usize,
    /// That after the last one.
    pub end: usize,
    /// How many there are.
    pub len: usize,
}

/// An allocation is no buffer of elements of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an allocation of {bytes} bytes is no whole number of elements of {element} bytes each")]
pub struct NoElements {
    /// Bytes of the allocation.
    pub bytes: u64,
    /// Bytes of an element.
    pub element: u64,
}

/// Elements of a plain type in memory that the program and the engines share, zero at first. Cloning gives another
/// reference to the same memory; the last one to go closes its handle, and packets that carry that fault.
///
/// What orders the program's loads and stores and those of queues is said at [`Allocation`]. No element is ever
/// lent: engines may store to the memory at any time, so elements are copied out and in, by whole words of 64 bits,
/// each of which is one access. Elements that share a word with others are stored together with these, as they
/// were: who stores to elements of one word must be ordered, as who stores to one element.
///
/// The program reaches a buffer in local memory as well, over the bus, which is slow to load from:
/// [`CommandList::upload`](super::CommandList::upload) and
/// [`CommandList::download`](super::CommandList::download) leave that to a queue.
///
/// ```
/// use native_fence::{Adapter, CommandList};
/// use std::time::Duration;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let device = Adapter::open_best()?.create_device();
/// let (pixels, copy) = (device.create_buffer::<f32>(100)?, device.create_buffer::<f32>(100)?);
/// let done = device.create_fence(0)?;
/// let mut queue = device.create_hw_queue()?;
///
/// let mut list = CommandList::new();
/// list.upload(&pixels, 0, &[0.5; 100], &done, 1)?;
/// list.copy(pixels.allocation(), 0..400, copy.allocation(), 0);
/// let seen = list.download(&copy, 98.., &done, 2)?;
/// queue.submit(&list)?;
/// assert_eq!(seen.wait(Duration::from_secs(10))?, [0.5, 0.5]);
/// # Ok(())
/// # }
/// ```
pub struct Buffer<T> {
    allocation: Allocation,
    len: usize,
    elements: PhantomData<fn() -> T>,
}

impl<T> Clone for Buffer<T> {
    fn clone(&self) -> Self {
        Self {
            allocation: self.allocation.clone(),
            ..*self
        }
    }
}

impl<T> fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Buffer")
            .field("element", &std::any::type_name::<T>())
            .field("len", &self.len)
            .field("allocation", &self.allocation)
            .finish()
    }
}

impl<T> AsRef<Allocation> for Buffer<T> {
    fn as_ref(&self) -> &Allocation {
        &self.allocation
    }
}

impl<T: Pod> Buffer<T> {
    /// An allocation seen as elements of this type: also that of a buffer of another type. An upload that ends where a
    /// buffer does stores zero to what is left of its last word, which may be elements of another view.
    ///
    /// # Errors
    /// It is no whole number of them.
    pub fn over(allocation: &Allocation) -> Result<Self, NoElements> {
        let (bytes, element) = (allocation.bytes(), size_of::<T>() as u64);
        if element == 0 || !bytes.is_multiple_of(element) {
            return Err(NoElements { bytes, element });
        }
        Ok(Self {
            allocation: allocation.clone(),
            len: (bytes / element) as usize,
            elements: PhantomData,
        })
    }

    /// The first so many elements of an allocation, which has them.
    pub(super) fn of(allocation: Allocation, len: usize) -> Self {
        Self {
            allocation,
            len,
            elements: PhantomData,
        }
    }

    /// Bytes of the allocation of so many elements.
    pub(super) fn bytes_of_len(len: usize) -> Result<u64, CreateError> {
        let bytes = len.checked_mul(size_of::<T>());
        // Slices of more cannot be.
        let bytes = bytes.filter(|bytes| (1..=isize::MAX as usize).contains(bytes));
        let bytes = bytes.ok_or(CreateError::BufferSize {
            elements: len,
            bytes: size_of::<T>(),
        })?;
        Ok((bytes as u64).next_multiple_of(8))
    }

    /// The memory, as packets and kernels name it: a whole number of words of 64 bits, of which the last may be
    /// more than the elements.
    #[must_use]
    pub fn allocation(&self) -> &Allocation {
        &self.allocation
    }

    /// The memory that it lies in.
    #[must_use]
    pub fn memory(&self) -> Home {
        self.allocation.memory()
    }

    /// How many elements it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Buffers are never empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        false
    }

    /// The bytes of the allocation that these elements are, for [`CommandList::copy`](super::CommandList::copy) and
    /// [`CommandList::fill`](super::CommandList::fill), which want multiples of 8.
    ///
    /// # Errors
    /// They are not all the buffer's.
    pub fn bytes_of(&self, elements: impl RangeBounds<usize>) -> Result<Range<u64>, OutOfBuffer> {
        let elements = self.within(&elements)?;
        let byte = |element: usize| element as u64 * size_of::<T>() as u64;
        Ok(byte(elements.start)..byte(elements.end))
    }

    /// Stores elements, from element `at` on.
    ///
    /// # Errors
    /// They are not all the buffer's; then none is stored.
    pub fn write(&self, at: usize, elements: &[T]) -> Result<(), OutOfBuffer> {
        let bytes = self.bytes_of(at..at.saturating_add(elements.len()))?;
        self.allocation
            .write_bytes(bytes.start, bytemuck::cast_slice(elements));
        Ok(())
    }

    /// Loads as many elements as `elements` has room for, from element `at` on.
    ///
    /// # Errors
    /// They are not all the buffer's; then none is loaded.
    pub fn read(&self, at: usize, elements: &mut [T]) -> Result<(), OutOfBuffer> {
        let bytes = self.bytes_of(at..at.saturating_add(elements.len()))?;
        self.allocation
            .read_bytes(bytes.start, bytemuck::cast_slice_mut(elements));
        Ok(())
    }

    /// Loads elements; all of them with `..`.
    ///
    /// # Errors
    /// They are not all the buffer's.
    pub fn read_vec(&self, elements: impl RangeBounds<usize>) -> Result<Vec<T>, OutOfBuffer> {
        let elements = self.within(&elements)?;
        let mut read = vec![T::zeroed(); elements.len()];
        self.read(elements.start, &mut read)?;
        Ok(read)
    }

    /// Closes the handle: packets that carry it fault. The elements can be read and written on.
    pub fn close(&self) {
        self.allocation.close();
    }

    fn within(&self, elements: &impl RangeBounds<usize>) -> Result<Range<usize>, OutOfBuffer> {
        let begin = match elements.start_bound() {
            Bound::Included(begin) => *begin,
            Bound::Excluded(before) => before.saturating_add(1),
            Bound::Unbounded => 0,
        };
        let end = match elements.end_bound() {
            Bound::Included(last) => last.saturating_add(1),
            Bound::Excluded(end) => *end,
            Bound::Unbounded => self.len,
        };
        if begin <= end && end <= self.len {
            return Ok(begin..end);
        }
        let len = self.len;
        Err(OutOfBuffer { begin, end, len })
    }
}

impl Device {
    /// Creates a buffer of so many elements, whose bytes are zero, in the memory of [`Device::create_allocation`].
    ///
    /// # Errors
    /// No elements, or more than an address reaches; no memory or no handle left.
    pub fn create_buffer<T: Pod>(&self, len: usize) -> Result<Buffer<T>, CreateError> {
        self.create_buffer_in(self.allocation_memory(), len)
    }

    /// The same in this memory.
    ///
    /// # Errors
    /// As [`Device::create_buffer`]; local memory that is not offered, with the reason and what to do. No buffer
    /// lies elsewhere than was asked for.
    pub fn create_buffer_in<T: Pod>(
        &self,
        memory: AllocationMemory,
        len: usize,
    ) -> Result<Buffer<T>, CreateError> {
        let bytes = Buffer::<T>::bytes_of_len(len)?;
        Ok(Buffer::of(self.create_allocation_in(memory, bytes)?, len))
    }
}
