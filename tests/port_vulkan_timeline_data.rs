//! What the Vulkan CTS asserts of the data that timeline semaphores order, of native fences and allocations: what was
//! written before a signal is read after a wait for it. Each case goes through all pairs of what writes and what reads.
//! `tests/ports/README.md` has the table.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
    pub(crate) mod kernels;
    pub(crate) mod passing;
    pub(crate) mod two_benches;
}

use native_fence::gpu::NodePolicy;
use native_fence::{
    Allocation, AllocationMemory, CommandList, Device, Fence, HwQueue, Kernel, SharedHandle,
    SharedMemory,
};
use std::cell::RefCell;
use std::os::unix::net::UnixStream;
use support::bench::{Bench, LONG, memory, on_every_bench, words};
use support::kernels::{add_words, groups_for, sums};
use support::passing::shared;
use support::two_benches::{cross_adapter, on_two_benches};

/// More than an engine has lanes.
const WORDS: u64 = 512;
const BYTES: u64 = 8 * WORDS;

/// What writes a value to all words.
#[derive(Clone, Copy, Debug)]
enum Write {
    Fill,
    Copy,
    Dispatch,
}

/// What reads all words, and puts them somewhere else.
#[derive(Clone, Copy, Debug)]
enum Read {
    Copy,
    Dispatch,
}

const WRITES: [Write; 3] = [Write::Fill, Write::Copy, Write::Dispatch];
const READS: [Read; 2] = [Read::Copy, Read::Dispatch];

/// What operations of a device need.
struct Ops {
    device: Device,
    kernel: Kernel,
    zeroes: Allocation,
    /// What queues may still read.
    kept: RefCell<Vec<Allocation>>,
}

impl Ops {
    fn of(device: &Device) -> Self {
        Self {
            device: device.clone(),
            kernel: device.create_kernel(add_words()).unwrap(),
            zeroes: device.create_allocation(BYTES).unwrap(),
            kept: RefCell::default(),
        }
    }

    fn memory(&self) -> Allocation {
        self.device.create_allocation(BYTES).unwrap()
    }

    fn queue(&self) -> HwQueue {
        self.device.create_hw_queue().unwrap()
    }

    fn add(&self, list: &mut CommandList, [from, to]: [&Allocation; 2], number: u64) {
        let sums = sums(from, to, number);
        list.dispatch(&self.kernel, groups_for(WORDS), &sums)
            .unwrap();
    }

    fn write(&self, list: &mut CommandList, how: Write, to: &Allocation, value: u64) {
        match how {
            Write::Fill => {
                list.fill(to, 0..BYTES, value);
            }
            Write::Copy => {
                let from = self.memory();
                from.write(0, &[value; WORDS as usize]);
                list.copy(&from, 0..BYTES, to, 0);
                self.kept.borrow_mut().push(from);
            }
            Write::Dispatch => self.add(list, [&self.zeroes, to], value),
        }
    }

    fn read(&self, list: &mut CommandList, how: Read, from: &Allocation, to: &Allocation) {
        match how {
            Read::Copy => {
                list.copy(from, 0..BYTES, to, 0);
            }
            Read::Dispatch => self.add(list, [from, to], 0),
        }
    }
}

/// Each pair, with a value of its own.
fn pairs() -> impl Iterator<Item = (Write, Read, u64)> {
    let pairs = WRITES
        .iter()
        .flat_map(|write| READS.map(|read| (*write, read)));
    pairs
        .zip(1..)
        .map(|((write, read), at)| (write, read, 1_000 * at))
}

fn on_benches(body: impl Fn(&Bench, &Ops)) {
    on_every_bench(NodePolicy::default(), |bench| {
        body(bench, &Ops::of(&bench.device));
    });
}

fn assert_all(memory: &Allocation, value: u64, what: impl std::fmt::Debug) {
    let found = words(memory);
    assert!(
        found.iter().all(|word| *word == value),
        "{what:?}: {found:?}"
    );
}

