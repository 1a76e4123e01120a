//! Shared buffers: memory that several devices have, of one process or of two; and what comes over a socket and is none.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod child;
    #[allow(clippy::duplicate_mod, reason = "a test may use engines and bench")]
    pub(crate) mod engines;
    pub(crate) mod passing;
    pub(crate) mod until;
}

use native_fence::abi::PAGE_BYTES;
use native_fence::os::OsError;
use native_fence::shared::{receive_message, send_descriptors};
use native_fence::umd::CreateError;
use native_fence::{
    Adapter, AllocationMemory, CommandList, Device, OpenBufferError, PassMemoryError,
    ShareMemoryError, SharedHandle, SharedMemory,
};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use support::child::{socket, spawn};
use support::engines::{engines, memory, model, shader};
use support::passing::shared;
use support::until::LONG;

const SYSTEM: AllocationMemory = AllocationMemory::System;
const TEXT: &[u8; 16] = b"native-memory 1\n";
/// More than a page.
const WORDS: usize = 1000;
const BYTES: u64 = 8 * WORDS as u64;

fn over_a_socket(memory: &SharedMemory) -> SharedMemory {
    let (here, there) = UnixStream::pair().unwrap();
    memory.send(&here).unwrap();
    SharedMemory::receive(&there).unwrap()
}

/// Two devices of one adapter, and two of two adapters of which one was sent the memory: what a queue of the one
/// stores a queue of the other copies, behind a fence that both have.
///
/// Kills `who-opens-has-memory-of-its-own`.
#[test]
fn two_devices_have_one_buffer() {
    for (engine, adapter) in engines() {
        println!("on the {engine}");
        let (producer, consumer) = (adapter.create_device(), adapter.create_device());
        let made = producer.create_shared_buffer::<u64>(SYSTEM, WORDS).unwrap();
        let opened = consumer.open_buffer::<u64>(&made.share().unwrap()).unwrap();
        let ready = shared(&producer, 0);
        let opened_ready = consumer.open_fence(&ready.share().unwrap()).unwrap();
        let copy = consumer.create_buffer::<u64>(WORDS).unwrap();
        let mut queue = consumer.create_hw_queue().unwrap();
        let mut list = CommandList::new();
        list.wait(&opened_ready, 1);
        list.copy(opened.allocation(), 0..BYTES, copy.allocation(), 0);
        let end = queue.submit(&list).unwrap();
        let mut list = CommandList::new();
        list.fill(made.allocation(), 0..BYTES, 7).signal(&ready, 1);
        let mut first = producer.create_hw_queue().unwrap();
        first.submit(&list).unwrap();
        ready.wait(1, LONG).unwrap();
        queue.progress_fence().wait(end, LONG).unwrap();
        assert_eq!(copy.read_vec(..).unwrap(), vec![7; WORDS]);
        // Whoever goes takes nothing along.
        opened.write(3, &[8]).unwrap();
        list.clear();
        list.copy(opened.allocation(), 24..32, copy.allocation(), 0);
        let end = queue.submit(&list).unwrap();
        queue.progress_fence().wait(end, LONG).unwrap();
        assert_eq!(copy.read_vec(..2).unwrap(), [8, 7]);
    }
}

/// The process that the test below starts, and nobody else: its queue waits for 1, copies the first half of the buffer
/// to the second, and signals 2.
#[test]
#[ignore = "part of the tests of this file"]
fn child_that_copies() {
    let Some(socket) = socket() else {
        return;
    };
    let adapter: Adapter = match std::env::var("NFENCE_TEST_ENGINE").as_deref() {
        Ok("model") => model().0,
        _ => shader().unwrap(),
    };
    let device = adapter.create_device();
    let fence = SharedHandle::receive(&socket).unwrap();
    let fence = device.open_fence(&fence).unwrap();
    let memory = SharedMemory::receive(&socket).unwrap();
    assert_eq!(memory.bytes(), BYTES);
    let buffer = device.open_buffer::<u64>(&memory).unwrap();
    let memory = buffer.allocation();
    let mut list = CommandList::new();
    list.wait(&fence, 1);
    list.copy(memory, 0..BYTES / 2, memory, BYTES / 2);
    list.signal(&fence, 2);
    let mut queue = device.create_hw_queue().unwrap();
    queue.submit(&list).unwrap();
    fence.wait(3, LONG).unwrap();
    assert_eq!(buffer.read_vec(..1).unwrap(), [9]);
    buffer.write(0, &[10]).unwrap();
    fence.signal(4).unwrap();
}

