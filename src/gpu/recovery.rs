//! Recovery: where a queue stands whose engine was given up in the midst of a slice.
//!
//! An engine saves a queue's state when it leaves the queue, and not at each packet: of one that was given
//! up the state says less than was done. But each packet left its marks where all can see them. A wait or
//! a signal publishes its log's index, which stands for exactly one entry, and after it, for one packet or
//! two of a step together, the read index. So what was done is known to the packet, and goes on behind it:
//! every packet takes effect once (`decisions.md` 13). Of an engine that ran while it was cut off the read index of
//! the last packet may be lost, and its log entry not (`node::cut_off`): the logs count, however far they are
//! ahead.
//!
//! One thing has no mark of its own: a signal stores CurrentValue before it logs, and the engine can be
//! gone between the two. Whoever waited has seen the value, and may have signalled a greater one. To store
//! it again could take that back, so a signal whose value has been reached counts as stored, and what is
//! missing is its log entry (choice: of two signals of one fence that their users do not order, or of one
//! that stores backwards, the one that was cut in two may be taken for stored).
//!
//! A NOP leaves nothing, and is done again. A dispatch is done once the round after its release has begun, which
//! takes its name back (`shaders/engine/dispatch.glsl`): of a queue that goes on, what was released is done, and its
//! state says so. Signals of its kernel are logged before that is said, and its state has the log's index with them by
//! then: in the log of a queue that stands at a dispatch they are nobody else's. A transfer leaves what it stored: its parts since the last save
//! are done again, to the same effect, since its source and its destination do not overlap.

use crate::abi::{
    Dispatch, LogEntry, LogIndex, LogOperation, Opcode, Packet, QueueState, QueueStatus,
};

/// What an engine left of one log of a queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct LogMark {
    /// Its index word.
    pub(super) index: u64,
    /// Its entries.
    pub(super) entries: u32,
}

/// What an engine left of a queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Marks {
    /// The last state that was saved whole.
    pub(super) saved: QueueState,
    /// Packets executed, as published.
    pub(super) read_index: u64,
    /// The log of waits.
    pub(super) waits: LogMark,
    /// The log of signals.
    pub(super) signals: LogMark,
    /// The verbose log, if the queue has it.
    pub(super) verbose: Option<LogMark>,
    /// Its last entry.
    pub(super) last_verbose: Option<LogEntry>,
    /// Packets written, as the ring says, and how many it has room for: what lies behind is of a lap before.
    pub(super) write_index: u64,
    /// See [`Marks::write_index`].
    pub(super) capacity: u64,
    /// CurrentValue of the progress fence.
    pub(super) progress_value: u64,
}

/// Where the queue stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Recovered {
    /// From which it goes on.
    pub(super) state: QueueState,
    /// A signal that has stored its value, and whose log entry is still to be written, at this index. The
    /// state is that after it.
    pub(super) unlogged: Option<(Packet, u64)>,
}

/// Whether it is the wait that was found unsatisfied last, by an engine that has not saved that: it is not found
/// so again. (Of two waits of a queue for one value, of which the first has ended, the other may be taken for it.)
fn is_queued_wait(packet: &Packet, last: &LogEntry) -> bool {
    packet.opcode() == Some(Opcode::Wait)
        && last.operation == LogOperation::WaitQueued as u32
        && packet.handle().raw() == last.native_fence
        && packet.value == last.fence_value
}

/// Another packet is the next: what is known of the one at the head is of one that is done.
fn forget_head(state: &mut QueueState) {
    state.observed_ticks = 0;
    state.transferred = 0;
    state.head_control = 0;
    state.head_value = 0;
}

impl LogMark {
    /// Entries written since the index was `saved`. An index that cannot be says none: no user writes it,
    /// and the queue's next packet will not fit.
    fn since(self, saved: u64) -> u64 {
        let written = LogIndex::from_word(self.index);
        let written = written.since(LogIndex::from_word(saved), self.entries);
        written.unwrap_or(0)
    }
}

impl Marks {
    /// Whether nothing behind a dispatch can have been done: signals that were logged since are its kernel's, and have no
    /// numbers.
    fn stands_at_dispatch(&self, packet: impl Fn(u64) -> Packet) -> bool {
        let head = self.saved.read_index;
        self.read_index <= head
            && self.write_index != head
            && self.saved.transferred != Dispatch::RELEASED
            && packet(head).opcode() == Some(Opcode::Dispatch)
    }

