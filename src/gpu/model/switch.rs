//! Moving a queue between registers and memory.
//!
//! As `shaders/engine/switch.glsl`: a save goes to the older of the two copies and its sequence
//! word is published last, so a torn save is never taken for the state.

use super::bounds::Bounds;
use super::lane::{Lane, NO_QUEUE, PacketRegisters, QueueRegisters, Resolved};
use super::violation::Checked;
use crate::abi::{FaultCode, HandleAccess, QueueDescriptor, QueueState, QueueStatus, RingControl};
use crate::sync::Arc;
use crate::sync::plain::lock;

impl Lane<'_> {
    pub(super) fn ordinal_of(&self, place: u32) -> u32 {
        place * self.g.lanes + self.id
    }

    pub(super) fn save_queue(&mut self) -> Checked<()> {
        if self.q.ordinal != NO_QUEUE {
            // Where it will be seen that the queue can go on. A faulted queue never can.
            let blocked = self.q.status == QueueStatus::Blocked;
            let look_va = if blocked {
                self.c_wait.cv
            } else {
                self.q.ring_control_va
            };
            let look_value = match self.q.status {
                QueueStatus::Blocked => self.p.value,
                QueueStatus::Faulted => u64::MAX,
                QueueStatus::Ready => 0,
                QueueStatus::Empty => self.q.read.wrapping_add(1),
            };
            self.q.sequence += 1;
            let q = self.q;
            let state = q.state_va + (q.sequence & 1) * QueueState::BYTES;
            self.put(state + QueueState::READ_INDEX, q.read)?;
            self.put(state + QueueState::WAIT_NUMBER, q.wait_number)?;
            self.put(state + QueueState::SIGNAL_NUMBER, q.signal_number)?;
            self.put(state + QueueState::WAIT_LOG_INDEX, q.wait_log_index)?;
            self.put(state + QueueState::SIGNAL_LOG_INDEX, q.signal_log_index)?;
            self.put(state + QueueState::OBSERVED_TICKS, q.observed)?;
            self.put(state + QueueState::PROGRESS_VALUE, q.progress_value)?;
            self.put(state + QueueState::STATUS, q.status as u64)?;
            self.put(state + QueueState::TRANSFERRED, q.transferred)?;
            if self.g.verbose {
                self.put(state + QueueState::VERBOSE_LOG_INDEX, q.verbose_log_index)?;
            }
            if self.g.stalls {
                self.put(state + QueueState::STALL_ABORT, q.stall_abort)?;
            }
            self.put(
                state + QueueState::FAULT,
                q.fault.map_or(0, |fault| fault as u64),
            )?;
            let (control, value) = if self.p.fetched {
                (self.p.control, self.p.value)
            } else {
                (0, 0)
            };
            self.put(state + QueueState::HEAD_CONTROL, control)?;
            self.put(state + QueueState::HEAD_VALUE, value)?;
            self.publish(state + QueueState::SEQUENCE, q.sequence)?;
            self.s.look_va[q.ordinal as usize].set(look_va);
            let now = if q.stands { u64::MAX } else { look_value };
            self.s.look_value[q.ordinal as usize].set(now);
            self.s.rings.close(q.ordinal, q.closed);
            if self.g.dispatches {
                // By the next round, in which it may be done.
                let [va, value] = &self.s.next_look[q.ordinal as usize];
                va.set(look_va);
                value.set(look_value);
            }
        }
        Ok(())
    }

    pub(super) fn load_queue(&mut self, ordinal: u32) -> Checked<()> {
        let at = self.g.peek(self.g.run_list_va + u64::from(ordinal) * 8)?;
        self.bounds = Some(Arc::new(Bounds::read(self.g.memory, at)?));
        self.q = QueueRegisters {
            ordinal,
            descriptor_va: at,
            ring_va: self.peek(at + QueueDescriptor::RING_VA)?,
            ring_control_va: self.peek(at + QueueDescriptor::RING_CONTROL_VA)?,
            ring_capacity: self.peek(at + QueueDescriptor::RING_CAPACITY)?,
            wait_log_va: self.peek(at + QueueDescriptor::WAIT_LOG_VA)?,
            wait_log_entries: self.peek(at + QueueDescriptor::WAIT_LOG_ENTRIES)? as u32,
            signal_log_va: self.peek(at + QueueDescriptor::SIGNAL_LOG_VA)?,
            signal_log_entries: self.peek(at + QueueDescriptor::SIGNAL_LOG_ENTRIES)? as u32,
            handle_directory_va: self.peek(at + QueueDescriptor::HANDLE_DIRECTORY_VA)?,
            state_va: self.peek(at + QueueDescriptor::STATE_VA)?,
            progress_va: self.peek(at + QueueDescriptor::PROGRESS_VA)?,
            progress_handle: self.peek(at + QueueDescriptor::PROGRESS_HANDLE)? as u32,
            ..QueueRegisters::NONE
        };
        self.c_progress = Resolved {
            handle: self.q.progress_handle,
            access: HandleAccess::FULL.0,
            cv: self.peek(at + QueueDescriptor::PROGRESS_CURRENT_VALUE_VA)?,
            entry: self.peek(at + QueueDescriptor::PROGRESS_FENCE_ENTRY_VA)?,
            shadow: 0,
        };

        let even = self.observe(self.q.state_va + QueueState::SEQUENCE)?;
        let odd = self.observe(self.q.state_va + QueueState::BYTES + QueueState::SEQUENCE)?;
        self.q.sequence = even.max(odd);
        let state = self.q.state_va + if odd > even { QueueState::BYTES } else { 0 };
        self.q.read = self.peek(state + QueueState::READ_INDEX)?;
        // An index that cannot be is found so by the first step's look.
        let written = self.observe(self.q.ring_control_va + RingControl::WRITE_INDEX)?;
        let queued = written.wrapping_sub(self.q.read);
        self.q.write = if queued <= self.q.ring_capacity {
            written
        } else {
            self.q.read
        };
        self.q.wait_number = self.peek(state + QueueState::WAIT_NUMBER)?;
        self.q.signal_number = self.peek(state + QueueState::SIGNAL_NUMBER)?;
        self.q.wait_log_index = self.peek(state + QueueState::WAIT_LOG_INDEX)?;
        self.q.signal_log_index = self.peek(state + QueueState::SIGNAL_LOG_INDEX)?;
        self.q.observed = self.peek(state + QueueState::OBSERVED_TICKS)?;
        self.q.progress_value = self.peek(state + QueueState::PROGRESS_VALUE)?;
        self.q.transferred = self.peek(state + QueueState::TRANSFERRED)?;
        if self.g.verbose {
            self.q.verbose_log_va = self.peek(at + QueueDescriptor::VERBOSE_LOG_VA)?;
            let entries = self.peek(at + QueueDescriptor::VERBOSE_LOG_ENTRIES)?;
            self.q.verbose_log_entries = entries as u32;
            self.q.verbose_log_index = self.peek(state + QueueState::VERBOSE_LOG_INDEX)?;
        }
        if self.g.stalls {
            self.q.stall_abort = self.peek(state + QueueState::STALL_ABORT)?;
        }
        self.q.fault = FaultCode::from_bits(self.peek(state + QueueState::FAULT)? as u32);
        // It is stepped at least once before it is saved again, which finds out where it stands.
        self.q.status = if self.q.fault.is_some() {
            QueueStatus::Faulted
        } else {
            QueueStatus::Ready
        };

        // What a queue was stopped at stays what its state says, also where the lane leaves it before
        // it fetches anything.
        self.p = PacketRegisters::default();
        if self.q.fault.is_some() {
            self.p.fetched = true;
            self.p.control = self.peek(state + QueueState::HEAD_CONTROL)?;
            self.p.value = self.peek(state + QueueState::HEAD_VALUE)?;
        }
        self.c_wait = Resolved::default();
        self.c_signal = Resolved::default();
        self.quantum = 0;
        Ok(())
    }

    /// Chooses the queue that runs in this iteration: the one in registers while it can go on and
    /// has not had its quantum, else the lane's next one that can.
    pub(super) fn choose_queue(&mut self) -> Checked<()> {
        let stays = self.q.ordinal != NO_QUEUE
            && self.q.status == QueueStatus::Ready
            && !self.q.stands
            && self.quantum < self.g.quantum;
        self.quantum = self.quantum.wrapping_add(1);
        if self.places > 1
            && !stays
            && let Some(place) = self.other()?
        {
            self.save_queue()?;
            self.load_queue(self.ordinal_of(place))?;
            self.cursor = place;
            self.s.rings.close(self.q.ordinal, None);
        }
        Ok(())
    }

    /// The lane's next queue, besides the one in registers, that can go on.
    fn other(&self) -> Checked<Option<u32>> {
        let mut place = self.cursor;
        let others = self.places - u32::from(self.q.ordinal != NO_QUEUE);
        for _ in 0..others {
            place = if place + 1 < self.places {
                place + 1
            } else {
                0
            };
            let ordinal = self.ordinal_of(place);
            let looks = [&self.s.look_va, &self.s.look_value];
            let [at, value] = looks.map(|words| words[ordinal as usize].get());
            if !self.s.rings.is_closed(ordinal) && self.g.observe(at)? >= value {
                return Ok(Some(place));
            }
            self.s.rings.close_again(ordinal);
            if self.g.passes.end_loop() {
                break;
            }
        }
        Ok(None)
    }

    /// At the end of an execution: tells whether the lane can do more, beside what stands at dispatches.
    pub(super) fn tell_of_more(&self) -> Checked<()> {
        let own =
            self.q.ordinal != NO_QUEUE && self.q.status == QueueStatus::Ready && !self.q.stands;
        if own || self.places > 1 && self.other()?.is_some() {
            lock(&self.s.table).more = true;
        }
        Ok(())
    }
}