/// Device and host by turns, all work of the device submitted before: what a queue writes before its signal the host
/// reads after its wait, and what the host writes before its signal a queue reads after its own.
#[test]
fn vulkan_device_host_write_read_buffer() {
    const ROUNDS: u64 = 8;
    on_benches(|bench, ops| {
        for (write, read, value) in pairs() {
            let (fence, mut queue) = (bench.fence(0), ops.queue());
            let [of_device, of_host, back] = [0; 3].map(|_| ops.memory());
            for round in 0..ROUNDS {
                let mut list = CommandList::new();
                list.wait(&fence, 2 * round);
                ops.read(&mut list, read, &of_host, &back);
                ops.write(&mut list, write, &of_device, value + round);
                list.signal(&fence, 2 * round + 1);
                queue.submit(&list).unwrap();
            }
            let what = (write, read);
            for round in 0..ROUNDS {
                fence.wait(2 * round + 1, LONG).unwrap();
                assert_all(&of_device, value + round, what);
                let written = if round == 0 { 0 } else { value + round - 1 };
                assert_all(&back, written, what);
                of_host.write(0, &[value + round; WORDS as usize]);
                fence.signal(2 * round + 2).unwrap();
            }
        }
    });
}

/// One signal releases many waits, and each reads what was written before it.
#[test]
fn vulkan_one_to_n_write_read_buffer() {
    const READERS: usize = 16;
    on_benches(|bench, ops| {
        for (write, read, value) in pairs() {
            let (fence, written) = (bench.fence(0), ops.memory());
            let mut readers: Vec<_> = (0..READERS)
                .map(|_| (ops.queue(), ops.memory(), bench.fence(0)))
                .collect();
            for (queue, to, done) in &mut readers {
                let mut list = CommandList::new();
                list.wait(&fence, 7);
                ops.read(&mut list, read, &written, to);
                queue.submit(list.signal(done, 1)).unwrap();
            }
            let (mut queue, mut list) = (ops.queue(), CommandList::new());
            ops.write(&mut list, write, &written, value);
            queue.submit(list.signal(&fence, 7)).unwrap();
            for (_, to, done) in &readers {
                assert_eq!(done.wait(1, LONG), Ok(()), "{write:?}, {read:?}");
                assert_all(to, value, (write, read));
            }
        }
    });
}

/// A chain that is submitted from its end to its beginning, each link on a queue of its own: the last one has what the
/// first one wrote.
#[test]
fn vulkan_wait_before_signal_write_read_buffer() {
    const LINKS: u64 = 10;
    on_benches(|bench, ops| {
        for (write, read, value) in pairs() {
            let fence = bench.fence(0);
            let memory: Vec<_> = (0..=LINKS).map(|_| ops.memory()).collect();
            let mut queues = Vec::new();
            for link in (1..=LINKS).rev() {
                let mut list = CommandList::new();
                list.wait(&fence, link);
                let at = link as usize;
                ops.read(&mut list, read, &memory[at - 1], &memory[at]);
                let mut queue = ops.queue();
                queue.submit(list.signal(&fence, link + 1)).unwrap();
                queues.push(queue);
            }
            bench.until_parked();
            assert_eq!(fence.current_value(), 0);
            let mut list = CommandList::new();
            ops.write(&mut list, write, &memory[0], value);
            let mut first = ops.queue();
            first.submit(list.signal(&fence, 1)).unwrap();
            assert_eq!(fence.wait(LINKS + 1, LONG), Ok(()), "{write:?}, {read:?}");
            for memory in &memory {
                assert_all(memory, value, (write, read));
            }
        }
    });
}

/// How fences and memory that are made on one device come to be open on another, or on the same.
struct Passage<'a> {
    /// A new fence: as its maker has it, and as the other.
    fence: &'a dyn Fn() -> (Fence, Fence),
    /// Memory on its way to the other.
    memory: fn(SharedMemory) -> SharedMemory,
    /// Where the other's engine is.
    other: &'a Bench,
}

