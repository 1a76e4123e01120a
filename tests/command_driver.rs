//! The driver of engines that execute command buffers, where it differs from the other: what becomes of
//! packets, when it tells of what, and what it lets go of when. The rules that both keep are in
//! `kernel_queue`, `monitored_object` and `monitored_interrupt`, whose tests run on both.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
}

use native_fence::CommandList;
use native_fence::abi::{FaultCode, LocalHandle, ObjectId, Packet};
use native_fence::gpu::NodePolicy;
use native_fence::kmd::{DriverOptions, Interrupt, SubmitCommand, SubmitCommandFlags, VidSchCaps};
use native_fence::shared::Block;
use support::bench::monitored::store_silently;
use support::bench::{Bench, finish, is_sleeping, until};

fn on_command_buffers(options: &DriverOptions, body: impl Fn(&Bench)) {
    if let Some(bench) = Bench::over_command_buffers(1, NodePolicy::default(), options) {
        body(&bench);
    }
}

/// Transfers are those of a shader engine: words of 64 bits whose halves differ, in ranges that no
/// single command of Vulkan stores; copies within an allocation and between two; times that go on.
///
/// Kills `command-fill-doubles-once`, `command-fill-forgets-the-high-half`,
/// `command-copy-goes-the-other-way`.
#[test]
fn hq_10_transfers_are_made_by_command_buffers() {
    on_command_buffers(&DriverOptions::default(), |bench| {
        let bytes = 5 * 65536 + 24;
        let (first, second) = (
            bench.device.create_allocation(bytes).unwrap(),
            bench.device.create_allocation(bytes).unwrap(),
        );
        let mut queue = bench.device.create_kernel_queue().unwrap();
        let mut list = CommandList::new();
        list.fill(&first, 8..bytes - 8, 0x0123_4567_89ab_cdef);
        list.fill(&second, 0..bytes, 7 << 32 | 7);
        list.copy(&first, 8..bytes - 16, &second, 16);
        list.copy(&first, 8..16, &first, 0);
        queue.submit(&list).unwrap();
        finish(&mut queue);
        let words = (bytes / 8) as usize;
        let (mut stored, mut copied) = (vec![0; words], vec![0; words]);
        first.read(0, &mut stored);
        second.read(0, &mut copied);
        assert_eq!(stored[words - 1], 0);
        assert!(
            stored[..words - 1]
                .iter()
                .all(|w| *w == 0x0123_4567_89ab_cdef)
        );
        assert_eq!(copied[..2], [7 << 32 | 7; 2]);
        assert!(copied[2..words - 1].iter().all(|w| *w == stored[1]));
        assert_eq!(copied[words - 1], 7 << 32 | 7);

        let mut list = CommandList::new();
        list.timestamp(&first, 0);
        list.fill(&second, 0..bytes, 1);
        list.timestamp(&first, 8);
        queue.submit(&list).unwrap();
        finish(&mut queue);
        first.read(0, &mut stored[..2]);
        assert!(
            stored[0] > 0 && stored[0] <= stored[1],
            "{:?}",
            &stored[..2]
        );
    });
}

