//! Software queue: what a kernel-mode queue's program has queued and the OS still holds.
//!
//! Packets leave it at its head, one after another: a command goes to the engine when the ring has
//! room for it; a wait is over when its fence has its value; a signal of the OS is made when every
//! command before it has completed, or, where its program asked for that, when the engine was handed
//! every one of them (PR-17). What stands behind them stays. Pure: it says what is to be done next, and
//! is told what was done.

use super::cpu_signal::SignalError;
use super::monitored_fence::MonitoredFence;
use super::monitored_object::MonitoredFenceObject;
use super::outstanding::OutstandingSignal;
use super::process::FenceObject;
use super::standing_wait::StandingWait;
use super::verdict::HeldAt;
use super::wait_cell::WaitError;
use super::waitable::Waitable;
use crate::abi::{FenceId, Packet};
use crate::kmd::{HwQueueWait, SubmitCommand, SubmitCommandFlags};
use crate::sync::Arc;
use std::collections::VecDeque;
use std::fmt::Debug;

/// A signal of a monitored fence that was recorded or queued: it counts as outstanding (MF-06) until its
/// command has completed or the OS has made it, or until it is dropped.
#[derive(Debug)]
pub struct QueuedSignal {
    object: Arc<MonitoredFenceObject>,
    signal: Arc<OutstandingSignal>,
    is_made: bool,
}

impl QueuedSignal {
    /// One that an engine makes by a queue with this progress fence, or one of the OS.
    ///
    /// # Errors
    /// The handle's, the fence's ([`SignalError::TooFar`]).
    pub(super) fn new(
        object: &Arc<MonitoredFenceObject>,
        value: u64,
        progress: Option<&Arc<MonitoredFence>>,
    ) -> Result<Self, SignalError> {
        object.check_signal()?;
        let signal = object.fence().begin_signal(value, progress)?;
        Ok(Self {
            object: Arc::clone(object),
            signal,
            is_made: false,
        })
    }

    fn value(&self) -> u64 {
        self.signal.value()
    }

    /// The packet that makes it.
    pub(super) fn packet(&self) -> Packet {
        let stored = self.object.fence().stored_as(self.value());
        Packet::signal(self.object.handle(), stored, 0)
    }

    /// Raw handle and value, for the log.
    pub(super) fn named(&self) -> (u32, u64) {
        (self.object.handle().raw(), self.value())
    }

    /// The OS makes it.
    ///
    /// # Errors
    /// The handle was closed meanwhile.
    pub(super) fn make(mut self) -> Result<(), SignalError> {
        self.object.check_signal()?;
        self.is_made = true;
        // What the GPU stores is not refused (NF-21).
        self.object.fence().signal_queued(&self.signal)
    }

    /// Its command has completed.
    pub(super) fn made(mut self) {
        self.is_made = true;
        let fence = self.object.fence();
        fence.signalled(self.value(), Some(&self.signal));
    }
}

impl Drop for QueuedSignal {
    fn drop(&mut self) {
        if !self.is_made {
            self.object.fence().withdraw_signal(&self.signal);
        }
    }
}

/// Packets for the engine, and what completes with them.
#[derive(Debug)]
pub(super) struct Command {
    pub(super) packets: Vec<Packet>,
    pub(super) progress_value: u64,
    pub(super) flags: SubmitCommandFlags,
    pub(super) effects: Effects,
}

/// What the OS does when a command has completed.
#[derive(Debug, Default)]
pub(super) struct Effects {
    pub(super) signals: Vec<QueuedSignal>,
    pub(super) progress_value: u64,
    pub(super) then: Option<Box<dyn Then>>,
    ring_packets: u64,
}

/// What the OS's own commands are for: told when they have completed, and else dropped when the engine has
/// nothing of the queue any more.
pub(super) trait Then: Send + Debug {
    /// The caller holds no lock.
    fn completed(self: Box<Self>);
}

