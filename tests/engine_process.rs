//! Engines in processes of their own (`EngineUnit::Process`): what their end leaves to others, and that
//! nothing of them is left behind (PR-01, TD-12, TD-13, TD-22, TD-23 in that form).
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod child;
    pub(crate) mod engines;
    pub(crate) mod kernels;
    pub(crate) mod logged;
    pub(crate) mod memory;
    pub(crate) mod passing;
    pub(crate) mod queue_of;
    pub(crate) mod until;
}

use native_fence::abi::wddm::DeviceExecutionState;
use native_fence::gpu::{EngineUnit, ShaderTuning, SparePolicy};
use native_fence::os::Record;
use native_fence::vulkan::validation;
use native_fence::{
    Adapter, AdapterOptions, CommandList, EngineKind, FenceMemory, FenceOptions, HwQueue,
    MemoryOptions, OpenError, StallKind, TdrPolicy, WaitError,
};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use std::io::{Read, Write};
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;
use support::child;
use support::engines::memory::{EXPORTED, LOCAL};
use support::kernels::add_words;
use support::logged::logged;
use support::queue_of::queue_of;
use support::until::{LONG, until};

/// Engines that nobody watches for long: what is found in time is found by other means.
const LATE: Duration = Duration::from_secs(60);
/// As soon as a busy machine allows for.
const SOON: Duration = Duration::from_secs(1);

fn options(nodes: u32, delay: Duration) -> AdapterOptions {
    AdapterOptions {
        validation: validation::asked_for_by_environment(),
        nodes: NonZeroU32::new(nodes).unwrap(),
        unit: Some(EngineUnit::Process),
        engine_program: Some(PathBuf::from(env!("CARGO_BIN_EXE_nfence"))),
        tuning: ShaderTuning {
            stalls: true,
            ..ShaderTuning::default()
        },
        tdr: TdrPolicy {
            delay,
            // A reset takes as long as the next process, whose shaders a busy machine compiles for seconds.
            ddi_delay: LATE,
            limit_count: 1_000_000,
            ..TdrPolicy::default()
        },
        ..AdapterOptions::default()
    }
}

/// Whether native fences are on the best device; a test without says so.
fn is_device() -> bool {
    support::engines::shader().is_some()
}

/// An adapter of so many engine processes; none without a device.
fn opened(nodes: u32, delay: Duration) -> Option<Adapter> {
    is_device().then(|| Adapter::open(&options(nodes, delay)).unwrap())
}

fn process_of(adapter: &Adapter, node_ordinal: u32) -> Pid {
    let id = adapter.engine_process(node_ordinal).unwrap();
    Pid::from_raw(id.cast_signed()).unwrap()
}

/// Not even its parent has it left to ask about.
fn is_gone(process: Pid) -> bool {
    test_kill_process(process) == Err(Errno::SRCH)
}

/// Runs nothing any more; a parent that took it over may not have asked about it yet.
fn has_ended(process: Pid) -> bool {
    let stat = format!("/proc/{}/stat", process.as_raw_nonzero());
    let stat = std::fs::read_to_string(stat).unwrap_or_default();
    // The state follows the name, which stands in parentheses.
    stat.rsplit(") ")
        .next()
        .is_none_or(|rest| rest.is_empty() || rest.starts_with('Z'))
}

fn codes(adapter: &Adapter) -> Vec<u32> {
    let records = adapter.os().records();
    records.iter().map(|record| record.code).collect()
}

/// These records are there, and no others; the last may be noted when programs go on already.
fn until_noted(adapter: &Adapter, expected: &[u32]) {
    until("the recovery is noted", || {
        codes(adapter).len() >= expected.len()
    });
    assert_eq!(codes(adapter), expected);
}

const ENGINE: u32 = Record::VIDEO_ENGINE_TIMEOUT_DETECTED;

/// Has a queue keep its engine, or itself where the driver ends loops, for good; returns when it does, or is
/// about to.
fn hang(queue: &mut HwQueue) {
    let list = &mut CommandList::new();
    list.nop().stall(StallKind::HeedsNothing, u64::MAX);
    queue.submit(list).unwrap();
    until("the packet before it is done", || queue.read_index() > 0);
}

