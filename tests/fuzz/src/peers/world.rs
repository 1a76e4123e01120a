//! World: two operating systems with two fences, what was done to them, and what may have come of it.

use super::message::{File, Message, TEXT};
use super::system::{Shared, System};
use super::waiting::Waiting;
use super::{Place, Played, Step, Value};
use crate::reply::is_alone;
use native_fence::abi::{OpenerSlot, PAGE_BYTES, SharedFenceHeader};
use native_fence::conform::LONG;
use native_fence::shared::send_descriptors;
use native_fence::{CommandList, SharedHandle, SignalError, WaitError};
use rustix::net::{SendFlags, send};
use rustix::pipe::pipe;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

const MOST_WAITS: usize = 8;
/// Whose wait takes longer was told by nobody, and found its value by the last look of its time-out.
const SOON: Duration = Duration::from_secs(10);
/// A slot is free when the engines have let go of the fence that had it: so many times it is opened again at least.
const SURELY_OPENED: usize = 12;

/// A wait that stands, or has ended and was not asked yet.
#[derive(Debug)]
struct Armed {
    side: usize,
    value: u64,
    wait: Waiting,
    /// The greatest CurrentValue since it came.
    most: u64,
}

/// What may have ended waits, beside values that came after them.
#[derive(Clone, Copy, Debug, Default)]
struct Scribbled {
    /// Any word was, or an engine went back: of that nobody is told.
    anything: bool,
    /// The greatest value that anybody was told, or that ever was there.
    most: u64,
    owners: bool,
    always_signaled: bool,
}

impl Scribbled {
    /// Whether a wait may have ended so.
    fn allows(&self, armed: &Armed, ended: Result<(), WaitError>) -> bool {
        match ended {
            Ok(()) if self.anything => armed.value <= self.most,
            Ok(()) => armed.value <= armed.most,
            Err(WaitError::SlotLost) => self.owners,
            Err(WaitError::DeviceLost) => self.always_signaled,
            Err(_) => false,
        }
    }
}

/// A process as a slot names its owner, by the number that `/proc` has it under.
fn identity(process: &str) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name, in parentheses, may have any characters in it.
    let number = stat.split_whitespace().next()?.parse::<u64>().ok()?;
    let started = stat.rsplit(')').next()?.split_whitespace().nth(19)?;
    Some(started.parse::<u64>().ok()? << OpenerSlot::PROCESS_BITS | number)
}

/// See the file's head.
pub(super) struct World {
    shared: Shared,
    other: Shared,
    /// What the other fence is at.
    other_value: u64,
    waits: Vec<Armed>,
    scribbled: Scribbled,
    /// How often it was opened again, and the other one.
    opened: [usize; 2],
    systems: [System; 2],
    played: Played,
}

impl World {
    pub(super) fn new(initial: u64, as_descriptors: bool) -> Self {
        let systems = [System::new(), System::new()];
        Self {
            shared: Shared::new(&systems, initial, as_descriptors),
            other: Shared::new(&systems, 0, !as_descriptors),
            other_value: 0,
            waits: Vec::new(),
            scribbled: Scribbled {
                most: initial,
                ..Scribbled::default()
            },
            opened: [0; 2],
            systems,
            played: Played::default(),
        }
    }

    pub(super) fn step(&mut self, step: Step) {
        match step {
            Step::Arm { side, value } => self.arm(side.into(), value.into()),
            Step::Drop(at) => {
                if !self.waits.is_empty() {
                    let at = usize::from(at) % self.waits.len();
                    drop(self.waits.remove(at));
                }
            }
            Step::Signal {
                side,
                value,
                rewind,
            } => self.signal(side.into(), value.into(), rewind),
            Step::GpuSignal { side, value } => self.gpu_signal(side.into(), value.into()),
            Step::GpuWait { side, value } => {
                if let Some(fence) = &self.shared.fences[usize::from(side)] {
                    let list = CommandList::new().wait(fence, value.into()).clone();
                    // Refused where the queue was stopped, since the handle was closed that it waited by.
                    let _ = self.systems[usize::from(side)].waiting.submit(&list);
                }
            }
            Step::Scribble { words, calls } => {
                for (place, value) in words {
                    self.scribble(place, value);
                }
                if calls {
                    self.shared.look();
                }
            }
            Step::Reopen(side) => self.reopen(side.into()),
            Step::Message(message) => self.message(&message),
            Step::Other => self.use_other(),
        }
        self.ask();
    }

    fn arm(&mut self, side: usize, value: u64) {
        let Some(fence) = &self.shared.fences[side] else {
            return;
        };
        if self.waits.len() < MOST_WAITS {
            let most = self.shared.current_value();
            let wait = Waiting::new(fence, value);
            self.waits.push(Armed {
                side,
                value,
                wait,
                most,
            });
        }
    }

