//! Rules of monitored fences as a peer of native ones (MF-01, MF-04, MF-06, MF-09): values, waits and
//! signals of the CPU and of kernel-mode queues.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
}

use native_fence::abi::{FaultCode, Packet, RingControl};
use native_fence::gpu::NodePolicy;
use native_fence::kmd::{DriverOptions, VidSchCaps};
use native_fence::os::CpuWait;
use native_fence::shared::Block;
use native_fence::umd::MonitoredFenceOptions;
use native_fence::{
    CreateError, EventHandle, KernelQueueError, SignalError, WaitError, WaitManyError,
};
use std::time::Duration;
use support::bench::monitored::{create, sleeper, starts_at};
use support::bench::{
    Call, LONG, native, on_benches_with, on_every_bench, on_monitored_benches,
    on_monitored_benches_with, until,
};

/// UINT_MAX/2.
const HALF: u64 = 0x7fff_ffff;

/// MF-01: it starts at its initial value, has a handle of its own, and shows its value through a
/// mapping that cannot be written: a thread that only reads it follows signals of CPU and GPU.
///
/// Kills `monitored-fence-starts-at-0`, `monitored-fence-is-stored-elsewhere`.
#[test]
fn mf_01_a_read_only_mapping_follows_the_fence() {
    on_monitored_benches(1, NodePolicy::default(), |bench| {
        let (fence, other) = (starts_at(bench, 5), starts_at(bench, 9));
        assert_ne!(fence.handle(), other.handle());
        assert!(fence.is_64_bit());
        assert_eq!((fence.current_value(), other.current_value()), (5, 9));
        if let Some(address) = fence.current_value_address() {
            assert!(address.is_aligned());
            let address = address as usize;
            let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
            let holds = |line: &&str| {
                let (range, _) = line.split_once(' ').unwrap();
                let (begin, end) = range.split_once('-').unwrap();
                let at = |text| usize::from_str_radix(text, 16).unwrap();
                (at(begin)..at(end)).contains(&address)
            };
            let mapping = maps.lines().find(holds).unwrap();
            assert!(mapping.contains(" r--s "), "{mapping}");
        }
        let mut queue = bench.device.create_kernel_queue().unwrap();
        for value in 6..20 {
            if value % 2 == 0 {
                fence.signal(value).unwrap();
            } else {
                queue.signal(&fence, value).unwrap();
                queue.flush().unwrap();
            }
            until("the mapping shows it", || fence.current_value() == value);
        }
        assert_eq!(other.current_value(), 9);
        assert_eq!(
            bench.spy.updates(),
            0,
            "nobody waits, and nothing is posted"
        );
    });
}

/// MF-01, NF-23: NoSignal and NoWait forbid each its operation, from the CPU and by queues, and are
/// not given at once.
///
/// Kills `monitored-no-wait-is-forgotten`, `monitored-no-signal-is-forgotten`.
#[test]
fn mf_01_no_signal_and_no_wait() {
    on_monitored_benches(1, NodePolicy::default(), |bench| {
        let no_signal = MonitoredFenceOptions {
            no_signal: true,
            ..MonitoredFenceOptions::default()
        };
        let no_wait = MonitoredFenceOptions {
            no_wait: true,
            ..MonitoredFenceOptions::default()
        };
        let both = MonitoredFenceOptions {
            no_wait: true,
            ..no_signal
        };
        let refused = bench.device.create_monitored_fence_with(both);
        assert!(matches!(refused, Err(CreateError::NoSignalAndNoWait)));
        let mut queue = bench.device.create_kernel_queue().unwrap();
        let fence = create(bench, no_signal);
        assert_eq!(fence.signal(1), Err(SignalError::AccessDenied));
        let denied = Err(KernelQueueError::Signal(SignalError::AccessDenied));
        assert_eq!(queue.signal(&fence, 1).map(drop), denied);
        assert_eq!(queue.signal_by_os(&fence, 1).map(drop), denied);
        assert_eq!(fence.wait(0, LONG), Ok(()));
        let fence = create(bench, no_wait);
        assert_eq!(fence.wait(0, LONG), Err(WaitError::AccessDenied));
        let denied = Err(KernelQueueError::Wait(WaitError::AccessDenied));
        assert_eq!(queue.wait(&fence, 0).map(drop), denied);
        assert_eq!(fence.signal(1), Ok(()));
    });
}

