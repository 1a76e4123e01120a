//! Engines that take a kernel slowly, not at all, or end by it: whoever registers it waits and is told, and nobody else
//! is held up.
//!
//! The engines are models that do with kernels what the test says: in a process of its own that is this program once
//! more, which asks its parent by a socket.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod engines;
    pub(crate) mod kernel_taker;
    pub(crate) mod kernels;
    pub(crate) mod queue_of;
    pub(crate) mod until;
}

use native_fence::gpu::{
    Crowd, Engine, EngineState, KernelError, Kernels, ModelEngine, Node, NodeError, NodePolicy,
    ProcessEngine, ShaderTuning, SpareEngines, SparePolicy, serve_engine_made_by,
};
use native_fence::kmd::{DdiError, Driver, DriverOptions};
use native_fence::os::{Features, OsError};
use native_fence::vulkan::AdapterInfo;
use native_fence::{
    Adapter, Allocation, CommandList, CreateError, Device, Kernel, KernelCapability, TdrPolicy,
    WaitError,
};
use rustix::process::{Signal, getpid, kill_process};
use std::collections::VecDeque;
use std::fs;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::thread;
use std::time::Duration;
use support::kernel_taker::KernelTaker;
use support::kernels::{add_words, groups_for, spin, spins, sums};
use support::queue_of::queue_of;
use support::until::{LONG, until};

/// An adapter of one engine, which is lost and never late.
fn adapter(engine: Box<dyn Engine>, spares: Option<Arc<SpareEngines>>) -> (Adapter, Arc<Driver>) {
    let crowd = Arc::new(Crowd::new(1));
    let node = Node::new(0, engine, NodePolicy::default(), crowd).unwrap();
    let driver = Driver::with_spares(vec![node], DriverOptions::default(), spares);
    let tdr = TdrPolicy {
        delay: Duration::from_secs(600),
        limit_count: 1_000_000,
        ..TdrPolicy::default()
    };
    let adapter = Adapter::with_driver_watched(driver.clone(), Features::default(), tdr).unwrap();
    (adapter, driver)
}

/// A queue of the device is given work that needs memory of its own, and does it.
fn works(device: &Device) {
    let memory = device.create_allocation(64 << 10).unwrap();
    let mut queue = queue_of(device, 0);
    let mut list = CommandList::new();
    let value = queue.submit(list.fill(&memory, 0..64, 7)).unwrap();
    queue.progress_fence().wait(value, LONG).unwrap();
    assert_eq!(words::<8>(&memory), [7; 8]);
}

fn words<const N: usize>(of: &Allocation) -> [u64; N] {
    let mut words = [0; N];
    of.read(0, &mut words);
    words
}

/// What an engine in a process asks its parent by.
const ASKS: &str = "NFENCE_TEST_KERNELS_ASK";

/// What the parent says to that, a byte.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Answer {
    Takes = 1,
    Refuses,
    Ends,
    IsLost,
}

/// What an engine says that refuses: more than a message has room for.
fn reason() -> String {
    "it smells of fish, ".repeat(100)
}

/// The child, which has its socket for its input.
#[test]
#[ignore = "the process of an engine, which its test starts"]
fn an_engine_that_asks() {
    let Some(path) = std::env::var_os(ASKS) else {
        return;
    };
    let takes = move |_: &ModelEngine, kernels: &Kernels| {
        // The last is taken out again.
        if kernels.is_empty() {
            return Ok(());
        }
        let mut parent = UnixStream::connect(&path).unwrap();
        let mut answer = [0];
        parent.read_exact(&mut answer).unwrap();
        if answer[0] == Answer::Ends as u8 {
            kill_process(getpid(), Signal::KILL).unwrap();
        }
        if answer[0] == Answer::Refuses as u8 {
            return Err(KernelError::Refused(reason()));
        }
        if answer[0] == Answer::IsLost as u8 {
            return Err(KernelError::Lost);
        }
        Ok(())
    };
    let socket = std::io::stdin().as_fd().try_clone_to_owned().unwrap();
    let make = || Ok(Box::new(KernelTaker::new(takes)) as _);
    serve_engine_made_by(socket, make).unwrap();
}