    fn signal(&mut self, side: usize, value: u64, rewind: bool) {
        let Some(fence) = &self.shared.fences[side] else {
            return;
        };
        let before = self.shared.current_value();
        let signalled = if rewind {
            fence.rewind(value)
        } else {
            fence.signal(value)
        };
        match &signalled {
            Ok(()) => self.stored(value),
            Err(SignalError::Backward { current }) => {
                assert!(!rewind && *current == before && value < before);
            }
            Err(error) => panic!("a signal of {value} by {side}: {error}"),
        }
        // It is as it was, or as it was to be.
        if !self.scribbled.anything {
            let after = if signalled.is_ok() { value } else { before };
            assert_eq!(self.shared.current_value(), after);
        }
    }

    fn gpu_signal(&mut self, side: usize, value: u64) {
        let Some(fence) = &self.shared.fences[side] else {
            return;
        };
        // Of an engine's going back nobody is told.
        self.scribbled.anything |= value < self.shared.current_value();
        let list = CommandList::new().signal(fence, value).clone();
        let queue = &mut self.systems[side].queue;
        let end = queue.submit(&list).expect("a queue of its own");
        let began = Instant::now();
        let executed = queue.progress_fence().wait(end, LONG);
        assert_eq!(executed, Ok(()), "another fence stands still");
        assert!(began.elapsed() < SOON, "nobody told of another fence");
        self.stored(value);
    }

    /// A value was there, and may be told.
    fn stored(&mut self, value: u64) {
        self.scribbled.most = self.scribbled.most.max(value);
        for armed in &mut self.waits {
            armed.most = armed.most.max(value);
        }
    }

    fn scribble(&mut self, place: Place, value: Value) {
        self.played.scribbled += 1;
        self.scribbled.anything = true;
        let slot = |slot: u8| {
            let slots = if slot < 0xc0 { 3 } else { OpenerSlot::SLOTS };
            u64::from(slot) % slots
        };
        let in_slot = |at: u8, offset| Some(slot(at) * OpenerSlot::BYTES + offset);
        let at = match place {
            Place::CurrentValue => None,
            Place::Slot { slot, word } => in_slot(slot, u64::from(word) * 8 % OpenerSlot::BYTES),
            Place::Owner { slot } => in_slot(slot, OpenerSlot::OWNER),
            Place::Awaited { slot } => in_slot(slot, OpenerSlot::AWAITED),
            Place::Reached { slot: of, word } => Some(OpenerSlot::reached(
                slot(of),
                u64::from(word) % OpenerSlot::REACHED_WORDS,
            )),
            Place::Header(word) => {
                let word = u64::from(word) * 8 % SharedFenceHeader::BYTES;
                Some(SharedFenceHeader::OFFSET + word)
            }
            Place::Rewinds => Some(SharedFenceHeader::REWINDS),
            Place::AlwaysSignaled => Some(SharedFenceHeader::ALWAYS_SIGNALED),
            Place::Any(word) => Some(u64::from(word) * 8 % PAGE_BYTES),
        };
        let block = match at {
            Some(_) => self.shared.page.clone(),
            None => self.shared.current.clone(),
        };
        let word = block.word(at.unwrap_or(0));
        let own = || identity("self").unwrap_or(1);
        let value = match value {
            Value::Small(value) => value.into(),
            Value::By(by) => word.observe().wrapping_add_signed(by.into()),
            Value::Greatest => u64::MAX,
            Value::Own => own(),
            Value::OwnOfAnotherTime => own().wrapping_add(1 << OpenerSlot::PROCESS_BITS),
            Value::First => identity("1").unwrap_or(1),
            Value::Any(value) => value,
        };
        let reached = OpenerSlot::REACHED_WORDS_AT..SharedFenceHeader::OFFSET;
        match at {
            Some(at) if at == SharedFenceHeader::ALWAYS_SIGNALED => {
                self.scribbled.always_signaled = true;
            }
            Some(at) if at < reached.start && at % OpenerSlot::BYTES == OpenerSlot::OWNER => {
                self.scribbled.owners = true;
            }
            // What stands there may be told at any time.
            Some(at) if !reached.contains(&at) => {}
            Some(_) | None => self.stored(value),
        }
        word.publish(value);
    }

    /// Asks each wait how it ended. As long as nothing was scribbled, who is due is told, and nobody else is.
    fn ask(&mut self) {
        let scribbled = self.scribbled;
        let played = &mut self.played;
        self.waits.retain_mut(|armed| {
            let ended = if scribbled.anything {
                armed.wait.look()
            } else if armed.most >= armed.value {
                Some(armed.wait.end("a wait whose value has come ends"))
            } else if armed.wait.is_told() {
                armed.wait.look()
            } else {
                None
            };
            let Some(ended) = ended else {
                return true;
            };
            assert!(scribbled.allows(armed, ended), "{armed:?}, {scribbled:?}");
            match ended {
                Ok(()) => played.satisfied += 1,
                Err(_) => played.failed += 1,
            }
            false
        });
    }

