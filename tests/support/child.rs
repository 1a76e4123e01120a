//! Child: a second process of a test, which has a shared fence open and does what it is told.
//!
//! It is the test's own program, started once more for one of its ignored tests, which calls [`obey`].
//! Parent and child talk over a Unix socket: the handle of the fence first, then orders and answers of
//! three words each. What the child reports stands before it reports it, so a test waits for no time.
#![allow(dead_code, reason = "each test file uses a part")]

use super::engines::{model, shader};
use super::passing::shared;
use super::until::{LONG, until};
use native_fence::{Adapter, CommandList, Fence, SharedHandle};
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Child as Process, Command, Stdio};
use std::sync::mpsc;
use std::thread;

const SOCKET: &str = "NFENCE_TEST_SOCKET";
const ENGINE: &str = "NFENCE_TEST_ENGINE";
/// Set for a child that makes the fence, at this value.
const MAKES: &str = "NFENCE_TEST_MAKES";

/// What a child is to do, or has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(crate) enum Word {
    /// The fence is open; with CurrentValue.
    Opened = 1,
    /// Read CurrentValue; or what it is.
    Value,
    /// Have a thread wait for a value; or its wait stands.
    Wait,
    /// A wait has ended, well or (value 1) with an error.
    Ended,
    /// Signal a value from the CPU; or it is stored.
    Signal,
    /// Signal a value by a packet; or it is executed.
    GpuSignal,
    /// Have a queue wait for a value and then signal the next; or it is submitted.
    GpuWait,
    /// Signal every value from this one on, by CPU and packets, until killed; or it has begun.
    Storm,
    /// Say how often others have called; or how often.
    Heard,
    /// Close the fence; or it is closed.
    Close,
    /// Say where the user's view of CurrentValue lies; or where.
    Address,
}

fn word(of: u64) -> Word {
    use Word::{
        Address, Close, Ended, GpuSignal, GpuWait, Heard, Opened, Signal, Storm, Value, Wait,
    };
    let all = [
        Opened, Value, Wait, Ended, Signal, GpuSignal, GpuWait, Storm, Heard, Close, Address,
    ];
    all.into_iter().find(|word| *word as u64 == of).unwrap()
}

fn tell(mut socket: &UnixStream, what: Word, value: u64) {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&(what as u64).to_le_bytes());
    bytes[8..].copy_from_slice(&value.to_le_bytes());
    socket.write_all(&bytes).unwrap();
}

fn hear(mut socket: &UnixStream) -> std::io::Result<(Word, u64)> {
    let mut bytes = [0; 16];
    socket.read_exact(&mut bytes)?;
    let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    Ok((word(number(0)), number(8)))
}

/// A child of a test.
pub(crate) struct Child {
    process: Process,
    socket: UnixStream,
    answers: mpsc::Receiver<(Word, u64)>,
}

impl Child {
    /// Starts the ignored test `test` of this program, with an engine of its own of the same kind, and
    /// sends it the fence; returns when it has the fence open, and CurrentValue as it reads it.
    pub(crate) fn start(test: &str, engine: &str, fence: &Fence) -> (Self, u64) {
        let child = Self::spawn(test, engine, None);
        fence.share().unwrap().send(&child.socket).unwrap();
        let child = child.listen();
        let value = child.until(Word::Opened);
        (child, value)
    }

    /// The same of a child that makes the fence, at `initial`, and sends it.
    pub(crate) fn start_maker(test: &str, engine: &str, initial: u64) -> (Self, SharedHandle) {
        let child = Self::spawn(test, engine, Some(initial));
        let handle = SharedHandle::receive(&child.socket).unwrap();
        let child = child.listen();
        assert_eq!(child.until(Word::Opened), initial);
        (child, handle)
    }

    fn spawn(test: &str, engine: &str, makes: Option<u64>) -> Self {
        let mut environment = vec![(ENGINE, engine.to_owned())];
        environment.extend(makes.map(|initial| (MAKES, initial.to_string())));
        let (process, socket) = spawn(test, &environment);
        Self {
            process,
            socket,
            answers: mpsc::channel().1,
        }
    }

    /// Hears its answers from now on: what came before was no answer.
    fn listen(mut self) -> Self {
        let (tell, answers) = mpsc::channel();
        let reader = self.socket.try_clone().unwrap();
        thread::spawn(move || {
            while let Ok(answer) = hear(&reader) {
                if tell.send(answer).is_err() {
                    return;
                }
            }
        });
        self.answers = answers;
        self
    }

    /// Gives an order, and waits for its answer.
    pub(crate) fn does(&self, what: Word, value: u64) -> u64 {
        tell(&self.socket, what, value);
        self.until(what)
    }

