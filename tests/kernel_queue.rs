//! Rules of kernel-mode queues (HQ-10, LG-09, MF-03, MF-05): every packet goes through the OS.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
    pub(crate) mod logs;
}

use native_fence::abi::{FaultCode, LogOperation, LogType};
use native_fence::gpu::NodePolicy;
use native_fence::kmd::{
    CreateDoorbell, CreateDoorbellFlags, Ddi, DoorbellId, Interrupt, Place, SubmitCommand,
    SubmitCommandFlags,
};
use native_fence::os::QueueStop;
use native_fence::umd::MonitoredFenceOptions;
use native_fence::{Allocation, CommandList, KernelQueue, KernelQueueError, WaitError};
use support::bench::{
    Bench, Call, DdiSpy, LONG, complete, fill, finish, native, on_every_bench,
    on_monitored_benches, until,
};
use support::logs::now;

/// Nodes and ids of commands that the driver was handed, in their order.
fn submitted(spy: &DdiSpy) -> Vec<(u32, u64)> {
    let command = |call| match call {
        Call::SubmitCommand {
            hw_queue,
            submission_id,
            ..
        } => Some((hw_queue.node_ordinal, submission_id)),
        _ => None,
    };
    spy.calls().into_iter().filter_map(command).collect()
}

/// The same of commands that interrupts told of.
fn completed(spy: &DdiSpy) -> Vec<(u32, u64)> {
    let command = |interrupt| match interrupt {
        Interrupt::DmaCompleted {
            submission_id,
            node_ordinal,
            engine_ordinal: 0,
        } => Some((node_ordinal, submission_id)),
        _ => None,
    };
    spy.interrupts().into_iter().filter_map(command).collect()
}

fn first_word(allocation: &Allocation) -> u64 {
    let mut word = [0];
    allocation.read(0, &mut word);
    word[0]
}

/// HQ-10: a command with a fill and a signal behind it runs, and an interrupt with its id, node and
/// engine tells of it.
///
/// Kills `kernel-completion-is-not-told`, `kernel-ring-is-not-shown`.
#[test]
fn hq_10_a_command_completes_with_its_id() {
    on_monitored_benches(1, NodePolicy::default(), |bench| {
        let target = bench.device.create_allocation(64).unwrap();
        let done = bench.device.create_monitored_fence(0).unwrap();
        let mut queue = bench.device.create_kernel_queue().unwrap();
        let submission_id = bench.initialised(0) + 1;
        queue.record(&fill(&target, 7)).unwrap();
        queue.signal(&done, 1).unwrap();
        let value = queue.flush().unwrap();
        done.wait(1, LONG).unwrap();
        queue.progress_fence().wait(value, LONG).unwrap();
        assert_eq!(first_word(&target), 7);
        bench
            .spy
            .until_handled(|interrupt| {
                *interrupt
                    == Interrupt::DmaCompleted {
                        submission_id,
                        node_ordinal: 0,
                        engine_ordinal: 0,
                    }
            })
            .unwrap();
        let ids = bench.adapter.os().submission_ids(0);
        assert_eq!(ids, (submission_id, submission_id));
        // An allocation that is made when there is a queue already.
        let later = bench.device.create_allocation(64).unwrap();
        queue.submit(&fill(&later, 9)).unwrap();
        finish(&mut queue);
        assert_eq!(first_word(&later), 9);
    });
}

