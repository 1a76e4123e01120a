//! Packet: what cannot be executed stops its queue, and nothing else.

use super::scene::{CAPACITY, Neighbour, Ring, words};
use super::scribble::{flickering, standing};
use crate::abi::FaultCode::{
    self, Handle, Length, LogNumber, Opcode, Overlap, Progress, Range, StaleHandle, WriteIndex,
};
use crate::abi::Packet;
use crate::conform::seen::same;
use crate::conform::{Bench, Check, Ground};
use crate::{Allocation, CommandList, Device, Fence, SubmitError};
use anyhow::{Context, ensure};

pub(super) const CHECKS: &[Check] = &[
    Check::by(
        "HQ-04",
        "a malformed packet stops its own queue; what is checked is the copy that is executed",
        malformed,
    ),
    Check::by(
        "HQ-05",
        "a queue may only name fences that its process has opened",
        foreign,
    ),
];

/// Bytes of an allocation here.
const BYTES: u64 = 4096;
/// What words hold that nothing may change.
const KEPT: u64 = 0x5555;

fn control(opcode: u64, length: u64, reserved: u64, handle: u32) -> u64 {
    opcode | length << 8 | reserved << 16 | u64::from(handle) << 32
}

fn kept(device: &Device) -> anyhow::Result<Allocation> {
    let allocation = device.create_allocation(BYTES)?;
    allocation.write(0, &[KEPT; (BYTES / 8) as usize]);
    Ok(allocation)
}

fn is_kept(allocation: &Allocation) -> bool {
    words(allocation).iter().all(|word| *word == KEPT)
}

fn malformed(ground: &Ground) -> anyhow::Result<()> {
    let bench = ground.bench()?;
    synchronising(&bench)?;
    transfers(&bench)?;
    write_index(&bench)?;
    standing(&bench)?;
    flickering(ground, &bench)
}

/// Of control words, handles, numbers and progress values: each behind a good packet, which is executed. Access that a
/// handle has not is NF-23's.
fn synchronising(bench: &Bench) -> anyhow::Result<()> {
    let device = &bench.device;
    let mut neighbour = Neighbour::new(&bench.adapter.create_device())?;
    let (fence, closed) = (bench.fence(0)?, bench.fence(9)?);
    closed.close();
    let handle = fence.handle();
    let raw = handle.raw();
    let (nop, wait) = (Packet::nop(), Packet::wait(handle, 0, 0));
    let signal = Packet::signal(handle, u64::MAX, 1);
    let with = |packet: Packet, control| Packet { control, ..packet };
    let numbered = |packet: Packet, log_number| Packet {
        log_number,
        ..packet
    };
    let cases: [(Packet, FaultCode); 20] = [
        (with(nop, control(0, 1, 0, 0)), Opcode),
        (with(nop, control(255, 1, 0, 0)), Opcode),
        (with(signal, 0), Opcode),
        (with(nop, control(1, 0, 0, 0)), Length),
        (with(nop, control(1, 2, 0, 0)), Length),
        (with(signal, control(3, 1, 1, raw)), Length),
        (with(signal, control(3, 0, 0, raw)), Length),
        (with(signal, control(3, 1, 0, 0)), Handle),
        (with(wait, control(2, 1, 0, 0)), Handle),
        (with(signal, control(3, 1, 0, u32::MAX)), Handle),
        (with(wait, control(2, 1, 0, (1 << 20) + 900)), Handle),
        (with(signal, control(3, 1, 0, handle.slot())), Handle),
        (with(signal, control(3, 1, 0, raw + (1 << 20))), StaleHandle),
        (Packet::signal(closed.handle(), 10, 1), StaleHandle),
        (Packet::wait(closed.handle(), 9, 0), StaleHandle),
        (numbered(signal, 0), LogNumber),
        (numbered(signal, 2), LogNumber),
        (numbered(wait, u64::MAX), LogNumber),
        (with(signal, control(4, 1, 0, raw)), Progress),
        (Packet::nop(), Progress),
    ];
    for (value, (bad, code)) in (1..).zip(cases) {
        let mut ring = Ring::new(device)?;
        let progress = ring.queue.progress_fence().handle();
        let mut packets = [Packet::signal(handle, value, 0), bad, Packet::nop()];
        if value == 20 {
            // A progress value that does not rise, of the queue's own progress fence.
            packets = [
                Packet::progress(progress, 5, 0),
                Packet::progress(progress, 5, 1),
                nop,
            ];
        }
        ring.submit(&packets);
        let what = format!("{:?}", packets[1]);
        same(
            &format!("reason and packet of {what}"),
            &ring.fault().with_context(|| format!("{bad:?}"))?,
            &(code, 1),
        )?;
        let value = value.min(19);
        same(
            &format!("the value that the packet before {what} signalled"),
            &fence.current_value(),
            &value,
        )?;
        same(
            &format!("packets executed before {what}"),
            &ring.queue.read_index(),
            &1,
        )?;
        neighbour.goes_on()?;
    }
    Ok(())
}