/// MF-04: a CPU signal releases all kinds of CPU waits that it satisfies, and no other; on return the
/// value is stored. A backward value is refused, and stored where it is asked for.
///
/// Kills `monitored-signal-releases-nobody`, `monitored-backward-is-stored`.
#[test]
fn mf_04_a_cpu_signal_releases_every_kind_of_wait() {
    on_monitored_benches(1, NodePolicy::default(), |bench| {
        let fence = starts_at(bench, 1);
        let event = EventHandle::new().unwrap();
        let (blocking, armed) = (sleeper(&fence, 3), fence.arm(3));
        let evented = fence.wait_event(3, &event);
        let later = fence.arm(4);
        fence.signal(2).unwrap();
        assert!(!blocking.is_finished() && !armed.is_ended());
        assert_eq!(evented.outcome(), None);
        fence.signal(3).unwrap();
        assert_eq!(fence.current_value(), 3);
        // Before anybody asks for an outcome, which would look at the value itself.
        assert_eq!(event.reset(), 1);
        assert_eq!(blocking.join().unwrap(), Ok(()));
        assert_eq!(armed.outcome(), Some(Ok(())));
        assert_eq!(evented.outcome(), Some(Ok(())));
        assert_eq!(later.outcome(), None);
        pollster::block_on(fence.wait_async(3)).unwrap();

        assert_eq!(fence.signal(2), Err(SignalError::Backward { current: 3 }));
        fence.rewind(2).unwrap();
        assert_eq!(fence.current_value(), 2);
        assert_eq!(armed.outcome(), Some(Ok(())), "what was satisfied stays so");
        let timed_out = fence.wait(3, Duration::from_millis(5));
        assert_eq!(timed_out, Err(WaitError::TimedOut));

        fence.close();
        assert_eq!(later.outcome(), Some(Err(WaitError::Closed)));
        assert_eq!(fence.wait(1, LONG), Err(WaitError::Closed));
        assert_eq!(fence.signal(9), Err(SignalError::Closed));
    });
}

/// MF-04, NF-22: one wait names fences of both kinds.
///
/// Kills `wait-is-for-the-first-kind`.
#[test]
fn mf_04_one_wait_names_both_kinds() {
    on_every_bench(NodePolicy::default(), |bench| {
        let (native_one, monitored) = (bench.fence(0), starts_at(bench, 0));
        let waits = [
            CpuWait {
                object: native_one.object().as_ref(),
                value: 1,
            },
            CpuWait {
                object: monitored.object().as_ref(),
                value: 1,
            },
        ];
        let none = CpuWait::any(&waits, Some(Duration::from_millis(5)));
        assert_eq!(none, Err(WaitManyError::TimedOut));
        std::thread::scope(|scope| {
            let (any, all) = (
                scope.spawn(|| CpuWait::any(&waits, Some(LONG))),
                scope.spawn(|| CpuWait::all(&waits, Some(LONG))),
            );
            let waiting = || {
                let of_native = native(&native_one).waits();
                of_native.min(monitored.object().fence().waits())
            };
            until("both stand in both lists", || waiting() >= 3);
            monitored.signal(1).unwrap();
            assert_eq!(any.join().unwrap(), Ok(1));
            assert!(!all.is_finished());
            native_one.signal(1).unwrap();
            assert_eq!(all.join().unwrap(), Ok(()));
        });
        assert_eq!(native(&native_one).monitored_value(), u64::MAX);
    });
}

/// MF-06: with No64BitAtomics the word holds 32 bits, and the OS carries the wrap: waits of 64 bits
/// end rightly on both sides of it, by signals of GPU, CPU and OS.
///
/// Kills `carry-is-forgotten`, `narrow-store-is-wide`.
#[test]
fn mf_06_the_wrap_is_carried() {
    on_monitored_benches_with(1, NodePolicy::default(), &narrow(), |bench| {
        let os = bench.adapter.os();
        assert!(
            os.vidsch_caps().has(VidSchCaps::NO_64_BIT_ATOMICS) && os.native_fence_caps().is_err()
        );
        let start = 0x5_ffff_fff0;
        let fence = starts_at(bench, start);
        assert!(!fence.is_64_bit());
        assert_eq!(fence.current_value(), start);
        let mut queue = bench.device.create_kernel_queue().unwrap();
        let waiter = sleeper(&fence, start + 0x20);
        let before = fence.arm(start + 5);
        queue.signal(&fence, start + 5).unwrap();
        queue.flush().unwrap();
        before.wait(LONG).unwrap();
        assert!(!waiter.is_finished());
        queue.signal(&fence, start + 0x20).unwrap();
        queue.flush().unwrap();
        assert_eq!(waiter.join().unwrap(), Ok(()));
        assert_eq!(fence.current_value(), 0x6_0000_0010);
        let (region, offset) = fence.object().fence().current_value_place();
        let word = || Block::whole(&region.map().unwrap()).word(offset).observe();
        assert_eq!(word(), 0x10, "a store of 32 bits");
        // Round and round, by the largest steps.
        for step in 1..=8 {
            let value = 0x6_0000_0010 + step * HALF;
            // A signal of the GPU is outstanding until its command has completed, which comes
            // after the value.
            until("those before are not outstanding any more", || {
                match step % 3 {
                    0 => queue.signal(&fence, value).is_ok(),
                    1 => queue.signal_by_os(&fence, value).is_ok(),
                    _ => fence.signal(value).is_ok(),
                }
            });
            queue.flush().unwrap();
            fence.wait(value, LONG).unwrap();
            assert_eq!(fence.current_value(), value);
            assert_eq!(word(), value & 0xffff_ffff);
        }
        // Without GPU access it has 64 bits.
        let whole = create(
            bench,
            MonitoredFenceOptions {
                no_gpu_access: true,
                ..MonitoredFenceOptions::default()
            },
        );
        assert!(whole.is_64_bit());
        whole.signal(u64::MAX - 1).unwrap();
        assert_eq!(whole.current_value(), u64::MAX - 1);
    });
}