/// A wait that the OS holds a queue at.
#[derive(Debug)]
pub(super) struct HeldWait {
    pub(super) object: Arc<dyn Waitable>,
    pub(super) handle: u32,
    pub(super) value: u64,
    /// When it was first seen unsatisfied, and since then stands in the fence's list.
    pub(super) stands: Option<(u64, StandingWait)>,
}

/// A signal that the OS makes.
#[derive(Debug)]
pub(super) enum OsSignal {
    Native(Arc<FenceObject>, u64),
    /// It counts as outstanding until it is made.
    Monitored(QueuedSignal),
}

impl OsSignal {
    /// # Errors
    /// The handle may not signal or is closed.
    pub(super) fn native(object: &Arc<FenceObject>, value: u64) -> Result<Self, SignalError> {
        object.check_signal()?;
        Ok(Self::Native(Arc::clone(object), value))
    }

    /// # Errors
    /// The handle's, the fence's ([`SignalError::TooFar`]).
    pub(super) fn monitored(
        object: &Arc<MonitoredFenceObject>,
        value: u64,
    ) -> Result<Self, SignalError> {
        QueuedSignal::new(object, value, None).map(Self::Monitored)
    }

    /// Raw handle and value, for the log.
    pub(super) fn named(&self) -> (u32, u64) {
        match self {
            Self::Native(object, value) => (object.handle().raw(), *value),
            Self::Monitored(signal) => signal.named(),
        }
    }
}

/// When the OS makes a signal that has come to the head.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SignalAt {
    /// All commands before it have completed.
    #[default]
    Completion,
    /// All commands before it were submitted (`SignalAtSubmission`). One that is preempted and submitted
    /// again finds no signal behind it any more.
    Submission,
}

#[derive(Debug)]
pub(super) enum SoftwarePacket {
    Command(Command),
    Wait(HeldWait),
    Signal(OsSignal, SignalAt),
}

/// See the file's head.
#[derive(Debug, Default)]
pub(super) struct SoftwareQueue {
    held: VecDeque<SoftwarePacket>,
    /// Handed to the engine, oldest first.
    in_flight: VecDeque<Effects>,
    /// How many of those the driver has not got yet: while it preempts it gets none.
    unsubmitted: u64,
    ring_packets: u64,
    queued_value: u64,
    /// What its commands are.
    flags: SubmitCommandFlags,
    /// Its commands initialise what drivers ask for with contexts.
    initialises: bool,
    /// The engine was handed a command.
    has_run: bool,
    /// A wait or a signal of the OS was queued behind the last command.
    ends_otherwise: bool,
    pub(super) error: Option<WaitError>,
}

/// What a queue held and lets go: to be dropped without a lock.
#[derive(Debug)]
#[must_use = "what is dropped here takes locks"]
pub(super) struct Remains<T>(
    #[allow(dead_code, reason = "they are kept to be dropped")] VecDeque<T>,
);

impl SoftwareQueue {
    /// Most packets of one command: each takes two places of the ring at most, and the end one.
    pub(super) const MOST_PACKETS: usize = SubmitCommand::MOST_RING_PACKETS as usize / 2 - 1;

    /// One whose commands are paging packets: whether these initialise what drivers ask for with contexts.
    pub(super) fn of_paging(initialises: bool) -> Self {
        Self {
            flags: SubmitCommandFlags::PAGING,
            initialises,
            ..Self::default()
        }
    }

    /// Whether it is one of those.
    pub(super) fn is_paging(&self) -> bool {
        self.flags.has(SubmitCommandFlags::PAGING)
    }

    /// Whether its commands initialise what drivers ask for with contexts.
    pub(super) fn is_initialising(&self) -> bool {
        self.initialises
    }