    /// Finds out. `packet` reads the ring, which its user may have changed since; `is_stored` says whether
    /// the fence of a signal has reached its value.
    pub(super) fn recover(
        &self,
        packet: impl Fn(u64) -> Packet,
        is_stored: impl Fn(&Packet) -> bool,
    ) -> Recovered {
        let saved = self.saved;
        let signals = if self.stands_at_dispatch(&packet) {
            0
        } else {
            self.signals.since(saved.signal_log_index)
        };
        let mut state = QueueState {
            wait_number: saved
                .wait_number
                .wrapping_add(self.waits.since(saved.wait_log_index)),
            signal_number: saved.signal_number.wrapping_add(signals),
            wait_log_index: self.waits.index,
            signal_log_index: self.signals.index,
            verbose_log_index: self
                .verbose
                .map_or(saved.verbose_log_index, |log| log.index),
            read_index: saved.read_index.max(self.read_index),
            ..saved
        };
        // Whether a packet was logged, if it is of those that are.
        let is_logged = |packet: &Packet| {
            let number = match packet.opcode()? {
                Opcode::Wait => state.wait_number,
                Opcode::Signal | Opcode::Progress => state.signal_number,
                _ => return None,
            };
            Some(packet.log_number < number)
        };
        let first = state.read_index;
        let queued = self.write_index.wrapping_sub(first);
        // An index that cannot be is the engine's to find.
        let queued = if queued <= self.capacity { queued } else { 0 };
        let at = |ahead: u64| packet(first.wrapping_add(ahead));
        // They are executed in their order: all up to the last that was logged are done.
        let marks = (0..queued).map(|ahead| (ahead, is_logged(&at(ahead))));
        let marks = marks.take_while(|(_, is_logged)| *is_logged != Some(false));
        let last = marks.filter(|(_, is_logged)| is_logged.is_some()).last();
        let covered = last.map_or(0, |(ahead, _)| ahead + 1);
        state.read_index = first.wrapping_add(covered);
        if state.read_index != saved.read_index {
            forget_head(&mut state);
        }
        if let (Some(log), Some(entry)) = (self.verbose, &self.last_verbose)
            && log.since(saved.verbose_log_index) > 0
            && covered < queued
            && is_queued_wait(&at(covered), entry)
        {
            state.observed_ticks = entry.observed_ticks;
        }
        state.progress_value = saved.progress_value.max(self.progress_value);
        if saved.fault == 0 {
            // It is looked at before it is said to stand anywhere.
            state.status = QueueStatus::Ready as u64;
        }
        // A NOP has no mark, nor has the end of a dispatch that is done, and the signal behind it is of the same
        // step.
        let is_done = state.transferred == Dispatch::RELEASED;
        let has_no_mark = |ahead| {
            ahead < queued
                && match at(ahead).opcode() {
                    Some(Opcode::Nop) => true,
                    Some(Opcode::Dispatch) => is_done,
                    _ => false,
                }
        };
        let ahead = covered + u64::from(has_no_mark(covered));
        if ahead >= queued || saved.fault != 0 {
            return Recovered {
                state,
                unlogged: None,
            };
        }
        let head = at(ahead);
        let (is_signal, is_progress) = (
            head.opcode() == Some(Opcode::Signal),
            head.opcode() == Some(Opcode::Progress),
        );
        // What a packet of the queue's user could not have done it has not done.
        let is_next = head.log_number == state.signal_number;
        let has_stored = if is_progress {
            head.value > saved.progress_value && head.value <= self.progress_value
        } else {
            is_signal && is_stored(&head)
        };
        let unlogged = (is_next && has_stored).then(|| {
            let index = state.signal_log_index;
            let next = LogIndex::from_word(index).next(self.signals.entries);
            state.signal_log_index = next.word();
            state.signal_number = state.signal_number.wrapping_add(1);
            state.read_index = first.wrapping_add(ahead + 1);
            forget_head(&mut state);
            (head, index)
        });
        Recovered { state, unlogged }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytemuck::Zeroable;

    const ENTRIES: u32 = 84;

    fn index(total: u64) -> u64 {
        let entries = u64::from(ENTRIES);
        ((total / entries) << 32) | (total % entries)
    }

    /// WAIT, SIGNAL, NOP, PROGRESS, and so on; logs of waits and signals.
    fn packet(at: u64) -> Packet {
        let round = at / 4;
        match at % 4 {
            0 => Packet::wait(crate::abi::LocalHandle::from_raw(7), round + 1, round),
            1 => Packet::signal(crate::abi::LocalHandle::from_raw(8), round + 1, 2 * round),
            2 => Packet::nop(),
            _ => Packet::progress(
                crate::abi::LocalHandle::from_raw(9),
                round + 1,
                2 * round + 1,
            ),
        }
    }

    /// What there is when so many packets of those have been executed, as a state.
    fn state_after(packets: u64) -> QueueState {
        let (round, rest) = (packets / 4, packets % 4);
        let (waits, signals) = (round + u64::from(rest > 0), 2 * round + u64::from(rest > 1));
        QueueState {
            read_index: packets,
            wait_number: waits,
            signal_number: signals,
            wait_log_index: index(waits),
            signal_log_index: index(signals),
            progress_value: round,
            status: QueueStatus::Ready as u64,
            ..QueueState::zeroed()
        }
    }

    /// What an engine leaves that saved at `saved` and stands at `now`.
    fn marks(saved: QueueState, now: QueueState) -> Marks {
        let log = |index| LogMark {
            index,
            entries: ENTRIES,
        };
        Marks {
            saved,
            read_index: now.read_index,
            waits: log(now.wait_log_index),
            signals: log(now.signal_log_index),
            verbose: None,
            last_verbose: None,
            write_index: 1 << 20,
            capacity: 1 << 20,
            progress_value: now.progress_value,
        }
    }

    /// However far the engine came since its last save, within a step and between steps, and since it last
    /// published its read index, the queue goes on behind what was done.
    #[test]
    fn td_22_a_queue_goes_on_behind_what_was_done() {
        for saved in 0..8_u64 {
            for done in saved..400_u64 {
                // Published for one packet or two of the last step together; or many steps ago, by one
                // that was cut off from there first.
                for published in done.saturating_sub(24).max(saved)..=done {
                    // A NOP that nothing covers is done again.
                    let expected = if published < done && done % 4 == 3 {
                        published.max(done - 1)
                    } else {
                        done
                    };
                    let marks = Marks {
                        read_index: published,
                        ..marks(state_after(saved), state_after(done))
                    };
                    let found = marks.recover(packet, |_| false);
                    let at = format!("saved {saved}, done {done}, published {published}");
                    assert_eq!(found.unlogged, None, "{at}");
                    assert_eq!(found.state, state_after(expected), "{at}");
                }
            }
        }
    }

    /// A wait that was logged when it was found unsatisfied, by an engine that saved nothing after, is not found so
    /// again: its time is that of its entry. One that was not logged has none yet.
    ///
    /// Kills `a-queued-wait-is-logged-again`.
    #[test]
    fn td_22_a_wait_is_found_unsatisfied_once() {
        let now = state_after(4);
        let head = packet(4);
        let entry = LogEntry {
            fence_value: head.value,
            native_fence: head.handle().raw(),
            operation: LogOperation::WaitQueued as u32,
            observed_ticks: 99,
            ..LogEntry::zeroed()
        };
        let found = |index: u64, last: LogEntry| {
            let log = LogMark {
                index,
                entries: ENTRIES,
            };
            let marks = Marks {
                verbose: Some(log),
                last_verbose: Some(last),
                ..marks(now, now)
            };
            let state = marks.recover(packet, |_| false).state;
            (state.observed_ticks, state.verbose_log_index)
        };
        assert_eq!(found(1, entry), (99, 1));
        assert_eq!(found(0, entry), (0, 0), "of a life before");
        let dispatch = LogEntry {
            operation: LogOperation::DispatchDone as u32,
            ..entry
        };
        assert_eq!(found(1, dispatch), (0, 1), "not a wait");
        let other = LogEntry {
            fence_value: head.value + 1,
            ..entry
        };
        assert_eq!(found(1, other), (0, 1), "it was another");
    }

    /// A signal that was stored and not logged is logged by who recovers, and not stored again.
    #[test]
    fn td_22_a_stored_signal_is_not_stored_again() {
        for done in 0..400_u64 {
            let head = packet(done);
            let now = state_after(done);
            let is_progress = head.opcode() == Some(Opcode::Progress);
            let is_before = head.opcode() == Some(Opcode::Nop);
            let marks = Marks {
                progress_value: now.progress_value + u64::from(is_progress || is_before),
                ..marks(now, now)
            };
            let found = marks.recover(packet, |_| true);
            // The NOP before a progress packet is of its step.
            let (signal, packets) = match head.opcode() {
                Some(Opcode::Wait) => (None, 0),
                Some(Opcode::Nop) => (Some(packet(done + 1)), 2),
                _ => (Some(head), 1),
            };
            let unlogged = signal.map(|signal| (signal, now.signal_log_index));
            assert_eq!(found.unlogged, unlogged);
            assert_eq!(found.state, state_after(done + packets));
        }
    }

    /// A dispatch that was released is done where its queue goes on, and its signal is stored once: it is covered by
    /// the log entry of that, or by its value, or stays done at the head.
    ///
    /// Kills `the-signal-behind-a-dispatch-is-stored-again`.
    #[test]
    fn td_22_a_dispatch_that_is_done_is_not_made_again() {
        use crate::abi::LocalHandle;
        let ring = |at: u64| match at {
            0 => Dispatch::direct(LocalHandle::from_raw(5), [1, 1, 1]),
            _ => Packet::signal(LocalHandle::from_raw(8), at, at - 1),
        };
        let saved = QueueState {
            transferred: Dispatch::RELEASED,
            ..state_after(0)
        };
        let found = |marks: Marks, is_stored: bool| {
            let marks = Marks {
                write_index: 2,
                ..marks
            };
            marks.recover(ring, |_| is_stored)
        };
        let stands = found(marks(saved, saved), false);
        assert_eq!((stands.state, stands.unlogged), (saved, None));
        let stored = found(marks(saved, saved), true);
        assert_eq!(stored.unlogged, Some((ring(1), 0)));
        assert_eq!((stored.state.read_index, stored.state.transferred), (2, 0));
        let now = QueueState {
            signal_log_index: index(1),
            ..saved
        };
        let logged = found(marks(saved, now), true);
        assert_eq!(logged.unlogged, None);
        assert_eq!((logged.state.read_index, logged.state.transferred), (2, 0));
    }

    /// What a kernel signalled is logged, and no packet's: those behind the dispatch are done if they were.
    ///
    /// Kills `a-kernels-signal-is-taken-for-a-packets`.
    #[test]
    fn td_22_what_a_kernel_signalled_covers_no_packet() {
        use crate::abi::LocalHandle;
        let ring = |at: u64| match at {
            0 => Dispatch::direct(LocalHandle::from_raw(5), [1, 1, 1]),
            _ => Packet::signal(LocalHandle::from_raw(8), at, at - 1),
        };
        let found = |saved: QueueState, logged| {
            let now = QueueState {
                signal_log_index: index(logged),
                ..saved
            };
            let marks = Marks {
                write_index: 4,
                ..marks(saved, now)
            };
            let state = marks.recover(ring, |_| false).state;
            (
                state.read_index,
                state.signal_number,
                state.signal_log_index,
            )
        };
        let stands = state_after(0);
        assert_eq!(found(stands, 2), (0, 0, index(2)));
        // Both of its kernel's are in the state, and one of a packet behind it is not.
        let done = QueueState {
            transferred: Dispatch::RELEASED,
            signal_log_index: index(2),
            ..stands
        };
        assert_eq!(found(done, 2), (0, 0, index(2)));
        assert_eq!(found(done, 3), (2, 1, index(3)));
    }

    /// What lies in the ring behind the last packet is of a lap before, and was logged long ago: it is
    /// nothing that was done.
    #[test]
    fn td_22_packets_of_a_lap_before_are_none() {
        const CAPACITY: u64 = 16;
        for done in 32..200 {
            for queued in 0..4 {
                let now = state_after(done);
                let marks = Marks {
                    write_index: done + queued,
                    capacity: CAPACITY,
                    ..marks(now, now)
                };
                let written = done + queued;
                let in_ring = |at: u64| packet(if at < written { at } else { at - CAPACITY });
                let found = marks.recover(in_ring, |_| false);
                assert_eq!(
                    (found.state, found.unlogged),
                    (now, None),
                    "{done} {queued}"
                );
            }
        }
    }
}