/// Two processes, each with an engine of its own: data of the one, a copy by the other's, and words of their CPUs.
#[test]
fn another_process_has_the_buffer() {
    for (engine, adapter) in engines() {
        // What Vulkan allocated is passed to no other system.
        if engine != "model" && !memory::is_usual() {
            continue;
        }
        println!("on the {engine}");
        let device = adapter.create_device();
        let buffer = device.create_shared_buffer::<u64>(SYSTEM, WORDS).unwrap();
        let fence = shared(&device, 0);
        let environment = [("NFENCE_TEST_ENGINE", engine.to_owned())];
        let (mut child, socket) = spawn("child_that_copies", &environment);
        fence.share().unwrap().send(&socket).unwrap();
        buffer.share().unwrap().send(&socket).unwrap();
        let half: Vec<_> = (0..WORDS as u64 / 2).collect();
        buffer.write(0, &half).unwrap();
        fence.signal(1).unwrap();
        fence.wait(2, LONG).unwrap();
        assert_eq!(buffer.read_vec(WORDS / 2..).unwrap(), half);
        buffer.write(0, &[9]).unwrap();
        fence.signal(3).unwrap();
        fence.wait(4, LONG).unwrap();
        assert!(child.wait().unwrap().success());
        assert_eq!(
            buffer.read_vec(..1).unwrap(),
            [10],
            "and it outlives the other"
        );
    }
}

/// What was not made to be shared may lie in one region with others.
///
/// Kills `any-memory-is-shared` and `closed-memory-is-shared`.
#[test]
fn memory_that_was_not_made_to_be_shared_is_not() {
    let device = model().0.create_device();
    let alone = device.create_buffer::<u8>(5).unwrap();
    assert_eq!(alone.share().err(), Some(ShareMemoryError::NotShared));
    let closed = device.create_shared_buffer::<u8>(SYSTEM, 5).unwrap();
    closed.close();
    assert_eq!(closed.share().err(), Some(ShareMemoryError::Closed));
}

/// Who opens it has as many elements, and may share it on; of a type that does not fit there is none.
///
/// Kills `an-opened-buffer-is-whole-words` and `elements-need-not-fit`.
#[test]
fn the_size_is_that_of_the_elements() {
    let (device, other) = (model().0.create_device(), model().0.create_device());
    let made = device.create_shared_buffer::<[u8; 3]>(SYSTEM, 5).unwrap();
    let memory = over_a_socket(&made.share().unwrap());
    let opened = other.open_buffer::<[u8; 3]>(&memory).unwrap();
    assert_eq!(opened.len(), 5);
    assert_eq!(other.open_buffer::<u8>(&memory).unwrap().len(), 15);
    let refused = other.open_buffer::<u16>(&memory);
    assert!(
        matches!(refused, Err(OpenBufferError::Elements(_))),
        "{refused:?}"
    );
    opened.write(4, &[[1, 2, 3]]).unwrap();
    let on = over_a_socket(&opened.share().unwrap());
    let third = device.open_buffer::<[u8; 3]>(&on).unwrap();
    assert_eq!(third.read_vec(3..).unwrap(), [[0; 3], [1, 2, 3]]);
}

/// Memory that is shared is no neighbour of other memory: who has it has a file of its own.
///
/// Kills `shared-memory-lies-beside-others`.
#[test]
fn shared_memory_lies_alone() {
    let device = model().0.create_device();
    let file = |device: &Device| {
        let memory = device.create_shared_allocation(SYSTEM, 8).unwrap();
        let (here, there) = UnixStream::pair().unwrap();
        memory.share().unwrap().send(&here).unwrap();
        let mut message = [0; 24];
        let descriptor = receive_message(&there, &mut message).unwrap();
        (memory, rustix::fs::fstat(descriptor.unwrap()).unwrap())
    };
    let (one, other) = (file(&device), file(&device));
    assert_ne!(one.1.st_ino, other.1.st_ino);
    assert_eq!(one.1.st_size.cast_unsigned(), PAGE_BYTES);
}

fn memfd(flags: MemfdFlags, bytes: u64, seals: SealFlags) -> OwnedFd {
    let flags = flags | MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let memfd = memfd_create("test", flags).unwrap();
    ftruncate(&memfd, bytes).unwrap();
    fcntl_add_seals(&memfd, seals).unwrap();
    memfd
}