    fn reopen(&mut self, side: usize) {
        if let Some(fence) = self.shared.fences[side].take() {
            fence.close();
            let is_closed = |armed: &Armed| armed.side == side;
            let (closed, rest): (Vec<_>, Vec<_>) = self.waits.drain(..).partition(is_closed);
            self.waits = rest;
            for mut armed in closed {
                // It was asked after the step before, and nothing has come since but what was scribbled.
                let ended = armed.wait.look();
                let well = match ended {
                    Some(Err(WaitError::Closed)) => true,
                    other => self.scribbled.anything && other.is_some(),
                };
                assert!(well, "a wait by a closed handle: {ended:?}");
            }
        }
        match self.systems[side].device.open_fence(&self.shared.handle) {
            Ok(fence) => self.shared.fences[side] = Some(fence),
            Err(error) => assert!(
                self.scribbled.anything || self.opened[0] >= SURELY_OPENED,
                "it cannot be opened: {error}"
            ),
        }
        self.opened[0] += 1;
    }

    fn message(&mut self, message: &Message) {
        let (kept, passed) = pipe().expect("a pipe");
        let (socket, _) = UnixStream::pair().expect("two sockets");
        let made = message.files.iter().map(|file| file.made());
        let made: Vec<Option<OwnedFd>> = made.collect();
        let files = message
            .files
            .iter()
            .zip(&made)
            .map(|(file, made)| match (file, made) {
                (_, Some(made)) => made.try_clone(),
                (File::Current, None) => self.shared.files[0].try_clone(),
                (File::Monitored, None) => self.shared.files[1].try_clone(),
                (File::OtherCurrent, None) => self.other.files[0].try_clone(),
                (File::OtherMonitored, None) => self.other.files[1].try_clone(),
                (File::Socket, None) => socket.try_clone().map(Into::into),
                (File::Pipe | File::Memory { .. }, None) => passed.try_clone(),
            });
        let files = files.collect::<std::io::Result<Vec<_>>>();
        let files = files.expect("descriptors");
        drop((made, passed));
        let text = message.text.bytes();
        let came = {
            let (here, there) = UnixStream::pair().expect("two sockets");
            let borrowed: Vec<BorrowedFd<'_>> = files.iter().map(AsFd::as_fd).collect();
            if text.is_empty() {
                // With which none pass.
                send(&here, &text, SendFlags::empty()).expect("there is room");
            } else {
                send_descriptors(&here, &text, &borrowed).expect("there is room");
            }
            drop(borrowed);
            drop((files, here));
            if message.is_kept {
                SharedHandle::of_descriptor(&there)
            } else {
                SharedHandle::receive(&there)
            }
        };
        let is_text = text.starts_with(TEXT);
        let is_of = |files: [File; 2]| is_text && message.files == files;
        let is_other = is_of([File::OtherCurrent, File::OtherMonitored]);
        let is_shared = is_of([File::Current, File::Monitored]);
        match came {
            Ok(handle) => {
                assert!(is_other || is_shared, "{message:?} is a fence");
                let side = usize::from(message.side);
                let opened = &mut self.opened[usize::from(is_other)];
                let may_be_full = *opened >= SURELY_OPENED;
                *opened += 1;
                match self.systems[side].device.open_fence(&handle) {
                    Ok(fence) if is_other => assert_eq!(fence.current_value(), self.other_value),
                    Ok(_) => {}
                    Err(error) => {
                        let may_be = may_be_full || is_shared && self.scribbled.anything;
                        assert!(may_be, "{message:?} is not opened: {error}");
                    }
                }
            }
            Err(error) => {
                let may_be = is_other || is_shared && !self.scribbled.anything;
                assert!(!may_be, "{message:?} is a fence, and not taken: {error}");
                self.played.refused += 1;
            }
        }
        assert!(is_alone(&kept), "a descriptor of {message:?} is kept");
    }

    /// The second fence is as it was left, and goes on.
    fn use_other(&mut self) {
        let fences = self.other.fences.each_ref();
        let [made, opened] = fences.map(|fence| fence.as_ref().expect("nobody closes it"));
        for (from, to) in [(made, opened), (opened, made)] {
            for fence in [from, to] {
                let value = fence.current_value();
                assert_eq!(value, self.other_value, "another fence moved");
            }
            self.other_value += 1;
            let mut wait = Waiting::new(to, self.other_value);
            assert!(!wait.is_told(), "another fence's waiter ended");
            from.signal(self.other_value).expect("it goes on");
            assert_eq!(wait.end("another fence's waiter is told"), Ok(()));
        }
    }

    pub(super) fn end(mut self) -> Played {
        self.use_other();
        self.shared.look();
        self.ask();
        drop((self.waits, self.shared, self.other));
        for system in self.systems {
            system.end();
        }
        self.played
    }
}