    /// Packets of commands that are held.
    pub(super) fn held_packets(&self) -> impl Iterator<Item = Packet> {
        let commands = self.held.iter().filter_map(|packet| match packet {
            SoftwarePacket::Command(command) => Some(&command.packets),
            SoftwarePacket::Wait(_) | SoftwarePacket::Signal(..) => None,
        });
        commands.flatten().copied()
    }

    /// The progress value of packets that make one command, if they come next.
    pub(super) fn next_progress(&self, packets: &[Packet]) -> u64 {
        self.queued_value + SubmitCommand::signals(packets) + 1
    }

    /// Puts packets for the engine at the end; gives the progress value that covers them. What does
    /// not fit into a ring becomes several commands.
    pub(super) fn push_commands(&mut self, packets: &[Packet], signals: Vec<QueuedSignal>) -> u64 {
        let mut signals = signals.into_iter();
        self.ends_otherwise = false;
        for packets in packets.chunks(Self::MOST_PACKETS) {
            let count = SubmitCommand::signals(packets);
            self.queued_value = self.next_progress(packets);
            let signals: Vec<_> = signals.by_ref().take(count as usize).collect();
            for signal in &signals {
                signal.signal.completes_with(self.queued_value);
            }
            let effects = Effects {
                signals,
                progress_value: self.queued_value,
                then: None,
                ring_packets: SubmitCommand::ring_packets(packets),
            };
            self.held.push_back(SoftwarePacket::Command(Command {
                packets: packets.to_vec(),
                progress_value: self.queued_value,
                flags: self.flags,
                effects,
            }));
        }
        self.queued_value
    }

    /// The same for one packet of the OS's own.
    pub(super) fn push_then(&mut self, packet: Packet, then: Box<dyn Then>) {
        self.push_commands(&[packet], Vec::new());
        if let Some(SoftwarePacket::Command(command)) = self.held.back_mut() {
            command.effects.then = Some(then);
        }
    }

    /// Puts a wait or a signal at the end.
    pub(super) fn push(&mut self, packet: SoftwarePacket) {
        self.held.push_back(packet);
        self.ends_otherwise = true;
    }

    /// Puts a command at the end that does nothing, unless a command is the last that was queued; gives
    /// the progress value that covers all of it, 0 where nothing was ever queued.
    pub(super) fn push_end(&mut self) -> u64 {
        if self.ends_otherwise {
            self.push_commands(&[Packet::nop()], Vec::new());
        }
        self.queued_value
    }

    /// Whether the command of `value` is the last that was queued.
    pub(super) fn ends_at(&self, value: u64) -> bool {
        !self.ends_otherwise && self.queued_value == value
    }

    /// Whether anything is held or in flight.
    pub(super) fn is_unfinished(&self) -> bool {
        !self.held.is_empty() || !self.in_flight.is_empty()
    }

    /// The wait at the head.
    pub(super) fn held_wait(&self) -> Option<HwQueueWait> {
        match self.held.front()? {
            SoftwarePacket::Wait(wait) => Some(HwQueueWait {
                handle: wait.handle,
                value: wait.value,
                observed_ticks: wait.stands.as_ref().map_or(0, |(observed, _)| *observed),
            }),
            SoftwarePacket::Command(_) | SoftwarePacket::Signal(..) => None,
        }
    }

    /// Whether the engine has commands.
    pub(super) fn has_in_flight(&self) -> bool {
        !self.in_flight.is_empty()
    }

    /// The wait at the head that stands in its fence's list.
    pub(super) fn stands_at(&self) -> Option<HeldAt> {
        let Some(SoftwarePacket::Wait(wait)) = self.held.front() else {
            return None;
        };
        let (observed, _) = wait.stands.as_ref()?;
        Some((Arc::clone(&wait.object), wait.value, *observed))
    }

    /// Whether it stands at a wait that nobody but queues may end, and its engine has nothing of it that could.
    pub(super) fn is_left_to_queues(&self) -> bool {
        let Some(SoftwarePacket::Wait(wait)) = self.held.front() else {
            return false;
        };
        wait.stands.is_some() && !self.has_in_flight() && wait.object.is_left_to_queues()
    }

