//! A process of an engine that is killed, at each store that the engine makes (TD-22).
//!
//! The engine is the model in a process of its own, which kills itself right after a store: what is left is what
//! a SIGKILL leaves there. All that the two processes share is memory, as with an engine of the device, whose
//! stores the model makes in the same order. `engine_process` kills those of the device, wherever they are then.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod engines;
    pub(crate) mod logged;
    pub(crate) mod memory;
    pub(crate) mod queue_of;
    pub(crate) mod until;
}

use native_fence::gpu::{
    Crowd, MemoryAccess, MemoryObserver, ModelEngine, ModelOptions, Node, NodePolicy,
    ProcessEngine, ShaderTuning, SpareEngines, SparePolicy, serve_engine_made_by,
};
use native_fence::kmd::{Driver, DriverOptions};
use native_fence::os::{Features, Record};
use native_fence::vulkan::AdapterInfo;
use native_fence::{Adapter, CommandList, DeviceExecutionState, Fence, TdrPolicy};
use rustix::process::{Signal, getpid, kill_process};
use std::fs;
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use support::logged::logged;
use support::queue_of::queue_of;
use support::until::{Ended, LONG, until};

/// After which store the child kills itself; it never does where that is 0.
const DIES_AFTER: &str = "NFENCE_TEST_DIES_AFTER";
/// Which stores those are: set where they are those of packets.
const OF_PACKETS: &str = "NFENCE_TEST_OF_PACKETS";

/// Kills its process after a store; counts from the first word of the guilty program's job on.
#[derive(Debug)]
struct Dies {
    after: u64,
    of_packets: bool,
    begun: AtomicBool,
    stores: AtomicU64,
}

impl MemoryObserver for Dies {
    fn touched(&self, access: MemoryAccess, region: &'static str, _: u64) {
        let of_packets = matches!(region, "fence-cv" | "fence-log" | "hw-queue-progress");
        if access != MemoryAccess::Store {
            return;
        }
        // What the job of another program fills is none of this.
        let is_job = region == "allocation";
        let has_begun = self.begun.fetch_or(is_job, Ordering::AcqRel);
        if is_job || !has_begun || of_packets != self.of_packets {
            return;
        }
        if self.stores.fetch_add(1, Ordering::AcqRel) + 1 == self.after {
            kill_process(getpid(), Signal::KILL).unwrap();
        }
    }
}

/// The child, which has its socket for its input.
#[test]
#[ignore = "the process of an engine, which its test starts"]
fn an_engine_of_its_own() {
    let Ok(after) = std::env::var(DIES_AFTER) else {
        return;
    };
    let observer = Arc::new(Dies {
        after: after.parse().unwrap(),
        of_packets: std::env::var(OF_PACKETS).is_ok_and(|of| of == "true"),
        begun: AtomicBool::new(false),
        stores: AtomicU64::new(0),
    });
    let options = ModelOptions {
        observer: Some(observer),
        ..ModelOptions::default()
    };
    let socket = std::io::stdin().as_fd().try_clone_to_owned().unwrap();
    let make = || Ok(Box::new(ModelEngine::new(options)) as _);
    serve_engine_made_by(socket, make).unwrap();
}

/// A program that is such an engine; removed when it is dropped.
struct Program(PathBuf);

impl Program {
    fn that_dies_after(stores: u64, of_packets: bool) -> Self {
        let of = std::process::id();
        let name = format!("nfence-engine-{of}-{of_packets}-{stores}");
        let path = std::env::temp_dir().join(name);
        let test = std::env::current_exe().unwrap();
        let text = format!(
            "#!/bin/sh\n{DIES_AFTER}={stores} {OF_PACKETS}={of_packets} exec '{}' --exact an_engine_of_its_own --ignored\n",
            test.display()
        );
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
        Self(path)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        fs::remove_file(&self.0).unwrap();
    }
}

/// An adapter whose engine dies like this, and the next one does not.
fn adapter(info: &AdapterInfo, dies: &Program, lives: &Program) -> Adapter {
    let first = ProcessEngine::new(&dies.0, info, false, ShaderTuning::default());
    let first = Box::new(first.unwrap());
    let crowd = Arc::new(Crowd::new(1));
    let node = Node::new(0, first, NodePolicy::default(), crowd).unwrap();
    let (device, program) = (info.clone(), lives.0.clone());
    let spares = SpareEngines::new(SparePolicy::Kept, move || {
        let spare = ProcessEngine::new(&program, &device, false, ShaderTuning::default());
        // The last one comes when the test has ended.
        let spare = spare.map_err(|error| error.to_string())?;
        Ok(Box::new(spare))
    });
    let driver = Driver::with_spares(vec![node], DriverOptions::default(), Some(spares));
    let tdr = TdrPolicy {
        // What is found in time is found by the end of the process.
        delay: 3 * LONG,
        limit_count: 1_000_000,
        ..TdrPolicy::default()
    };
    Adapter::with_driver_watched(driver, Features::default(), tdr).unwrap()
}

