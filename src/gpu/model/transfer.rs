//! Transfers: TIMESTAMP, FILL and COPY, which all lanes do together, a part in an iteration.
//!
//! As `shaders/engine/transfer.glsl`, which says who writes what when, and why a part that is done
//! again has the same effect. What the lanes do of a part is checked against the bounds of the queue
//! that claimed it.

use super::bounds::Bounds;
use super::lane::{Lane, NO_QUEUE, Shared};
use super::resolve::handle_fault;
use super::violation::Checked;
use crate::abi::{
    FaultCode, HandleAccess, LocalHandle, Opcode, PACKET_BYTES, Packet, QueueProgress, QueueStatus,
};
use crate::sync::Arc;
use crate::sync::plain::lock;

/// No lane claimed.
pub(super) const NO_CLAIM: u64 = u32::MAX as u64;
const WORDS_OF_A_PASS: u64 = 8;
const PASSES_OF_A_PART: u64 = 64;

/// `s_job_…`: a part, but for who has done his share.
#[derive(Debug, Default)]
pub(super) struct Job {
    words: u64,
    to: u64,
    /// `None`: every word becomes the value.
    from: Option<u64>,
    value: u64,
    bounds: Option<Arc<Bounds>>,
}

/// An allocation that a handle names.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extent {
    va: u64,
    bytes: u64,
}

impl Extent {
    /// The address of a byte of it.
    pub(super) fn at(self, offset: u64) -> u64 {
        self.va + offset
    }

    /// Whether it has the byte, or ends there.
    pub(super) fn has(self, offset: u64) -> bool {
        offset <= self.bytes
    }

    /// Whether the bytes are words of the extent.
    pub(super) fn holds(self, offset: u64, bytes: u64) -> bool {
        (offset | bytes).is_multiple_of(8) && offset <= self.bytes && bytes <= self.bytes - offset
    }
}

impl Shared {
    /// The claim of the last execution.
    pub(super) fn claim_made(&self, iterations: u64) -> u64 {
        self.claim[((iterations + 1) & 1) as usize].get()
    }
}

