//! Engine process: the program that an engine in a process of its own is.
//!
//! One thread does what the parent asks, but for what takes long, and another waits for the slices that it
//! started and tells their ends. Memory is mapped here by the descriptors that come with the requests. When
//! the parent closes its end, or anything fails that has no reply, the process is killed by itself: a shader
//! may run for ever, and nothing of this process is anybody else's.

use super::engine_protocol::{Opening, ProtocolError, Reply, Request, version};
use super::kernel_file::kernels_in;
use super::{
    Engine, EngineAddress, EngineUnit, EngineUnitError, GpuVa, KernelError, Kernels, MapError,
    ShaderEngine,
};
use crate::abi::WordGroup;
use crate::shared::Region;
use crate::supply::start_thread;
use crate::sync::Arc;
use crate::vulkan::{Instance, InstanceOptions};
use anyhow::{Context, bail, ensure};
use rustix::process::{Signal, getpid, kill_process};
use std::collections::HashMap;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{PoisonError, RwLock};

/// The process ends with it, whatever still runs.
struct EndsAtOnce;

impl Drop for EndsAtOnce {
    fn drop(&mut self) {
        // Of oneself it cannot fail.
        let _ = kill_process(getpid(), Signal::KILL);
    }
}

/// Attached with no slice in flight, and else used by all threads at once.
type Shared = Arc<RwLock<Box<dyn Engine>>>;

/// Serves an engine to the parent at the other end of a socket.
///
/// # Errors
/// The first message is no request for an engine: else it does not return.
pub fn serve_engine(socket: OwnedFd) -> anyhow::Result<()> {
    serve(socket, |opening| Ok(Box::new(open(opening)?)))
}

/// The same of another engine than the device's: of a double, whose every store can be made the last of its
/// process.
///
/// # Errors
/// As [`serve_engine`].
pub fn serve_engine_made_by(
    socket: OwnedFd,
    make: impl FnOnce() -> anyhow::Result<Box<dyn Engine>>,
) -> anyhow::Result<()> {
    serve(socket, |_| make())
}

fn serve(
    socket: OwnedFd,
    open: impl FnOnce(&Opening) -> anyhow::Result<Box<dyn Engine>>,
) -> anyhow::Result<()> {
    let socket = Arc::new(socket);
    let Ok((Request::Open(opening), number, _)) = Request::receive(&socket) else {
        bail!("native-fence starts this command by itself, with a socket for its input")
    };
    let _ends = EndsAtOnce;
    let mut child = match open(&opening).and_then(|engine| Child::new(&socket, engine)) {
        Ok(child) => child,
        Err(error) => {
            let why = format!("{error:#}");
            let _ = Reply::Failed { number, why }.send(&socket);
            return Ok(());
        }
    };
    reply(&socket, number, Ok(0))?;
    loop {
        match Request::receive(&socket) {
            Ok((request, number, descriptor)) => child.serve(&request, number, descriptor)?,
            Err(ProtocolError::Pass(_)) => return Ok(()),
            Err(error) => bail!("the parent sent no request: {error}"),
        }
    }
}

fn open(opening: &Opening) -> anyhow::Result<ShaderEngine> {
    ensure!(
        opening.version == version(),
        "it is not of the same version as the program that starts it"
    );
    let validation = opening.validation;
    let instance = Instance::new(InstanceOptions { validation })?;
    let adapters = instance.adapters();
    let mut adapters = adapters.iter();
    let info = adapters.find(|info| opening.is_of(info));
    let info = info.with_context(|| {
        format!(
            "there is no device {:?} there: give it the environment that this program has",
            opening.device
        )
    })?;
    let queues = EngineUnit::Device.open_queues(&instance, info, 1, validation)?;
    let queue = queues.into_iter().next().ok_or(EngineUnitError::NoQueue)?;
    ShaderEngine::new(queue, opening.tuning)
}

/// What the thread that is asked has.
struct Child {
    socket: Arc<OwnedFd>,
    engine: Shared,
    memories: HashMap<u64, EngineAddress>,
    /// Those that came last: what is among the next is not compiled again.
    kernels: Kernels,
    started: Sender<u64>,
}

impl Child {
    fn new(socket: &Arc<OwnedFd>, engine: Box<dyn Engine>) -> anyhow::Result<Self> {
        let engine = Arc::new(RwLock::new(engine));
        let (started, slices) = channel();
        let (theirs, tells) = (Arc::clone(&engine), Arc::clone(socket));
        let run = move || tell_ends(&theirs, &tells, &slices);
        start_thread("nf-ends", run)?;
        Ok(Self {
            socket: Arc::clone(socket),
            engine,
            memories: HashMap::new(),
            kernels: Kernels::default(),
            started,
        })
    }

