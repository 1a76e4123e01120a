//! Engine protocol: what an engine in a process of its own and its parent tell each other.
//!
//! Messages of one size over a socket that keeps them apart. The parent requests and the child replies, in any
//! order, by the request's number: what compiles takes its time, and the rest does not stand behind it. A slice is
//! started without a reply, and its end is told when it comes. The parent trusts no word of it: the child runs what a user's kernel may have written over. What may come the
//! [`EngineLedger`](super::engine_ledger::EngineLedger) says; a child that says anything else is ended.

use super::{ShaderTuning, SliceWork};
use crate::shared::{PassError, receive_message, send_descriptors};
use crate::vulkan::{AdapterInfo, shaders};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Words of a message: kind, number, values, and a text with its length before it.
const WORDS: usize = 64;
const KIND: usize = 0;
const NUMBER: usize = 1;
const VALUES: usize = 2;
const TEXT_BYTES: usize = 12;
const TEXT: usize = 13;
/// Bytes that a text has room for.
const MOST_TEXT: usize = (WORDS - TEXT) * 8;

/// Raised when a message changes.
const VERSION: u64 = 2;

/// No lanes are asked for.
const NO_LANES: u64 = u64::MAX;

/// A message that is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProtocolError {
    /// It is no message of this size, or none can come any more.
    #[error(transparent)]
    Pass(#[from] PassError),
    /// No such kind.
    #[error("a message of kind {0}")]
    Kind(u64),
    /// Something else than a message.
    #[error("a descriptor that nobody asked for")]
    Descriptor,
    /// A reply to what was not asked.
    #[error("a reply with number {0}, which nobody waits for")]
    Number(u64),
    /// The end of a slice that is not the next.
    #[error("the end of slice {told} where {next} is next of {started}")]
    Slice {
        /// What it said.
        told: u64,
        /// What could have been.
        next: u64,
        /// Slices started.
        started: u64,
    },
}

/// What the child is to open.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Opening {
    /// Which messages, and which shader.
    pub(super) version: u64,
    /// The device, in words for people; the same words are the same device.
    pub(super) device: String,
    /// Its UUID and its driver's.
    pub(super) uuids: [u64; 4],
    pub(super) validation: bool,
    pub(super) tuning: ShaderTuning,
}

impl Opening {
    pub(super) fn new(info: &AdapterInfo, validation: bool, tuning: ShaderTuning) -> Self {
        Self {
            version: version(),
            device: device_words(info),
            uuids: uuids(info),
            validation,
            tuning,
        }
    }

    /// Whether it is this device.
    pub(super) fn is_of(&self, info: &AdapterInfo) -> bool {
        self.uuids == uuids(info) && self.device == device_words(info)
    }
}

/// Which messages, and which shader: two programs with the same talk to each other.
pub(super) fn version() -> u64 {
    // FNV-1a.
    let hash = |hash: u64, word: &u32| (hash ^ u64::from(*word)).wrapping_mul(0x100_0000_01b3);
    let shader = shaders::ENGINE
        .words
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, hash);
    shader.wrapping_add(VERSION)
}

fn device_words(info: &AdapterInfo) -> String {
    let words = format!("{}, {} {}", info.name, info.driver_name, info.driver_info);
    cut(&words).to_owned()
}

fn uuids(info: &AdapterInfo) -> [u64; 4] {
    let half = |uuid: &[u8; 16], second: bool| {
        let bytes = u128::from_le_bytes(*uuid);
        (bytes >> (64 * u32::from(second))) as u64
    };
    let (device, driver) = (&info.uuid, &info.driver_uuid);
    [
        half(device, false),
        half(device, true),
        half(driver, false),
        half(driver, true),
    ]
}

/// As much of a text as a message has room for.
fn cut(text: &str) -> &str {
    let mut ends = (0..=MOST_TEXT.min(text.len())).rev();
    let end = ends.find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or(0)]
}

