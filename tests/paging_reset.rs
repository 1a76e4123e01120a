//! A paging packet that hangs its engine (TD-08): the adapter is reset, whose memory the packet was about is in
//! error, and the system device is not.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
    pub(crate) mod queue_of;
}

use native_fence::abi::wddm::DeviceExecutionState;
use native_fence::abi::{Packet, StallKind};
use native_fence::kmd::{DriverOptions, SubmitCommandFlags};
use native_fence::os::{Record, SystemDevice};
use native_fence::{Allocation, CommandList, Device, WaitError};
use support::bench::{
    Bench, Call, FOR_EVER, LONG, TdrCall, hang, on_recovering_benches, soon, until,
};
use support::queue_of::queue_of;

fn on_benches(body: impl Fn(&Bench)) {
    on_recovering_benches(2, soon(), &DriverOptions::default(), body);
}

/// A device with memory.
fn owner(bench: &Bench) -> (Device, Allocation) {
    let device = bench.adapter.create_device();
    let memory = device.create_allocation(64).unwrap();
    (device, memory)
}

fn until_noted(bench: &Bench) -> Record {
    until("the recovery is noted", || {
        !bench.adapter.os().records().is_empty()
    });
    let mut records = bench.take_records();
    assert_eq!(records.len(), 1, "{records:?}");
    records.remove(0)
}

fn fill_by(system: &SystemDevice, target: &Allocation, value: u64) {
    let paged = system.open_allocation(target.os()).unwrap();
    let progress = system.fill(&paged, 0..64, value).unwrap();
    let fence = system.progress_fence();
    until("the paging packet completes", || {
        fence.fence().current_value() >= progress
    });
    let mut words = [0; 8];
    target.read(0, &mut words);
    assert_eq!(words, [value; 8]);
}

/// TD-08: a paging packet that names the memory of two devices, one to copy from and one to copy to, and does
/// not end: the reset of its engine is promoted, with reason 9. Both devices are in error; one whose memory
/// was paged before, and one with idle queues, are not; nor is the system device, which runs on, and says of
/// what was lost that it was.
///
/// Kills `a-paging-packet-is-a-packet-like-others`, `memory-of-a-lost-paging-packet-is-nobodys`, `a-copy-names-no-source`,
/// `the-system-device-is-blamed`, `the-system-device-has-one-queue`.
#[test]
fn td_08_a_hung_paging_packet_resets_the_adapter() {
    for kind in [StallKind::HeedsNothing, StallKind::HeedsAbort] {
        on_benches(|bench| {
            let [to, from, before] = [0, 1, 2].map(|_| owner(bench));
            let idle = bench.adapter.create_device();
            let mut idle_queue = queue_of(&idle, 0);
            let system = SystemDevice::open(bench.adapter.os(), 0).unwrap();
            fill_by(&system, &before.1, 3);
            let [paged_to, paged_from] =
                [&to.1, &from.1].map(|memory| system.open_allocation(memory.os()).unwrap());
            let (destination, source) = ((paged_to.handle(), 0), (paged_from.handle(), 0));
            let packets = [
                Packet::stall(kind, FOR_EVER),
                Packet::copy(destination, source, 64),
            ];
            let queue = system.queue();
            let value = queue.queue_commands(&packets, Vec::new()).unwrap();

            let record = until_noted(bench);
            assert_eq!(record.code, Record::VIDEO_TDR_TIMEOUT_DETECTED);
            assert_eq!(record.parameters[2], 9);
            let calls = bench.spy.tdr_calls();
            assert!(
                calls.ends_with(&[
                    TdrCall::ResetEngine(0),
                    TdrCall::ResetFromTimeout,
                    TdrCall::RestartFromTimeout
                ]),
                "{calls:?}"
            );
            for (device, _) in [&to, &from] {
                assert_eq!(device.execution_state(), DeviceExecutionState::RESET);
                device.create_fence(0).unwrap_err();
            }
            for device in [&before.0, &idle] {
                assert_eq!(device.execution_state(), DeviceExecutionState::ACTIVE);
            }
            assert_eq!(system.execution_state(), DeviceExecutionState::ACTIVE);
            assert_eq!(queue.error(), Some(WaitError::DeviceLost));
            assert!(queue.progress_fence().fence().current_value() != value);
            let (submitted, completed) = bench.adapter.os().submission_ids(0);
            assert_eq!(submitted, completed, "TD-04");

            fill_by(&system, &before.1, 4);
            let value = idle_queue.submit(CommandList::new().nop()).unwrap();
            assert_eq!(idle_queue.progress_fence().wait(value, LONG), Ok(()));
        });
    }
}

/// TD-08, TD-07: a paging packet that was under way when somebody else's packet is aborted promotes nothing: it
/// is handed over again with its id, and completes, and whose memory it is about goes on.
///
/// Kills `every-paging-packet-promotes`.
#[test]
fn td_08_a_paging_packet_of_the_innocent_promotes_nothing() {
    on_benches(|bench| {
        let (device, memory) = owner(bench);
        let mut guilty = bench.queue();
        let system = SystemDevice::open(bench.adapter.os(), 0).unwrap();
        let only = bench.initialised(0) + 1;
        bench.spy.take();
        hang(&mut guilty);
        bench.until_stalled();
        fill_by(&system, &memory, 6);
        let record = until_noted(bench);
        assert_eq!(record.code, Record::VIDEO_ENGINE_TIMEOUT_DETECTED);
        assert_eq!(device.execution_state(), DeviceExecutionState::ACTIVE);
        assert_eq!(system.execution_state(), DeviceExecutionState::ACTIVE);
        let again = SubmitCommandFlags::PAGING.with(SubmitCommandFlags::RESUBMISSION);
        let calls = bench.spy.calls();
        let handed = calls.iter().filter_map(|call| match call {
            Call::SubmitCommand {
                submission_id,
                flags,
                ..
            } => Some((*submission_id, *flags)),
            _ => None,
        });
        let handed: Vec<_> = handed.collect();
        assert_eq!(handed, [(only, SubmitCommandFlags::PAGING), (only, again)]);
    });
}
