//! Buffers: typed elements in memory that program and queues share, and their way there and back by queues.
//!
//! Open, here and on every machine without a GPU: that what the program stores to write-combined memory is there
//! before the signal that follows (`shared::Block::keep_order`).

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
    pub(crate) mod engines;
    pub(crate) mod kernels;
}

use native_fence::abi::{FaultCode, Home};
use native_fence::bytemuck::Pod;
use native_fence::{
    Adapter, AdapterOptions, AllocationMemory, Buffer, CommandList, CreateError, Device,
    FenceMemory, FenceOptions, HwQueueOptions, NoElements, OutOfBuffer, Parameters, SubmitError,
    TransferError, WaitError,
};
use std::fmt::Debug;
use std::time::Duration;
use support::bench::memory::LOCAL;
use support::bench::{Bench, LONG, complete, until};
use support::engines::{Random, on_every_engine, patient};
use support::kernels::{add_words, groups_for};

/// More words than an engine has lanes, or a workgroup invocations.
const WORDS: usize = 1000;

/// Has `add_words` store to `to` the sums of the elements of `from` with a number.
fn sums(from: &Buffer<u64>, to: &Buffer<u64>, number: u64) -> Parameters {
    Parameters::new()
        .address(from, 0)
        .address(to, 0)
        .word(from.len() as u64)
        .word(number)
}

/// An adapter whose engines, one each of two instances, have local memory, whatever that is here.
fn with_local_memory() -> Adapter {
    let options = AdapterOptions {
        nodes: 2.try_into().unwrap(),
        memory: LOCAL,
        tdr: patient(),
        ..AdapterOptions::default()
    };
    Adapter::open(&options).unwrap()
}

/// Uploads, a kernel, a copy and a download, each by a queue of its own behind the one before.
fn relay(device: &Device, memory: AllocationMemory, nodes: u32) {
    let kernel = device.create_kernel(add_words()).unwrap();
    let buffer = || device.create_buffer_in::<u64>(memory, WORDS).unwrap();
    let (given, summed, copied) = (buffer(), buffer(), buffer());
    let fence = device.create_fence(0).unwrap();
    let mut queues = [0, 1, 2].map(|number| {
        let options = HwQueueOptions {
            node_ordinal: number % nodes,
            ..HwQueueOptions::default()
        };
        device.create_hw_queue_with(options).unwrap()
    });
    let mut random = Random(1);
    for round in 0..10 {
        let elements: Vec<u64> = (0..WORDS).map(|_| random.bits()).collect();
        let first = 3 * round;
        let mut lists = [(); 3].map(|()| CommandList::new());
        lists[0].wait(&fence, first);
        lists[0]
            .upload(&given, 0, &elements, &fence, first + 1)
            .unwrap();
        lists[1].wait(&fence, first + 1);
        lists[1]
            .dispatch(
                &kernel,
                groups_for(WORDS as u64),
                &sums(&given, &summed, round),
            )
            .unwrap();
        lists[1].signal(&fence, first + 2);
        let all = summed.bytes_of(..).unwrap();
        lists[2]
            .wait(&fence, first + 2)
            .copy(summed.allocation(), all, copied.allocation(), 0);
        let download = lists[2].download(&copied, .., &fence, first + 3).unwrap();
        for (queue, list) in queues.iter_mut().zip(&lists).rev() {
            queue.submit(list).unwrap();
        }
        drop(lists);
        let expected: Vec<u64> = elements.iter().map(|one| one.wrapping_add(round)).collect();
        assert_eq!(download.wait(LONG).unwrap(), expected, "round {round}");
        assert_eq!(copied.read_vec(..).unwrap(), expected, "round {round}");
    }
}

/// HQ-08: what is uploaded is there for the kernel that waits for it, and a download is what the kernel before it
/// stored.
///
/// Kills `an-upload-signals-alone`, `a-download-signals-alone`.
#[test]
fn hq_08_uploads_kernels_and_downloads_see_what_they_waited_for() {
    on_every_engine(|adapter| relay(&adapter.create_device(), AllocationMemory::System, 1));
}

/// The same in the device's own memory, which two engines import: what lies there says so.
///
/// Kills `local-buffers-lie-in-system-memory`.
#[test]
fn hq_08_buffers_in_local_memory_are_of_every_engine() {
    let adapter = with_local_memory();
    let device = adapter.create_device();
    for (memory, home) in [
        (AllocationMemory::Local, Home::LocalHostVisible),
        (AllocationMemory::System, Home::CachedSystem),
    ] {
        // Those that share a region, and one that has its own.
        for len in [3, 100_000] {
            let buffer = device.create_buffer_in::<u32>(memory, len).unwrap();
            assert_eq!(buffer.memory(), home, "{len} elements");
            assert_eq!(buffer.read_vec(..).unwrap(), vec![0; len], "zero at first");
        }
        relay(&device, memory, 2);
    }
}

