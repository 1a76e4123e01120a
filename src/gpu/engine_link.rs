//! Engine link: the parent's end to an engine in a process of its own.
//!
//! One thread hears what the child tells. It changes what is known under the lock that everybody sleeps by,
//! and then notifies, so no sleeper misses it: who looked before sleeps by the time it has the lock. The
//! child's end closes the socket, which that thread hears as well, behind all that was told before. Then,
//! or when the child tells what cannot be or does not reply in time, it is killed, and the engine lost.

use super::engine_ledger::{EngineLedger, EngineNews};
use super::engine_program::EngineProcess;
use super::engine_protocol::{ProtocolError, Reply, Request};
use super::{EngineLost, MapError};
use crate::shared::{PassError, Region};
use crate::supply::start_thread;
use crate::sync::plain::{AtomicU64, Mutex, lock};
use crate::sync::{Arc, Ordering};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Condvar, PoisonError};
use std::time::{Duration, Instant};

/// A child that has a moment's work to do has replied within this, or hangs: as long as an engine has by
/// TdrDelay's default. Whoever asks may hold the node's lock.
const REPLY_TIME: Duration = Duration::from_secs(2);
/// One that compiles a shader has by then.
const COMPILE_TIME: Duration = Duration::from_secs(20);
/// One that compiles a program's kernels has, of whatever size they are. Whoever asks holds no lock of the node's.
const KERNELS_TIME: Duration = Duration::from_secs(60);
/// One that opens a device first has by then.
const OPEN_TIME: Duration = Duration::from_secs(60);

/// What is known of the child.
#[derive(Debug, Default)]
struct Known {
    ledger: EngineLedger,
    /// By the number of the request, until whoever asked has it.
    answers: HashMap<u64, Result<u64, String>>,
    /// Slices up to this one have ended, or were abandoned.
    ended: u64,
    is_lost: bool,
}

/// See the file's head.
#[derive(Debug)]
pub(super) struct EngineLink {
    socket: OwnedFd,
    process: EngineProcess,
    known: Mutex<Known>,
    changed: Condvar,
    /// As `known` has it, for who only looks; stored with its lock held.
    ended: AtomicU64,
    /// 1 when `known` says that it is lost.
    lost: AtomicU64,
    memories: AtomicU64,
}

