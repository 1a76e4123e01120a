//! Request: whatever a parent says to the process of an engine, it is taken for what its words say, or it is refused
//! (PR-01); and the file of kernels that comes with it has kernels or none, whatever it says of itself.
//!
//! What was heard is said again, and must be the same: of words that a request has no use for nothing is kept. A parent
//! that says no request has lost its engine, so the next is said to another child.

use crate::reply::is_alone;
use arbitrary::{Arbitrary, Result, Unstructured};
use native_fence::abi::{MAX_KERNELS, PAGE_BYTES};
use native_fence::gpu::{EngineProtocolError, HeardRequest, Kernels};
use native_fence::shared::{PassError, send_descriptors};
use native_fence::vulkan::shaders;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, send, socketpair};
use rustix::pipe::pipe;
use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Words of a message: kind, number, values, and a text with its length before it.
const WORDS: usize = 64;
const BYTES: usize = WORDS * 8;
const VALUES: usize = 2;
const TEXT_BYTES: usize = 12;
const TEXT: usize = 13;
const MOST_TEXT: usize = (WORDS - TEXT) * 8;
/// Kinds of which this looks at more than the values.
const OPEN: u64 = 1;
const START: u64 = 6;
const SET_KERNELS: u64 = 7;
/// Of a request to open, where its lanes, its flags and the flag are that says whether the next says anything.
const LANES: usize = 5;
const FLAGS: usize = 7;
const RESOLVES: u64 = 1 << 2;

/// What is said, one after the other.
#[derive(Debug)]
pub struct Program(Vec<Saying>);

#[derive(Debug)]
struct Saying {
    kind: u8,
    number: u64,
    values: [u64; 8],
    text: Vec<u8>,
    /// What is said of its length, if not that.
    length: Option<u64>,
    bent: Option<(u8, u64)>,
    /// How many bytes there are of it, if not all.
    bytes: Option<u16>,
    comes: Comes,
}

/// What comes with it.
#[derive(Debug)]
enum Comes {
    Nothing,
    Pipes(u8),
    Kernels(File),
}

/// A file of kernels.
#[derive(Debug)]
struct File {
    version: u64,
    kernels: Vec<Kernel>,
    bends: Vec<(u16, u64)>,
    /// What the request says of its size, if not that.
    says: Option<u64>,
    is_sealed: bool,
}

#[derive(Clone, Copy, Debug, Arbitrary)]
struct Kernel {
    /// Slots between it and the one before.
    skips: u8,
    adds: bool,
}

impl<'a> Arbitrary<'a> for Program {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let sayings = (0..u.int_in_range(1..=16)?).map(|_| u.arbitrary());
        Ok(Self(sayings.collect::<Result<_>>()?))
    }
}

impl<'a> Arbitrary<'a> for Saying {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let comes = match u.int_in_range(0..=7)? {
            0..=3 => Comes::Nothing,
            4 => Comes::Pipes(u.int_in_range(1..=3)?),
            _ => Comes::Kernels(u.arbitrary()?),
        };
        let kind = match comes {
            Comes::Kernels(_) if u.ratio(7, 8)? => SET_KERNELS as u8,
            _ => u.int_in_range(0..=9)?,
        };
        Ok(Self {
            kind,
            number: u.arbitrary()?,
            values: u.arbitrary()?,
            text: if u.arbitrary()? {
                u.arbitrary()?
            } else {
                b"llvmpipe".to_vec()
            },
            length: u.ratio(1, 8)?.then(|| u.arbitrary()).transpose()?,
            // Most messages shall be whole.
            bent: u.ratio(1, 4)?.then(|| u.arbitrary()).transpose()?,
            bytes: u.ratio(1, 8)?.then(|| u.arbitrary()).transpose()?,
            comes,
        })
    }
}

impl<'a> Arbitrary<'a> for File {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let kernels = (0..u.int_in_range(0..=4)?).map(|_| u.arbitrary());
        let kernels = kernels.collect::<Result<_>>()?;
        let most = if u.arbitrary()? { 3 } else { 0 };
        let bends = (0..u.int_in_range(0..=most)?).map(|_| u.arbitrary());
        let bends = bends.collect::<Result<_>>()?;
        Ok(Self {
            version: u.arbitrary()?,
            kernels,
            bends,
            says: u.ratio(1, 8)?.then(|| u.arbitrary()).transpose()?,
            is_sealed: u.ratio(7, 8)?,
        })
    }
}