impl Lane<'_> {
    /// `Err` is what is wrong with the handle.
    pub(super) fn resolve_allocation(&self, word: u64) -> Checked<Result<Extent, FaultCode>> {
        let handle = LocalHandle::from_raw(word as u32);
        let named = self.look_up(handle)?;
        let fault = if word >> 32 == 0 {
            handle_fault(handle.generation(), named.meta, HandleAccess::ALLOCATION)
        } else {
            Some(FaultCode::Handle)
        };
        let extent = Extent {
            va: named.va,
            bytes: named.detail,
        };
        Ok(fault.map_or(Ok(extent), Err))
    }

    /// The job of the next part of the transfer at the head, and the bytes of the whole; or what is
    /// wrong with it.
    fn job(&mut self) -> Checked<Result<(Job, u64), FaultCode>> {
        let opcode = Opcode::from_bits(self.p.control & 0xff);
        let copies = opcode == Some(Opcode::Copy);
        let packet = self.q.ring_va + (self.q.read & (self.q.ring_capacity - 1)) * PACKET_BYTES;
        let to = self.peek(packet + Packet::DESTINATION_OFFSET)?;
        let bytes = match opcode {
            Some(Opcode::Timestamp) => 8,
            _ => self.peek(packet + Packet::BYTES_TO_TRANSFER)?,
        };
        let from = self.peek(packet + Packet::SOURCE_OFFSET)?;
        let destination = self.resolve_allocation(self.p.control >> 32)?;
        let source = self.peek(packet + Packet::SOURCE_HANDLE)?;
        let source = self.resolve_allocation(source)?;
        let (destination, source) = match (destination, source) {
            (Err(fault), _) => return Ok(Err(fault)),
            (_, Err(fault)) if copies => return Ok(Err(fault)),
            (Ok(destination), source) => (destination, source.unwrap_or(destination)),
        };
        // Of a packet that was changed between two of its parts, less may be left than was done.
        if !destination.holds(to, bytes)
            || (copies && !source.holds(from, bytes))
            || self.q.transferred > bytes
        {
            return Ok(Err(FaultCode::Range));
        }
        let (to, from) = (destination.va + to, source.va.wrapping_add(from));
        if copies && to < from + bytes && from < to + bytes {
            return Ok(Err(FaultCode::Overlap));
        }
        let most = PASSES_OF_A_PART * WORDS_OF_A_PASS * u64::from(self.g.lanes) * 8;
        if let Some(bounds) = &self.bounds {
            bounds.meet_allocations(self.g.memory)?;
        }
        let job = Job {
            words: (bytes - self.q.transferred).min(most) / 8,
            to: to + self.q.transferred,
            from: copies.then_some(from + self.q.transferred),
            value: match opcode {
                Some(Opcode::Timestamp) => self.ticks.now(self.g),
                _ => self.p.value,
            },
            bounds: self.bounds.clone(),
        };
        Ok(Ok((job, bytes)))
    }

    /// Of all lanes, whose turn it is comes first.
    pub(super) fn place_in_turns(&self) -> u64 {
        u64::from((self.id + self.g.lanes - self.turn) % self.g.lanes)
    }

    /// At the end of an execution: claims the next part if the queue in registers stands at a
    /// transfer.
    pub(super) fn claim_transfer(&self) {
        let opcode = Opcode::from_bits(self.p.control & 0xff);
        let stands = self.q.ordinal != NO_QUEUE
            && self.p.fetched
            && opcode.is_some_and(Opcode::is_transfer)
            && self.q.status == QueueStatus::Ready
            && self.p.handle_fault.is_none()
            && u64::from(self.p.control as u32 >> 8) == Packet::LENGTH_UNITS;
        if stands {
            self.s.claim[(self.iterations & 1) as usize].lower_to(self.place_in_turns());
        }
    }

    /// Between the meetings: the claimer whose turn it is writes the job, of no words if the
    /// transfer is refused.
    pub(super) fn prepare_part(&mut self) -> Checked<()> {
        if self.s.claim_made(self.iterations) == self.place_in_turns() {
            let (job, bytes) = match self.job()? {
                Ok((job, bytes)) => (job, bytes),
                Err(fault) => {
                    self.p.handle_fault = Some(fault);
                    (Job::default(), u64::MAX)
                }
            };
            self.transfer_bytes = bytes;
            *lock(&self.s.job) = job;
            self.s.job_shares.set(0);
        }
        Ok(())
    }

    /// One pass of this lane's share of the part; false when it has none left.
    pub(super) fn share_pass(&self, pass: u64) -> Checked<bool> {
        let lanes = u64::from(self.g.lanes);
        let of_a_pass = WORDS_OF_A_PASS * lanes;
        let job = lock(&self.s.job);
        let (memory, bounds) = (self.g.memory, job.bounds.as_deref());
        let words = (0..WORDS_OF_A_PASS).map(|n| pass * of_a_pass + n * lanes + u64::from(self.id));
        for word in words.take_while(|word| *word < job.words) {
            let value = match job.from {
                Some(from) => memory.peek(from + word * 8, bounds)?,
                None => job.value,
            };
            memory.put(job.to + word * 8, value, bounds)?;
        }
        Ok((pass + 1) * of_a_pass < job.words)
    }

    /// This lane has done its share.
    pub(super) fn end_share(&self) {
        self.s.job_shares.add(1);
    }

    /// After all lanes have met: counts the part if every lane did its share. Gives the passes that
    /// it can have taken.
    pub(super) fn end_part(&mut self) -> Checked<u64> {
        let claim = self.s.claim_made(self.iterations);
        if claim == self.place_in_turns() && self.p.handle_fault.is_none() {
            if self.s.job_shares.get() == u64::from(self.g.lanes) {
                self.q.transferred += lock(&self.s.job).words * 8;
                self.stepped = true;
            }
            if self.q.transferred == self.transfer_bytes {
                self.leave_head(false);
                self.publish(self.q.progress_va + QueueProgress::READ_INDEX, self.q.read)?;
            }
        }
        self.turn = (claim as u32 + self.turn + 1) % self.g.lanes;
        Ok(PASSES_OF_A_PART + WORDS_OF_A_PASS + 3)
    }
}
