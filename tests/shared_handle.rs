//! Shared handles as they come over a socket: what is no fence is refused, with a reason, and leaves
//! nothing behind.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    #[allow(clippy::duplicate_mod, reason = "a test may use engines and bench")]
    pub(crate) mod engines;
    pub(crate) mod passing;
}

use native_fence::abi::{HandleAccess, PAGE_BYTES, SharedFenceHeader};
use native_fence::shared::{receive_descriptors, send_descriptors};
use native_fence::{
    Adapter, AdapterOptions, FenceMemory, FenceOptions, PassFenceError, SharedHandle,
};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use support::engines::{memory, model, patient, shader};
use support::passing::{passed, shared};

const TEXT: &[u8] = b"native-fence 4\r\n";
const DESCRIPTORS: usize = 2;

/// The descriptors of a fence, as they are sent.
fn descriptors() -> Vec<OwnedFd> {
    let device = model().0.create_device();
    let fence = shared(&device, 7);
    let (here, there) = UnixStream::pair().unwrap();
    fence.share().unwrap().send(&here).unwrap();
    receive_descriptors(&there, TEXT, DESCRIPTORS, false).unwrap()
}

fn received(text: &[u8], descriptors: &[OwnedFd]) -> Result<SharedHandle, PassFenceError> {
    let (here, there) = UnixStream::pair().unwrap();
    let borrowed: Vec<_> = descriptors.iter().map(AsFd::as_fd).collect();
    send_descriptors(&here, text, &borrowed).unwrap();
    drop(here);
    SharedHandle::receive(&there)
}

/// Received and refused; the sentence says what is wrong.
fn refused(descriptors: &[OwnedFd], why: &str) {
    match received(TEXT, descriptors) {
        Err(error @ PassFenceError::NoFence(_)) => {
            assert!(error.to_string().contains(why), "{error}");
        }
        other => panic!("{why}: {other:?}"),
    }
}

fn memfd(bytes: u64, seals: SealFlags) -> OwnedFd {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let memfd = memfd_create("test", flags).unwrap();
    ftruncate(&memfd, bytes).unwrap();
    fcntl_add_seals(&memfd, seals).unwrap();
    memfd
}

/// A page that could be cut under its mappings, a page of another size, something that is no file of
/// memory, and one page for both: each is refused.
///
/// Kills `unsealed-pages-are-taken`, `pages-of-any-size-are-taken`.
#[test]
fn what_is_no_page_is_refused() {
    let good = SealFlags::SHRINK | SealFlags::GROW;
    assert!(received(TEXT, &descriptors()).is_ok());
    for page in [0, 1] {
        let mut sent = descriptors();
        sent[page] = memfd(PAGE_BYTES, SealFlags::GROW);
        refused(&sent, "not sealed");
        sent[page] = memfd(2 * PAGE_BYTES, good);
        refused(&sent, "another size");
        sent[page] = memfd(PAGE_BYTES, good | SealFlags::FUTURE_WRITE);
        refused(&sent, "sealed against writing");
        sent[page] = tempfile::tempfile().unwrap().into();
        refused(&sent, "no file of memory");
    }
}

/// NF-03: one file for both pages would have the user read MonitoredValues, also where the page says that
/// it is so. A message has two files and nothing else, so nothing by which who has it can hold another up.
///
/// Kills `one-file-is-taken-for-both-pages`.
#[test]
fn nf_03_one_file_for_both_pages_is_refused() {
    let mut sent = descriptors();
    let page = std::fs::File::from(sent[1].try_clone().unwrap());
    let mut header = SharedFenceHeader::new(0, (0, 0), 0);
    let bytes = bytemuck::bytes_of_mut(&mut header);
    page.read_exact_at(bytes, SharedFenceHeader::OFFSET)
        .unwrap();
    header.current_file = header.monitored_file;
    let bytes = bytemuck::bytes_of(&header);
    page.write_all_at(bytes, SharedFenceHeader::OFFSET).unwrap();
    sent[0] = sent[1].try_clone().unwrap();
    refused(&sent, "one file was sent for both pages");
}