fn received(
    text: &[u8],
    bytes: u64,
    descriptor: Option<&OwnedFd>,
) -> Result<SharedMemory, PassMemoryError> {
    let (here, there) = UnixStream::pair().unwrap();
    let message = [text, &bytes.to_le_bytes()].concat();
    let descriptors: Vec<_> = descriptor.map(AsFd::as_fd).into_iter().collect();
    send_descriptors(&here, &message, &descriptors).unwrap();
    SharedMemory::receive(&there)
}

/// What another process sends is looked at: it could be cut under the mappings of who takes it, be smaller than is said,
/// be written by nobody, or lie in huge pages, of which there may be none when one is touched.
///
/// Kills `unsealed-pages-are-taken`, `pages-of-any-size-are-taken`, `memory-of-no-size-is-taken`, `huge-pages-are-taken`.
#[test]
fn what_is_no_memory_is_refused() {
    let good = SealFlags::SHRINK | SealFlags::GROW;
    let usual = MemfdFlags::empty();
    let refused = |text: &[u8], bytes, descriptor: Option<&OwnedFd>, why: &str| match received(
        text, bytes, descriptor,
    ) {
        Err(PassMemoryError::NoMemory(reason)) => assert!(reason.contains(why), "{reason}"),
        other => panic!("{why}: {other:?}"),
    };
    let memory = memfd(usual, PAGE_BYTES, good);
    assert_eq!(received(TEXT, 100, Some(&memory)).unwrap().bytes(), 100);
    refused(b"native-memory 2\n", 100, Some(&memory), "another one");
    refused(TEXT, 100, None, "descriptor is missing");
    refused(TEXT, 0, Some(&memory), "its size");
    refused(TEXT, u64::MAX, Some(&memory), "its size");
    refused(TEXT, PAGE_BYTES + 1, Some(&memory), "another size");
    let open = memfd(usual, PAGE_BYTES, SealFlags::GROW);
    refused(TEXT, 100, Some(&open), "not sealed");
    let read_only = memfd(usual, PAGE_BYTES, good | SealFlags::FUTURE_WRITE);
    refused(TEXT, 100, Some(&read_only), "sealed against writing");
    let file = tempfile::tempfile().unwrap().into();
    refused(TEXT, 100, Some(&file), "no file of memory");
    let huge = MemfdFlags::HUGETLB | MemfdFlags::HUGE_2MB;
    let huge_bytes = 2 << 20;
    if memfd_create("test", huge).is_ok() {
        let huge = memfd(huge, huge_bytes, good);
        refused(TEXT, huge_bytes, Some(&huge), "a huge one");
    } else {
        println!("left out: the system makes no files of huge pages");
    }
}

/// Who sent it could seal it later, when it is open: then an engine that takes another's place could not map it.
///
/// Kills `received-memory-can-be-sealed`.
#[test]
fn received_memory_cannot_be_sealed_any_more() {
    let memory = memfd(
        MemfdFlags::empty(),
        PAGE_BYTES,
        SealFlags::SHRINK | SealFlags::GROW,
    );
    let received = received(TEXT, 64, Some(&memory)).unwrap();
    let sealed = fcntl_add_seals(&memory, SealFlags::FUTURE_WRITE);
    assert_eq!(sealed, Err(rustix::io::Errno::PERM));
    let device = model().0.create_device();
    device.open_buffer::<u64>(&received).unwrap();
}

/// Local memory is of the adapter's devices: it is opened by others of that adapter alone.
///
/// Kills `device-memory-goes-to-another-adapter`.
#[test]
fn local_memory_is_shared_within_its_adapter() {
    let open = || {
        let options = native_fence::AdapterOptions {
            memory: memory::LOCAL,
            tdr: support::engines::patient(),
            ..native_fence::AdapterOptions::default()
        };
        Adapter::open(&options).unwrap()
    };
    let (adapter, other) = (open(), open());
    let device = adapter.create_device();
    let made = device
        .create_shared_buffer::<u64>(AllocationMemory::Local, WORDS)
        .unwrap();
    let memory = made.share().unwrap();
    let opened = adapter.create_device().open_buffer::<u64>(&memory).unwrap();
    made.write(1, &[5]).unwrap();
    assert_eq!(opened.read_vec(..2).unwrap(), [0, 5]);
    let refused = other.create_device().open_allocation(&memory);
    let is_refused = matches!(
        &refused,
        Err(CreateError::Os(OsError::PassingMemory(
            PassMemoryError::DeviceMemory
        )))
    );
    assert!(is_refused, "{refused:?}");
    let (here, _there) = UnixStream::pair().unwrap();
    let sent = memory.send(&here);
    assert!(
        matches!(sent, Err(PassMemoryError::DeviceMemory)),
        "{sent:?}"
    );
}
