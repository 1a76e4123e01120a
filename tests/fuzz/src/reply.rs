//! Reply: whatever the process of an engine says to its parent, it is taken for what was asked and started, or it is
//! refused (PR-01); no word of it is trusted.
//!
//! Each message is judged when it is said, by what the parent has asked and started until then, and by nothing that the
//! parent keeps; what was heard is compared with that. What is refused changes nothing: a request is answered once, a
//! slice ends once and in its turn. Descriptors that nobody asked for are not kept.

use arbitrary::{Arbitrary, Result, Unstructured};
use native_fence::gpu::{EngineLedger, EngineNews, EngineProtocolError, EngineReply};
use native_fence::shared::{PassError, send_descriptors};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, send, socketpair};
use rustix::pipe::pipe;
use std::collections::BTreeSet;
use std::os::fd::{AsFd, OwnedFd};

/// Words of a message: kind, number, values, and a text with its length before it.
const WORDS: usize = 64;
const BYTES: usize = WORDS * 8;
const TEXT_BYTES: usize = 12;
const TEXT: usize = 13;
const MOST_TEXT: usize = (WORDS - TEXT) * 8;
/// Its kinds; others are none.
const DONE: u64 = 1;
const FAILED: u64 = 2;
const ENDED: u64 = 3;
const LOST: u64 = 4;

/// A course of events.
#[derive(Debug)]
pub struct Program(Vec<Step>);

#[derive(Debug, Arbitrary)]
enum Step {
    /// The parent asks for something.
    Ask,
    /// It attaches the engine, after this slice.
    Attach(u32),
    /// It starts the next slice.
    Start,
    /// The child says something.
    Say(Saying),
}

/// A number near one that is due, or any.
#[derive(Clone, Copy, Debug, Arbitrary)]
enum Number {
    /// Of a request that is not answered.
    Asked(u8),
    /// Of the slice that ends next, or off it.
    Slice(i8),
    Small(u8),
    Any(u64),
}

#[derive(Debug, Arbitrary)]
enum Words {
    Done {
        number: Number,
        value: u64,
    },
    Failed {
        number: Number,
        why: Vec<u8>,
        /// What is said of its length, if not that.
        length: Option<u64>,
    },
    Ended {
        slice: Number,
    },
    Lost,
    Any {
        kind: u64,
        number: Number,
    },
}

/// A message, and what becomes of it.
#[derive(Debug)]
struct Saying {
    words: Words,
    bent: Option<(u8, u64)>,
    /// How many bytes there are of it, if not all.
    bytes: Option<u16>,
    descriptors: u8,
}

impl<'a> Arbitrary<'a> for Program {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let steps = (0..u.int_in_range(1..=64)?).map(|_| u.arbitrary());
        Ok(Self(steps.collect::<Result<_>>()?))
    }
}

impl<'a> Arbitrary<'a> for Saying {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let words = u.arbitrary()?;
        // Most messages shall be whole.
        let bent = u.ratio(1, 4)?.then(|| u.arbitrary()).transpose()?;
        let bytes = u.ratio(1, 8)?.then(|| u.arbitrary()).transpose()?;
        let descriptors = if u.ratio(1, 8)? {
            u.int_in_range(1..=3)?
        } else {
            0
        };
        Ok(Self {
            words,
            bent,
            bytes,
            descriptors,
        })
    }
}

/// What became of the messages.
#[derive(Clone, Copy, Debug, Default)]
pub struct Played {
    /// Those that were taken.
    pub taken: u64,
    /// Those that were not.
    pub refused: u64,
}

/// What is due of a message.
type Due = std::result::Result<EngineNews, EngineProtocolError>;

/// What the parent did, and what came of it as the rules have it.
#[derive(Debug, Default)]
struct Parent {
    requests: u64,
    asked: BTreeSet<u64>,
    started: u64,
    ended: u64,
}

impl Parent {
    fn number(&self, number: Number) -> u64 {
        match number {
            Number::Asked(at) => {
                let at = usize::from(at) % self.asked.len().max(1);
                self.asked.iter().nth(at).copied().unwrap_or(0)
            }
            Number::Slice(by) => (self.ended + 1).wrapping_add_signed(by.into()),
            Number::Small(number) => number.into(),
            Number::Any(number) => number,
        }
    }

    fn message(&self, saying: &Saying) -> Vec<u8> {
        let mut words = [0; WORDS];
        let mut text: &[u8] = &[];
        match &saying.words {
            Words::Done { number, value } => {
                words[..3].copy_from_slice(&[DONE, self.number(*number), *value]);
            }
            Words::Failed {
                number,
                why,
                length,
            } => {
                text = &why[..why.len().min(MOST_TEXT)];
                words[..2].copy_from_slice(&[FAILED, self.number(*number)]);
                words[TEXT_BYTES] = length.unwrap_or(text.len() as u64);
            }
            Words::Ended { slice } => words[..3].copy_from_slice(&[ENDED, 0, self.number(*slice)]),
            Words::Lost => words[0] = LOST,
            Words::Any { kind, number } => {
                words[..2].copy_from_slice(&[*kind, self.number(*number)]);
            }
        }
        bytemuck::cast_slice_mut(&mut words[TEXT..])[..text.len()].copy_from_slice(text);
        if let Some((at, value)) = saying.bent {
            words[usize::from(at) % WORDS] = value;
        }
        let mut bytes = bytemuck::cast_slice(&words).to_vec();
        if let Some(count) = saying.bytes {
            bytes.resize(usize::from(count) % (2 * BYTES), 0xa5);
        }
        bytes
    }