/// HQ-10: ids only rise per engine, from 1, whichever queue and thread submits; each completes once.
///
/// Kills `kernel-ids-are-not-the-engines`, `kernel-ids-stand-still`.
#[test]
fn hq_10_ids_rise_for_each_engine() {
    const COMMANDS: u64 = 20;
    on_monitored_benches(2, NodePolicy::default(), |bench| {
        // They stay until all is counted: the end of a queue takes an id of its own.
        let on = |node| bench.device.create_kernel_queue_on(node).unwrap();
        let mut of_each = [0, 1, 0].map(on);
        let before = [0, 1].map(|node| bench.initialised(node));
        std::thread::scope(|scope| {
            for queue in &mut of_each {
                scope.spawn(|| {
                    for _ in 0..COMMANDS {
                        queue.submit(CommandList::new().nop()).unwrap();
                    }
                    finish(queue);
                });
            }
        });
        for (node, queues, before) in [(0, 2, before[0]), (1, 1, before[1])] {
            let of_node = |ids: Vec<(u32, u64)>| -> Vec<u64> {
                let of_node = ids.into_iter().filter(|(of, _)| *of == node);
                of_node.map(|(_, id)| id).collect()
            };
            let last = before + queues * COMMANDS;
            let all: Vec<_> = (1..=last).collect();
            assert_eq!(of_node(submitted(&bench.spy)), all);
            let ended = || {
                let mut ended = of_node(completed(&bench.spy));
                ended.sort_unstable();
                ended
            };
            // A program may see the progress before the interrupt is handled.
            until("all have completed", || ended().len() >= all.len());
            assert_eq!(ended(), all);
            assert_eq!(bench.adapter.os().submission_ids(node), (last, last));
        }
    });
}

/// MF-03, HQ-10: what was recorded before a wait is flushed by it and runs; what is queued behind it
/// is not handed to the engine before the value is there, though the caller has returned and the
/// engine runs other queues' work; then it is.
///
/// Kills `kernel-wait-passes-at-once`, `kernel-wait-flushes-nothing`, `kernel-queue-is-not-told`.
#[test]
fn mf_03_what_follows_a_wait_is_held_back() {
    on_monitored_benches(1, NodePolicy::default(), |bench| {
        let create = || bench.device.create_monitored_fence(0).unwrap();
        let (earlier, gate, later) = (create(), create(), create());
        let mut queue = bench.device.create_kernel_queue().unwrap();
        queue.signal(&earlier, 1).unwrap();
        queue.wait(&gate, 2).unwrap();
        earlier.wait(1, LONG).unwrap();
        queue.signal(&later, 1).unwrap();
        queue.flush().unwrap();

        gate.signal(1).unwrap();
        let mut beside = bench.device.create_kernel_queue().unwrap();
        beside.submit(CommandList::new().nop()).unwrap();
        finish(&mut beside);
        assert_eq!(later.current_value(), 0);
        let handed = |queue: &KernelQueue| {
            let handle = queue.os().handle();
            let is_its = |call: &Call| matches!(call, Call::SubmitCommand { hw_queue, .. } if *hw_queue == handle);
            bench.spy.count(is_its)
        };
        assert_eq!(handed(&queue), 1, "the engine has what may run and no more");

        gate.signal(2).unwrap();
        later.wait(1, LONG).unwrap();
        assert_eq!(handed(&queue), 2);
        // One that is satisfied holds nothing back.
        queue.wait(&gate, 2).unwrap().signal(&later, 2).unwrap();
        queue.flush().unwrap();
        later.wait(2, LONG).unwrap();
    });
}

/// MF-03: signals of one engine let go what waits on another, through the OS, back and forth.
///
/// Kills `kernel-queue-is-not-told`, `monitored-completion-looks-at-nothing`.
#[test]
fn mf_03_engines_hand_over_through_the_os() {
    on_monitored_benches(2, NodePolicy::default(), |bench| {
        let create = || bench.device.create_monitored_fence(0).unwrap();
        let (there, back) = (create(), create());
        let mut first = bench.device.create_kernel_queue_on(0).unwrap();
        let mut second = bench.device.create_kernel_queue_on(1).unwrap();
        for value in 1..=20 {
            first.signal(&there, value).unwrap();
            first.wait(&back, value).unwrap();
            second.wait(&there, value).unwrap();
            second.signal(&back, value).unwrap();
        }
        second.flush().unwrap();
        back.wait(20, LONG).unwrap();
        assert_eq!(there.current_value(), 20);
    });
}