/// Of allocations, offsets, sizes: no word of any allocation changes, those beside it in memory among them.
fn transfers(bench: &Bench) -> anyhow::Result<()> {
    // A new one, which has used up few handles: those of the other process have never been its own.
    let device = &bench.adapter.create_device();
    let other = bench.adapter.create_device();
    let mut neighbour = Neighbour::new(&other)?;
    let fence = device.create_fence(0)?;
    let (left, middle, right, closed) =
        (kept(device)?, kept(device)?, kept(device)?, kept(device)?);
    // Handles that the other process has and this one has not.
    let foreign = (0..40)
        .map(|_| kept(&other))
        .collect::<Result<Vec<_>, _>>()?;
    let last = &foreign[39];
    closed.close();
    let (m, l, huge) = (middle.handle(), left.handle(), u64::MAX - 7);
    let copy = |to, from, bytes| Packet::copy((m, to), (l, from), bytes);
    let from = |handle: u32| Packet {
        source_handle: u64::from(handle),
        ..copy(0, 0, 8)
    };
    let cases = [
        (Packet::timestamp(m, 4), Range),
        (Packet::timestamp(m, BYTES), Range),
        (Packet::timestamp(m, huge), Range),
        (Packet::fill(m, 0, BYTES + 8, 1), Range),
        (Packet::fill(m, BYTES, 8, 1), Range),
        (Packet::fill(m, huge, 16, 1), Range),
        (Packet::fill(m, 8, huge, 1), Range),
        (Packet::fill(m, 0, 12, 1), Range),
        (Packet::fill(m, 1, 8, 1), Range),
        (copy(0, 0, BYTES + 8), Range),
        (copy(8, 0, BYTES), Range),
        (copy(0, 8, BYTES), Range),
        (copy(0, huge, 16), Range),
        (Packet::copy((m, 8), (m, 0), 16), Overlap),
        (from(0), Handle),
        (from(fence.handle().raw()), Handle),
        (from(last.handle().raw()), Handle),
        (from(closed.handle().raw()), StaleHandle),
        (Packet::fill(closed.handle(), 0, 8, 1), StaleHandle),
        (Packet::fill(fence.handle(), 0, 8, 1), Handle),
        (Packet::fill(last.handle(), 0, 8, 1), Handle),
        // What fences are for.
        (Packet::signal(m, 1, 0), Handle),
        (Packet::wait(m, 1, 0), Handle),
    ];
    for (bad, code) in cases {
        let mut ring = Ring::new(device)?;
        ring.submit(&[Packet::nop(), bad, Packet::fill(m, 0, BYTES, 2)]);
        same(
            &format!("reason and packet of {bad:?}"),
            &ring.fault().with_context(|| format!("{bad:?}"))?,
            &(code, 1),
        )?;
        for allocation in [&left, &middle, &right, &closed, last] {
            ensure!(is_kept(allocation), "an allocation was written by {bad:?}");
        }
        neighbour.goes_on()?;
    }
    Ok(())
}

/// One that is behind, or more than a ring ahead: no packet of what stands there is executed.
fn write_index(bench: &Bench) -> anyhow::Result<()> {
    let mut neighbour = Neighbour::new(&bench.adapter.create_device())?;
    let fence = bench.fence(0)?;
    for index in [CAPACITY + 3, 1 << 32, u64::MAX, 0, 1] {
        for away in [false, true] {
            let mut ring = Ring::new(&bench.device)?;
            ring.submit(&[Packet::nop(), Packet::nop()]);
            ring.settle()?;
            // What a queue that goes on would execute.
            for number in 0..CAPACITY {
                ring.put(&Packet::signal(fence.handle(), 77, number));
            }
            // It is found by a step of an engine that runs, or when the engine takes the queue up.
            if away {
                ring.queue.os().disconnect_doorbell();
            }
            ring.publish(index);
            same(
                &format!("reason and packet of write index {index}"),
                &ring.fault()?,
                &(WriteIndex, 2),
            )?;
            same(
                "the fence that packets there signal",
                &fence.current_value(),
                &0,
            )?;
            neighbour.goes_on()?;
        }
    }
    Ok(())
}

/// Handles of another process: they name nothing here, or what they name here; and lists of another device are refused.
fn foreign(ground: &Ground) -> anyhow::Result<()> {
    let bench = ground.bench()?;
    let (owner, other) = (bench.adapter.create_device(), &bench.device);
    let mut neighbour = Neighbour::new(&owner)?;
    let fences = (0..40)
        .map(|_| owner.create_fence(7))
        .collect::<Result<Vec<_>, _>>()?;
    let last = fences[39].handle();
    for packet in [Packet::signal(last, 99, 0), Packet::wait(last, 7, 0)] {
        let mut ring = Ring::new(other)?;
        ring.submit(&[packet]);
        same(
            "reason and packet of a handle of another process",
            &ring.fault()?,
            &(Handle, 0),
        )?;
        neighbour.goes_on()?;
    }
    // The same numbers name fences of its own, and move these alone.
    let own = (0..8)
        .map(|_| other.create_fence(0))
        .collect::<Result<Vec<_>, _>>()?;
    let mut ring = Ring::new(other)?;
    for (number, fence) in (0..).zip(&own) {
        ring.submit(&[Packet::signal(fence.handle(), 50, number)]);
    }
    ring.settle()?;
    same(
        "an error of a queue that signals its own",
        &ring.queue.error(),
        &None,
    )?;
    ensure!(
        own.iter().all(|fence| fence.current_value() == 50),
        "a process's own fence was not signalled"
    );
    let mut foreign = fences.iter().map(Fence::current_value);
    ensure!(
        foreign.all(|value| value == 7),
        "a fence of another process was signalled"
    );

    let mut queue = bench.queue()?;
    let refused = queue.submit(CommandList::new().signal(&fences[0], 8));
    ensure!(
        matches!(refused, Err(SubmitError::OtherDevice)),
        "a list of another device: {refused:?}"
    );
    let mut kernel = bench.device.create_kernel_queue()?;
    let refused = kernel.signal_native(&fences[0], 8).err();
    same(
        "a kernel-mode queue's signal of a fence of another device",
        &refused,
        &Some(crate::KernelQueueError::OtherDevice),
    )?;
    neighbour.goes_on()
}
