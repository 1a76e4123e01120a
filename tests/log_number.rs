//! Rules of the log buffers (LG-04), on the real device: running numbers, and who writes.

#![allow(clippy::unwrap_used, reason = "tests, and their helpers")]

mod support {
    pub(crate) mod bench;
    pub(crate) mod logs;
}

use native_fence::abi::{FaultCode, PACKET_BYTES, Packet};
use native_fence::{CommandList, HwQueueOptions, WaitError};
use support::bench::{Bench, LONG};
use support::logs::{logs, run, signal_all};

/// LG-04: the entry is the one that the packet's number says.
///
/// Mutants: `log-number-not-counted`, `log-index-one-past-the-end`.
#[test]
fn lg_04_packets_carry_running_numbers_and_the_engine_makes_the_entry_of_them() {
    let bench = Bench::new();
    let mut queue = bench.queue();
    let fence = bench.fence(0);
    let (_, signals) = logs(&bench, &queue);
    let mut list = CommandList::new();
    let (mut number, mut waits, mut packet) = (0, 0, 0);
    for round in 0..40u64 {
        list.clear();
        list.signal(&fence, 2 * round + 1)
            .wait(&fence, 1)
            .nop()
            .signal(&fence, 2 * round + 2);
        run(&mut queue, &list);
        let numbers = [
            Some(number),
            Some(waits),
            None,
            Some(number + 1),
            Some(number + 2),
        ];
        for expected in numbers {
            let (_, packets) = queue.raw_memory();
            let at = packet % 1024 * PACKET_BYTES + Packet::LOG_NUMBER;
            if let Some(expected) = expected {
                assert_eq!(packets.word(at).peek(), expected, "packet {packet}");
            }
            packet += 1;
        }
        let entry = |number: u64| signals.entry((number % 84) as u32);
        assert_eq!(entry(number).fence_value, 2 * round + 1);
        assert_eq!(entry(number + 1).fence_value, 2 * round + 2);
        assert_eq!(
            entry(number + 2).fence_value,
            round + 1,
            "the progress write"
        );
        number += 3;
        waits += 1;
    }
    assert_eq!(signals.total(), number);
}

/// LG-04: a number that is not the next one.
///
/// Mutant: `log-number-unchecked`.
#[test]
fn lg_04_a_number_that_is_not_the_next_one_faults_the_queue() {
    let bench = Bench::new();
    let fence = bench.device.create_fence(10).unwrap();
    let mut other = bench.queue();
    // Packets: signal 0, wait 0, signal 1, wait 1, progress 2.
    for (packet, number) in [(2, 2), (2, 0), (2, u64::MAX), (3, 0), (3, 2), (4, 1)] {
        let mut queue = bench
            .device
            .create_hw_queue_disconnected(HwQueueOptions::default())
            .unwrap();
        let (_, signals) = logs(&bench, &queue);
        let target = bench.fence(0);
        let mut list = CommandList::new();
        list.signal(&target, 1)
            .wait(&fence, 1)
            .signal(&target, 2)
            .wait(&fence, 2);
        let value = queue.queue_commands(&list).unwrap();
        let (_, packets) = queue.raw_memory();
        packets
            .word(packet * PACKET_BYTES + Packet::LOG_NUMBER)
            .publish(number);
        queue.connect_doorbell().unwrap();

        let Err(WaitError::QueueFaulted(fault)) = queue.progress_fence().wait(value, LONG) else {
            panic!("packet {packet} with number {number} was taken")
        };
        assert_eq!((fault.code, fault.packet), (FaultCode::LogNumber, packet));
        assert_eq!(
            queue.read_index(),
            packet,
            "nothing after the packet before it"
        );
        let logged = if packet == 2 { 1 } else { 2 };
        assert_eq!(signals.total(), logged);
        assert_eq!(target.current_value(), logged, "the packet stored nothing");
        assert_eq!(queue.progress_fence().current_value(), 0);
        // Another queue goes on.
        signal_all(&mut other, &fence, [10 + value]);
    }
}

/// LG-04: who has an address of a log. Logs lie in a file with nothing else; the process's table of
/// mappings shows the OS's and the engine's, both of the OS side, and none of the user's.
///
/// Mutant: none by a one-line edit: a third mapping would have to be made.
#[test]
fn lg_04_the_user_has_no_mapping_of_a_log() {
    let bench = Bench::new();
    let queue = bench.queue();
    let handle = queue.os().handle();
    for (of, _, (region, _), _) in bench.spy.logs() {
        assert_eq!(of, handle);
        let inode = rustix::fs::fstat(region.descriptor().unwrap())
            .unwrap()
            .st_ino
            .to_string();
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let of_log = |line: &&str| line.split_whitespace().nth(4) == Some(&inode);
        assert_eq!(maps.lines().filter(of_log).count(), 2, "{maps}");
    }
}