/// Where local memory is not offered the buffer is refused, with the reason and what to do.
///
/// Kills `local-buffers-fall-back`.
#[test]
fn local_memory_that_is_not_offered_is_refused_with_what_to_do() {
    on_every_engine(|adapter| {
        let device = adapter.create_device();
        let made = device.create_buffer_in::<u32>(AllocationMemory::Local, 10);
        match (adapter.providers().local(), made) {
            (Ok(_), made) => assert_eq!(made.unwrap().memory(), Home::LocalHostVisible),
            (Err(why), made) => {
                let refused = made.unwrap_err().to_string();
                assert!(refused.contains(&why.to_string()), "{refused}");
            }
        }
        let usual = device.create_buffer::<u32>(10).unwrap();
        assert_eq!(usual.memory(), adapter.providers().host_stores_seen_in());
    });
}

/// No engine that is lost takes a buffer in local memory along: it is the exporter's.
#[test]
fn a_local_buffer_outlives_an_engine_that_is_lost() {
    let bench = Bench::with_memory(2, LOCAL, FenceMemory::System);
    let well = Device::open(bench.adapter.os());
    let local = AllocationMemory::Local;
    let buffer = well.create_buffer_in::<u16>(local, 100).unwrap();
    let of_lost = bench.device.create_buffer_in::<u16>(local, 100).unwrap();
    buffer.write(0, &[7; 100]).unwrap();
    of_lost.write(0, &[8; 100]).unwrap();
    let mut dies = bench.queue_on(0);
    complete(&mut dies, CommandList::new().nop());
    bench.until_parked();
    bench.engines[0].lose();
    dies.submit(CommandList::new().nop()).ok();
    let lost = dies.progress_fence().wait(2, LONG);
    assert_eq!(lost, Err(WaitError::DeviceLost));
    let options = HwQueueOptions {
        node_ordinal: 1,
        ..HwQueueOptions::default()
    };
    let mut lives = well.create_hw_queue_with(options).unwrap();
    let done = well.create_fence(0).unwrap();
    let mut list = CommandList::new();
    list.upload(&buffer, 0, &[9; 4], &done, 1).unwrap();
    let download = list.download(&buffer, 3..5, &done, 2).unwrap();
    lives.submit(&list).unwrap();
    assert_eq!(download.wait(LONG).unwrap(), [9, 7]);
    assert_eq!(of_lost.read_vec(..).unwrap(), [8; 100]);
}

/// Stores, uploads, loads and downloads elements of a type at every range of a buffer: the elements beside them stay
/// what they are. Uploads that would store to these are refused.
fn every_range<T: Pod + Debug + PartialEq>(adapter: &Adapter, element: impl Fn(u8) -> T) {
    const LEN: usize = 17;
    let device = adapter.create_device();
    let mut queue = device.create_hw_queue().unwrap();
    let fence = device.create_fence(0).unwrap();
    let buffer = device.create_buffer::<T>(LEN).unwrap();
    let before: Vec<T> = (100..).take(LEN).map(&element).collect();
    let mut value = 0;
    for begin in 0..=LEN {
        for end in begin..=LEN {
            let place = format!("{begin}..{end} of {}", std::any::type_name::<T>());
            let stored: Vec<T> = (1..).take(end - begin).map(&element).collect();
            let mut expected = before.clone();
            expected[begin..end].copy_from_slice(&stored);
            let mut list = CommandList::new();
            buffer.write(0, &before).unwrap();
            let byte = |at: usize| at * size_of::<T>();
            let fits = |at: usize| byte(at).is_multiple_of(8);
            let uploaded = list.upload(&buffer, begin, &stored, &fence, value + 1);
            if begin == end || (fits(begin) && (fits(end) || end == LEN)) {
                uploaded.unwrap();
                value += 1;
            } else {
                let Err(TransferError::PartOfWord { step, .. }) = uploaded else {
                    panic!("{place}: {uploaded:?}");
                };
                assert!(fits(step) && (1..step).all(|less| !fits(less)), "{step}");
                assert!(list.is_empty(), "{place}: a part of it was recorded");
                buffer.write(begin, &stored).unwrap();
            }
            value += 1;
            let download = list.download(&buffer, begin..end, &fence, value).unwrap();
            queue.submit(&list).unwrap();
            assert_eq!(download.wait(LONG).unwrap(), stored, "{place}");
            assert_eq!(buffer.read_vec(..).unwrap(), expected, "{place}");
            let mut read = stored.clone();
            read.fill(element(0));
            buffer.read(begin, &mut read).unwrap();
            assert_eq!(read, stored, "{place}");
        }
    }
}