/// Two engines in processes hand a fence to each other: each packet takes effect once, in its order, and
/// whoever waits on the CPU is told. What they share is memory alone.
///
/// Kills `an-end-is-told-to-nobody`.
#[test]
fn td_22_engines_in_processes_execute_each_packet_once() {
    let Some(adapter) = opened(2, LATE) else {
        return;
    };
    assert_ne!(process_of(&adapter, 0), process_of(&adapter, 1));
    let device = adapter.create_device();
    let (mut here, mut there) = (queue_of(&device, 0), queue_of(&device, 1));
    let (ping, pong) = (
        device.create_fence(0).unwrap(),
        device.create_fence(0).unwrap(),
    );
    for value in 1..=20 {
        here.submit(
            CommandList::new()
                .wait(&pong, value - 1)
                .signal(&ping, value),
        )
        .unwrap();
        there
            .submit(CommandList::new().wait(&ping, value).signal(&pong, value))
            .unwrap();
    }
    assert_eq!(pong.wait(20, LONG), Ok(()));
    assert_eq!((ping.current_value(), pong.current_value()), (20, 20));
    let all: Vec<_> = (1..=20).collect();
    assert_eq!(logged(&here, &ping), all);
    assert_eq!(logged(&there, &pong), all);
    // Of an engine that is parked, and of one that is brought back by the CPU.
    here.submit(CommandList::new().wait(&pong, 30).signal(&ping, 30))
        .unwrap();
    pong.signal(30).unwrap();
    assert_eq!(ping.wait(30, LONG), Ok(()));
    assert_eq!(adapter.node_counters().resets, 0);
}

/// PR-01, TD-12, TD-22: a process that is killed is a lost engine, which nobody waits a TdrDelay for. The
/// device whose packet it was in is in error; another's queue on the same engine goes on in the next process
/// and does each packet once; the other engine goes on. Again and again.
///
/// Kills `a-gone-process-is-not-told`.
#[test]
fn pr_01_a_killed_engine_process_is_a_lost_engine() {
    let Some(adapter) = opened(2, LATE) else {
        return;
    };
    // The node's first queues: one that could go on is taken for the guilty one where none says that it is
    // in a packet.
    let guilty = [(); 4].map(|()| adapter.create_device());
    let mut hanging = guilty.each_ref().map(|guilty| queue_of(guilty, 0));
    let innocent = adapter.create_device();
    let (mut same, mut other) = (queue_of(&innocent, 0), queue_of(&innocent, 1));
    let (mirror, far) = (
        innocent.create_fence(0).unwrap(),
        innocent.create_fence(0).unwrap(),
    );
    let mut value = 0;
    let mut seen = Vec::new();
    for ((guilty, hangs), kills) in guilty.iter().zip(&mut hanging).zip(1..) {
        let process = process_of(&adapter, 0);
        let mut submit = |value| {
            same.submit(
                CommandList::new()
                    .wait(&mirror, value - 1)
                    .signal(&mirror, value),
            )
            .unwrap();
            other
                .submit(CommandList::new().wait(&mirror, value).signal(&far, value))
                .unwrap();
        };
        for _ in 0..5 {
            value += 1;
            submit(value);
        }
        hang(hangs);
        for _ in 0..5 {
            value += 1;
            submit(value);
        }
        kill_process(process, Signal::KILL).unwrap();
        assert_eq!(
            hangs.progress_fence().wait(1, LONG),
            Err(WaitError::DeviceLost)
        );
        assert_eq!(far.wait(value, LONG), Ok(()));
        assert!(is_gone(process));
        assert_ne!(process_of(&adapter, 0), process);
        assert_eq!(guilty.execution_state(), DeviceExecutionState::HUNG);
        seen.extend(logged(&same, &mirror));
        assert_eq!(adapter.node_counters().resets, kills);
    }
    assert_eq!(innocent.execution_state(), DeviceExecutionState::ACTIVE);
    assert_eq!(seen, (1..=value).collect::<Vec<_>>());
    assert_eq!(
        (mirror.current_value(), far.current_value()),
        (value, value)
    );
    until_noted(&adapter, &[ENGINE; 4]);
}