/// What the parent asks, or has done.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Request {
    /// Open the device and make an engine; the first.
    Open(Opening),
    /// Give the region whose descriptor comes with it an address; replied by that.
    Map { memory: u64, bytes: u64 },
    /// Let go of it.
    Unmap { memory: u64 },
    /// [`Engine::attach`](super::Engine::attach).
    Attach { control: u64, before: u64 },
    /// [`Engine::prepare_verbose`](super::Engine::prepare_verbose).
    PrepareVerbose,
    /// [`Engine::prepare_doorbells`](super::Engine::prepare_doorbells).
    PrepareDoorbells,
    /// [`Engine::set_kernels`](super::Engine::set_kernels), of those in the file whose descriptor comes with it
    /// ([`kernel_file`](super::kernel_file)).
    SetKernels { bytes: u64 },
    /// [`Engine::start`](super::Engine::start).
    Start { slice: u64, work: SliceWork },
}

/// What the child tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// It is done; an address, where one was asked for.
    Done {
        /// Of the request.
        number: u64,
        /// The address.
        value: u64,
    },
    /// It is not, for this reason.
    Failed {
        /// Of the request.
        number: u64,
        /// In words, without control characters.
        why: String,
    },
    /// A slice has ended.
    Ended {
        /// Which.
        slice: u64,
    },
    /// The engine's device is lost.
    Lost,
}

/// A message, whole.
#[derive(Clone, Copy)]
struct Message([u64; WORDS]);

impl Message {
    fn new(kind: u64, number: u64, values: &[u64]) -> Self {
        let mut words = [0; WORDS];
        words[KIND] = kind;
        words[NUMBER] = number;
        words[VALUES..][..values.len()].copy_from_slice(values);
        Self(words)
    }

    fn with_text(mut self, text: &str) -> Self {
        let text = cut(text).as_bytes();
        self.0[TEXT_BYTES] = text.len() as u64;
        bytemuck::cast_slice_mut(&mut self.0[TEXT..])[..text.len()].copy_from_slice(text);
        self
    }

    fn value(&self, at: usize) -> u64 {
        self.0[VALUES + at]
    }

    /// The text, whatever bytes the other end has put there.
    fn text(&self) -> String {
        let bytes: &[u8] = bytemuck::cast_slice(&self.0[TEXT..]);
        let length = usize::try_from(self.0[TEXT_BYTES]).unwrap_or(MOST_TEXT);
        let text = String::from_utf8_lossy(&bytes[..length.min(MOST_TEXT)]);
        let is_plain = |c: &char| !c.is_control();
        text.chars().filter(is_plain).collect()
    }

    fn send(&self, socket: impl AsFd, descriptor: Option<BorrowedFd<'_>>) -> Result<(), PassError> {
        let descriptors: Vec<_> = descriptor.into_iter().collect();
        send_descriptors(socket, bytemuck::bytes_of(&self.0), &descriptors)
    }

    fn receive(socket: impl AsFd) -> Result<(Self, Option<OwnedFd>), PassError> {
        let mut words = [0; WORDS];
        let descriptor = receive_message(socket, bytemuck::bytes_of_mut(&mut words))?;
        Ok((Self(words), descriptor))
    }
}

impl Request {
    /// Sends it, with a region's descriptor where one belongs to it.
    pub(super) fn send(
        &self,
        socket: impl AsFd,
        number: u64,
        descriptor: Option<BorrowedFd<'_>>,
    ) -> Result<(), PassError> {
        self.message(number).send(socket, descriptor)
    }

    /// Receives the next, its number, and what came with it.
    pub(super) fn receive(
        socket: impl AsFd,
    ) -> Result<(Self, u64, Option<OwnedFd>), ProtocolError> {
        let (message, descriptor) = Message::receive(socket)?;
        Ok((Self::of(&message)?, message.0[NUMBER], descriptor))
    }

    /// The words that it is sent as.
    pub(super) fn words(&self, number: u64) -> Vec<u64> {
        self.message(number).0.to_vec()
    }