/// HQ-10: a queue is of one kind for its life. A command for a user-mode queue is refused, and so is
/// a doorbell or a log for a kernel-mode queue; both go on.
///
/// Kills `user-mode-queue-takes-commands`, `kernel-queue-has-a-doorbell`,
/// `kernel-queue-has-a-log`.
#[test]
fn hq_10_the_other_kinds_submission_is_refused() {
    on_every_bench(NodePolicy::default(), |bench| {
        let mut user = bench.queue();
        let mut kernel = bench.device.create_kernel_queue().unwrap();
        let command = SubmitCommand {
            hw_queue: user.os().handle(),
            submission_id: 1,
            packets: &[],
            flags: SubmitCommandFlags::default(),
            progress_value: 1,
        };
        let refusal = bench.spy.submit_command_to_hw_queue(&command);
        let says = refusal.unwrap_err().to_string();
        assert!(says.contains("user-mode submission"), "{says}");
        let fence = bench.fence(0);
        let (region, offset) = native(&fence).current_value_place();
        let refusal = bench.spy.create_doorbell(&CreateDoorbell {
            hw_queue: kernel.os().handle(),
            doorbell: DoorbellId(u64::MAX),
            ring: Place { region, offset },
            ring_packets: 0,
            ring_capacity: 2,
            words: user.raw_doorbell(),
            flags: CreateDoorbellFlags::default(),
        });
        let says = refusal.unwrap_err().to_string();
        assert!(says.contains("kernel-mode queue"), "{says}");
        let (handle, verbose) = (kernel.os().handle(), LogType::Verbose);
        let refusal = bench.spy.remove_native_fence_log_buffer(handle, verbose);
        let says = refusal.unwrap_err().to_string();
        assert!(says.contains("kernel-mode queue"), "{says}");

        complete(&mut user, CommandList::new().signal(&fence, 1));
        assert_eq!(fence.current_value(), 1);
        kernel.submit(CommandList::new().nop()).unwrap();
        finish(&mut kernel);
    });
}

/// HQ-10, HQ-03: more than the ring holds is held back in the software queue, and all of it runs, in
/// its order: long lists and many of them.
///
/// Kills `kernel-ring-has-always-room`.
#[test]
fn hq_10_more_than_the_ring_holds_is_held_back() {
    on_monitored_benches(1, NodePolicy::default(), |bench| {
        let words = 1500;
        let target = bench.device.create_allocation(8 * words).unwrap();
        let mut queue = bench.device.create_kernel_queue().unwrap();
        let mut list = CommandList::new();
        for word in 0..words {
            list.fill(&target, 8 * word..8 * word + 8, word + 1);
        }
        queue.submit(&list).unwrap();
        let fence = bench.device.create_monitored_fence(0).unwrap();
        for value in 1..=600 {
            queue.signal(&fence, value).unwrap();
            queue.flush().unwrap();
        }
        finish(&mut queue);
        assert_eq!(fence.current_value(), 600);
        let mut stored = vec![0; words as usize];
        target.read(0, &mut stored);
        assert!(stored.into_iter().eq(1..=words));
    });
}

/// HQ-10, HQ-04: a malformed packet stops its own queue, with the reason; what waits for its progress
/// ends, and a neighbour on the same engine goes on.
///
/// Kills `kernel-fault-stops-nothing`.
#[test]
fn hq_04_a_bad_packet_stops_its_own_kernel_queue() {
    on_monitored_benches(1, NodePolicy::default(), |bench| {
        let target = bench.device.create_allocation(64).unwrap();
        let mut neighbour = bench.device.create_kernel_queue().unwrap();
        let mut queue = bench.device.create_kernel_queue().unwrap();
        let mut list = CommandList::new();
        let value = queue.submit(list.fill(&target, 0..128, 1)).unwrap();
        let ended = queue.progress_fence().wait(value, LONG);
        let Err(WaitError::QueueFaulted(fault)) = ended else {
            panic!("{ended:?}")
        };
        assert_eq!(fault.code, FaultCode::Range);
        assert_eq!(queue.error(), Some(WaitError::QueueFaulted(fault)));
        let refused = queue.submit(CommandList::new().nop());
        assert_eq!(
            refused,
            Err(KernelQueueError::Stopped(WaitError::QueueFaulted(fault)))
        );
        neighbour.submit(&fill(&target, 5)).unwrap();
        finish(&mut neighbour);
        assert_eq!(first_word(&target), 5);
    });
}