/// One more device submits to an engine, and waits until it is done.
fn works(adapter: &Adapter) {
    let device = adapter.create_device();
    let (mut queue, fence) = (queue_of(&device, 0), device.create_fence(0).unwrap());
    let mut list = CommandList::new();
    let end = queue.submit(list.signal(&fence, 1)).unwrap();
    assert_eq!(queue.progress_fence().wait(end, LONG), Ok(()));
    assert_eq!(fence.current_value(), 1);
}

/// PR-01: also of an engine that nobody waits for: who comes next has one that works.
///
/// Kills `who-waits-for-ever-is-not-told`.
#[test]
fn pr_01_a_process_that_is_killed_idle_is_replaced() {
    let Some(adapter) = opened(1, LATE) else {
        return;
    };
    works(&adapter);
    let process = process_of(&adapter, 0);
    kill_process(process, Signal::KILL).unwrap();
    until_noted(&adapter, &[ENGINE]);
    assert!(is_gone(process));
    assert_ne!(process_of(&adapter, 0), process);
    works(&adapter);
    assert_eq!(adapter.node_counters().resets, 1);
}

/// PR-01: where engines are processes a spare is kept warm though nobody asked for it: one that is killed was not
/// suspected before. That process is the engine's then.
///
/// Kills `a-spare-process-is-made-on-suspicion`.
#[test]
fn pr_01_a_spare_process_stands_ready_by_default() {
    let Some(adapter) = opened(1, LATE) else {
        return;
    };
    works(&adapter);
    let engine = process_of(&adapter, 0);
    let spare = spare_beside(&adapter, engine);
    kill_process(engine, Signal::KILL).unwrap();
    until_noted(&adapter, &[ENGINE]);
    assert_eq!(process_of(&adapter, 0), spare);
    works(&adapter);
}

/// PR-01, TD-21: a spare's process is as easily killed, or stopped, while it is kept: the next one is made, and
/// the engine alone is reset. One that is stopped is found soon, though it has kernels, which it may take its time for.
///
/// Kills `a-lost-spare-is-not-made-again`, `a-spare-is-asked-for-what-it-has`.
#[test]
fn pr_01_a_spare_whose_process_was_struck_is_made_again() {
    if !is_device() {
        return;
    }
    for signal in [Signal::KILL, Signal::STOP] {
        let adapter = Adapter::open(&AdapterOptions {
            spares: SparePolicy::Kept,
            ..options(1, LATE)
        })
        .unwrap();
        works(&adapter);
        let keeper = adapter.create_device();
        let _kernel = keeper.create_kernel(add_words()).unwrap();
        let engine = process_of(&adapter, 0);
        let spare = spare_beside(&adapter, engine);
        kill_process(spare, signal).unwrap();
        kill_process(engine, Signal::KILL).unwrap();
        until_noted(&adapter, &[ENGINE]);
        assert!(is_gone(engine) && is_gone(spare));
        works(&adapter);
        assert_eq!(adapter.node_counters().resets, 1);
    }
}