/// Values that packets store; the next one waits for the CPU's, which is one more.
const VALUES: [u64; 4] = [10, 20, 30, 40];
const BYTES: u64 = 16 << 20;

/// Whoever sees a value of the fence stores a greater one, which a second store of the packet would take back.
fn overtakes(fence: &Fence, ends: &AtomicBool) {
    for value in VALUES {
        while fence.current_value() < value {
            if ends.load(Ordering::Acquire) {
                return;
            }
            thread::yield_now();
        }
        fence.signal(value + 1).unwrap();
    }
}

/// One kill after so many stores; whether it came before all was done.
fn is_killed_after(info: &AdapterInfo, stores: u64, of_packets: bool, lives: &Program) -> bool {
    let dies = Program::that_dies_after(stores, of_packets);
    let adapter = adapter(info, &dies, lives);
    let (guilty, innocent) = (adapter.create_device(), adapter.create_device());
    // The first of the node: it is in a packet all the time, and is taken for the guilty one.
    let mut works = queue_of(&guilty, 0);
    let memory = guilty.create_allocation(BYTES).unwrap();
    let mut job = CommandList::new();
    for value in 0..40 {
        job.fill(&memory, 0..BYTES, value);
    }
    let mut queue = queue_of(&innocent, 0);
    // Save areas are initialised one after another: when its own is, theirs are.
    let mut last = queue_of(&innocent, 0);
    let end = last.submit(CommandList::new().nop()).unwrap();
    last.progress_fence().wait(end, LONG).unwrap();
    works.submit(&job).unwrap();
    let fence = innocent.create_fence(0).unwrap();
    let ends = AtomicBool::new(false);
    let at = format!("killed after {stores} stores, of packets: {of_packets}");
    let killed = thread::scope(|scope| {
        let _ends = Ended(&ends);
        let overtaken = scope.spawn(|| overtakes(&fence, &ends));
        let [first, second, third, fourth] = VALUES;
        let mut list = CommandList::new();
        list.signal(&fence, first).wait(&fence, first + 1).nop();
        queue.queue_commands(list.signal(&fence, second)).unwrap();
        let mut list = CommandList::new();
        list.nop().wait(&fence, second + 1).signal(&fence, third);
        list.wait(&fence, third + 1);
        queue.queue_commands(list.signal(&fence, fourth)).unwrap();
        queue.ring_doorbell().unwrap();
        assert_eq!(queue.progress_fence().wait(2, LONG), Ok(()), "{at}");
        let killed = adapter.node_counters().resets > 0;
        overtaken.join().unwrap();
        killed
    });
    assert_eq!(queue.error(), None, "{at}");
    let state = innocent.execution_state();
    assert_eq!(state, DeviceExecutionState::ACTIVE, "{at}");
    until("all is executed", || queue.read_index() == 11);
    assert_eq!(fence.current_value(), VALUES[3] + 1, "{at}");
    assert_eq!(logged(&queue, &fence), VALUES, "{at}");
    let waits = queue.read_wait_log().unwrap();
    assert_eq!((waits.entries.len(), waits.lost), (3, 0), "{at}");
    assert_eq!(queue.progress_fence().current_value(), 2, "{at}");
    assert_eq!(adapter.node_counters().backward_signals, 0, "{at}");
    if killed {
        until("the recovery is noted", || {
            adapter.os().records().len() == 1
        });
        let record = &adapter.os().records()[0];
        assert_eq!(record.code, Record::VIDEO_ENGINE_TIMEOUT_DETECTED, "{at}");
        let state = guilty.execution_state();
        assert_eq!(state, DeviceExecutionState::HUNG, "{at}");
    }
    killed
}

/// Kills after each store, until all is done before; how often.
fn kills(info: &AdapterInfo, of_packets: bool) -> usize {
    /// A busy machine makes an engine save and tell more often; what is new in that is over soon.
    const MOST: u64 = 100;
    let lives = Program::that_dies_after(0, of_packets);
    // A store beside packets may come when all is done, by chance: then again.
    let is_killed =
        |stores: &u64| (0..3).any(|_| is_killed_after(info, *stores, of_packets, &lives));
    (1..=MOST).take_while(is_killed).count()
}

/// TD-22: the process of an engine is killed after each store of an innocent program's packets, from the first
/// value to the last step of the index, and after each of those beside packets, of what it saves and tells the
/// host: signals, waits and what is nothing take effect once, with one entry in the log and one step of index and
/// progress. A value that the CPU has stored since is not taken back.
///
/// Kills `a-signal-is-stored-again-after-a-kill` and `a-kill-forgets-what-was-logged`.
#[test]
fn td_22_a_process_killed_after_any_store_leaves_each_packet_done_once() {
    let Some(device) = support::engines::shader() else {
        return;
    };
    let info = device.info().unwrap();
    let killed = [true, false].map(|of_packets| kills(info, of_packets));
    println!("{killed:?} stores");
    // Each of six signals stores its value, its entry's words and an index.
    assert!(killed[0] > 20 && killed[1] > 0, "{killed:?}");
}