/// What became of the messages.
#[derive(Clone, Copy, Debug, Default)]
pub struct Played {
    /// Those that were requests.
    pub taken: u64,
    /// Those that were not.
    pub refused: u64,
    /// Files that had kernels, or none by right.
    pub files: u64,
}

impl File {
    fn words(&self) -> Vec<u64> {
        let mut words = vec![self.version, self.kernels.len() as u64];
        let mut slot = 0;
        for kernel in &self.kernels {
            slot += u64::from(kernel.skips % 24);
            let (spirv, parameters) = kernel.code();
            words.extend([slot, parameters, spirv.len() as u64]);
            words.extend(spirv.chunks(2).map(|pair| {
                let word = |at| pair.get(at).copied().map_or(0, u64::from);
                word(0) | word(1) << 32
            }));
            slot += 1;
        }
        for (at, word) in &self.bends {
            // Where it tells of itself, and anywhere.
            let within = if at % 2 == 0 {
                words.len().min(8)
            } else {
                words.len()
            };
            words[usize::from(*at / 2) % within] = *word;
        }
        words
    }

    /// Whether it is as a parent writes it.
    fn is_good(&self) -> bool {
        let slots: u64 = self
            .kernels
            .iter()
            .map(|one| u64::from(one.skips % 24) + 1)
            .sum();
        self.bends.is_empty() && self.says.is_none() && self.is_sealed && slots <= MAX_KERNELS
    }

    /// Whole pages of memory, and how many bytes these are.
    fn memory(&self) -> (OwnedFd, u64) {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let memory = memfd_create("kernels", flags).expect("memory");
        let words = self.words();
        let mut file = std::fs::File::from(memory);
        file.write_all(bytemuck::cast_slice(&words))
            .expect("memory");
        let bytes = (words.len() as u64 * 8).next_multiple_of(PAGE_BYTES);
        ftruncate(&file, bytes).expect("memory");
        if self.is_sealed {
            fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW).expect("it has no seals");
        }
        (file.into(), bytes)
    }
}

impl Kernel {
    fn code(self) -> (&'static [u32], u64) {
        if self.adds {
            (shaders::ADD_WORDS.words, 32)
        } else {
            (shaders::SPIN.words, 24)
        }
    }
}

impl Saying {
    /// The message, with the size of what comes with it.
    fn message(&self, size: Option<u64>) -> Vec<u8> {
        let mut words = [0; WORDS];
        words[0] = self.kind.into();
        words[1] = self.number;
        words[VALUES..][..self.values.len()].copy_from_slice(&self.values);
        let text = &self.text[..self.text.len().min(MOST_TEXT)];
        words[TEXT_BYTES] = self.length.unwrap_or(text.len() as u64);
        bytemuck::cast_slice_mut(&mut words[TEXT..])[..text.len()].copy_from_slice(text);
        if let Some(size) = size {
            words[VALUES] = size;
        }
        if let Some((at, value)) = self.bent {
            words[usize::from(at) % WORDS] = value;
        }
        let mut bytes = bytemuck::cast_slice(&words).to_vec();
        if let Some(count) = self.bytes {
            bytes.resize(usize::from(count) % (2 * BYTES), 0xa5);
        }
        bytes
    }
}

/// What is due of a message: of its words, those that its request has a use for; of the text, which is for people, none.
fn due(bytes: &[u8], descriptors: usize) -> std::result::Result<Vec<u64>, EngineProtocolError> {
    match (bytes.len(), descriptors) {
        (0, _) => return Err(PassError::Closed.into()),
        (BYTES, 0 | 1) => {}
        _ => {
            let expected = usize::from(descriptors > 0);
            return Err(PassError::Other { expected }.into());
        }
    }
    let words = bytes.chunks_exact(8);
    let words: Vec<_> = words
        .map(|word| u64::from_ne_bytes(word.try_into().expect("eight bytes")))
        .collect();
    let count = match words[0] {
        OPEN => 8,
        2 | 4 => 2,
        3 | SET_KERNELS => 1,
        5 | 8 => 0,
        START => 3,
        kind => return Err(EngineProtocolError::Kind(kind)),
    };
    let mut due = vec![0; WORDS];
    due[..VALUES + count].copy_from_slice(&words[..VALUES + count]);
    let values = &mut due[VALUES..];
    match words[0] {
        OPEN => {
            if values[LANES] != u64::MAX {
                values[LANES] &= u64::from(u32::MAX);
            }
            values[FLAGS] &= if values[FLAGS] & RESOLVES == 0 {
                0b111
            } else {
                0b1111
            };
        }
        START => values[2] &= 0b1_1111,
        _ => {}
    }
    Ok(due)
}

