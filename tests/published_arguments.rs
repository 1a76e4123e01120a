//! Calls of the OS and callbacks of the driver as published structures: every byte of each.

#![allow(clippy::unwrap_used, reason = "tests, and their helpers")]

mod support {
    pub(crate) mod bench;
}

use native_fence::abi::wddm::{NativeFenceCaps, UserModeSubmissionCaps};
use native_fence::abi::{FenceId, LogType};
use native_fence::gpu::NodePolicy;
use native_fence::kmd::published::PublishedHandle;
use native_fence::kmd::{
    CreateHwQueue, CreateHwQueueFlags, CurrentValueUpdate, Ddi, DoorbellId, DriverOptions,
    HwQueueHandle, Interrupt, NativeFenceSignaled, Place, ProcessId, UpdateCurrentValuesFlags,
};
use native_fence::shared::Block;
use native_fence::{CommandList, Fence, FenceOptions, HwQueue};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Instant;
use support::bench::{Bench, Passed, Published, complete, native, on_benches_with, until};

/// A member's offset, its bytes, and its value.
type Member = (usize, usize, u64);

/// The structure: these members, all else zero.
fn structure(bytes: usize, members: &[Member]) -> Vec<u8> {
    let mut structure = vec![0; bytes];
    for (offset, len, value) in members {
        structure[*offset..offset + len].copy_from_slice(&value.to_le_bytes()[..*len]);
    }
    structure
}

/// What was passed under that name.
fn passed(bench: &Bench, name: &str) -> Vec<Published> {
    let mut published = bench.spy.published();
    published.retain(|published| published.name == name);
    assert!(!published.is_empty(), "no {name}");
    published
}

/// One of what was passed under that name is exactly this.
fn assert_passed(bench: &Bench, name: &str, bytes: usize, members: &[Member]) {
    let wanted = structure(bytes, members);
    let passed = passed(bench, name);
    for published in &passed {
        assert_eq!(published.bytes.len(), bytes, "{name}");
    }
    assert!(
        passed.iter().any(|published| published.bytes == wanted),
        "{name}\nwanted {wanted:?}\npassed {:?}",
        passed.iter().map(|p| &p.bytes).collect::<Vec<_>>()
    );
}

fn u64_at(published: &Published, offset: usize) -> u64 {
    u64::from_le_bytes(published.bytes[offset..offset + 8].try_into().unwrap())
}

/// `hGlobalNativeFence`, by hand.
fn global(id: FenceId) -> u64 {
    u64::from(id.generation) << 32 | u64::from(id.slot)
}

/// `hHwQueue`, by hand.
fn queue_handle(queue: HwQueueHandle) -> u64 {
    (u64::from(queue.node_ordinal) + 1) << 32 | u64::from(queue.number)
}

fn process(fence: &Fence) -> u64 {
    fence.object().process().id().0
}

fn local(fence: &Fence) -> u64 {
    process(fence) << 32 | u64::from(fence.handle().raw())
}

/// The OS's address of CurrentValue, and the addresses by which the two values of a fence are known to the
/// system process of the first node.
fn system_process(bench: &Bench, fence: &Fence) -> [u64; 2] {
    let places = [
        native(fence).current_value_place(),
        native(fence).monitored_value_place(),
    ];
    places.map(|(region, offset)| {
        let passed = bench.spy.passed();
        let mut of_it = passed
            .iter()
            .filter(|p| Arc::ptr_eq(&p.region, region) && p.offset == offset);
        let place = of_it.next().unwrap().system_process.as_ref();
        place.unwrap().gpu_va(0).0
    })
}

fn all() -> DriverOptions {
    DriverOptions {
        map_to_gpu_system_process: true,
        doorbells: NonZeroU32::new(1),
        ..DriverOptions::default()
    }
}