/// TD-13, TD-23: a process that is stopped is found by the watch, and killed: nothing brings it back, and
/// nothing of it stores any more. The other engine goes on all the time.
///
/// Kills `a-process-is-cut-off-by-nothing`.
#[test]
fn td_23_a_stopped_engine_process_is_killed_and_replaced() {
    const BYTES: u64 = 16 << 20;
    let Some(adapter) = opened(2, SOON) else {
        return;
    };
    let (guilty, innocent) = (adapter.create_device(), adapter.create_device());
    let mut works = queue_of(&guilty, 0);
    let (mut same, mut other) = (queue_of(&innocent, 0), queue_of(&innocent, 1));
    let (here, there) = (
        innocent.create_fence(0).unwrap(),
        innocent.create_fence(0).unwrap(),
    );
    let memory = guilty.create_allocation(BYTES).unwrap();
    let mut job = CommandList::new();
    for value in 0..400 {
        job.fill(&memory, 0..BYTES, value);
    }
    let process = process_of(&adapter, 0);
    let end = works.submit(&job).unwrap();
    until("the job runs", || works.read_index() > 0);
    kill_process(process, Signal::STOP).unwrap();
    same.submit(CommandList::new().signal(&here, 1)).unwrap();
    let mut turns = 0;
    while here.current_value() < 1 {
        turns += 1;
        other
            .submit(CommandList::new().signal(&there, turns))
            .unwrap();
        assert_eq!(there.wait(turns, LONG), Ok(()));
        assert_eq!(same.error(), None);
    }
    assert_eq!(
        works.progress_fence().wait(end, LONG),
        Err(WaitError::DeviceLost)
    );
    assert!(is_gone(process));
    assert_eq!(guilty.execution_state(), DeviceExecutionState::HUNG);
    assert_eq!(innocent.execution_state(), DeviceExecutionState::ACTIVE);
    assert_eq!(logged(&same, &here), [1]);
    until_noted(&adapter, &[ENGINE]);
}

/// TD-13: a shader that never ends is recovered from, and its processor is won back: its process is gone,
/// which no engine of this process could be. On a driver that ends loops nothing is endless: there nothing
/// happens to anybody.
///
/// Kills `an-end-is-told-of-another-slice`.
#[test]
fn td_13_a_shader_that_never_ends_gives_its_processor_back() {
    let Some(adapter) = opened(2, SOON) else {
        return;
    };
    let (guilty, innocent) = (adapter.create_device(), adapter.create_device());
    let mut hangs = queue_of(&guilty, 0);
    let (mut same, mut other) = (queue_of(&innocent, 0), queue_of(&innocent, 1));
    let (here, there) = (
        innocent.create_fence(0).unwrap(),
        innocent.create_fence(0).unwrap(),
    );
    let process = process_of(&adapter, 0);
    hang(&mut hangs);
    for value in 1..=20 {
        same.submit(CommandList::new().signal(&here, value))
            .unwrap();
        other
            .submit(CommandList::new().wait(&here, value).signal(&there, value))
            .unwrap();
    }
    let ends_loops = adapter.info().unwrap().driver_info.starts_with("Mesa 22");
    let (state, records): (_, &[u32]) = if ends_loops {
        println!("the driver ends every loop");
        (DeviceExecutionState::ACTIVE, &[])
    } else {
        let ended = hangs.progress_fence().wait(1, LONG);
        assert_eq!(ended, Err(WaitError::DeviceLost));
        (DeviceExecutionState::HUNG, &[ENGINE])
    };
    assert_eq!(there.wait(20, LONG), Ok(()));
    assert_eq!(is_gone(process), !ends_loops);
    let all: Vec<_> = (1..=20).collect();
    assert_eq!(logged(&same, &here), all);
    assert_eq!(logged(&other, &there), all);
    assert_eq!(guilty.execution_state(), state);
    assert_eq!(innocent.execution_state(), DeviceExecutionState::ACTIVE);
    until_noted(&adapter, records);
}

/// TD-14: with an adapter go its engines' processes, a spare's among them, and one that is stopped.
///
/// Kills `a-dropped-engine-is-left-to-itself`.
#[test]
fn td_14_no_engine_process_is_left_behind_by_its_adapter() {
    if !is_device() {
        return;
    }
    let adapter = Adapter::open(&AdapterOptions {
        spares: SparePolicy::Kept,
        ..options(2, LATE)
    })
    .unwrap();
    let device = adapter.create_device();
    let (mut queue, fence) = (queue_of(&device, 0), device.create_fence(0).unwrap());
    queue.submit(CommandList::new().signal(&fence, 1)).unwrap();
    fence.wait(1, LONG).unwrap();
    let processes = [process_of(&adapter, 0), process_of(&adapter, 1)];
    kill_process(processes[1], Signal::STOP).unwrap();
    drop((queue, fence, device, adapter));
    for process in processes {
        assert!(is_gone(process));
    }
    until("the spare is gone", || children().is_empty());
}