/// Elements of every size have their bytes to themselves, however they come there.
///
/// Kills `bytes-beside-are-zeroed`, `an-upload-stores-beside`, `a-download-begins-with-its-word`.
#[test]
fn elements_beside_those_that_are_stored_stay_what_they_are() {
    on_every_engine(|adapter| {
        every_range(adapter, |n| n);
        every_range(adapter, |n| [n, n + 1, n + 2]);
        every_range(adapter, |n| u32::from(n) << 24 | u32::from(n));
        every_range(adapter, |n| [f32::from(n), 0.5, -f32::from(n)]);
        every_range(adapter, |n| u64::from(n).rotate_right(4));
        every_range(adapter, |n| u128::from(n).rotate_right(4));
    });
}

/// NF-31: what an upload or a download stages is kept until its queue has executed it, though nobody else has it,
/// and is free afterwards.
///
/// Kills `a-queue-keeps-no-staging-memory`, `staging-memory-is-kept-for-ever`.
#[test]
fn nf_31_a_queue_keeps_what_its_uploads_and_downloads_stage() {
    on_every_engine(|adapter| {
        let device = adapter.create_device();
        let mut queue = device.create_hw_queue().unwrap();
        let [gate, done] = [(); 2].map(|()| device.create_fence(0).unwrap());
        let buffer = device.create_buffer::<u32>(WORDS).unwrap();
        let mut list = CommandList::new();
        for lap in 1..=3 {
            list.clear();
            list.wait(&gate, u64::from(lap));
            list.upload(&buffer, 0, &[lap; WORDS], &done, 2 * u64::from(lap) - 1)
                .unwrap();
            drop(
                list.download(&buffer, .., &done, 2 * u64::from(lap))
                    .unwrap(),
            );
            queue.submit(&list).unwrap();
        }
        drop(list);
        assert_eq!(queue.free_staging(), 3 * 2 * 4 * WORDS as u64);
        for lap in 1..=3 {
            gate.signal(u64::from(lap)).unwrap();
            done.wait(2 * u64::from(lap), LONG).unwrap();
            assert_eq!(buffer.read_vec(..).unwrap(), [lap; WORDS]);
            let left = 3 - u64::from(lap);
            until("what is executed is free", || {
                queue.free_staging() == left * 2 * 4 * WORDS as u64
            });
        }
        assert_eq!(queue.error(), None);
    });
}

/// NF-31: the buffer itself is the program's to keep: a packet that comes to a dropped one stops its queue, and
/// stores to nobody's memory.
#[test]
fn nf_31_an_upload_to_a_buffer_that_is_dropped_stops_its_queue() {
    on_every_engine(|adapter| {
        let device = adapter.create_device();
        let mut queue = device.create_hw_queue().unwrap();
        let [gate, done] = [(); 2].map(|()| device.create_fence(0).unwrap());
        let buffer = device.create_buffer::<u32>(2).unwrap();
        let mut list = CommandList::new();
        list.wait(&gate, 1);
        list.upload(&buffer, 0, &[1, 2], &done, 1).unwrap();
        queue.submit(&list).unwrap();
        drop(buffer);
        let other = device.create_buffer::<u32>(2).unwrap();
        gate.signal(1).unwrap();
        match queue.progress_fence().wait(1, LONG) {
            Err(WaitError::QueueFaulted(fault)) => {
                assert_eq!((fault.code, fault.packet), (FaultCode::StaleHandle, 1));
            }
            ended => panic!("{ended:?}"),
        }
        assert_eq!(other.read_vec(..).unwrap(), [0, 0]);
        assert_eq!(done.current_value(), 0);
    });
}

/// A list with an upload can be submitted again: the elements are its own.
///
/// Kills `a-list-keeps-no-staging-memory`.
#[test]
fn a_list_uploads_what_it_was_given_as_often_as_it_is_submitted() {
    on_every_engine(|adapter| {
        let device = adapter.create_device();
        let mut queue = device.create_hw_queue().unwrap();
        let done = device.create_fence(0).unwrap();
        let buffer = device.create_buffer::<u16>(5).unwrap();
        let mut list = CommandList::new();
        list.upload(&buffer, 0, &[1, 2, 3, 4, 5], &done, 1).unwrap();
        for _ in 0..3 {
            buffer.write(0, &[0; 5]).unwrap();
            complete(&mut queue, &list);
            until("its staging memory is the list's alone", || {
                queue.free_staging() == 0
            });
            assert_eq!(buffer.read_vec(..).unwrap(), [1, 2, 3, 4, 5]);
        }
    });
}

