//! One step of a queue: a packet checked, executed and logged, and the signal behind it if there is
//! one.
//!
//! As `shaders/engine/step.glsl`, in its order: of the checks, of the stores, and of a signal
//! (IN-01): CurrentValue, log entry, log index, barrier, comparison with the shadow.

use super::bounds::Bounds;
use super::cross_doorbell::{doorbell_of, ring};
use super::lane::{Globals, Lane, NO_QUEUE, RAISES, Raised, Resolved};
use super::memory::ModelMemory;
use super::violation::Checked;
use crate::abi::{
    Dispatch, FaultCode, HandleAccess, LocalHandle, LogEntry, LogHeader, LogOperation, Opcode,
    Packet, QueueProgress, QueueStatus, StallKind,
};
use crate::sync::{Ordering, fence};

/// Of a slice that does not dispatch.
const PATIENCE: u32 = 8;
/// The same in a slice that dispatches.
const PATIENCE_OF_DISPATCHES: u32 = 3;

impl Globals<'_> {
    /// Looks in a row that find nothing after which a lane leaves the iteration.
    pub(super) fn patience(&self) -> u32 {
        if self.dispatches {
            PATIENCE_OF_DISPATCHES
        } else {
            PATIENCE
        }
    }
}

/// What a packet at hand asks for, with the registers that its kind uses.
#[derive(Clone, Copy, Debug)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "the shader's masks, one a name"
)]
struct Request {
    handle: u32,
    is_wait: bool,
    is_progress: bool,
    is_dispatch: bool,
    stores: bool,
    names_fence: bool,
    /// Its fence is resolved; a transfer, stall or dispatch is never done by a step.
    known: bool,
    /// `access`, `cv`, and what the comparison needs.
    fence: Resolved,
    fault: Option<FaultCode>,
}

/// What follows an index word.
fn next_index(index: u64, entries: u32) -> u64 {
    if (index as u32).wrapping_add(1) < entries {
        index + 1
    } else {
        (index >> 32).wrapping_add(1) << 32
    }
}

/// A log, its index word, and its entries.
#[derive(Clone, Copy, Debug)]
pub(super) struct LogPlace {
    pub(super) log: u64,
    pub(super) index: u64,
    pub(super) entries: u32,
}

impl LogPlace {
    /// Where the entry that the index word names lies.
    fn entry(self) -> u64 {
        self.log + LogHeader::BYTES + u64::from(self.index as u32) * LogEntry::BYTES
    }
}

/// `order_log_before_comparison`: behind the log's index of a step, before the comparison and before the entry that
/// follows. Who has copied a part of that, and looks at the index again, sees this one (LG-06).
pub(super) fn order_log() {
    fence(Ordering::AcqRel);
}

/// Writes what entries of all operations have, for a queue of these bounds, then publishes the log's index; which that
/// is.
pub(super) fn log_entry(
    memory: &ModelMemory,
    queue: Option<&Bounds>,
    at: LogPlace,
    (operation, handle, value): (LogOperation, u32, u64),
    ticks: u64,
) -> Checked<u64> {
    let entry = at.entry();
    memory.put(entry + LogEntry::FENCE_VALUE, value, queue)?;
    let fence_and_operation = u64::from(handle) | (operation as u64) << 32;
    memory.put(entry + LogEntry::NATIVE_FENCE, fence_and_operation, queue)?;
    memory.put(entry + LogEntry::END_TICKS, ticks, queue)?;
    let index = next_index(at.index, at.entries);
    memory.publish(at.log + LogHeader::INDEX, index, queue)?;
    Ok(index)
}

impl Request {
    fn always_signaled(&self) -> bool {
        self.fence.access & HandleAccess::ALWAYS_SIGNALED.0 != 0
    }

    fn keeps_armed(&self) -> bool {
        self.fence.access & HandleAccess::KEEPS_ARMED.0 != 0
    }
}