/// A program that is such an engine, and the end that it asks; removed when it is dropped.
struct Program {
    path: PathBuf,
    asks: PathBuf,
    listener: UnixListener,
}

impl Program {
    fn new(name: &str) -> Self {
        let of = std::process::id();
        let path = std::env::temp_dir().join(format!("nfence-kernels-{of}-{name}"));
        let asks = path.with_extension("socket");
        let test = std::env::current_exe().unwrap();
        let text = format!(
            "#!/bin/sh\n{ASKS}='{}' exec '{}' --exact an_engine_that_asks --ignored\n",
            asks.display(),
            test.display()
        );
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
        let listener = UnixListener::bind(&asks).unwrap();
        Self {
            path,
            asks,
            listener,
        }
    }

    /// An engine takes kernels: what it asks by.
    fn asked(&self) -> UnixStream {
        self.listener.accept().unwrap().0
    }

    /// Answers the next who asks.
    fn answer(&self, answer: Answer) {
        self.asked().write_all(&[answer as u8]).unwrap();
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        for path in [&self.path, &self.asks] {
            fs::remove_file(path).unwrap();
        }
    }
}

fn engine_of(program: &Path, info: &AdapterInfo) -> Result<Box<dyn Engine>, String> {
    let engine = ProcessEngine::new(program, info, false, ShaderTuning::default());
    Ok(Box::new(engine.map_err(|error| error.to_string())?))
}

/// The best device's description; a test without says so.
fn device_info() -> Option<AdapterInfo> {
    support::engines::shader()?.info().cloned()
}

fn create(device: &Device) -> Result<Kernel, CreateError> {
    device.create_kernel(add_words())
}

/// TD-13: while an engine's process compiles a kernel, which may take its time, memory is mapped there and queues run.
///
/// Kills `who-compiles-is-waited-for-by-all`.
#[test]
fn td_13_nobody_waits_while_a_process_takes_a_kernel() {
    let Some(info) = device_info() else {
        return;
    };
    let program = Program::new("slow");
    let (adapter, _) = adapter(engine_of(&program.path, &info).unwrap(), None);
    let device = adapter.create_device();
    thread::scope(|scope| {
        let creates = scope.spawn(|| create(&device));
        let mut asked = program.asked();
        works(&device);
        works(&adapter.create_device());
        assert!(!creates.is_finished());
        asked.write_all(&[Answer::Takes as u8]).unwrap();
        let kernel = creates.join().unwrap();
        assert!(kernel.is_ok(), "{kernel:?}");
    });
}

/// HQ-04: what the driver in an engine's process says of a kernel is told to whoever registers it, as much of it as a
/// message has room for; the engine goes on with the kernels that it has.
///
/// Kills `a-refused-kernel-is-taken`.
#[test]
fn hq_04_what_a_process_says_of_a_kernel_is_told() {
    let Some(info) = device_info() else {
        return;
    };
    let program = Program::new("refuses");
    let (adapter, _) = adapter(engine_of(&program.path, &info).unwrap(), None);
    let device = adapter.create_device();
    thread::scope(|scope| {
        scope.spawn(|| program.answer(Answer::Refuses));
        let refused = create(&device).unwrap_err();
        let why = match &refused {
            CreateError::Os(OsError::Driver(DdiError::Node(NodeError::Kernel(
                KernelError::Refused(why),
            )))) => why,
            other => panic!("{other:?}"),
        };
        assert!(why.len() > 300 && reason().starts_with(why), "{refused}");
        works(&device);
        scope.spawn(|| program.answer(Answer::Takes));
        let kernel = create(&device);
        assert!(kernel.is_ok(), "{kernel:?}");
    });
}