    fn message(&self, number: u64) -> Message {
        let message = |kind, values: &[u64]| Message::new(kind, number, values);
        match self {
            Self::Open(Opening {
                version,
                device,
                uuids: [a, b, c, d],
                validation,
                tuning,
            }) => {
                let lanes = tuning.lanes.map_or(NO_LANES, u64::from);
                let steps = u64::from(tuning.rounds) << 32 | u64::from(tuning.quantum);
                let resolves = tuning.resolves;
                let flags = u64::from(*validation)
                    | u64::from(tuning.stalls) << 1
                    | u64::from(resolves.is_some()) << 2
                    | u64::from(resolves == Some(true)) << 3;
                let values = [*version, *a, *b, *c, *d, lanes, steps, flags];
                message(1, &values).with_text(device)
            }
            Self::Map { memory, bytes } => message(2, &[*memory, *bytes]),
            Self::Unmap { memory } => message(3, &[*memory]),
            Self::Attach { control, before } => message(4, &[*control, *before]),
            Self::PrepareVerbose => message(5, &[]),
            Self::PrepareDoorbells => message(8, &[]),
            Self::Start { slice, work } => {
                let flags = u64::from(work.transfers)
                    | u64::from(work.verbose) << 1
                    | u64::from(work.dispatches) << 2
                    | u64::from(work.schedules_itself) << 3
                    | u64::from(work.doorbells) << 4;
                message(6, &[*slice, work.queues, flags])
            }
            Self::SetKernels { bytes } => message(7, &[*bytes]),
        }
    }

    fn of(message: &Message) -> Result<Self, ProtocolError> {
        let value = |at| message.value(at);
        let has = |at, bit: u32| message.value(at) >> bit & 1 == 1;
        Ok(match message.0[KIND] {
            1 => Self::Open(Opening {
                version: value(0),
                device: message.text(),
                uuids: [value(1), value(2), value(3), value(4)],
                validation: has(7, 0),
                tuning: ShaderTuning {
                    lanes: (value(5) != NO_LANES).then_some(value(5) as u32),
                    rounds: (value(6) >> 32) as u32,
                    quantum: value(6) as u32,
                    resolves: has(7, 2).then(|| has(7, 3)),
                    stalls: has(7, 1),
                },
            }),
            2 => Self::Map {
                memory: value(0),
                bytes: value(1),
            },
            3 => Self::Unmap { memory: value(0) },
            4 => Self::Attach {
                control: value(0),
                before: value(1),
            },
            5 => Self::PrepareVerbose,
            8 => Self::PrepareDoorbells,
            6 => Self::Start {
                slice: value(0),
                work: SliceWork {
                    queues: value(1),
                    transfers: has(2, 0),
                    verbose: has(2, 1),
                    dispatches: has(2, 2),
                    schedules_itself: has(2, 3),
                    doorbells: has(2, 4),
                },
            },
            7 => Self::SetKernels { bytes: value(0) },
            other => return Err(ProtocolError::Kind(other)),
        })
    }
}

impl Reply {
    /// Sends it.
    pub(super) fn send(&self, socket: impl AsFd) -> Result<(), PassError> {
        self.message().send(socket, None)
    }

    /// Receives the next.
    ///
    /// # Errors
    /// It is none, or none can come any more.
    pub fn receive(socket: impl AsFd) -> Result<Self, ProtocolError> {
        match Message::receive(socket)? {
            (message, None) => Self::of(&message),
            (_, Some(_)) => Err(ProtocolError::Descriptor),
        }
    }

    fn message(&self) -> Message {
        match self {
            Self::Done { number, value } => Message::new(1, *number, &[*value]),
            Self::Failed { number, why } => Message::new(2, *number, &[]).with_text(why),
            Self::Ended { slice } => Message::new(3, 0, &[*slice]),
            Self::Lost => Message::new(4, 0, &[]),
        }
    }