/// Every structure whose reserved members the documents have, for a life of a fence.
///
/// Kills `a-published-fence-is-not-named`, `a-published-device-is-left-out` and
/// `a-published-fence-is-of-type-default`.
#[test]
fn nf_14_the_published_calls_of_a_fence_have_every_member_in_its_place() {
    on_benches_with(1, NodePolicy::default(), &all(), |bench| {
        let fence = bench.fence(5);
        let (id, process, opened) = (native(&fence).id(), process(&fence), local(&fence));
        let [current, monitored] = system_process(bench, &fence);
        assert!(current != 0 && monitored != 0 && current != monitored);
        let create = [(0, 8, global(id)), (16, 8, current), (24, 8, monitored)];
        assert_passed(bench, "DXGKARG_CREATENATIVEFENCE", 136, &create);
        let intra_gpu = FenceOptions {
            intra_gpu: true,
            ..FenceOptions::default()
        };
        let intra_gpu = bench.device.create_fence_with(intra_gpu).unwrap();
        let [current, monitored] = system_process(bench, &intra_gpu);
        let create = [
            (0, 8, global(native(&intra_gpu).id())),
            (8, 4, 1),
            (16, 8, current),
            (24, 8, monitored),
        ];
        assert_passed(bench, "DXGKARG_CREATENATIVEFENCE", 136, &create);
        let open = [
            (0, 8, global(id)),
            (8, 8, opened),
            (16, 8, process),
            (24, 8, 0x1_0000),
            (32, 8, 0x2_0000),
        ];
        assert_passed(bench, "DXGKARG_OPENNATIVEFENCE", 80, &open);
        drop(fence);
        assert_passed(bench, "DXGKARG_CLOSENATIVEFENCE", 48, &[(0, 8, opened)]);
        let destroy = [(0, 8, global(id))];
        assert_passed(bench, "DXGKARG_DESTROYNATIVEFENCE", 48, &destroy);
    });
}

/// The two updates: what their arrays hold, and that the structures point to them.
///
/// Kills `a-published-batch-names-one-fence` and `notification-only-is-not-published`.
#[test]
fn nf_17_the_published_updates_point_to_their_arrays() {
    on_benches_with(1, NodePolicy::default(), &all(), |bench| {
        let (fence, other) = (bench.fence(0), bench.fence(0));
        let (id, other_id) = (native(&fence).id(), native(&other).id());
        let waiter = bench.waiter(&fence, 8);
        let posted = |published: &Published| {
            published.arrays[0] == [global(id)] && published.arrays[1] == [7]
        };
        let updates = passed(bench, "DXGKARG_UPDATEMONITOREDVALUES");
        let update = updates.iter().find(|p| posted(p)).expect("MV is 8 - 1");
        let addresses = [u64_at(update, 0), u64_at(update, 8), u64_at(update, 16)];
        let [fences, values, places] = addresses;
        assert!(addresses.iter().all(|address| *address != 0));
        let members = [(0, 8, fences), (8, 8, values), (16, 8, places), (24, 4, 1)];
        assert_eq!(update.bytes, structure(64, &members));
        assert!(update.arrays[2][0].is_multiple_of(8) && update.arrays[2][0] != 0);

        let block = |fence: &Fence| {
            let (region, offset) = native(fence).current_value_place();
            (Block::whole(&region.map().unwrap()), offset)
        };
        let words = [block(&fence), block(&other)];
        let update = |fence, value, place: usize| CurrentValueUpdate {
            fence,
            value,
            word: words[place].0.word(words[place].1),
        };
        let batch = [update(id, 8, 0), update(other_id, 9, 1)];
        let only = UpdateCurrentValuesFlags::NOTIFICATION_ONLY;
        for flags in [UpdateCurrentValuesFlags::default(), only] {
            bench
                .spy
                .update_current_values_from_cpu(&batch, flags)
                .unwrap();
            let updates = passed(bench, "DXGKARG_UPDATECURRENTVALUESFROMCPU");
            let last = updates.last().unwrap();
            let places = batch.map(|update| update.word.address().expose_provenance() as u64);
            let fences = [global(id), global(other_id)];
            assert_eq!(last.arrays, [fences.to_vec(), vec![8, 9], places.to_vec()]);
            let addresses = [u64_at(last, 0), u64_at(last, 8), u64_at(last, 16)];
            let [fences, values, places] = addresses;
            let flags = u64::from(flags.0);
            let members = [
                (0, 8, fences),
                (8, 8, values),
                (16, 8, places),
                (24, 4, 2),
                (28, 4, flags),
            ];
            assert_eq!(last.bytes, structure(64, &members));
        }
        assert_eq!(only.0, 2, "the published bit");
        fence.signal(10).unwrap();
        waiter.join().unwrap();

        // What is not offered is an error and stores nothing.
        for flags in [UpdateCurrentValuesFlags::ALWAYS_SIGNALED.0 | only.0, 1 << 2] {
            let flags = UpdateCurrentValuesFlags(flags);
            let update = [update(id, 99, 0)];
            let refused = bench.spy.update_current_values_from_cpu(&update, flags);
            assert!(refused.unwrap_err().to_string().contains("reserved"));
        }
        assert_eq!(fence.current_value(), 10);
    });
}

