//! Dispatches: a packet that runs a kernel of the process.
//!
//! As `shaders/engine/dispatch.glsl`, which says what a round is and who releases what when. The model has no
//! block: what is released goes with its parameters to whoever runs the slice's rounds.

use super::lane::{Globals, Lane, NO_QUEUE, Shared};
use super::resolve::handle_fault;
use super::transfer::NO_CLAIM;
use super::violation::Checked;
use crate::abi::{
    Dispatch, EngineControl, EngineReport, FaultCode, HandleAccess, LocalHandle, Opcode,
    PACKET_BYTES, Packet, QueueDescriptor, QueueStatus, SliceReason,
};
use crate::sync::plain::lock;

/// Executions for which a dispatch is held back while other queues take steps.
pub(super) const DISPATCH_PATIENCE: u64 = 8;
/// Loop passes that it can take to get one ready.
pub(super) const DISPATCH_PASSES: u64 = Dispatch::MOST_PARAMETER_BYTES / 8 + 1;

/// `s_dispatch_ready`: the next step finds what is wrong.
const NOT_READY: u64 = 0;
const READY: u64 = 1;
/// It is a kernel that came since the slice was started.
const OF_ANOTHER_SLICE: u64 = 2;

/// A kernel that a round has released.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::gpu) struct Released {
    pub(in crate::gpu) kernel: u32,
    pub(in crate::gpu) groups: [u32; 3],
    pub(in crate::gpu) parameters: Vec<u64>,
}

impl Globals<'_> {
    fn is_last_round(&self) -> bool {
        self.round == Dispatch::ROUNDS
    }

    fn may_release(&self, end: SliceReason) -> bool {
        self.dispatches && end == SliceReason::Dispatch && !self.is_last_round()
    }

    /// Whether a round that ends for this reason releases what is ready.
    pub(super) fn releases(&self, s: &Shared, end: SliceReason) -> bool {
        self.may_release(end) && s.dispatch_ready.get() == READY
    }

    /// After the meeting: what is wrong with a dispatch that is not ready, a step finds.
    pub(super) fn vote_of_the_ready(&self, s: &Shared, vote: SliceReason) -> SliceReason {
        if self.may_release(vote) && s.dispatch_ready.get() == NOT_READY {
            return SliceReason::Cut;
        }
        vote
    }
}

/// By lane 0, before the first meeting: what the round before released is done.
pub(super) fn begin_round(g: &Globals<'_>, s: &Shared) -> Checked<()> {
    let released = lock(&s.released).take().is_some();
    if released {
        g.publish(g.report_va + EngineReport::STALLED_QUEUE, 0)?;
    }
    Ok(())
}

impl Shared {
    /// The claim of the last execution.
    pub(super) fn dispatch_claim_made(&self, iterations: u64) -> u64 {
        self.dispatch_claim[((iterations + 1) & 1) as usize].get()
    }
}