fn narrow() -> DriverOptions {
    DriverOptions {
        no_64_bit_atomics: true,
        ..DriverOptions::default()
    }
}

/// MF-06: a wait or a signal may be UINT_MAX/2 from the last signalled value and no more, whoever
/// makes it; signals that are outstanding count.
///
/// Kills `half-of-the-range-is-refused`, `more-than-half-is-allowed`,
/// `outstanding-signals-do-not-count`.
#[test]
fn mf_06_half_of_the_range_is_the_limit() {
    on_monitored_benches_with(1, NodePolicy::default(), &narrow(), |bench| {
        let start = 0x2_0000_0000;
        let fence = starts_at(bench, start);
        let mut queue = bench.device.create_kernel_queue().unwrap();
        let (near, far) = (start + HALF, start + HALF + 1);
        assert_eq!(fence.wait(far, LONG), Err(WaitError::TooFar));
        let armed = fence.arm(near);
        assert_eq!(armed.outcome(), None);
        assert_eq!(fence.signal(far), Err(SignalError::TooFar));
        let too_far = KernelQueueError::Signal(SignalError::TooFar);
        assert_eq!(queue.signal(&fence, far).map(drop), Err(too_far));
        assert_eq!(queue.signal_by_os(&fence, far).map(drop), Err(too_far));
        let wait_too_far = KernelQueueError::Wait(WaitError::TooFar);
        assert_eq!(queue.wait(&fence, far).map(drop), Err(wait_too_far));
        assert_eq!(fence.rewind(start - HALF - 1), Err(SignalError::TooFar));

        // Outstanding: behind a gate, the furthest that there may be.
        let gate = starts_at(bench, 0);
        queue.wait(&gate, 1).unwrap();
        queue.signal(&fence, near).unwrap();
        queue.flush().unwrap();
        assert_eq!(fence.rewind(start - 1), Err(SignalError::TooFar));
        assert_eq!(fence.current_value(), start);
        gate.signal(1).unwrap();
        assert_eq!(armed.wait(LONG), Ok(()));
        assert_eq!(fence.current_value(), near);
        fence.rewind(start).unwrap();
        until("it is not outstanding any more", || {
            fence.rewind(start - 1).is_ok()
        });
        assert_eq!(fence.current_value(), start - 1);
    });
}

/// MF-09: a packet of a user-mode queue that names a monitored fence stops the queue, with that
/// reason, and touches nothing.
///
/// Kills `monitored-handle-names-nothing`.
#[test]
fn mf_09_a_user_mode_queue_takes_no_monitored_fence() {
    on_every_bench(NodePolicy::default(), |bench| {
        let fence = starts_at(bench, 5);
        for packet in [
            Packet::wait(fence.handle(), 5, 0),
            Packet::signal(fence.handle(), 6, 0),
        ] {
            let queue = bench.queue();
            let (control, packets) = queue.raw_memory();
            packets.put_words(0, &packet.words());
            control.word(RingControl::WRITE_INDEX).publish(1);
            let _ = queue.ring_doorbell();
            let ended = queue.progress_fence().wait(u64::MAX, LONG);
            let Err(WaitError::QueueFaulted(fault)) = ended else {
                panic!("{ended:?}")
            };
            assert_eq!((fault.code, fault.packet), (FaultCode::MonitoredFence, 0));
        }
        assert_eq!(fence.current_value(), 5);
        assert_eq!(fence.wait(5, LONG), Ok(()));
        let says = FaultCode::MonitoredFence.to_string();
        assert!(says.contains("monitored fence"), "{says}");
    });
}

/// FQ-04, MF-09: engines without native fences have monitored ones and kernel-mode queues; a
/// user-mode queue is refused, and no native-fence call reaches the driver.
///
/// Kills `kernel-queue-needs-native-fences`.
#[test]
fn fq_04_without_native_fences_kernel_queues_run() {
    let options = DriverOptions {
        without_native_fences: Some(String::from("They were left out.")),
        ..DriverOptions::default()
    };
    on_benches_with(1, NodePolicy::default(), &options, |bench| {
        let refusal = bench.device.create_hw_queue().unwrap_err().to_string();
        assert!(refusal.contains("They were left out."), "{refusal}");
        let fence = starts_at(bench, 0);
        let waiter = sleeper(&fence, 2);
        let mut queue = bench.device.create_kernel_queue().unwrap();
        queue.signal(&fence, 2).unwrap();
        queue.flush().unwrap();
        assert_eq!(waiter.join().unwrap(), Ok(()));
        let is_native = |call: &Call| {
            matches!(
                call,
                Call::CreateNativeFence(_)
                    | Call::UpdateMonitoredValues(_)
                    | Call::UpdateCurrentValuesFromCpu(..)
            )
        };
        assert_eq!(bench.spy.count(is_native), 0);
    });
}