/// Queues of both kinds with their flags, their logs, what is submitted through the OS.
///
/// Kills `a-published-queue-has-no-flags` and `a-published-log-has-no-entries`.
#[test]
fn hq_10_the_published_calls_of_queues_have_every_member_in_its_place() {
    on_benches_with(1, NodePolicy::default(), &all(), |bench| {
        let mut queue = bench.queue();
        let handle = queue.os().handle();
        let progress = native(queue.progress_fence()).id();
        // UserModeSubmission and NativeProgressFence.
        let asked = [(8, 4, 0x30), (24, 8, global(progress))];
        assert_passed(bench, "DXGKARG_CREATEHWQUEUE", 48, &asked);
        let answered = [&[(0, 8, queue_handle(handle))], &asked[..]].concat();
        assert_passed(bench, "DXGKARG_CREATEHWQUEUE", 48, &answered);

        let logs = bench.spy.logs();
        for kind in [LogType::Waits, LogType::Signals] {
            let set = logs.iter().find(|set| (set.0, set.1) == (handle, kind));
            let (region, offset) = &set.unwrap().2;
            let passed = bench.spy.passed();
            let is_it = |p: &&Passed| Arc::ptr_eq(&p.region, region) && p.offset == *offset;
            let place = passed.iter().find(is_it);
            let place = place.unwrap().system_process.as_ref().unwrap();
            let log = [
                (0, 8, queue_handle(handle)),
                (8, 4, 84),
                (16, 8, 0x4000),
                (24, 8, 0x5000),
                (32, 8, place.gpu_va(0).0),
            ];
            assert_passed(bench, "DXGKARG_SETNATIVEFENCELOGBUFFER", 80, &log);
        }
        let fence = bench.fence(0);
        complete(&mut queue, CommandList::new().signal(&fence, 1));
        queue.read_signal_log().unwrap();
        let updates = passed(bench, "DXGKARG_UPDATENATIVEFENCELOGS");
        let update = updates.last().unwrap();
        assert_eq!(update.arrays, [[queue_handle(handle)]]);
        let members = [(0, 4, 1), (8, 8, u64_at(update, 8))];
        assert_eq!(update.bytes, structure(56, &members));
        assert_ne!(u64_at(update, 8), 0);

        let mut kernel = bench.device.create_kernel_queue().unwrap();
        let handle = queue_handle(kernel.os().handle());
        let created = passed(bench, "DXGKARG_CREATEHWQUEUE");
        let created = created.last().unwrap();
        let members = [
            (0, 8, handle),
            (24, 8, u64_at(created, 24)),
            (32, 8, 0x2000),
            (40, 8, 0x3000),
        ];
        assert_eq!(created.bytes, structure(48, &members), "no flag");
        assert!(FenceId::from_handle(u64_at(created, 24)).is_some());
        kernel.submit(CommandList::new().nop().nop()).unwrap();
        let submitted = passed(bench, "DXGKARG_SUBMITCOMMANDTOHWQUEUE");
        let submitted = submitted.last().unwrap();
        assert_eq!(submitted.arrays[0].len() * 8, 128, "two packets");
        let members = [
            (0, 8, handle),
            (8, 8, 1),
            (24, 4, 128),
            (28, 4, 128),
            (32, 8, u64_at(submitted, 32)),
            (48, 8, 0x3000),
            (56, 8, 0x2000),
        ];
        assert_eq!(submitted.bytes, structure(64, &members));
        until("the command completes", || {
            let told = passed_interrupts(bench, 1);
            // SubmissionFenceId 1 of node 0.
            told.contains(&structure(80, &[(0, 4, 1), (8, 4, 1)]))
        });

        // Of the wrong kind, and reserved.
        for flags in [0, 0x10, 0x20, 0x30 | 1 << 7] {
            let (region, offset) = native(&fence).current_value_place();
            let refused = bench.spy.create_hw_queue(&CreateHwQueue {
                process: ProcessId(process(&fence)),
                context: queue.os().context().handle(),
                node_ordinal: 0,
                engine_affinity: 1,
                flags: CreateHwQueueFlags(flags),
                progress: Place { region, offset },
                progress_fence: native(&fence).id(),
                progress_handle: fence.handle(),
            });
            refused.unwrap_err();
        }
    });
}