/// Takes the text out of what was heard, and looks at it: it is for a terminal.
fn without_text(mut words: Vec<u64>) -> Vec<u64> {
    let length = words[TEXT_BYTES] as usize;
    let text: &[u8] = bytemuck::cast_slice(&words[TEXT..]);
    let text = std::str::from_utf8(&text[..length]).expect("a text that was heard is one");
    assert!(!text.contains(char::is_control), "{text:?}");
    words[TEXT_BYTES..].fill(0);
    words
}

fn pair() -> (OwnedFd, OwnedFd) {
    let flags = SocketFlags::CLOEXEC;
    let pair = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None);
    pair.expect("two sockets")
}

fn say(socket: &OwnedFd, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) {
    if bytes.is_empty() {
        // With which none pass.
        send(socket, bytes, SendFlags::empty()).expect("there is room");
    } else {
        send_descriptors(socket, bytes, descriptors).expect("there is room");
    }
}

impl Program {
    /// Plays the program.
    ///
    /// # Panics
    /// A message was taken for what it is not.
    #[must_use]
    pub fn play(self) -> Played {
        let (ours, theirs) = pair();
        let mut known = Kernels::default();
        let mut played = Played::default();
        for saying in self.0 {
            let (kept, passed) = pipe().expect("a pipe");
            let (mut files, mut size) = (Vec::new(), None);
            match &saying.comes {
                Comes::Nothing => {}
                Comes::Pipes(count) => {
                    let pipes = (0..*count).map(|_| passed.try_clone().expect("a descriptor"));
                    files.extend(pipes);
                }
                Comes::Kernels(file) => {
                    let (memory, bytes) = file.memory();
                    files.push(memory);
                    size = Some(file.says.unwrap_or(bytes));
                }
            }
            let bytes = saying.message(size);
            let borrowed: Vec<_> = files.iter().map(AsFd::as_fd).collect();
            say(&ours, &bytes, &borrowed);
            let due = due(&bytes, borrowed.len());
            drop(borrowed);
            drop((files, passed));
            let heard = HeardRequest::receive(&theirs, &known);
            assert!(is_alone(&kept), "a descriptor of {bytes:?} is kept");
            match heard {
                Ok(heard) => {
                    // The same words are the same request.
                    let again: &[u8] = bytemuck::cast_slice(&heard.words);
                    say(&ours, again, &[]);
                    let again = HeardRequest::receive(&theirs, &known).expect("it was a request");
                    assert_eq!(again.words, heard.words);
                    let is_good = match &saying.comes {
                        Comes::Kernels(file) => file.is_good() && saying.bent.is_none(),
                        Comes::Nothing | Comes::Pipes(_) => false,
                    };
                    match heard.kernels {
                        Some(Ok(kernels)) => {
                            assert!(kernels.len() as u64 <= MAX_KERNELS);
                            known = kernels;
                            played.files += 1;
                        }
                        Some(Err(why)) => assert!(!is_good, "{saying:?}: {why}"),
                        None => {}
                    }
                    assert_eq!(Ok(without_text(heard.words)), due, "of {bytes:?}");
                    played.taken += 1;
                }
                Err(error) => {
                    assert_eq!(Err(error), due, "of {bytes:?}");
                    played.refused += 1;
                }
            }
        }
        drop(ours);
        let end = HeardRequest::receive(&theirs, &known).map(|heard| heard.words);
        assert_eq!(end, Err(PassError::Closed.into()), "more than was said");
        played
    }
}