/// Of a queue's signals a later one says that all before are done: who waits for the last reads what was written before
/// each, through fences and memory of the same device or of another. Its engine is let go at the wait before.
fn signal_order(maker: &Ops, taker: &Ops, passage: &Passage<'_>) {
    const SIGNALS: usize = 4;
    for (write, read, value) in pairs() {
        let fences: Vec<_> = (0..SIGNALS).map(|_| (passage.fence)()).collect();
        let shared = |_| {
            let system = AllocationMemory::System;
            let made = maker
                .device
                .create_shared_allocation(system, BYTES)
                .unwrap();
            let passed = (passage.memory)(made.share().unwrap());
            let opened = taker.device.open_allocation(&passed);
            (made, opened.unwrap(), taker.memory())
        };
        let memory: Vec<_> = (0..SIGNALS).map(shared).collect();
        let (mut writer, mut reader) = (maker.queue(), taker.queue());
        let mut list = CommandList::new();
        list.wait(&fences[SIGNALS - 1].1, 5);
        for (_, from, to) in &memory {
            taker.read(&mut list, read, from, to);
        }
        let end = reader.submit(&list).unwrap();
        passage.other.until_parked();
        for (at, ((fence, _), (to, _, _))) in fences.iter().zip(&memory).enumerate() {
            let mut list = CommandList::new();
            maker.write(&mut list, write, to, value + at as u64);
            writer.submit(list.signal(fence, 5)).unwrap();
        }
        reader.progress_fence().wait(end, LONG).unwrap();
        for (at, (_, _, read_back)) in memory.iter().enumerate() {
            assert_all(read_back, value + at as u64, (write, read, at));
        }
        assert!(fences.iter().all(|(_, opened)| opened.current_value() == 5));
    }
}

#[test]
fn vulkan_signal_order_timeline_semaphore() {
    on_benches(|bench, ops| {
        let fence = || {
            let fence = bench.fence(0);
            (fence.clone(), fence)
        };
        let passage = Passage {
            fence: &fence,
            memory: |memory| memory,
            other: bench,
        };
        signal_order(ops, ops, &passage);
    });
}

#[test]
fn vulkan_signal_order_shared_timeline_semaphore() {
    on_benches(|bench, ops| {
        let other = bench.adapter.create_device();
        let fence = || {
            let fence = shared(&bench.device, 0);
            let opened = other.open_fence(&fence.share().unwrap()).unwrap();
            (fence, opened)
        };
        let passage = Passage {
            fence: &fence,
            memory: |memory| memory,
            other: bench,
        };
        signal_order(ops, &Ops::of(&other), &passage);
    });
}

/// Two instances have one payload by a handle: what a queue of the one writes before its signal a queue of the other
/// reads after its wait. The handle is that of a cross-adapter fence; and a descriptor, by which another operating system
/// has it, with memory that comes by a socket.
///
/// Kills `peers-are-told-of-nothing`.
#[test]
fn vulkan_cross_instance_timeline_semaphore() {
    on_two_benches(|one, other| {
        let (here, there) = (Ops::of(&one.device), Ops::of(&other.device));
        let of_one_system = Passage {
            fence: &|| cross_adapter(one, other, 0),
            memory: |memory| memory,
            other,
        };
        signal_order(&here, &there, &of_one_system);
        // What Vulkan allocated is passed to no other system.
        if !memory::is_usual() {
            return;
        }
        let of_two_systems = Passage {
            fence: &|| by_descriptor(one, other),
            memory: |memory| through_a_socket(&memory),
            other,
        };
        signal_order(&here, &there, &of_two_systems);
    });
}

/// A fence that one makes, and the other opens by a descriptor.
fn by_descriptor(one: &Bench, other: &Bench) -> (Fence, Fence) {
    let fence = shared(&one.device, 0);
    let descriptor = fence.share().unwrap().to_descriptor().unwrap();
    let handle = SharedHandle::of_descriptor(&descriptor).unwrap();
    let opened = other.device.open_fence(&handle).unwrap();
    (fence, opened)
}

/// Memory as it comes out at the other end of a socket.
fn through_a_socket(memory: &SharedMemory) -> SharedMemory {
    let (here, there) = UnixStream::pair().unwrap();
    memory.send(&here).unwrap();
    SharedMemory::receive(&there).unwrap()
}
