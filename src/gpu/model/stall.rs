//! Stalls: a packet that keeps the engine, as a shader does that never ends or a device that hangs.
//!
//! As `shaders/engine/stall.glsl`, which says what each kind heeds. Where lanes are stepped by turns
//! the others have not ended their execution while one stalls.

use super::lane::{Globals, Lane, NO_QUEUE, Shared};
use super::violation::Checked;
use crate::abi::{
    EngineControl, EngineReport, FaultCode, Opcode, Packet, QueueDescriptor, QueueProgress,
    QueueStatus, StallKind,
};

/// No lane is in a stall.
const NO_STALLER: u64 = u32::MAX as u64;

/// By lane 0, before the first meeting.
pub(super) fn begin_stalls(g: &Globals<'_>, s: &Shared) -> Checked<()> {
    s.staller.set(NO_STALLER);
    g.publish(g.report_va + EngineReport::STALLED_QUEUE, 0)
}

impl Lane<'_> {
    /// Whether the engine was made to know the opcode.
    pub(super) fn knows(&self, opcode: Opcode) -> bool {
        opcode != Opcode::Stall || self.g.stalls
    }

    fn stands_at_stall(&self) -> bool {
        self.q.ordinal != NO_QUEUE
            && self.p.fetched
            && Opcode::from_bits(self.p.control & 0xff) == Some(Opcode::Stall)
            && self.q.status == QueueStatus::Ready
            && self.p.handle_fault.is_none()
            && u64::from(self.p.control as u32 >> 8) == Packet::LENGTH_UNITS
    }

    /// At the end of the steps: goes into the stall at the head, if no other lane is in one.
    pub(super) fn do_stall(&mut self) -> Checked<()> {
        let me = u64::from(self.id);
        if !self.stands_at_stall() || !self.s.staller.replace(NO_STALLER, me) {
            return Ok(());
        }
        let (g, report) = (self.g, self.g.report_va);
        let kind = StallKind::from_bits((self.p.control >> 32) as u32);
        let abort = g.control_va + EngineControl::ABORT;
        if self.q.stall_abort == 0 {
            self.q.stall_abort = g.observe(abort)? + 1;
        }
        let number = g.peek(self.q.descriptor_va + QueueDescriptor::HW_QUEUE)?;
        g.put(report + EngineReport::STALLED_PACKET, self.q.read)?;
        g.publish(report + EngineReport::STALLED_QUEUE, number + 1)?;
        let mut aborted = false;
        while self.q.transferred < self.p.value && !aborted {
            let seen = g.observe(abort)? + 1;
            aborted = kind == Some(StallKind::HeedsAbort) && seen != self.q.stall_abort;
            self.q.transferred += 1;
            if g.passes.end_loop() {
                break;
            }
        }
        let done = !aborted && self.q.transferred >= self.p.value;
        if aborted {
            // The next step finds it.
            self.p.handle_fault = Some(FaultCode::Aborted);
        }
        if done {
            self.leave_head(false);
            self.publish(self.q.progress_va + QueueProgress::READ_INDEX, self.q.read)?;
        }
        if aborted || done {
            g.publish(report + EngineReport::STALLED_QUEUE, 0)?;
        }
        // None goes into a stall after one that was aborted: the OS is to be told of the fault first.
        if !aborted {
            self.s.staller.set(NO_STALLER);
        }
        Ok(())
    }
}