/// Whoever registers a kernel is told that the engine was lost meanwhile.
fn is_told_of_a_loss(device: &Device) {
    let lost = create(device).unwrap_err();
    let is_lost = matches!(
        lost,
        CreateError::Os(OsError::Driver(DdiError::Node(NodeError::Kernel(
            KernelError::Lost
        ))))
    );
    assert!(is_lost, "{lost:?}");
}

/// TD-12: a process that ends while it takes a kernel, be it by that or by something else, or whose device is found lost
/// then, is a lost engine: whoever registers is told what to do, another process takes its place, and it takes the
/// kernel, or another.
///
/// Kills `a-kernel-that-ends-its-engine-is-taken`, `a-process-is-not-lost-by-a-kernel`.
#[test]
fn td_12_a_loss_that_a_registration_meets_is_told() {
    let Some(info) = device_info() else {
        return;
    };
    for (name, end) in [("ends", Answer::Ends), ("lost", Answer::IsLost)] {
        let program = Program::new(name);
        let (device_info, path) = (info.clone(), program.path.clone());
        let spares = SpareEngines::new(SparePolicy::OnSuspicion, move || {
            engine_of(&path, &device_info)
        });
        let (adapter, _) = adapter(engine_of(&program.path, &info).unwrap(), Some(spares));
        let [device, other] = [(); 2].map(|()| adapter.create_device());
        thread::scope(|scope| {
            scope.spawn(|| program.answer(end));
            is_told_of_a_loss(&device);
            until("another engine is there", || {
                adapter.node_counters().resets == 1
            });
            works(&device);
            works(&other);
            scope.spawn(|| program.answer(Answer::Takes));
            let kernel = create(&device);
            assert!(kernel.is_ok(), "{kernel:?}");
        });
    }
}

/// TD-12: an engine that is found lost by a registration is lost at once, and not when a slice comes upon it.
///
/// Kills `who-finds-a-loss-keeps-it`.
#[test]
fn td_12_a_loss_that_a_registration_finds_is_one_at_once() {
    let finds = KernelTaker::new(|_, _| Err(KernelError::Lost));
    let (adapter, driver) = adapter(Box::new(finds), None);
    let device = adapter.create_device();
    let fence = device.create_fence(0).unwrap();
    let queue = queue_of(&device, 0);
    let waiter = fence.arm(1);
    is_told_of_a_loss(&device);
    assert_eq!(driver.engine_state(0), Some(EngineState::Lost));
    until("the OS is told", || queue.error().is_some());
    assert_eq!(queue.error(), Some(WaitError::DeviceLost));
    until("the waiter is told", || waiter.outcome().is_some());
    assert_eq!(waiter.outcome(), Some(Err(WaitError::DeviceLost)));
}

/// What a spare is given, and when it goes on with that.
#[derive(Debug, Default)]
struct Gate {
    /// How many kernels there were each time.
    given: Mutex<Vec<usize>>,
    /// It waits at the time after so many.
    closed_after: Mutex<Option<usize>>,
    changed: Condvar,
}

impl Gate {
    fn pass(&self, kernels: usize) {
        let mut given = self.given.lock().unwrap();
        given.push(kernels);
        let time = given.len();
        drop(given);
        let closed = self.closed_after.lock().unwrap();
        let is_open = |closed: &mut Option<usize>| closed.is_some_and(|after| time > after);
        drop(self.changed.wait_while(closed, is_open).unwrap());
    }

    fn close(&self) {
        *self.closed_after.lock().unwrap() = Some(self.given().len());
    }

    fn open(&self) {
        *self.closed_after.lock().unwrap() = None;
        self.changed.notify_all();
    }

    fn given(&self) -> Vec<usize> {
        self.given.lock().unwrap().clone()
    }
}