    fn of(message: &Message) -> Result<Self, ProtocolError> {
        let number = message.0[NUMBER];
        Ok(match message.0[KIND] {
            1 => Self::Done {
                number,
                value: message.value(0),
            },
            2 => Self::Failed {
                number,
                why: message.text(),
            },
            3 => Self::Ended {
                slice: message.value(0),
            },
            4 => Self::Lost,
            other => return Err(ProtocolError::Kind(other)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    fn pair() -> (OwnedFd, OwnedFd) {
        let flags = SocketFlags::CLOEXEC;
        socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap()
    }

    fn raw(socket: &OwnedFd, bytes: &[u8], descriptor: bool) {
        let descriptors = descriptor.then(|| socket.as_fd());
        let descriptors: Vec<_> = descriptors.into_iter().collect();
        send_descriptors(socket, bytes, &descriptors).unwrap();
    }

    #[test]
    fn what_is_said_is_what_is_heard() {
        let (ours, theirs) = pair();
        let opening = Opening {
            version: version(),
            device: "llvmpipe (é)".into(),
            uuids: [1, 2, 3, u64::MAX],
            validation: true,
            tuning: ShaderTuning {
                lanes: Some(8),
                rounds: 5,
                resolves: Some(false),
                ..ShaderTuning::default()
            },
        };
        let plain = Opening {
            validation: false,
            tuning: ShaderTuning {
                stalls: true,
                resolves: Some(true),
                ..ShaderTuning::default()
            },
            ..opening.clone()
        };
        let work = SliceWork {
            queues: 9,
            transfers: true,
            verbose: false,
            dispatches: true,
            schedules_itself: true,
            doorbells: true,
        };
        let requests = [
            Request::Open(opening),
            Request::Open(plain),
            Request::Map {
                memory: 1,
                bytes: 4096,
            },
            Request::Unmap { memory: 1 },
            Request::Attach {
                control: 8,
                before: 4,
            },
            Request::PrepareVerbose,
            Request::PrepareDoorbells,
            Request::Start { slice: 5, work },
            Request::SetKernels { bytes: 8192 },
        ];
        for (request, number) in requests.into_iter().zip(1..) {
            request.send(&ours, number, None).unwrap();
            let (heard, at, descriptor) = Request::receive(&theirs).unwrap();
            assert_eq!((heard, at), (request, number));
            assert!(descriptor.is_none());
        }
        let replies = [
            Reply::Done {
                number: 7,
                value: u64::MAX,
            },
            Reply::Failed {
                number: 8,
                why: "no room".into(),
            },
            Reply::Ended { slice: 3 },
            Reply::Lost,
        ];
        for reply in replies {
            reply.send(&theirs).unwrap();
            assert_eq!(Reply::receive(&ours), Ok(reply));
        }
    }

    /// A child that was written over says anything: none of it is taken for a reply, and no word of its
    /// text is more than a word.
    ///
    /// Kills `a-short-reply-is-a-reply`.
    #[test]
    fn pr_01_a_message_that_is_none_is_an_error() {
        let (ours, theirs) = pair();
        let whole = Message::new(4, 0, &[]);
        let bytes = bytemuck::bytes_of(&whole.0);
        let long = [bytes, &[0]].concat();
        for wrong in [&bytes[..8], &bytes[..511], &long] {
            raw(&theirs, wrong, false);
            let heard = Reply::receive(&ours);
            assert!(
                matches!(heard, Err(ProtocolError::Pass(PassError::Other { .. }))),
                "{heard:?}"
            );
        }
        raw(&theirs, bytes, true);
        assert_eq!(Reply::receive(&ours), Err(ProtocolError::Descriptor));
        for kind in [0, 5, u64::MAX] {
            raw(
                &theirs,
                bytemuck::bytes_of(&Message::new(kind, 0, &[]).0),
                false,
            );
            assert_eq!(Reply::receive(&ours), Err(ProtocolError::Kind(kind)));
        }
        let mut failed = Message::new(2, 1, &[]).with_text("no\u{1b}[31m room");
        failed.0[TEXT_BYTES] = u64::MAX;
        failed.0[WORDS - 1] = u64::MAX;
        raw(&theirs, bytemuck::bytes_of(&failed.0), false);
        match Reply::receive(&ours).unwrap() {
            Reply::Failed { why, .. } => assert!(why.starts_with("no[31m room"), "{why:?}"),
            other => panic!("{other:?}"),
        }
        raw(&theirs, bytes, false);
        assert_eq!(Reply::receive(&ours), Ok(Reply::Lost));
    }

    /// TD-22: a child that ends with a request unread has told the end of its last slice all the same.
    ///
    /// Kills `an-unread-message-drops-what-was-told`.
    #[test]
    fn td_22_what_a_child_told_before_its_end_is_heard() {
        let (ours, theirs) = pair();
        let ended = Reply::Ended { slice: 1 };
        ended.send(&theirs).unwrap();
        Request::PrepareVerbose.send(&ours, 1, None).unwrap();
        drop(theirs);
        assert_eq!(Reply::receive(&ours), Ok(ended));
        let closed = ProtocolError::Pass(PassError::Closed);
        assert_eq!(Reply::receive(&ours), Err(closed));
    }
}