/// Processes that this one has started and not asked about since.
fn children() -> Vec<String> {
    let threads = std::fs::read_dir("/proc/self/task").unwrap();
    let texts = threads.filter_map(|thread| {
        let path = thread.ok()?.path().join("children");
        std::fs::read_to_string(path).ok()
    });
    let texts: Vec<_> = texts.collect();
    let words = texts.iter().flat_map(|text| text.split_whitespace());
    words.map(str::to_owned).collect()
}

/// The spare that stands ready, where one engine runs.
fn spare_beside(adapter: &Adapter, engine: Pid) -> Pid {
    until("a spare stands ready", || adapter.has_spare());
    let pids = children().into_iter().map(|child| child.parse().unwrap());
    let mut pids = pids.filter_map(Pid::from_raw);
    pids.find(|child| *child != engine).unwrap()
}

/// Part of the test below.
#[test]
#[ignore = "part of another test, which starts it"]
fn has_engines() {
    let Some(mut socket) = child::socket() else {
        return;
    };
    let adapter = Adapter::open(&options(2, LATE)).unwrap();
    for node in 0..2 {
        let id = adapter.engine_process(node).unwrap();
        socket.write_all(&id.to_le_bytes()).unwrap();
    }
    // Until it is killed.
    let _ = socket.read(&mut [0]);
}

/// TD-14: a program that is killed leaves none behind, whatever its engines do: one hears nothing, since it
/// is stopped.
///
/// Kills `a-child-outlives-its-parent`.
#[test]
fn td_14_no_engine_process_outlives_its_killed_parent() {
    if !is_device() {
        return;
    }
    let (mut parent, mut socket) = child::spawn("has_engines", &[]);
    let engines = [(); 2].map(|()| {
        let mut id = [0; 4];
        socket.read_exact(&mut id).unwrap();
        Pid::from_raw(i32::from_le_bytes(id)).unwrap()
    });
    kill_process(engines[0], Signal::STOP).unwrap();
    assert!(!engines.into_iter().any(has_ended));
    parent.kill().unwrap();
    parent.wait().unwrap();
    for engine in engines {
        until("the engine's process ends", || has_ended(engine));
    }
}

/// NF-12: what cannot be is refused with what to do, and nothing else is given instead.
///
/// Kills `forced-local-memory-is-passed-over-for-processes`.
#[test]
fn nf_12_engine_processes_share_files_of_memory_alone() {
    let Some(adapter) = opened(1, LATE) else {
        return;
    };
    let local = FenceOptions {
        memory: FenceMemory::Local,
        ..FenceOptions::default()
    };
    let refused = adapter.create_device().create_fence_with(local);
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("processes of their own"), "{refused}");
    drop(adapter);
    let open = |memory: MemoryOptions, engine| {
        Adapter::open(&AdapterOptions {
            memory,
            engine,
            ..options(1, LATE)
        })
    };
    for memory in [LOCAL, EXPORTED] {
        let refused = open(memory, EngineKind::Shader).unwrap_err();
        assert!(matches!(refused, OpenError::Memory(_)), "{refused}");
    }
    let refused = open(MemoryOptions::default(), EngineKind::CommandBuffers).unwrap_err();
    assert!(
        refused.to_string().contains("choose another unit"),
        "{refused}"
    );
}

/// A program that is none, or another, is named with what was expected of it.
#[test]
fn a_program_that_makes_no_engine_is_named() {
    if !is_device() {
        return;
    }
    for program in ["/no/such/program", "/bin/true", "/bin/cat"] {
        let refused = Adapter::open(&AdapterOptions {
            engine_program: Some(PathBuf::from(program)),
            ..options(1, LATE)
        });
        let refused = refused.unwrap_err().to_string();
        assert!(refused.contains(program), "{refused}");
    }
    assert_eq!(children(), Vec::<String>::new());
}
