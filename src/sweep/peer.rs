//! Peer: the second process of a story, which has a fence of the first one open and has one of its own opened there.
//!
//! They talk over a socket. The peer says of each of its steps that it is done, or what went wrong: a byte, and the length
//! and the words of an error. It has no faults, and its end is the first one's to see to.

use super::play::Told;
use super::step::{holds, step};
use super::waiters::{LONG, woken};
use crate::{Adapter, AdapterOptions, CommandList, FenceOptions, SharedHandle};
use rustix::fd::OwnedFd;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::process::Child;

/// Starts the program of the peer, which has this end of a socket for its input.
pub type StartPeer = dyn Fn(OwnedFd) -> io::Result<Child>;

/// A step is done.
const DONE: u8 = 0;
/// It is not, and what it says of that follows.
const FAILED: u8 = 1;
/// Words of an error, at most so many bytes.
const MOST_WORDS: u16 = 4096;

/// The peer, as the first process has it. Dropped it is killed.
#[derive(Debug)]
pub(super) struct Peer {
    process: Child,
    socket: UnixStream,
}

impl Peer {
    pub(super) fn start(start: &StartPeer) -> io::Result<Self> {
        let (socket, there) = UnixStream::pair()?;
        socket.set_read_timeout(Some(LONG))?;
        let process = start(there.into())?;
        Ok(Self { process, socket })
    }

    pub(super) fn socket(&self) -> &UnixStream {
        &self.socket
    }

    /// Waits until its next step is done.
    pub(super) fn hear(&self) -> Result<(), Told> {
        let said = heard(&self.socket).unwrap_or_else(|error| Err(in_words(&error)));
        step("a step of the second process", said)
    }

    /// Its end: by itself where all went well, and it closes what it has.
    pub(super) fn end(mut self, is_well: bool) -> Result<(), Told> {
        if !is_well {
            return Ok(());
        }
        let ended = self.socket.shutdown(Shutdown::Write).and_then(|()| {
            // Its end is closed when it ends.
            let read = self.socket.read(&mut [0])?;
            Ok((read, self.process.wait()?))
        });
        let what = "the end of the second process";
        let (read, status) = step(what, ended.map_err(|error| in_words(&error)))?;
        let is_well = read == 0 && status.success();
        holds(what, is_well, format!("it ended by {status}"))
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // Of one that has ended it does nothing.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A read that came to the end of its time says so in other words.
fn in_words(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::WouldBlock => "it timed out".into(),
        io::ErrorKind::UnexpectedEof => "it has ended".into(),
        _ => error.to_string(),
    }
}

fn heard(mut socket: &UnixStream) -> io::Result<Result<(), String>> {
    let mut said = [0];
    socket.read_exact(&mut said)?;
    if said == [DONE] {
        return Ok(Ok(()));
    }
    let mut length = [0; 2];
    socket.read_exact(&mut length)?;
    let mut words = Vec::new();
    let length = u16::from_le_bytes(length).min(MOST_WORDS);
    socket.take(length.into()).read_to_end(&mut words)?;
    Ok(Err(String::from_utf8_lossy(&words).into_owned()))
}

fn say(mut socket: &UnixStream, done: &Result<(), Told>) -> io::Result<()> {
    let Err(told) = done else {
        return socket.write_all(&[DONE]);
    };
    let words = format!("{}: {}", told.step, told.error).into_bytes();
    let words = &words[..words.len().min(MOST_WORDS.into())];
    let mut message = vec![FAILED];
    message.extend((words.len() as u16).to_le_bytes());
    message.extend(words);
    socket.write_all(&message)
}

/// Is the peer of the process at the other end of a socket, until that closes it.
///
/// # Errors
/// The other process does not hear it.
pub fn serve_peer(socket: OwnedFd, device: Option<&str>) -> io::Result<()> {
    // Whoever started it may have had few descriptors left, which is no concern of this one's.
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let usual = Rlimit {
        current: maximum,
        maximum,
    };
    setrlimit(Resource::Nofile, usual)?;
    let socket = UnixStream::from(socket);
    let served = serve(&socket, device);
    if served.is_err() {
        say(&socket, &served)?;
    }
    Ok(())
}

fn serve(mut socket: &UnixStream, device: Option<&str>) -> Result<(), Told> {
    let options = AdapterOptions {
        device: device.map(str::to_owned),
        ..AdapterOptions::default()
    };
    let adapter = step("an adapter", Adapter::open(&options))?;
    let device = adapter.create_device();
    let options = FenceOptions {
        shared: true,
        ..FenceOptions::default()
    };
    let own = step("a fence to share", device.create_fence_with(options))?;
    let shared = step("a handle to share", own.share())?;
    let done = || step("a word", say(socket, &Ok(())));
    done()?;
    step("a handle to send", shared.send(socket))?;

    let theirs = step("a handle", SharedHandle::receive(socket))?;
    let theirs = step("a fence of the first process", device.open_fence(&theirs))?;
    let mut queue = step("a queue", device.create_hw_queue())?;
    let list = CommandList::new().wait(&theirs, 1).signal(&own, 1).clone();
    let end = step("a submission", queue.submit(&list))?;
    done()?;
    let progress = queue.progress_fence();
    let ended = woken(|most| progress.wait(end, most));
    step("the queue's progress", ended)?;
    let ended = woken(|most| theirs.wait(2, most));
    step("a wait for the first process", ended)?;
    step("a signal of the CPU", own.signal(2))?;
    done()?;
    // Both fences stay open until the other has seen it.
    step("a word", socket.read(&mut [0]))?;
    Ok(())
}