impl EngineLink {
    /// Starts the program.
    pub(super) fn start(program: &Path) -> io::Result<Arc<Self>> {
        let (socket, theirs) = socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )?;
        // A child that does not read holds nobody up for longer.
        set_socket_timeout(&socket, Timeout::Send, Some(REPLY_TIME))?;
        let link = Arc::new(Self {
            process: EngineProcess::start(program, theirs)?,
            socket,
            known: Mutex::default(),
            changed: Condvar::new(),
            ended: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            memories: AtomicU64::new(0),
        });
        let hears = Arc::clone(&link);
        let run = move || hears.hear();
        start_thread("nf-link", run)?;
        Ok(link)
    }

    /// The process's id.
    pub(super) fn process_id(&self) -> u32 {
        self.process.id
    }

    /// Kills the child: see [`EngineProcess::end`].
    pub(super) fn end(&self) -> bool {
        self.process.end()
    }

    /// Hears the child until it ends.
    fn hear(&self) {
        loop {
            let reply = Reply::receive(&self.socket);
            let news = reply.and_then(|reply| lock(&self.known).ledger.take(reply));
            match news {
                Ok(EngineNews::Answer(number, answer)) => {
                    lock(&self.known).answers.insert(number, answer);
                    self.changed.notify_all();
                }
                Ok(EngineNews::Ended(slice)) => self.ended_to(slice),
                Ok(EngineNews::Lost) | Err(ProtocolError::Pass(PassError::Closed)) => break,
                Err(error) => {
                    let id = self.process.id;
                    eprintln!(
                        "native-fence: the process {id} of an engine said what cannot be, and is ended: {error}"
                    );
                    break;
                }
            }
        }
        self.lose();
    }

    fn ended_to(&self, slice: u64) {
        let mut known = lock(&self.known);
        known.ended = known.ended.max(slice);
        self.ended.store(known.ended, Ordering::Release);
        drop(known);
        self.changed.notify_all();
    }

    /// The engine is lost, whoever finds it first; its process is ended.
    fn lose(&self) {
        self.end();
        let mut known = lock(&self.known);
        known.is_lost = true;
        self.lost.store(1, Ordering::Release);
        drop(known);
        self.changed.notify_all();
    }

    pub(super) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Acquire) == 1
    }

    /// Has the child do something, and waits for its reply. Others may ask meanwhile: who waits long stands in nobody's
    /// way.
    fn ask(
        &self,
        request: &Request,
        region: Option<&Region>,
        time: Duration,
    ) -> Result<Result<u64, String>, EngineLost> {
        let number = lock(&self.known).ledger.ask();
        self.send(request, number, region)?;
        let deadline = Instant::now() + time;
        let mut known = lock(&self.known);
        loop {
            if let Some(answer) = known.answers.remove(&number) {
                return Ok(answer);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if known.is_lost || left.is_zero() {
                break;
            }
            let woken = self.changed.wait_timeout(known, left);
            known = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
        drop(known);
        self.lose();
        Err(EngineLost)
    }

    fn send(
        &self,
        request: &Request,
        number: u64,
        region: Option<&Region>,
    ) -> Result<(), EngineLost> {
        let descriptor = region.and_then(Region::descriptor);
        let sent = request.send(&self.socket, number, descriptor);
        sent.map_err(|_| {
            self.lose();
            EngineLost
        })
    }

    /// The same of what is done or refused.
    fn have_done(&self, request: &Request, time: Duration) -> Result<(), MapError> {
        let lost = |lost: EngineLost| MapError::Refused(lost.to_string());
        let done = self.ask(request, None, time).map_err(lost)?;
        done.map(|_| ()).map_err(MapError::Refused)
    }

    /// Has the child open its device, and make its engine.
    pub(super) fn open(&self, opening: &Request) -> Result<(), MapError> {
        self.have_done(opening, OPEN_TIME)
    }

    /// Has the child map a region: the memory's number, and its address there.
    pub(super) fn map(&self, region: &Region) -> Result<Result<(u64, u64), String>, EngineLost> {
        let memory = self.memories.fetch_add(1, Ordering::Relaxed);
        let bytes = region.len() as u64;
        let request = Request::Map { memory, bytes };
        let mapped = self.ask(&request, Some(region), REPLY_TIME)?;
        Ok(mapped.map(|va| (memory, va)))
    }

    /// Has the child let go of it.
    pub(super) fn unmap(&self, memory: u64) {
        if !self.is_lost() {
            // A child that cannot be told is ended, and lets go of all.
            let _ = self.send(&Request::Unmap { memory }, 0, None);
        }
    }

    pub(super) fn attach(&self, control: u64, before: u64) -> Result<(), MapError> {
        let mut known = lock(&self.known);
        known.ledger.attach(before);
        known.ended = before;
        self.ended.store(before, Ordering::Release);
        drop(known);
        self.have_done(&Request::Attach { control, before }, COMPILE_TIME)
    }

    pub(super) fn prepare_doorbells(&self) -> Result<(), MapError> {
        self.have_done(&Request::PrepareDoorbells, COMPILE_TIME)
    }

    pub(super) fn prepare_verbose(&self) -> Result<(), MapError> {
        self.have_done(&Request::PrepareVerbose, COMPILE_TIME)
    }

    /// Has the child take the kernels of a file: why it does not.
    pub(super) fn set_kernels(&self, file: &Region) -> Result<Result<(), String>, EngineLost> {
        let bytes = file.len() as u64;
        let request = Request::SetKernels { bytes };
        let taken = self.ask(&request, Some(file), KERNELS_TIME)?;
        Ok(taken.map(|_| ()))
    }

    /// Starts a slice. Its end is news from now on, however soon it comes.
    pub(super) fn start_slice(&self, request: &Request, slice: u64) -> Result<(), EngineLost> {
        lock(&self.known).ledger.start(slice);
        self.send(request, 0, None)
    }

    /// See [`Engine::abandon`](super::Engine::abandon).
    pub(super) fn abandon(&self, slice: u64) {
        self.ended_to(slice);
    }

    pub(super) fn has_ended(&self, slice: u64) -> Result<bool, EngineLost> {
        if self.ended.load(Ordering::Acquire) >= slice {
            return Ok(true);
        }
        if self.is_lost() {
            return Err(EngineLost);
        }
        Ok(false)
    }

    pub(super) fn wait(&self, slice: u64, timeout: Option<Duration>) -> Result<bool, EngineLost> {
        let deadline = timeout.map(|timeout| Instant::now() + timeout);
        let mut known = lock(&self.known);
        loop {
            if known.ended >= slice {
                return Ok(true);
            }
            if known.is_lost {
                return Err(EngineLost);
            }
            known = match deadline {
                None => self
                    .changed
                    .wait(known)
                    .unwrap_or_else(PoisonError::into_inner),
                Some(deadline) => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return Ok(false);
                    }
                    let woken = self.changed.wait_timeout(known, left);
                    woken.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }
}
