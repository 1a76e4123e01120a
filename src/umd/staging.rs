//! Staging: memory between the program and a buffer, for elements that a queue moves.
//!
//! An upload has its elements there before its packets are queued, a download finds them there afterwards; between
//! it and the buffer a COPY moves them, in queue order like any packet. It is an allocation of its own, in system
//! memory, which the CPU caches. Three keep it. The list does, since it can be submitted again. Each queue that it was submitted to
//! does until it has executed the packets (`submissions`). And a [`Download`] does until it is dropped, which may
//! be at any time: the packets need not be waited for.

use super::buffer::OutOfBuffer;
use super::{Allocation, Buffer, CommandList, CreateError, Fence, Timeout};
use crate::os::{AllocationMemory, WaitError};
use bytemuck::Pod;
use std::marker::PhantomData;
use std::ops::RangeBounds;

/// Why an upload or a download cannot be recorded. Nothing of it is.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    /// They are not the buffer's elements.
    #[error(transparent)]
    OutOfBuffer(#[from] OutOfBuffer),
    /// Queues store whole words of 64 bits, and other elements lie in the first or the last one.
    #[error(
        "an upload to elements {begin} to {end}, some of which share a word of 64 bits with others: begin and end \
         at a multiple of {step} elements, or end where the buffer does"
    )]
    PartOfWord {
        /// The first element.
        begin: usize,
        /// That after the last one.
        end: usize,
        /// Elements from one beginning of a word that is also one of an element to the next.
        step: usize,
    },
    /// A download that would seem to be done before it has begun.
    #[error(
        "a download that ends by a signal of {value}, and the fence has {current}: give it a value that the fence \
         has not reached"
    )]
    Reached {
        /// What was to be signalled.
        value: u64,
        /// CurrentValue.
        current: u64,
    },
    /// A download's fence is one that the CPU waits for.
    #[error(
        "the CPU cannot wait for a fence of type INTRA_GPU: end a download by one of type DEFAULT"
    )]
    IntraGpu,
    /// There is no staging memory.
    #[error("no staging memory: {0}")]
    Staging(#[from] CreateError),
}

/// Elements that a queue copies from a buffer for the program. It can be dropped at any time.
#[derive(Debug)]
pub struct Download<T> {
    staging: Allocation,
    /// Bytes of the first word that stand before the first element.
    lead: u64,
    len: usize,
    fence: Fence,
    value: u64,
    elements: PhantomData<fn() -> T>,
}

impl<T: Pod> Download<T> {
    /// The fence that is signalled when the elements are there, for waits of other kinds.
    #[must_use]
    pub fn fence(&self) -> &Fence {
        &self.fence
    }

    /// The value that it is signalled with.
    #[must_use]
    pub fn value(&self) -> u64 {
        self.value
    }

    /// Waits on this thread until the fence has its value, and gives the elements as they were when the queue
    /// came to the download. A time-out of zero only looks. Of a list that was submitted again they are those of the
    /// last time, if that has been waited for.
    ///
    /// # Errors
    /// As [`Fence::wait`].
    pub fn wait(&self, timeout: impl Into<Timeout>) -> Result<Vec<T>, WaitError> {
        self.fence.wait(self.value, timeout)?;
        let mut elements = vec![T::zeroed(); self.len];
        self.staging
            .read_bytes(self.lead, bytemuck::cast_slice_mut(&mut elements));
        Ok(elements)
    }
}

/// Elements from one that begins with a word to the next that does.
fn step<T>() -> usize {
    // The greatest common divisor of a size and 8 is the lowest bit of either.
    8 / (1 << size_of::<T>().trailing_zeros().min(3))
}

impl CommandList {
    /// Stores elements to a buffer, from element `at` on, when the queue comes to it, and then signals the fence. The
    /// elements are taken now. Other elements of the words that are stored to would be stored to as well, so an
    /// upload begins and ends between words, or ends where the buffer does; without elements it only signals.
    ///
    /// # Errors
    /// [`TransferError`]; then nothing is added.
    pub fn upload<T: Pod>(
        &mut self,
        to: &Buffer<T>,
        at: usize,
        elements: &[T],
        fence: &Fence,
        value: u64,
    ) -> Result<&mut Self, TransferError> {
        let end = at.saturating_add(elements.len());
        let bytes = to.bytes_of(at..end)?;
        if !elements.is_empty() {
            let is_whole = |byte: u64| byte.is_multiple_of(8);
            if !is_whole(bytes.start) || !(is_whole(bytes.end) || end == to.len()) {
                return Err(TransferError::PartOfWord {
                    begin: at,
                    end,
                    step: step::<T>(),
                });
            }
            // What the last word has beside elements is nobody's.
            let length = (bytes.end - bytes.start).next_multiple_of(8);
            let adapter = to.allocation().process().adapter();
            let memory = AllocationMemory::for_host_stores(adapter.ddi().providers());
            let staging = self.stage(to.allocation(), memory, length)?;
            staging.write_bytes(0, bytemuck::cast_slice(elements));
            self.copy(&staging, 0..length, to.allocation(), bytes.start);
        }
        Ok(self.signal(fence, value))
    }

    /// Loads elements of a buffer, all of them with `..`, when the queue comes to it, and then signals the fence,
    /// which tells the program that they are there: a value that it has not reached and that nobody else
    /// signals.
    ///
    /// # Errors
    /// [`TransferError`]; then nothing is added.
    pub fn download<T: Pod>(
        &mut self,
        from: &Buffer<T>,
        elements: impl RangeBounds<usize>,
        fence: &Fence,
        value: u64,
    ) -> Result<Download<T>, TransferError> {
        let bytes = from.bytes_of(elements)?;
        if fence.is_intra_gpu() {
            return Err(TransferError::IntraGpu);
        }
        let current = fence.current_value();
        if current >= value {
            return Err(TransferError::Reached { value, current });
        }
        // To load more than is asked for changes nothing.
        let words = bytes.start / 8 * 8..bytes.end.next_multiple_of(8);
        let bytes_of_words = words.end - words.start;
        let staging = self.stage(from.allocation(), AllocationMemory::System, bytes_of_words)?;
        if bytes.start < bytes.end {
            self.copy(from.allocation(), words.clone(), &staging, 0);
        }
        self.signal(fence, value);
        Ok(Download {
            staging,
            lead: bytes.start - words.start,
            len: (bytes.end - bytes.start) as usize / size_of::<T>(),
            fence: fence.clone(),
            value,
            elements: PhantomData,
        })
    }

    /// Staging memory for so many bytes, of the process that a buffer is of.
    fn stage(
        &mut self,
        buffer: &Allocation,
        memory: AllocationMemory,
        bytes: u64,
    ) -> Result<Allocation, CreateError> {
        let staging = Allocation::create(buffer.process(), memory, bytes.max(8))?;
        self.keep(&staging);
        Ok(staging)
    }
}