/// HQ-04: each packet that cannot be stops its queue with the reason that a shader engine has for it;
/// what stands before it is executed, and its command does not complete.
///
/// Kills `command-range-is-not-checked`, `command-overlap-is-not-checked`,
/// `command-closed-handle-is-open`, `command-kinds-are-mixed-up`, `command-length-is-not-checked`,
/// `command-fault-hides-what-ran`.
#[test]
fn hq_04_command_buffers_fault_as_shaders_do() {
    on_command_buffers(&DriverOptions::default(), |bench| {
        let target = bench.device.create_allocation(64).unwrap();
        let (fence, closed) = (
            bench.device.create_monitored_fence(0).unwrap(),
            bench.device.create_monitored_fence(0).unwrap(),
        );
        let nothing = LocalHandle::new(4000, 1).unwrap();
        closed.close();
        let with_control = |control: u64| Packet {
            control,
            ..Packet::nop()
        };
        let to = |offset| (target.handle(), offset);
        let far = Packet {
            source_handle: 1 << 40,
            ..Packet::copy(to(0), to(32), 8)
        };
        let cases = [
            (Packet::signal(nothing, 1, 0), FaultCode::Handle),
            (
                Packet::signal(closed.handle(), 1, 0),
                FaultCode::StaleHandle,
            ),
            (Packet::signal(target.handle(), 1, 0), FaultCode::Handle),
            (Packet::fill(fence.handle(), 0, 8, 1), FaultCode::Handle),
            (Packet::fill(target.handle(), 0, 72, 1), FaultCode::Range),
            (Packet::fill(target.handle(), 4, 8, 1), FaultCode::Range),
            (
                Packet::fill(target.handle(), u64::MAX - 7, 16, 1),
                FaultCode::Range,
            ),
            (Packet::timestamp(target.handle(), 64), FaultCode::Range),
            (Packet::copy(to(0), to(60), 8), FaultCode::Range),
            (Packet::copy(to(0), to(8), 16), FaultCode::Overlap),
            (far, FaultCode::Handle),
            (Packet::wait(fence.handle(), 1, 0), FaultCode::Opcode),
            (Packet::progress(fence.handle(), 1, 0), FaultCode::Progress),
            (with_control(0xee), FaultCode::Opcode),
            (
                with_control(Packet::nop().control | 2 << 8),
                FaultCode::Length,
            ),
            (
                with_control(Packet::nop().control | 1 << 20),
                FaultCode::Length,
            ),
        ];
        for (value, (packet, wanted)) in (1..).zip(cases) {
            let queue = bench.device.create_kernel_queue().unwrap();
            let hw_queue = queue.os().handle();
            let packets = [
                Packet::fill(target.handle(), 0, 64, value),
                packet,
                Packet::fill(target.handle(), 0, 64, 0),
            ];
            // Of the driver itself: the OS refuses most of these before.
            let command = SubmitCommand {
                hw_queue,
                submission_id: 1,
                packets: &packets,
                flags: SubmitCommandFlags::default(),
                progress_value: 1 + SubmitCommand::signals(&packets),
            };
            bench
                .spy
                .driver()
                .submit_command_to_hw_queue(&command)
                .unwrap();
            let mut found = None;
            until("the queue faults", || {
                found = bench
                    .spy
                    .interrupts()
                    .into_iter()
                    .find_map(|told| match told {
                        Interrupt::HwQueueFaulted {
                            hw_queue: of,
                            fault,
                        } if of == hw_queue => Some(fault),
                        _ => None,
                    });
                found.is_some()
            });
            let fault = found.unwrap();
            assert_eq!((fault.code, fault.packet), (wanted, 1), "{packet:?}");
            assert_eq!((fault.control, fault.value), (packet.control, packet.value));
            let mut words = [0; 8];
            target.read(0, &mut words);
            assert_eq!(words, [value; 8], "what stood before it was executed");
            let again = bench.spy.driver().submit_command_to_hw_queue(&command);
            assert!(again.unwrap_err().to_string().contains("stopped"));
        }
        let completed = |told: &Interrupt| matches!(told, Interrupt::DmaCompleted { .. });
        assert!(!bench.spy.interrupts().iter().any(completed));
    });
}

/// NF-31: what was handed to the device's queue cannot be taken back, so storage that it names is not
/// used again before it has ended; a handle that is closed is refused at once.
///
/// Kills `command-storage-is-free-at-once`.
#[test]
fn nf_31_storage_rests_until_the_commands_in_flight_have_ended() {
    on_command_buffers(&DriverOptions::default(), |bench| {
        let fence = bench.device.create_monitored_fence(0).unwrap();
        let target = bench.device.create_allocation(64).unwrap();
        let mut queue = bench.device.create_kernel_queue().unwrap();
        let gate = bench.hold_engine();
        let mut list = CommandList::new();
        queue.record(list.fill(&target, 0..64, 7)).unwrap();
        queue.signal(&fence, 1).unwrap();
        queue.flush().unwrap();
        let object = ObjectId::Fence(fence.object().fence().id());
        let retired = || -> Vec<_> {
            let told = bench.spy.interrupts().into_iter();
            told.filter_map(|told| match told {
                Interrupt::ObjectsRetired { objects } => Some(objects),
                _ => None,
            })
            .flatten()
            .collect()
        };
        // What is queued keeps the fence: the driver is asked by itself.
        let retirement = bench
            .spy
            .driver()
            .unmap_monitored_fence(fence.object().fence().id());
        assert_eq!(retirement, native_fence::kmd::Retirement::Pending);
        assert!(retired().is_empty());
        assert_eq!(fence.current_value(), 0);
        gate.signal(1).unwrap();
        until("it is told", || retired().contains(&object));
        assert_eq!(fence.current_value(), 1, "after the command, not before");
    });
}