    fn serve(
        &mut self,
        request: &Request,
        number: u64,
        descriptor: Option<OwnedFd>,
    ) -> anyhow::Result<()> {
        let engine = self.engine.read().unwrap_or_else(PoisonError::into_inner);
        let done = match *request {
            Request::Open(_) => bail!("the parent opened its engine twice"),
            Request::Map { memory, bytes } => {
                let address = map(engine.as_ref(), descriptor, bytes);
                let mapped = address.map(|address| {
                    let va = address.va.0;
                    self.memories.insert(memory, address);
                    va
                });
                mapped.map_err(|error| error.to_string())
            }
            Request::Unmap { memory } => {
                self.memories.remove(&memory);
                return Ok(());
            }
            Request::Attach { control, before } => {
                drop(engine);
                let mut engine = self.engine.write().unwrap_or_else(PoisonError::into_inner);
                let attached = engine.attach(GpuVa(control), before);
                attached.map(|()| 0).map_err(|error| error.to_string())
            }
            Request::PrepareVerbose => {
                drop(engine);
                return self.compile(number, |engine| {
                    engine.prepare_verbose().map_err(|error| error.to_string())
                });
            }
            Request::PrepareDoorbells => {
                drop(engine);
                return self.compile(number, |engine| {
                    engine
                        .prepare_doorbells()
                        .map_err(|error| error.to_string())
                });
            }
            Request::SetKernels { bytes } => {
                drop(engine);
                match received_kernels(descriptor, bytes, &self.kernels) {
                    Ok(kernels) => {
                        self.kernels = kernels.clone();
                        let socket = Arc::clone(&self.socket);
                        return self.compile(number, move |engine| {
                            let taken = engine.set_kernels(&kernels);
                            if taken == Err(KernelError::Lost) {
                                // Before the answer, which is none of a lost engine's.
                                let _ = Reply::Lost.send(&socket);
                            }
                            taken.map_err(|error| reason(&error))
                        });
                    }
                    Err(error) => Err(error),
                }
            }
            Request::Start { slice, work } => {
                if engine.start(slice, work).is_err() {
                    Reply::Lost.send(&self.socket)?;
                }
                self.started.send(slice)?;
                return Ok(());
            }
        };
        reply(&self.socket, number, done)
    }

    /// Compiles on a thread of its own: slices start and end meanwhile, or their engine would look as if it
    /// hung.
    fn compile(
        &self,
        number: u64,
        compile: impl FnOnce(&dyn Engine) -> Result<(), String> + Send + 'static,
    ) -> anyhow::Result<()> {
        let (engine, socket) = (Arc::clone(&self.engine), Arc::clone(&self.socket));
        let run = move || {
            let engine = engine.read().unwrap_or_else(PoisonError::into_inner);
            // A parent that has gone is found by who receives.
            let _ = reply(&socket, number, compile(engine.as_ref()).map(|()| 0));
        };
        start_thread("nf-compile", run)?;
        Ok(())
    }
}

fn reply(socket: &OwnedFd, number: u64, done: Result<u64, String>) -> anyhow::Result<()> {
    let reply = match done {
        Ok(value) => Reply::Done { number, value },
        Err(why) => Reply::Failed { number, why },
    };
    Ok(reply.send(socket)?)
}

/// The kernels that came with a request.
pub(super) fn received_kernels(
    descriptor: Option<OwnedFd>,
    bytes: u64,
    known: &Kernels,
) -> Result<Kernels, String> {
    let descriptor = descriptor.ok_or(NO_DESCRIPTOR)?;
    let file = Region::received("kernels", descriptor, bytes);
    let kernels = file.and_then(|file| kernels_in(&file, known));
    let kernels = kernels.map_err(|error| error.to_string())?;
    kernels.map_err(|error| error.to_string())
}

/// Why an engine does not take kernels, in words that are an error's part.
fn reason(error: &KernelError) -> String {
    match error {
        KernelError::Refused(why) => why.clone(),
        error => error.to_string(),
    }
}

const NO_DESCRIPTOR: &str = "its process has no file descriptor left: raise the limit (ulimit -n)";

/// Maps what came with a request.
fn map(
    engine: &dyn Engine,
    descriptor: Option<OwnedFd>,
    bytes: u64,
) -> Result<EngineAddress, MapError> {
    let no_room = || MapError::Refused(NO_DESCRIPTOR.to_owned());
    let descriptor = descriptor.ok_or_else(no_room)?;
    engine.map(&Region::received(name_of(&descriptor), descriptor, bytes)?)
}

/// What the memory is to its maker, whose name the system keeps: errors say it, and a double knows by it what an
/// engine may store there.
fn name_of(descriptor: &OwnedFd) -> &'static str {
    let file = format!("/proc/self/fd/{}", descriptor.as_raw_fd());
    let file = std::fs::read_link(file).unwrap_or_default();
    let is_its = |group: &WordGroup| {
        let name = format!("/memfd:{} (deleted)", group.name());
        file == Path::new(&name)
    };
    let group = WordGroup::ALL.into_iter().find(is_its);
    group.map_or("an engine's process", WordGroup::name)
}

/// Tells the ends of slices, one after the other.
fn tell_ends(engine: &Shared, socket: &OwnedFd, slices: &Receiver<u64>) {
    let _ends = EndsAtOnce;
    while let Ok(slice) = slices.recv() {
        // Not held while it is told: the parent may attach the engine anew then.
        let ended = {
            let engine = engine.read().unwrap_or_else(PoisonError::into_inner);
            engine.wait(slice, None)
        };
        let reply = match ended {
            Ok(_) => Reply::Ended { slice },
            Err(_) => Reply::Lost,
        };
        if reply.send(socket).is_err() {
            return;
        }
    }
}