/// Buffers over one allocation have its bytes in common, each in elements of its own.
///
/// Kills `a-view-has-a-part-of-an-element`.
#[test]
fn an_allocation_is_seen_as_elements_of_any_type_that_fills_it() {
    on_every_engine(|adapter| {
        let device = adapter.create_device();
        let words = device.create_allocation(24).unwrap();
        words.write(8, &[0x0102_0304_0506_0708]);
        let bytes = Buffer::<u8>::over(&words).unwrap();
        assert_eq!(bytes.read_vec(8..16).unwrap(), [8, 7, 6, 5, 4, 3, 2, 1]);
        let triples = Buffer::<[u16; 3]>::over(bytes.allocation()).unwrap();
        assert_eq!(
            triples.read_vec(..).unwrap()[1..3],
            [[0, 0x0708, 0x0506], [0x0304, 0x0102, 0]]
        );
        triples.write(3, &[[0xffff; 3]]).unwrap();
        assert_eq!(bytes.read_vec(17..19).unwrap(), [0, 0xff]);
        let refused = Buffer::<[u8; 5]>::over(&words).unwrap_err();
        let expected = NoElements {
            bytes: 24,
            element: 5,
        };
        assert_eq!(refused, expected);
        assert!(Buffer::<()>::over(&words).is_err());
    });
}

/// What is wrong is refused by name, and nothing of it is done.
///
/// Kills `a-buffer-of-any-size`, `a-download-is-done-before`.
#[test]
fn what_a_buffer_cannot_do_is_refused_by_name() {
    on_every_engine(|adapter| {
        let device = adapter.create_device();
        for (len, made) in [
            (0, device.create_buffer::<u64>(0).err()),
            (usize::MAX, device.create_buffer::<u64>(usize::MAX).err()),
            (1 << 60, device.create_buffer::<u64>(1 << 60).err()),
        ] {
            let expected = CreateError::BufferSize {
                elements: len,
                bytes: 8,
            };
            assert_eq!(made.unwrap().to_string(), expected.to_string());
        }
        assert!(device.create_buffer::<()>(5).is_err(), "of no bytes");

        let buffer = device.create_buffer::<u32>(10).unwrap();
        let out = |begin, end| OutOfBuffer {
            begin,
            end,
            len: 10,
        };
        assert_eq!(buffer.write(9, &[1, 2]), Err(out(9, 11)));
        assert_eq!(buffer.read(11, &mut []), Err(out(11, 11)));
        assert_eq!(buffer.read_vec(..=10), Err(out(0, 11)));
        #[allow(clippy::reversed_empty_ranges, reason = "it is what is refused")]
        let reversed = buffer.bytes_of(3..2);
        assert_eq!(reversed, Err(out(3, 2)));
        assert_eq!(buffer.read_vec(..).unwrap(), [0; 10]);

        let fence = device.create_fence(5).unwrap();
        let mut list = CommandList::new();
        let refused = list.upload(&buffer, 8, &[1; 3], &fence, 6).unwrap_err();
        assert!(matches!(refused, TransferError::OutOfBuffer(_)));
        let refused = list.upload(&buffer, 1, &[1; 3], &fence, 6).unwrap_err();
        assert!(refused.to_string().contains("a multiple of 2 elements"));
        let refused = list.download(&buffer, .., &fence, 5).unwrap_err();
        assert!(
            matches!(
                refused,
                TransferError::Reached {
                    value: 5,
                    current: 5
                }
            ),
            "it would be done at once: {refused}"
        );
        let intra_gpu = FenceOptions {
            intra_gpu: true,
            ..FenceOptions::default()
        };
        if let Ok(fence) = device.create_fence_with(intra_gpu) {
            let refused = list.download(&buffer, .., &fence, 1).unwrap_err();
            assert!(matches!(refused, TransferError::IntraGpu));
        }
        assert!(list.is_empty(), "nothing was recorded");

        let download = list.download(&buffer, 4..4, &fence, 6).unwrap();
        assert_eq!(download.wait(Duration::ZERO), Err(WaitError::TimedOut));
        let mut another = adapter.create_device().create_hw_queue().unwrap();
        let refused = another.submit(&list);
        assert!(matches!(refused, Err(SubmitError::OtherDevice)));
        complete(&mut device.create_hw_queue().unwrap(), &list);
        assert_eq!(download.wait(Duration::ZERO), Ok(vec![]));
    });
}
