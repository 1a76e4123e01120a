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
    use crate::abi::LocalHandle;
    use bytemuck::Zeroable;
    use proptest::prelude::*;
    use proptest::sample::Index;
    use std::collections::BTreeMap;

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

    /// A packet of a program.
    #[derive(Clone, Copy, Debug)]
    enum Kind {
        Wait,
        /// Of one of two fences.
        Signal(u8),
        Nop,
        Progress,
    }

    const PROGRESS: u32 = 9;

    /// With numbers and rising values, as who submits them gives these.
    fn program(kinds: &[Kind]) -> Vec<Packet> {
        let mut done = Done::default();
        let mut next = |kind: &Kind| {
            let signals = done.signals.len() as u64;
            let rising = |fence| done.value(fence) + 1;
            let handle = LocalHandle::from_raw;
            let packet = match *kind {
                Kind::Wait => Packet::wait(handle(7), 1, done.waits.len() as u64),
                Kind::Signal(fence) => {
                    let fence = u32::from(fence) + 20;
                    Packet::signal(handle(fence), rising(fence), signals)
                }
                Kind::Nop => Packet::nop(),
                Kind::Progress => Packet::progress(handle(PROGRESS), rising(PROGRESS), signals),
            };
            done.execute(packet);
            packet
        };
        kinds.iter().map(&mut next).collect()
    }

    fn stores(packet: &Packet) -> bool {
        matches!(packet.opcode(), Some(Opcode::Signal | Opcode::Progress))
    }

    /// What packets did, one after another.
    #[derive(Clone, Debug, Default, PartialEq)]
    struct Done {
        packets: u64,
        waits: Vec<Packet>,
        signals: Vec<Packet>,
        stores: Vec<Packet>,
        values: BTreeMap<u32, u64>,
    }

    impl Done {
        fn store(&mut self, packet: Packet) {
            if stores(&packet) {
                self.stores.push(packet);
                self.values.insert(packet.handle().raw(), packet.value);
            }
        }

        fn log(&mut self, packet: Packet) {
            if stores(&packet) {
                self.signals.push(packet);
            } else if packet.opcode() == Some(Opcode::Wait) {
                self.waits.push(packet);
            }
            self.packets += 1;
        }

        fn execute(&mut self, packet: Packet) {
            self.store(packet);
            self.log(packet);
        }

        fn value(&self, fence: u32) -> u64 {
            self.values.get(&fence).copied().unwrap_or(0)
        }

        /// As an engine saves it.
        fn state(&self, entries: u32) -> QueueState {
            let index = |total: usize| {
                ((total as u64 / u64::from(entries)) << 32) | (total as u64 % u64::from(entries))
            };
            QueueState {
                read_index: self.packets,
                wait_number: self.waits.len() as u64,
                signal_number: self.signals.len() as u64,
                wait_log_index: index(self.waits.len()),
                signal_log_index: index(self.signals.len()),
                progress_value: self.value(PROGRESS),
                status: QueueStatus::Ready as u64,
                ..QueueState::zeroed()
            }
        }
    }

    /// Steps of an engine: a packet, or one and the signal behind it, if the engine has seen both. Where each begins and ends.
    fn steps(program: &[Packet], together: &[bool]) -> Vec<(usize, usize)> {
        let (mut steps, mut begin) = (Vec::new(), 0);
        while begin < program.len() {
            let is_signal = program.get(begin + 1).is_some_and(stores);
            let end = begin + 1 + usize::from(is_signal && together[begin]);
            steps.push((begin, end));
            begin = end;
        }
        steps
    }

    fn kind() -> impl Strategy<Value = Kind> {
        prop_oneof![
            2 => Just(Kind::Wait),
            4 => (0..2_u8).prop_map(Kind::Signal),
            2 => Just(Kind::Nop),
            2 => Just(Kind::Progress),
        ]
    }

    proptest! {
        /// TD-22: wherever an engine was gone, in whatever step, whichever of its stores were its last, and wherever it
        /// had saved last: the queue goes on so that each packet has stored once and has one entry, in the program's
        /// order, and none is left out. A NOP does nothing, however often.
        ///
        /// Kills `what-was-done-is-done-again`, `a-stored-signal-is-stored-again`, `a-lap-before-counts-as-done`,
        /// `a-packet-is-passed-over`, `a-kill-forgets-what-was-logged`, `a-nop-keeps-a-stored-signal-from-being-found`,
        /// `what-was-found-at-another-head-counts`.
        #[test]
        fn td_22_each_packet_takes_effect_once_wherever_its_engine_was_gone(
            kinds in prop::collection::vec((kind(), any::<bool>()), 1..40),
            (saved_in, gone_in) in any::<(Index, Index)>(),
            executed in any::<Index>(),
            (has_stored, has_published) in any::<(bool, bool)>(),
            observed in 0..3_u64,
            (entries, capacity) in (3..ENTRIES, 1..7_u32),
        ) {
            let (kinds, together): (Vec<_>, Vec<_>) = kinds.into_iter().unzip();
            let (program, capacity) = (program(&kinds), 1_u64 << capacity);
            let steps = steps(&program, &together);
            let gone_in = gone_in.index(steps.len());
            let (begin, end) = steps[gone_in];
            let (saved_at, _) = steps[saved_in.index(gone_in + 1)];

            let (mut done, mut saved) = (Done::default(), QueueState::zeroed());
            let executed = begin + executed.index(end - begin + 1);
            for (at, packet) in program.iter().enumerate().take(executed.max(saved_at + 1)) {
                if at == saved_at {
                    saved = done.state(entries);
                    if packet.opcode() == Some(Opcode::Wait) && observed > 0 {
                        let status = QueueStatus::Blocked as u64;
                        saved = QueueState { observed_ticks: observed, status, ..saved };
                    }
                }
                if at < executed {
                    done.execute(*packet);
                }
            }
            let has_stored = has_stored && executed < end;
            if has_stored {
                done.store(program[executed]);
            }
            // The store of a step's read index is the first that is cut off.
            let has_published = has_published && executed == end;
            let read_index = if has_published { end } else { begin } as u64;
            let written = (program.len() as u64).min(read_index + capacity);
            let marks = Marks {
                read_index,
                waits: LogMark { entries, ..marks(saved, done.state(entries)).waits },
                signals: LogMark { entries, ..marks(saved, done.state(entries)).signals },
                write_index: written,
                capacity,
                ..marks(saved, done.state(entries))
            };
            let in_ring = |at: u64| {
                let at = if at < written { at } else { at.wrapping_sub(capacity) };
                program.get(at as usize).copied().unwrap_or(Packet::nop())
            };
            let is_stored = |signal: &Packet| done.value(signal.handle().raw()) >= signal.value;
            let Recovered { state, unlogged } = marks.recover(in_ring, is_stored);

            if let Some((signal, index)) = unlogged {
                prop_assert_eq!(index, done.state(entries).signal_log_index);
                done.log(signal);
            }
            let head = saved.read_index == state.read_index;
            let observed_ticks = if head { saved.observed_ticks } else { 0 };
            let (read_index, known) = (state.read_index, done.state(entries));
            prop_assert_eq!(state, QueueState { read_index, observed_ticks, ..known });
            for packet in &program[read_index as usize..written as usize] {
                done.execute(*packet);
            }
            let mut whole = Done::default();
            program[..written as usize].iter().for_each(|packet| whole.execute(*packet));
            // A NOP that is done again is counted again.
            whole.packets = done.packets;
            prop_assert_eq!(done, whole);
        }
    }
}