    /// What a message is, and with it what is due from now on. A reason has its words, whatever they are.
    fn due(&mut self, bytes: &[u8], descriptors: u8) -> Due {
        match (bytes.len(), descriptors) {
            (0, _) => return Err(PassError::Closed.into()),
            (BYTES, 0) => {}
            (BYTES, 1) => return Err(EngineProtocolError::Descriptor),
            _ => {
                let expected = usize::from(descriptors > 0);
                return Err(PassError::Other { expected }.into());
            }
        }
        let word = |at: usize| {
            let bytes = bytes[at * 8..][..8].try_into();
            u64::from_ne_bytes(bytes.expect("eight bytes"))
        };
        let number = word(1);
        match word(0) {
            DONE | FAILED if !self.asked.remove(&number) => {
                Err(EngineProtocolError::Number(number))
            }
            DONE => Ok(EngineNews::Answer(number, Ok(word(2)))),
            FAILED => Ok(EngineNews::Answer(number, Err(String::new()))),
            ENDED if word(2) == self.ended + 1 && word(2) <= self.started => {
                self.ended = word(2);
                Ok(EngineNews::Ended(self.ended))
            }
            ENDED => Err(EngineProtocolError::Slice {
                told: word(2),
                next: self.ended + 1,
                started: self.started,
            }),
            LOST => Ok(EngineNews::Lost),
            kind => Err(EngineProtocolError::Kind(kind)),
        }
    }
}

/// Takes the words of a reason out of what was heard, and looks at them: they are for a terminal.
fn without_reason(bytes: &[u8], heard: EngineNews) -> EngineNews {
    let EngineNews::Answer(number, Err(why)) = heard else {
        return heard;
    };
    assert!(!why.contains(char::is_control), "{why:?}");
    // A byte that is none of a text stands for three.
    assert!(why.len() <= 3 * MOST_TEXT, "{} bytes", why.len());
    let length = u64::from_ne_bytes(bytes[TEXT_BYTES * 8..][..8].try_into().expect("a word"));
    let length = usize::try_from(length).unwrap_or(MOST_TEXT).min(MOST_TEXT);
    let said = &bytes[TEXT * 8..][..length];
    let is_plain = |byte: &u8| byte.is_ascii() && !byte.is_ascii_control();
    if said.iter().all(is_plain) {
        assert_eq!(why.as_bytes(), said, "other words");
    }
    EngineNews::Answer(number, Err(String::new()))
}

/// Says it, and whether the program that hears it has closed what came with it is looked at by what this gives.
fn say(socket: &OwnedFd, bytes: &[u8], descriptors: u8) -> OwnedFd {
    let (kept, passed) = pipe().expect("a pipe");
    let passed_on: Vec<_> = (0..descriptors).map(|_| passed.as_fd()).collect();
    if bytes.is_empty() {
        // With which none pass.
        send(socket, bytes, SendFlags::empty()).expect("there is room");
    } else {
        send_descriptors(socket, bytes, &passed_on).expect("there is room");
    }
    kept
}

/// Whether nobody has the other end of a pipe.
pub(crate) fn is_alone(pipe: &OwnedFd) -> bool {
    let mut descriptors = [PollFd::new(pipe, PollFlags::empty())];
    let at_once = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    poll(&mut descriptors, Some(&at_once)).expect("it is open");
    descriptors[0].revents().contains(PollFlags::HUP)
}

impl Program {
    /// Plays the program.
    ///
    /// # Panics
    /// A message was taken for what it is not.
    #[must_use]
    pub fn play(self) -> Played {
        let flags = SocketFlags::CLOEXEC;
        let pair = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None);
        let (ours, theirs) = pair.expect("two sockets");
        let (mut parent, mut ledger) = (Parent::default(), EngineLedger::default());
        let mut played = Played::default();
        for step in self.0 {
            match step {
                Step::Ask => {
                    parent.requests += 1;
                    assert!(parent.asked.insert(parent.requests));
                    assert_eq!(ledger.ask(), parent.requests);
                }
                Step::Attach(before) => {
                    (parent.started, parent.ended) = (before.into(), before.into());
                    ledger.attach(before.into());
                }
                Step::Start => {
                    parent.started += 1;
                    ledger.start(parent.started);
                }
                Step::Say(saying) => {
                    let (bytes, descriptors) = (parent.message(&saying), saying.descriptors);
                    let due = parent.due(&bytes, descriptors);
                    let kept = say(&theirs, &bytes, descriptors);
                    let before = ledger.clone();
                    let heard = EngineReply::receive(&ours);
                    assert!(is_alone(&kept), "a descriptor of {bytes:?} is kept");
                    let heard = heard.and_then(|reply| ledger.take(reply));
                    let heard = heard.map(|news| without_reason(&bytes, news));
                    assert_eq!(heard, due, "of {bytes:?}");
                    if heard.is_ok() {
                        played.taken += 1;
                    } else {
                        assert_eq!(ledger, before, "what is refused changes something");
                        played.refused += 1;
                    }
                }
            }
        }
        drop(theirs);
        let end = EngineReply::receive(&ours);
        assert_eq!(end, Err(PassError::Closed.into()), "more than was said");
        played
    }
}