    /// Signals that are held.
    pub(super) fn queued_signals(&self) -> Vec<(FenceId, u64)> {
        let signal = |signal: &QueuedSignal| (signal.object.fence().id(), signal.value());
        let mut signals = Vec::new();
        for packet in &self.held {
            match packet {
                SoftwarePacket::Command(command) => {
                    signals.extend(command.effects.signals.iter().map(signal));
                }
                SoftwarePacket::Signal(OsSignal::Native(object, value), _) => {
                    signals.push((object.fence().id(), *value));
                }
                SoftwarePacket::Signal(OsSignal::Monitored(queued), _) => {
                    signals.push(signal(queued));
                }
                SoftwarePacket::Wait(_) => {}
            }
        }
        signals
    }

    /// Takes the head out if something can be done with it now.
    pub(super) fn next(&mut self) -> Option<SoftwarePacket> {
        if self.error.is_some() {
            return None;
        }
        let ready = match self.held.front()? {
            SoftwarePacket::Command(command) => {
                let needed = command.effects.ring_packets;
                self.ring_packets + needed <= SubmitCommand::MOST_RING_PACKETS
            }
            SoftwarePacket::Wait(_) => true,
            SoftwarePacket::Signal(_, SignalAt::Completion) => self.in_flight.is_empty(),
            SoftwarePacket::Signal(_, SignalAt::Submission) => self.unsubmitted == 0,
        };
        if ready { self.held.pop_front() } else { None }
    }

    /// The wait at the head is not over.
    ///
    /// # Errors
    /// The queue was stopped meanwhile: the wait, to be dropped without a lock.
    pub(super) fn put_back(&mut self, wait: HeldWait) -> Result<(), HeldWait> {
        if self.error.is_some() {
            return Err(wait);
        }
        self.held.push_front(SoftwarePacket::Wait(wait));
        Ok(())
    }

    /// A command goes to the engine; gives what goes there.
    ///
    /// # Errors
    /// The queue was stopped meanwhile: the command, to be dropped without a lock.
    pub(super) fn hand_over(
        &mut self,
        command: Command,
    ) -> Result<(Vec<Packet>, u64, SubmitCommandFlags), Command> {
        if self.error.is_some() {
            return Err(command);
        }
        self.ring_packets += command.effects.ring_packets;
        self.in_flight.push_back(command.effects);
        self.unsubmitted += 1;
        self.has_run = true;
        Ok((command.packets, command.progress_value, command.flags))
    }

    /// The flags of a context switch, once the engine was handed anything.
    pub(super) fn switches_with(&self) -> Option<SubmitCommandFlags> {
        let flags = self.flags.with(SubmitCommandFlags::CONTEXT_SWITCH);
        self.has_run.then_some(flags)
    }

    /// The driver has got the oldest command that it had not; whether the head was held back by that.
    pub(super) fn submitted(&mut self) -> bool {
        self.unsubmitted -= 1;
        matches!(
            self.held.front(),
            Some(SoftwarePacket::Signal(_, SignalAt::Submission))
        )
    }

    /// The oldest command has completed.
    pub(super) fn completed(&mut self) -> Option<Effects> {
        let effects = self.in_flight.pop_front()?;
        self.ring_packets -= effects.ring_packets;
        Some(effects)
    }

    /// The queue is stopped, with the first error of several; nothing of it goes to the engine any
    /// more. Signals of what went there before stay outstanding (MF-06).
    pub(super) fn stop(&mut self, error: WaitError) -> Remains<SoftwarePacket> {
        self.error.get_or_insert(error);
        Remains(std::mem::take(&mut self.held))
    }

    /// The engine has nothing of the queue any more.
    pub(super) fn end(&mut self) -> Remains<Effects> {
        Remains(std::mem::take(&mut self.in_flight))
    }
}