/// Interrupts of that type, as structures.
fn passed_interrupts(bench: &Bench, interrupt_type: u8) -> Vec<Vec<u8>> {
    let published = bench.spy.published().into_iter();
    let of_type = published.filter(|published| {
        published.name == "DXGKARGCB_NOTIFY_INTERRUPT_DATA" && published.bytes[0] == interrupt_type
    });
    of_type.map(|published| published.bytes).collect()
}

/// Doorbells, and the callback that takes one.
///
/// Kills `a-taken-doorbell-is-published-as-aborted`.
#[test]
fn hq_13_the_published_calls_of_doorbells_have_every_member_in_its_place() {
    on_benches_with(1, NodePolicy::default(), &all(), |bench| {
        let mut queue = bench.queue();
        let doorbell = queue.os().doorbell().unwrap().0;
        let hw_queue = queue_handle(queue.os().handle());
        let create = [(0, 8, hw_queue), (8, 8, doorbell)];
        assert_passed(bench, "DXGKARG_CREATEDOORBELL", 56, &create);
        assert_passed(bench, "DXGKARG_CONNECTDOORBELL", 40, &[(0, 8, doorbell)]);
        // CONNECTED_NOTIFY_KMD.
        let connected = [(0, 8, doorbell), (16, 8, 0x6000), (32, 4, 1)];
        assert_passed(bench, "DXGKARG_CONNECTDOORBELL", 40, &connected);
        let fence = bench.fence(0);
        for value in 1..=3 {
            complete(&mut queue, CommandList::new().signal(&fence, value));
        }
        let _takes = bench.queue();
        // DISCONNECTED_RETRY.
        let taken = [(0, 8, hw_queue), (8, 8, doorbell), (20, 4, 2)];
        assert_passed(bench, "DXGKARGCB_DISCONNECTDOORBELL", 24, &taken);

        let caps = bench.adapter.os().ddi().user_mode_submission_caps();
        let wanted = structure(28, &[(4, 4, 8)]);
        assert_eq!(size_of::<UserModeSubmissionCaps>(), 28);
        assert_eq!(bytemuck::bytes_of(&caps), wanted);
    });
}