/// TD-13: a spare has the kernels of the engines before it is needed, and what came since it takes while its node goes
/// on: whoever submits, maps or registers then is not held up, and what was registered then is dispatched as well.
///
/// Kills `a-spare-has-no-kernels-beforehand`, `a-spare-takes-kernels-under-the-lock`,
/// `what-came-meanwhile-is-not-the-spares`.
#[test]
fn td_13_a_spare_takes_kernels_while_its_node_goes_on() {
    let gates: Arc<Mutex<VecDeque<Arc<Gate>>>> = Arc::default();
    let gate = Arc::new(Gate::default());
    gates.lock().unwrap().push_back(Arc::clone(&gate));
    let spares = SpareEngines::new(SparePolicy::Kept, move || {
        // The spares of spares are like others.
        let gate = gates.lock().unwrap().pop_front().unwrap_or_default();
        Ok(Box::new(KernelTaker::new(move |model, kernels| {
            gate.pass(kernels.len());
            model.set_kernels(kernels)
        })))
    });
    let first = KernelTaker::new(Engine::set_kernels);
    let is_lost = Arc::clone(first.is_lost());
    let (adapter, driver) = adapter(Box::new(first), Some(spares));
    until("a spare stands ready", || driver.has_spare());
    let device = adapter.create_device();
    let adds = device.create_kernel(add_words()).unwrap();
    until("the spare has the kernel", || {
        gate.given() == [0, 1] && driver.has_spare()
    });
    gate.close();
    is_lost.store(true, Ordering::Release);
    let other = adapter.create_device();
    let mut lost = queue_of(&other, 0);
    let _ = lost.submit(CommandList::new().nop());
    until("a reset gives it kernels", || gate.given() == [0, 1, 1]);

    let (registered, kernel) = mpsc::channel();
    thread::scope(|scope| {
        let (device, driver) = (&device, &driver);
        scope.spawn(move || {
            let resets = driver.node(0).unwrap().counters().resets;
            registered.send((resets, device.create_kernel(spin())))
        });
        let heard = kernel.recv_timeout(LONG);
        gate.open();
        let (resets, spin) = heard.unwrap();
        assert_eq!(resets, 0, "it waits for the kernels still");
        let (spin, memory) = (spin.unwrap(), device.create_allocation(4096).unwrap());
        until("it has them all", || gate.given() == [0, 1, 1, 2]);
        let mut list = CommandList::new();
        list.dispatch(&adds, groups_for(512), &sums(&memory, &memory, 3))
            .unwrap();
        list.dispatch(&spin, [2, 1, 1], &spins(&memory, 9)).unwrap();
        let mut queue = queue_of(device, 0);
        let value = queue.submit(&list).unwrap();
        queue.progress_fence().wait(value, LONG).unwrap();
        assert_eq!(words::<3>(&memory), [3, 5, 3]);
    });
}

/// TD-13: where no engine that could take the place of a lost one has what a kernel declares, the adapter stops and says
/// which capability that is; nothing runs the kernel, and who waits is told.
///
/// Kills `why-no-spare-takes-a-kernel-is-not-told`.
#[test]
fn td_13_a_kernel_that_no_spare_can_have_stops_the_adapter_by_name() {
    let spares = SpareEngines::new(SparePolicy::OnSuspicion, || {
        Ok(Box::new(KernelTaker::new(|model, kernels| {
            if kernels.is_empty() {
                return model.set_kernels(kernels);
            }
            Err(KernelError::Capability(KernelCapability::Float64))
        })))
    });
    let first = KernelTaker::new(Engine::set_kernels);
    let is_lost = Arc::clone(first.is_lost());
    let (adapter, _driver) = adapter(Box::new(first), Some(spares));
    let device = adapter.create_device();
    let _adds = device.create_kernel(add_words()).unwrap();
    let fence = device.create_fence(0).unwrap();
    let mut queue = queue_of(&device, 0);
    is_lost.store(true, Ordering::Release);
    // A slice that runs still may do it: what is waited for comes from nobody.
    let _ = queue.submit(CommandList::new().nop());
    assert_eq!(fence.wait(1, LONG), Err(WaitError::AdapterStopped));
    until("the adapter stops", || adapter.os().stopped().is_some());
    let stopped = format!("{:?}", adapter.os().stopped());
    assert!(stopped.contains("the capability Float64"), "{stopped}");
}