/// NF-30: the page says what it is; one of another version, of another fence, with rights that no fence
/// has, of processes that have other ids here, or that says nothing, is refused.
///
/// Kills `any-version-is-taken`, `pages-of-two-fences-are-taken`, `any-access-is-taken`,
/// `any-pid-namespace-is-taken`.
#[test]
fn nf_30_a_page_that_does_not_describe_the_fence_is_refused() {
    let refused_with = |change: &dyn Fn(&mut SharedFenceHeader), why: &str| {
        let sent = descriptors();
        let page = std::fs::File::from(sent[1].try_clone().unwrap());
        let mut header = SharedFenceHeader::new(0, (0, 0), 0);
        let bytes = bytemuck::bytes_of_mut(&mut header);
        page.read_exact_at(bytes, SharedFenceHeader::OFFSET)
            .unwrap();
        change(&mut header);
        let bytes = bytemuck::bytes_of(&header);
        page.write_all_at(bytes, SharedFenceHeader::OFFSET).unwrap();
        refused(&sent, why);
    };
    refused_with(&|header| header.magic += 1, "does not say that it is one");
    refused_with(&|header| header.version += 1, "another version");
    refused_with(&|header| header.slots += 1, "not of one fence");
    refused_with(&|header| header.current_file += 1, "not of one fence");
    refused_with(&|header| header.pid_namespace += 1, "PID namespace");
    let denied = u64::from(HandleAccess::NO_SIGNAL.0 | HandleAccess::NO_WAIT.0);
    refused_with(&|header| header.access = denied, "access");
    refused_with(&|header| header.access |= 1 << 40, "access");
    refused_with(
        &|header| header.keeps_value_on_tdr = 2,
        "neither of the two",
    );
    let (mut sent, other) = (descriptors(), descriptors());
    sent[0] = other[0].try_clone().unwrap();
    refused(&sent, "not of one fence");
    let mut sent = descriptors();
    sent.swap(0, 1);
    refused(&sent, "does not say that it is one");
}

/// Another message, too few or too many descriptors, or none at all is no handle; what came is
/// closed again.
///
/// Kills `the-text-is-not-read`, `descriptors-are-not-counted`.
#[test]
fn another_message_is_no_handle() {
    let sent = descriptors();
    let open = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let before = open();
    let other = |result: Result<SharedHandle, PassFenceError>| {
        assert!(
            matches!(result, Err(PassFenceError::Message(_))),
            "{result:?}"
        );
    };
    other(received(b"native-fence 1\r\n", &sent));
    other(received(b"native", &sent));
    other(received(TEXT, &sent[..DESCRIPTORS - 1]));
    let mut more: Vec<_> = sent.iter().map(|fd| fd.try_clone().unwrap()).collect();
    more.push(sent[1].try_clone().unwrap());
    other(received(TEXT, &more));
    drop(more);
    let (mut here, there) = UnixStream::pair().unwrap();
    here.write_all(TEXT).unwrap();
    other(SharedHandle::receive(&there));
    drop(here);
    other(SharedHandle::receive(&there));
    drop(there);
    assert_eq!(open(), before, "what was refused is closed");
}

/// NF-02, NF-03: what another system gets as the user's view is CurrentValue's page, for reading alone; the
/// pages of MonitoredValues are mapped for the OS and engines only.
///
/// Kills `the-received-view-can-be-written`.
#[test]
fn nf_02_the_view_of_another_system_is_read_only() {
    let device = model().0.create_device();
    let fence = shared(&device, 7);
    let other = model().0.create_device();
    let opened = other.open_fence(&passed(&fence)).unwrap();
    let address = opened.current_value_address().unwrap().addr();
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let line = maps
        .lines()
        .find(|line| {
            let (range, _) = line.split_once(' ').unwrap();
            let (start, end) = range.split_once('-').unwrap();
            let number = |hex| usize::from_str_radix(hex, 16).unwrap();
            (number(start)..number(end)).contains(&address)
        })
        .unwrap();
    assert_eq!(line.split_whitespace().nth(1), Some("r--s"), "{line}");
    assert!(line.contains("fence-cv"), "{line}");
}

/// NF-12: a fence in local memory is shared within its adapter, and not sent to another process: its
/// memory is the device's.
///
/// Kills `device-memory-is-sent`.
#[test]
fn nf_12_a_fence_in_local_memory_is_not_sent() {
    if shader().is_none() {
        return;
    }
    let adapter = Adapter::open(&AdapterOptions {
        memory: memory::LOCAL,
        tdr: patient(),
        ..AdapterOptions::default()
    });
    let adapter = adapter.unwrap();
    let device = adapter.create_device();
    let options = FenceOptions {
        memory: FenceMemory::Local,
        shared: true,
        ..FenceOptions::default()
    };
    let fence = device.create_fence_with(options).unwrap();
    let (here, _there) = UnixStream::pair().unwrap();
    let refused = fence.share().unwrap().send(&here).unwrap_err();
    assert!(matches!(refused, PassFenceError::DeviceMemory));
    let other = adapter.create_device();
    assert!(other.open_fence(&fence.share().unwrap()).is_ok());
}