impl Lane<'_> {
    /// Notes that the lane must raise; with `RAISES` notes it holds.
    fn note_raise(&mut self, raised: Raised) {
        self.i.push(raised);
        self.holding = self.holding || raised.faults || self.i.len() == RAISES;
    }

    /// Reads the packet at the head and checks it, all but its fence where that is not resolved.
    fn request_at_head(&self) -> Request {
        let p = self.p;
        let have = self.q.read != self.q.write;
        let opcode = if have {
            Opcode::from_bits(p.control & 0xff).filter(|opcode| self.knows(*opcode))
        } else {
            None
        };
        let handle = (p.control >> 32) as u32;
        let stalls = opcode == Some(Opcode::Stall);
        let is_wait = opcode == Some(Opcode::Wait);
        let is_progress = opcode == Some(Opcode::Progress);
        let is_dispatch = opcode == Some(Opcode::Dispatch);
        let stores = opcode == Some(Opcode::Signal) || is_progress;
        let names_fence = is_wait || stores;
        let fence = if is_wait {
            self.c_wait
        } else if is_progress {
            self.c_progress
        } else {
            self.c_signal
        };
        // Generation 0 is no handle, and what nothing was resolved into.
        let known = if names_fence {
            handle == fence.handle && LocalHandle::from_raw(handle).generation() != 0
        } else {
            // A dispatch that was released was done when this round began.
            let is_done = self.q.transferred == Dispatch::RELEASED;
            !opcode.is_some_and(Opcode::is_transfer) && !stalls && (!is_dispatch || is_done)
        };
        let (number, denied) = if is_wait {
            (self.q.wait_number, HandleAccess::NO_WAIT)
        } else {
            (self.q.signal_number, HandleAccess::NO_SIGNAL)
        };
        let mut fault = None;
        if have && (opcode.is_none() || stalls && StallKind::from_bits(handle).is_none()) {
            fault = Some(FaultCode::Opcode);
        } else if have && u64::from(p.control as u32 >> 8) != Packet::LENGTH_UNITS {
            fault = Some(FaultCode::Length);
        } else if is_progress && (!known || p.value <= self.q.progress_value) {
            fault = Some(FaultCode::Progress);
        } else if !known {
            fault = p.handle_fault;
        } else if names_fence && p.log_number != number {
            fault = Some(FaultCode::LogNumber);
        } else if names_fence && fence.access & denied.0 != 0 {
            fault = Some(FaultCode::AccessDenied);
        }
        Request {
            handle,
            is_wait,
            is_progress,
            is_dispatch,
            stores,
            names_fence,
            known,
            fence,
            fault,
        }
    }

    /// Logs what the packet at the head did.
    fn log(&self, at: LogPlace, operation: LogOperation, r: &Request, ticks: u64) -> Checked<u64> {
        let (memory, bounds) = (self.g.memory, self.bounds.as_deref());
        let entry = (operation, r.handle, self.p.value);
        log_entry(memory, bounds, at, entry, ticks)
    }

    /// Whether the queue logs verbosely (LG-11).
    fn logs_verbosely(&self) -> bool {
        self.g.verbose && self.q.verbose_log_va != 0
    }

    fn log_verbosely(
        &mut self,
        entry: (LogOperation, u32, u64),
        (observed, ticks): (u64, u64),
    ) -> Checked<()> {
        let at = LogPlace {
            log: self.q.verbose_log_va,
            index: self.q.verbose_log_index,
            entries: self.q.verbose_log_entries,
        };
        self.put(at.entry() + LogEntry::OBSERVED_TICKS, observed)?;
        let (memory, bounds) = (self.g.memory, self.bounds.as_deref());
        self.q.verbose_log_index = log_entry(memory, bounds, at, entry, ticks)?;
        Ok(())
    }

    /// Logs that a wait was found unsatisfied.
    fn log_queued_wait(&mut self, r: &Request, ticks: u64) -> Checked<()> {
        let entry = (LogOperation::WaitQueued, r.handle, self.p.value);
        self.log_verbosely(entry, (ticks, ticks))
    }

    /// Logs that the dispatch at the head is done, as the engine knows since its round began. One that ran while nobody
    /// logged verbosely has no time of its release.
    fn log_dispatch(&mut self, r: &Request) -> Checked<()> {
        let entry = (LogOperation::DispatchDone, r.handle, self.q.read);
        let observed = match self.q.observed {
            0 => self.began,
            observed => observed,
        };
        self.log_verbosely(entry, (observed, self.began))
    }

    /// Writes the log entry of a wait or a signal, then publishes the log's index.
    fn log_packet(&mut self, r: &Request, ticks: u64) -> Checked<()> {
        let (at, operation) = if r.is_wait {
            let at = LogPlace {
                log: self.q.wait_log_va,
                index: self.q.wait_log_index,
                entries: self.q.wait_log_entries,
            };
            (at, LogOperation::WaitUnblocked)
        } else {
            let at = LogPlace {
                log: self.q.signal_log_va,
                index: self.q.signal_log_index,
                entries: self.q.signal_log_entries,
            };
            (at, LogOperation::SignalExecuted)
        };
        if r.is_wait {
            let observed = if self.q.observed == 0 {
                ticks
            } else {
                self.q.observed
            };
            self.put(at.entry() + LogEntry::OBSERVED_TICKS, observed)?;
        }
        let index = self.log(at, operation, r, ticks)?;
        if r.is_wait {
            self.q.wait_log_index = index;
            self.q.wait_number = self.q.wait_number.wrapping_add(1);
        } else {
            self.q.signal_log_index = index;
            self.q.signal_number = self.q.signal_number.wrapping_add(1);
        }
        Ok(())
    }

    /// What stands in CurrentValue. The oracle looks first whether the process has it open.
    fn look_at_current_value(&self, r: &Request) -> Checked<u64> {
        self.meet_current_value(r)?;
        self.observe(r.fence.cv)
    }

    fn meet_current_value(&self, r: &Request) -> Checked<()> {
        match &self.bounds {
            Some(bounds) => bounds.meet_current_value(self.g.memory, r.fence.cv),
            None => Ok(()),
        }
    }

    /// Stores CurrentValue; `seen` is what stood there before.
    fn store_value(&mut self, r: &Request, seen: u64) -> Checked<()> {
        self.publish(r.fence.cv, self.p.value)?;
        if let Some(doorbell) = doorbell_of(r.fence.access).filter(|_| self.g.doorbells) {
            ring(self.g, self.s, doorbell)?;
        }
        self.backward += u64::from(seen > self.p.value);
        self.stored = true;
        Ok(())
    }

    /// In an epilogue: whether it is the engine's to do.
    fn is_for_engine(&self, r: &Request, stores_now: bool, seen: u64) -> bool {
        let rings = doorbell_of(r.fence.access).is_some();
        let asks = self.p.value > r.fence.shadow || seen > self.p.value;
        let asks = asks || rings;
        self.g.epilogue && (r.fault.is_some() || stores_now && asks)
    }

    fn leave_to_engine(&mut self) {
        self.for_engine = true;
        self.holding = true;
        self.q.status = QueueStatus::Ready;
    }

    /// Compares with the shadow, after the log: the conditional interrupt.
    fn compare_with_shadow(&mut self, r: &Request) {
        order_log();
        if self.p.value > r.fence.shadow {
            self.note_raise(Raised {
                faults: false,
                keeps_armed: r.keeps_armed(),
                fence_entry: r.fence.entry,
                value: self.p.value,
                log_number: self.p.log_number,
            });
            // Unanswered from here on: the lane raises it no more (NF-05).
            if r.is_progress {
                self.c_progress.shadow = u64::MAX;
            } else {
                self.c_signal.shadow = u64::MAX;
                // One that is never disarmed raises again in the next iteration, which reads its shadow anew.
                self.holding = self.holding || r.keeps_armed();
            }
        }
    }

    pub(super) fn leave_head(&mut self, is_progress: bool) {
        if is_progress {
            self.q.progress_value = self.p.value;
        }
        self.q.observed = 0;
        self.q.transferred = 0;
        self.q.stall_abort = 0;
        self.q.read = self.q.read.wrapping_add(1);
        self.p.fetched = false;
        self.stepped = true;
    }

    /// The packet at the head, of any kind; or the write index, if there is none. True if it was
    /// taken, and when: the clock is read after the look and before a signal stores (LG-10).
    fn step_head(&mut self) -> Checked<(bool, u64)> {
        self.fetch_packet()?;
        if self.g.dispatches {
            self.resolve_later_head()?;
        }
        let have = self.q.read != self.q.write;
        let mut r = self.request_at_head();
        let goes = r.fault.is_none() && r.known;

        // One look serves all: the write index of an empty queue, CurrentValue of a fence packet.
        let mut seen = 0;
        if goes && (r.names_fence || !have) {
            seen = if have {
                self.look_at_current_value(&r)?
            } else {
                self.observe(self.q.ring_control_va)?
            };
        }
        let ticks = self.ticks.now(self.g);
        if !have {
            if seen.wrapping_sub(self.q.read) > self.q.ring_capacity {
                r.fault = Some(FaultCode::WriteIndex);
            } else {
                self.q.write = seen;
            }
        }
        let waits_on = r.is_wait && !r.always_signaled() && seen < self.p.value;
        let takes = have && goes && !waits_on;
        let stores_now = takes && r.stores && !r.always_signaled();
        if self.is_for_engine(&r, stores_now, seen) {
            self.leave_to_engine();
            return Ok((false, ticks));
        }
        if waits_on && goes && self.q.observed == 0 {
            self.q.observed = ticks;
            if self.logs_verbosely() {
                self.log_queued_wait(&r, ticks)?;
            }
        }
        if takes && r.is_dispatch && self.logs_verbosely() {
            self.log_dispatch(&r)?;
        }
        if stores_now {
            self.store_value(&r, seen)?;
        }
        if takes && r.names_fence {
            self.log_packet(&r, ticks)?;
        }
        if stores_now {
            self.compare_with_shadow(&r);
            self.ordered = true;
        }
        if takes {
            self.leave_head(r.is_progress);
        }
        self.q.status = if r.fault.is_some() {
            QueueStatus::Faulted
        } else if takes || !r.known {
            QueueStatus::Ready
        } else if have {
            QueueStatus::Blocked
        } else if self.q.read == self.q.write {
            QueueStatus::Empty
        } else {
            QueueStatus::Ready
        };
        // From the next round on it is looked at again when it is rung for.
        let closes = self.g.doorbells && waits_on && goes;
        self.q.closed = doorbell_of(r.fence.access).filter(|_| closes);
        // A fence that is unknown still is resolved at the head of the next iteration, or found there to be none.
        self.holding = self.holding || !r.known;
        if r.fault.is_some() {
            self.q.fault = r.fault;
            self.note_raise(Raised {
                faults: true,
                keeps_armed: false,
                fence_entry: 0,
                value: self.q.read,
                log_number: if have { self.p.control } else { 0 },
            });
        }
        Ok((takes, ticks))
    }

    /// The packet behind the one that was taken, if it is a signal with nothing wrong; everything
    /// else is left to the next step.
    fn step_signal(&mut self, ticks: u64) -> Checked<()> {
        if !self.holding {
            self.fetch_packet()?;
            let r = self.request_at_head();
            if r.stores && r.known && r.fault.is_none() && !r.always_signaled() {
                // What it is compared with, and nothing behind it is read by it.
                self.meet_current_value(&r)?;
                let seen = self.peek(r.fence.cv)?;
                if self.is_for_engine(&r, true, seen) {
                    self.leave_to_engine();
                    return Ok(());
                }
                self.store_value(&r, seen)?;
                self.log_packet(&r, ticks)?;
                self.compare_with_shadow(&r);
                self.leave_head(r.is_progress);
                self.ordered = true;
            }
        }
        Ok(())
    }

    /// One step; true if the lane may do more in this iteration.
    fn step_queue(&mut self) -> Checked<bool> {
        self.ordered = false;
        let (takes, ticks) = self.step_head()?;
        if takes {
            self.step_signal(ticks)?;
            // After the effects, once a step: a packet that was executed and is not covered yet is
            // known by its log number, so a redo takes effect once (decisions.md 13). The barrier of a
            // signal's comparison releases what was stored before it by this store too. Of another packet
            // it is a barrier as well, and not a release of this store alone: it orders the log's index
            // before the entry that follows.
            if !self.ordered {
                order_log();
            }
            let read_index = self.q.progress_va + QueueProgress::READ_INDEX;
            self.put(read_index, self.q.read)?;
        }
        self.fruitless = if takes { 0 } else { self.fruitless + 1 };
        // A lane that raised lets the slice end as soon as its queue stands still.
        let patience = if self.i.is_empty() && !self.g.epilogue {
            self.g.patience()
        } else {
            1
        };
        Ok(!self.holding && self.fruitless < patience)
    }

    /// There is no queue in registers, or one that does nothing more in this iteration.
    pub(super) fn has_nothing_to_step(&self) -> bool {
        self.q.ordinal == NO_QUEUE || self.q.status == QueueStatus::Faulted || self.q.stands
    }

    /// `step_rounds` up to its loop.
    pub(super) fn begin_rounds(&mut self) -> Checked<()> {
        self.fetch_packet()?;
        self.resolve_head()?;
        self.fruitless = 0;
        self.rounds = 0;
        self.i.clear();
        self.holding = self.has_nothing_to_step();
        self.leaves = false;
        Ok(())
    }

    /// One pass of its loop; false when the lane has left it.
    pub(super) fn step_round(&mut self) -> Checked<bool> {
        if !self.leaves && self.g.doorbells && self.i.is_empty() && self.only_hears()? {
            self.fruitless += 1;
            self.leaves = self.fruitless >= self.g.patience();
            self.rounds += u64::from(!self.leaves);
        } else if !self.leaves {
            self.leaves = self.holding || !self.step_queue()?;
            self.rounds += u64::from(!self.leaves);
        }
        Ok(!self.leaves)
    }
}