/// MF-05: a fence that the engine cannot store to is signalled by the OS, when what was queued before
/// has been executed, and not before.
///
/// Kills `software-signal-overtakes`, `no-gpu-access-is-forgotten`.
#[test]
fn mf_05_a_software_signal_is_made_at_the_head() {
    on_monitored_benches(1, NodePolicy::default(), |bench| {
        let target = bench.device.create_allocation(64 * 1024).unwrap();
        let gate = bench.device.create_monitored_fence(0).unwrap();
        let options = MonitoredFenceOptions {
            no_gpu_access: true,
            ..MonitoredFenceOptions::default()
        };
        let done = bench.device.create_monitored_fence_with(options).unwrap();
        let mut queue = bench.device.create_kernel_queue().unwrap();
        let refused = queue.signal(&done, 1).map(drop);
        assert_eq!(refused, Err(KernelQueueError::NoGpuAccess));

        queue.wait(&gate, 1).unwrap();
        for round in 1..=20 {
            queue.record(&fill(&target, round)).unwrap();
            queue.signal_by_os(&done, round).unwrap();
        }
        assert_eq!(done.current_value(), 0);
        gate.signal(1).unwrap();
        for round in 1..=20 {
            done.wait(round, LONG).unwrap();
            // Commands before it have completed; one behind it may have run.
            assert!(first_word(&target) >= round);
        }
        assert_eq!(done.current_value(), 20);
        let mut logged = Vec::new();
        until("the last is logged", || {
            logged.extend(queue.read_signal_log().entries);
            logged.len() == 20
        });
        assert!(logged.iter().map(|entry| entry.fence_value).eq(1..=20));
    });
}

/// HQ-10, LG-09: the waits and signals of native fences on a kernel-mode queue are the OS's.
///
/// Kills `kernel-queue-is-not-told`.
#[test]
fn lg_09_native_fences_are_waited_for_and_signalled_by_the_os() {
    on_every_bench(NodePolicy::default(), |bench| {
        let (gate, done) = (bench.fence(0), bench.fence(0));
        let target = bench.device.create_allocation(64).unwrap();
        let mut user = bench.queue();
        let mut queue = bench.device.create_kernel_queue().unwrap();
        let mut list = CommandList::new();
        let refused = queue.submit(list.signal(&done, 1));
        assert_eq!(refused, Err(KernelQueueError::NativeFence));

        queue.wait_native(&gate, 1).unwrap();
        queue.record(&fill(&target, 3)).unwrap();
        queue.signal_native(&done, 1).unwrap();
        assert_eq!(done.current_value(), 0);
        complete(&mut user, CommandList::new().signal(&gate, 1));
        done.wait(1, LONG).unwrap();
        assert_eq!(first_word(&target), 3);
    });
}

/// LG-09: a kernel-mode queue has no log of the driver's. The OS takes the times of its waits and
/// signals itself and gives them in the native log's form: observed when the wait was found
/// unsatisfied, end when it was over.
///
/// Kills `kernel-wait-observed-at-its-end`, `kernel-signals-are-not-logged`.
#[test]
fn lg_09_the_os_takes_the_times() {
    on_monitored_benches(1, NodePolicy::default(), |bench| {
        let create = || bench.device.create_monitored_fence(0).unwrap();
        let (gate, done) = (create(), create());
        let mut queue = bench.device.create_kernel_queue().unwrap();
        let begin = now();
        queue.wait(&gate, 4).unwrap();
        queue.signal(&done, 1).unwrap();
        queue.flush().unwrap();
        let queued = now();
        gate.signal(4).unwrap();
        finish(&mut queue);
        let mut signals = Vec::new();
        until("the completion is logged", || {
            signals.extend(queue.read_signal_log().entries);
            signals.len() == 1
        });
        let end = now();

        let waits = queue.read_wait_log();
        let [wait] = waits.entries[..] else {
            panic!("{waits:?}")
        };
        assert_eq!(
            (wait.fence_value, wait.native_fence),
            (4, gate.handle().raw())
        );
        assert_eq!(wait.operation, LogOperation::WaitUnblocked as u32);
        assert!(begin <= wait.observed_ticks && wait.observed_ticks <= queued);
        assert!(queued <= wait.end_ticks && wait.end_ticks <= end);
        let signal = signals[0];
        assert_eq!(
            (signal.fence_value, signal.native_fence),
            (1, done.handle().raw())
        );
        assert_eq!(signal.operation, LogOperation::SignalExecuted as u32);
        assert!(wait.end_ticks <= signal.end_ticks && signal.end_ticks <= end);

        // A wait that is satisfied when the queue comes to it.
        queue.wait(&gate, 4).unwrap();
        let mut waits = Vec::new();
        // Another thread may be the one that advances the queue.
        until("the wait is logged", || {
            waits.extend(queue.read_wait_log().entries);
            waits.len() == 1
        });
        assert_eq!(waits[0].observed_ticks, waits[0].end_ticks);
        let is_its = |set: &&(_, _, _, _)| set.0 == queue.os().handle();
        assert_eq!(bench.spy.logs().iter().filter(is_its).count(), 0);
    });
}