/// The interrupts of native fences, and the questions before the caps, which are the published words
/// themselves.
///
/// Kills `a-null-array-is-published-as-an-empty-one`.
#[test]
fn in_02_the_published_callbacks_have_every_member_in_its_place() {
    on_benches_with(1, NodePolicy::default(), &all(), |bench| {
        // NATIVE_FENCE of version 1, with all four bits.
        let asked = [(0, 4, 37), (8, 2, 1), (10, 2, 0b1111)];
        assert_passed(bench, "DXGKARGCB_ISFEATUREENABLED2", 12, &asked);
        let query = [(0, 4, 37), (4, 2, 1), (6, 2, 8), (8, 8, 0x7000)];
        assert_passed(bench, "DXGKARGCB_QUERYFEATUREINTERFACE", 16, &query);
        let caps = bench.adapter.os().native_fence_caps().unwrap().published;
        let stride = u64::from(caps.monitored_value_stride);
        let (least, most) = (caps.minimum_address, caps.maximum_address);
        let members = [(0, 4, stride), (4, 1, 1), (8, 8, least), (16, 8, most)];
        assert_eq!(bytemuck::bytes_of(&caps), structure(56, &members));
        assert_eq!(size_of::<NativeFenceCaps>(), 56);

        let mut queue: HwQueue = bench.queue();
        let fence = bench.fence(0);
        let waiter = bench.waiter(&fence, 1);
        complete(&mut queue, CommandList::new().signal(&fence, 1));
        waiter.join().unwrap();
        until("the interrupt was told", || {
            let published = bench.spy.published().into_iter();
            let mut named = published.filter(|p| p.arrays == [[global(native(&fence).id())]]);
            named.any(|p| {
                p.name == "DXGKARGCB_NOTIFY_INTERRUPT_DATA"
                    && p.bytes == structure(80, &[(0, 4, 19), (16, 4, 1), (24, 8, u64_at(&p, 24))])
                    && u64_at(&p, 24) != 0
            })
        });
    });
    let signaled = |fences, hw_queue, legacy| {
        let interrupt = Interrupt::NativeFenceSignaled(NativeFenceSignaled {
            node_ordinal: 3,
            engine_ordinal: 0,
            fences,
            hw_queue,
            evaluate_legacy_monitored_fences: legacy,
            taken: Instant::now(),
        });
        interrupt.published().unwrap()
    };
    // The NULL array stands for all, with the monitored fences' flag or without; an empty one for none.
    let all = signaled(None, None, true);
    let members = [(0, 4, 19), (8, 4, 3), (72, 4, 4)];
    assert_eq!(bytemuck::bytes_of(&all.data()), structure(80, &members));
    assert_eq!(all.fences(), None);
    let none = signaled(Some(Vec::new()), None, false);
    assert_eq!(none.fences(), Some(&[][..]));
    assert_ne!(none.data().payload[2], 0);
    let queue = HwQueueHandle {
        node_ordinal: 3,
        number: 9,
    };
    let optimized = signaled(None, Some(queue), false).data();
    let members = [(0, 4, 19), (8, 4, 3), (32, 8, 4 << 32 | 9)];
    assert_eq!(bytemuck::bytes_of(&optimized), structure(80, &members));
    assert!(
        Interrupt::EngineLost { node_ordinal: 0 }
            .published()
            .is_none()
    );
}

/// A handle leads back to what it names, and none is NULL.
///
/// Kills `a-published-queue-can-be-null`.
#[test]
fn in_02_a_published_handle_leads_back_and_is_never_null() {
    for node_ordinal in [0, 1, 7] {
        for number in [0, 1, u32::MAX] {
            let queue = HwQueueHandle {
                node_ordinal,
                number,
            };
            assert_ne!(queue.handle(), 0);
            assert_eq!(HwQueueHandle::from_handle(queue.handle()), Some(queue));
        }
    }
    let fence = FenceId {
        slot: 0,
        generation: 1,
    };
    assert_eq!(FenceId::from_handle(fence.handle()), Some(fence));
    assert_eq!(HwQueueHandle::from_handle(0), None);
    assert_eq!(HwQueueHandle::from_handle(5), None, "no node");
    assert_eq!(FenceId::from_handle(5), None, "no generation");
    assert_eq!(DoorbellId::from_handle(0), None);
    assert_eq!(ProcessId::from_handle(0), None);
}