    /// Waits for an answer.
    pub(crate) fn until(&self, what: Word) -> u64 {
        let (answer, value) = self.answers.recv_timeout(LONG).expect("the child answers");
        assert_eq!(answer, what);
        value
    }

    /// Its process id.
    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// Has it end by itself, with the fence open.
    pub(crate) fn ends(mut self) {
        self.socket.shutdown(Shutdown::Both).unwrap();
        let mut status = None;
        until("the child ends", || {
            status = self.process.try_wait().unwrap();
            status.is_some()
        });
        assert!(status.unwrap().success(), "{status:?}");
    }

    /// Kills it with SIGKILL. Not waited for before it is dropped: a process that its parent has not
    /// asked about is dead all the same.
    pub(crate) fn kill(&mut self) {
        self.process.kill().unwrap();
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Starts the ignored test `test` of this program, and takes the socket that it connects to ([`socket`]).
///
/// # Panics
/// When it ends before it has.
pub(crate) fn spawn(test: &str, environment: &[(&str, String)]) -> (Process, UnixStream) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let listener = UnixListener::bind(&path).unwrap();
    let mut process = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--ignored", "--nocapture"])
        .env(SOCKET, &path)
        .envs(environment.iter().cloned())
        .stdout(Stdio::inherit())
        .spawn()
        .unwrap();
    listener.set_nonblocking(true).unwrap();
    let mut accepted = None;
    until("the child connects", || {
        // Looked at first: what it did before it ended is there.
        let ended = process.try_wait().unwrap();
        accepted = listener.accept().ok();
        assert!(
            accepted.is_some() || ended.is_none(),
            "the child ended before it connected: {ended:?}"
        );
        accepted.is_some()
    });
    let (socket, _) = accepted.unwrap();
    socket.set_nonblocking(false).unwrap();
    (process, socket)
}

/// The socket to the test that started this process as a child.
pub(crate) fn socket() -> Option<UnixStream> {
    let Some(path) = std::env::var_os(SOCKET) else {
        println!("part of other tests, which start it");
        return None;
    };
    Some(UnixStream::connect(path).unwrap())
}

/// What the child does: the body of the ignored test.
pub(crate) fn obey() {
    let Some(socket) = socket() else {
        return;
    };
    let adapter: Adapter = match std::env::var(ENGINE).as_deref() {
        Ok("model") => model().0,
        _ => shader().unwrap(),
    };
    let device = adapter.create_device();
    let fence = if let Ok(initial) = std::env::var(MAKES) {
        let fence = shared(&device, initial.parse().unwrap());
        fence.share().unwrap().send(&socket).unwrap();
        fence
    } else {
        let handle = SharedHandle::receive(&socket).unwrap();
        device.open_fence(&handle).unwrap()
    };
    let mut queues = vec![device.create_hw_queue().unwrap()];
    tell(&socket, Word::Opened, fence.current_value());
    while let Ok((what, value)) = hear(&socket) {
        let mut answer = value;
        match what {
            Word::Value => answer = fence.current_value(),
            Word::Wait => {
                let native = fence.object().fence();
                let before = native.waits();
                let (waits, teller) = (fence.clone(), socket.try_clone().unwrap());
                thread::spawn(move || {
                    let ended = waits.wait(value, LONG * 3);
                    tell(&teller, Word::Ended, u64::from(ended.is_err()));
                });
                until("the wait stands", || native.waits() > before);
            }
            Word::Signal => fence.signal(value).unwrap(),
            Word::GpuSignal => {
                let list = CommandList::new().signal(&fence, value).clone();
                let end = queues[0].submit(&list).unwrap();
                queues[0].progress_fence().wait(end, LONG).unwrap();
            }
            Word::GpuWait => {
                let mut queue = device.create_hw_queue().unwrap();
                let list = CommandList::new()
                    .wait(&fence, value)
                    .signal(&fence, value + 1)
                    .clone();
                queue.submit(&list).unwrap();
                queues.push(queue);
            }
            Word::Storm => {
                tell(&socket, Word::Storm, value);
                storm(&fence, &mut queues[0], value);
            }
            Word::Heard => answer = fence.object().fence().peer_counters().heard,
            Word::Close => fence.close(),
            // 0 where the view can be written.
            Word::Address => {
                let address = fence.current_value_address();
                answer = address.map_or(0, |address| address.addr() as u64);
            }
            Word::Opened | Word::Ended => panic!("not an order: {what:?}"),
        }
        tell(&socket, what, answer);
    }
}

fn storm(fence: &Fence, queue: &mut native_fence::HwQueue, from: u64) {
    let mut list = CommandList::new();
    for value in from.. {
        if value % 2 == 0 {
            fence.signal(value).unwrap();
        } else {
            list.clear();
            list.signal(fence, value);
            let end = queue.submit(&list).unwrap();
            queue.progress_fence().wait(end, LONG).unwrap();
        }
    }
}