/// HQ-10: a chain of queues, each of which waits for the one before, ends, however it was queued, and
/// a queue that is dropped leaves nothing behind.
///
/// Kills `kernel-queue-is-not-told`.
#[test]
fn hq_10_a_chain_of_queues_ends() {
    on_monitored_benches(1, NodePolicy::default(), |bench: &Bench| {
        const LINKS: usize = 40;
        let create = || bench.device.create_monitored_fence(0).unwrap();
        let fences: Vec<_> = (0..=LINKS).map(|_| create()).collect();
        let create = |_| bench.device.create_kernel_queue().unwrap();
        let mut queues: Vec<_> = (0..LINKS).map(create).collect();
        for (at, queue) in queues.iter_mut().enumerate().rev() {
            queue.wait(&fences[at], 1).unwrap();
            if at % 2 == 0 {
                queue.signal_by_os(&fences[at + 1], 1).unwrap();
            } else {
                queue.signal(&fences[at + 1], 1).unwrap();
                queue.flush().unwrap();
            }
        }
        fences[0].signal(1).unwrap();
        fences[LINKS].wait(1, LONG).unwrap();
        queues[0].wait(&fences[0], 9).unwrap();
        let progress = queues[0].progress_fence().clone();
        drop(queues);
        let gone = WaitError::QueueStopped(QueueStop::Destroyed);
        assert_eq!(progress.wait(u64::MAX, LONG), Err(gone));
    });
}

/// What a process had of kernel-mode queues, monitored fences and allocations goes with it.
///
/// Kills `kernel-side-outlives-its-process`.
#[test]
fn hq_10_a_process_leaves_nothing_behind() {
    on_every_bench(NodePolicy::default(), |bench| {
        let held = || {
            let counters = bench.counters();
            (counters.mappings, counters.handle_tables)
        };
        bench.until_parked();
        let start = held();
        for _ in 0..3 {
            let device = bench.adapter.create_device();
            let target = device.create_allocation(64).unwrap();
            let done = device.create_monitored_fence(0).unwrap();
            let mut queue = device.create_kernel_queue().unwrap();
            queue.record(&fill(&target, 7)).unwrap();
            queue.signal(&done, 1).unwrap();
            finish(&mut queue);
            queue.wait(&done, 9).unwrap();
        }
        until("all is given back", || held() == start);
    });
}

/// NF-31 for kernel-mode queues: what was queued keeps what it names; the last handle of a fence that
/// a queue still signals or waits for may go, and what is destroyed by it is destroyed by no call at a
/// wrong level, which the bench looks for.
///
/// Kills `kernel-completion-drops-at-dispatch-level`.
#[test]
fn hq_10_what_is_queued_keeps_its_fences() {
    on_every_bench(NodePolicy::default(), |bench| {
        for _ in 0..10 {
            let create = || bench.device.create_monitored_fence(0).unwrap();
            let (gate, named, done) = (create(), create(), create());
            let native_one = bench.fence(1);
            let mut queue = bench.device.create_kernel_queue().unwrap();
            queue.wait(&gate, 1).unwrap();
            queue.wait_native(&native_one, 1).unwrap();
            queue.signal(&named, 1).unwrap();
            queue.flush().unwrap();
            queue.signal(&done, 1).unwrap();
            queue.flush().unwrap();
            drop((named, native_one));
            gate.signal(1).unwrap();
            done.wait(1, LONG).unwrap();
            assert_eq!(queue.error(), None);
            let handled = bench.adapter.os().submission_ids(0);
            until("the completions are handled", || {
                bench.adapter.os().submission_ids(0).1 >= handled.0
            });
        }
    });
}