impl Lane<'_> {
    /// At the end of an execution: claims if the queue in registers stands at a dispatch. Where the engine has
    /// no kernel, no handle is one's.
    pub(super) fn claim_dispatch(&mut self) -> Checked<()> {
        let stands = self.q.ordinal != NO_QUEUE
            && self.p.fetched
            && Opcode::from_bits(self.p.control & 0xff) == Some(Opcode::Dispatch)
            && self.q.transferred != Dispatch::RELEASED
            && self.q.status == QueueStatus::Ready
            && self.p.handle_fault.is_none()
            && u64::from(self.p.control as u32 >> 8) == Packet::LENGTH_UNITS;
        if stands {
            if self.g.peek(self.g.control_va + EngineControl::DISPATCHES)? == 0 {
                self.p.handle_fault = Some(FaultCode::Handle);
            } else {
                let claim = &self.s.dispatch_claim[(self.iterations & 1) as usize];
                claim.lower_to(self.place_in_turns());
            }
        }
        Ok(())
    }

    /// What the kernel of the dispatch at the head gets, or what is wrong with the packet.
    fn dispatch(&mut self) -> Checked<Result<Released, FaultCode>> {
        let packet = self.q.ring_va + (self.q.read & (self.q.ring_capacity - 1)) * PACKET_BYTES;
        let handle = LocalHandle::from_raw((self.p.control >> 32) as u32);
        let kernel = self.look_up(handle)?;
        if let Some(fault) = handle_fault(handle.generation(), kernel.meta, HandleAccess::KERNEL) {
            return Ok(Err(fault));
        }
        let shape = self.peek(packet + Packet::DESTINATION_OFFSET)?;
        let bytes = shape >> 32;
        let (slot, takes, version) = Dispatch::kernel(kernel.detail);
        if bytes != takes || bytes > Dispatch::MOST_PARAMETER_BYTES {
            return Ok(Err(FaultCode::Parameters));
        }
        let (mut xy, mut z) = (self.p.value, shape & 0xffff_ffff);
        let handles = self.peek(packet + Packet::SOURCE_HANDLE)?;
        if let Some(bounds) = &self.bounds {
            bounds.meet_allocations(self.g.memory)?;
        }
        if handles >> 32 != 0 {
            let counts = match self.resolve_allocation(handles >> 32)? {
                Ok(counts) => counts,
                Err(fault) => return Ok(Err(fault)),
            };
            let offset = self.peek(packet + Packet::COUNTS_OFFSET)?;
            if !counts.holds(offset, Dispatch::COUNTS_BYTES) {
                return Ok(Err(FaultCode::Range));
            }
            xy = self.peek(counts.at(offset))?;
            z = self.peek(counts.at(offset + 8))? & 0xffff_ffff;
        }
        let groups = [xy as u32, (xy >> 32) as u32, z as u32];
        if groups.iter().any(|groups| *groups > Dispatch::MOST_GROUPS) {
            return Ok(Err(FaultCode::Groups));
        }
        self.is_here = version <= self.g.version;
        let parameters = match bytes {
            0 => Ok(Vec::new()),
            _ => self.parameters(packet, handles & 0xffff_ffff, bytes)?,
        };
        Ok(parameters.map(|parameters| Released {
            kernel: slot,
            groups,
            parameters,
        }))
    }

    /// The parameters, with addresses for references.
    fn parameters(
        &mut self,
        packet: u64,
        handle: u64,
        bytes: u64,
    ) -> Checked<Result<Vec<u64>, FaultCode>> {
        let from = match self.resolve_allocation(handle)? {
            Ok(from) => from,
            Err(fault) => return Ok(Err(fault)),
        };
        let offset = self.peek(packet + Packet::SOURCE_OFFSET)?;
        let references = self.peek(packet + Packet::BYTES_TO_TRANSFER)?;
        if !from.holds(offset, bytes) {
            return Ok(Err(FaultCode::Range));
        }
        let mut parameters = Vec::new();
        let mut found = None;
        for word in 0..bytes / 8 {
            let mut value = self.peek(from.at(offset + word * 8))?;
            if references >> word & 1 != 0 {
                match self.resolve_allocation(value & 0xffff_ffff)? {
                    Err(fault) => found = Some(fault),
                    Ok(named) if !named.has(value >> 32) => found = Some(FaultCode::Range),
                    Ok(named) => value = named.at(value >> 32),
                }
            }
            parameters.push(value);
            if self.g.passes.end_loop() {
                // Another slice begins anew.
                break;
            }
        }
        self.is_here &= parameters.len() as u64 == bytes / 8;
        Ok(found.map_or(Ok(parameters), Err))
    }

    /// Between the meetings: the claimer whose turn it is gets its dispatch ready.
    pub(super) fn prepare_dispatch(&mut self) -> Checked<()> {
        let claim = self.s.dispatch_claim_made(self.iterations);
        if !self.g.is_last_round() && claim == self.place_in_turns() {
            let dispatch = self.dispatch()?;
            self.p.handle_fault = dispatch.as_ref().err().copied();
            self.s.dispatch_ready.set(match &dispatch {
                Err(_) => NOT_READY,
                Ok(_) if self.is_here => READY,
                Ok(_) => OF_ANOTHER_SLICE,
            });
            *lock(&self.s.ready) = dispatch.ok();
        }
        Ok(())
    }

    /// After them, where the lanes voted for it: releases it.
    pub(super) fn release_dispatch(&mut self) -> Checked<()> {
        let claim = self.s.dispatch_claim_made(self.iterations);
        if claim != NO_CLAIM && claim == self.place_in_turns() {
            let (g, report) = (self.g, self.g.report_va);
            let number = g.peek(self.q.descriptor_va + QueueDescriptor::HW_QUEUE)?;
            g.put(report + EngineReport::STALLED_PACKET, self.q.read)?;
            g.publish(report + EngineReport::STALLED_QUEUE, number + 1)?;
            *lock(&self.s.released) = lock(&self.s.ready).take();
            self.q.transferred = Dispatch::RELEASED;
            self.stepped = true;
        }
        Ok(())
    }
}