/// HQ-10: whoever destroys a queue waits until the device has executed what it was handed.
///
/// Kills `command-queue-goes-before-its-commands`.
#[test]
fn hq_10_destroying_waits_for_what_the_device_was_handed() {
    on_command_buffers(&DriverOptions::default(), |bench| {
        let fence = bench.device.create_monitored_fence(0).unwrap();
        let mut queue = bench.device.create_kernel_queue().unwrap();
        let gate = bench.hold_engine();
        queue.signal(&fence, 1).unwrap();
        queue.flush().unwrap();
        let (tell, told) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            let fence = &fence;
            let destroys = scope.spawn(move || {
                tell.send(rustix::thread::gettid()).unwrap();
                drop(queue);
                fence.current_value()
            });
            let thread = told.recv().unwrap();
            until("it waits, or has not waited", || {
                destroys.is_finished() || is_sleeping(thread)
            });
            gate.signal(1).unwrap();
            assert_eq!(destroys.join().unwrap(), 1);
        });
    });
}

/// MF-02, MF-07: of the advanced form, each signal of a command is an interrupt by itself, when it is
/// made and not at the command's end; of the basic form there is the command's completion alone, and
/// the whole command is one submission.
///
/// Kills `command-signals-are-told-together`, `command-basic-form-interrupts`.
#[test]
fn mf_02_the_form_decides_how_a_command_is_submitted() {
    for basic in [false, true] {
        let options = DriverOptions {
            basic_monitored_fences: basic,
            ..DriverOptions::default()
        };
        on_command_buffers(&options, |bench| {
            let fence = bench.device.create_monitored_fence(0).unwrap();
            let mut queue = bench.device.create_kernel_queue().unwrap();
            for value in 1..=5 {
                queue.signal(&fence, value).unwrap();
            }
            finish(&mut queue);
            let told = |is: fn(&Interrupt) -> bool| {
                bench
                    .spy
                    .interrupts()
                    .iter()
                    .filter(|told| is(told))
                    .count()
            };
            until("it has completed", || {
                told(|told| matches!(told, Interrupt::DmaCompleted { .. })) == 1
            });
            let signals = told(|told| matches!(told, Interrupt::MonitoredFenceSignaled { .. }));
            assert_eq!(signals, if basic { 0 } else { 5 });
            assert_eq!(bench.counters().slices, 1, "one vkQueueSubmit");
            assert_eq!(fence.current_value(), 5);
        });
    }
}

/// MF-06: on a device without 64-bit stores the upper half of the word is nobody's.
///
/// Kills `command-values-are-always-whole`.
#[test]
fn mf_06_narrow_values_are_stored_with_32_bits() {
    let options = DriverOptions {
        no_64_bit_atomics: true,
        ..DriverOptions::default()
    };
    on_command_buffers(&options, |bench| {
        let fence = bench.device.create_monitored_fence(0xffff_fff0).unwrap();
        store_silently(&fence, 0xdead_beef_ffff_fff1);
        let mut queue = bench.device.create_kernel_queue().unwrap();
        queue.signal(&fence, 0x1_0000_0002).unwrap();
        finish(&mut queue);
        assert_eq!(fence.current_value(), 0x1_0000_0002);
        let (region, offset) = fence.object().fence().current_value_place();
        let word = Block::whole(&region.map().unwrap()).word(offset).observe();
        assert_eq!(word, 0xdead_beef_0000_0002);
    });
}

/// What is of native fences is refused, and nothing is promised: no cap, no node's worth of it.
///
/// Kills `command-driver-advertises`.
#[test]
fn fq_04_the_driver_of_command_buffers_has_no_native_fences() {
    on_command_buffers(&DriverOptions::default(), |bench| {
        let caps = bench.adapter.os().vidsch_caps();
        assert!(!caps.has(VidSchCaps::NATIVE_GPU_FENCE));
        let refusal = bench.device.create_fence(0).unwrap_err().to_string();
        assert!(refusal.contains("monitored fences alone"), "{refusal}");
        let refusal = bench.device.create_hw_queue().unwrap_err().to_string();
        assert!(refusal.contains("monitored fences alone"), "{refusal}");
    });
}
