//! Where the values of a native fence lie, and who may touch them: seen in `/proc/self/maps`.
//!
//! The shader engine on a Vulkan device and the model engine are asked the same. All of it is about
//! system memory of the host's; `local_memory` is about the other kinds, so where the suite is run over
//! one of those (`NFENCE_TEST_MEMORY`) these tests say so and are left out.
#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "support/engines.rs"]
mod engines;
#[path = "support/until.rs"]
mod until;

use engines::memory::is_usual;
use engines::{on_every_engine, shader};
use native_fence::abi::{Home, PAGE_BYTES};
use native_fence::shared::{Block, Region};
use native_fence::{CommandList, Device, Fence};
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;
use until::LONG;

/// One line of `/proc/self/maps`.
#[derive(Clone, Debug)]
struct MapsLine {
    start: u64,
    end: u64,
    rights: String,
    offset: u64,
    inode: u64,
    name: String,
}

fn maps() -> Vec<MapsLine> {
    std::fs::read_to_string("/proc/self/maps")
        .unwrap()
        .lines()
        .map(|line| {
            let mut words = line.split_whitespace();
            let mut word = || words.next().unwrap_or_default().to_owned();
            let (range, rights, offset) = (word(), word(), word());
            let (_device, inode, name) = (word(), word(), word());
            let hex = |digits: &str| u64::from_str_radix(digits, 16).unwrap();
            let (start, end) = range.split_once('-').unwrap();
            MapsLine {
                start: hex(start),
                end: hex(end),
                rights,
                offset: hex(&offset),
                inode: inode.parse().unwrap(),
                name,
            }
        })
        .collect()
}

fn mapping_at(address: u64) -> MapsLine {
    let mut lines = maps().into_iter();
    lines
        .find(|line| (line.start..line.end).contains(&address))
        .unwrap()
}

fn inode(region: &Arc<Region>) -> u64 {
    rustix::fs::fstat(region.descriptor().unwrap())
        .unwrap()
        .st_ino
}

fn user_address(fence: &Fence) -> u64 {
    fence.current_value_address().unwrap() as u64
}

/// Region and byte offset of CurrentValue, then of MonitoredValue.
fn places(fence: &Fence) -> [(Arc<Region>, u64); 2] {
    let native = fence.object().fence();
    let own = |(region, offset): (&Arc<Region>, u64)| (Arc::clone(region), offset);
    [
        own(native.current_value_place()),
        own(native.monitored_value_place()),
    ]
}

fn page(place: &(Arc<Region>, u64)) -> (u64, u64) {
    (inode(&place.0), place.1 / PAGE_BYTES)
}

fn nothing_from_validation() {
    assert_eq!(
        native_fence::vulkan::validation::messages(),
        Vec::<String>::new()
    );
}

fn fences(device: &Device, count: usize) -> Vec<Fence> {
    (0..count)
        .map(|_| device.create_fence(0).unwrap())
        .collect()
}

/// NF-02: the user's mapping of CurrentValue is shared and read-only in the page tables, and the
/// values that API and engine store are seen through it.
///
/// Mutants: `user-mapping-is-writable`.
#[test]
fn nf_02_user_mapping_is_read_only() {
    if !is_usual() {
        return;
    }
    on_every_engine(|adapter| {
        let device = adapter.create_device();
        let fence = device.create_fence(3).unwrap();
        let mut queue = device.create_hw_queue().unwrap();
        let line = mapping_at(user_address(&fence));
        assert_eq!(line.rights, "r--s", "{line:?}");
        let [(region, offset), _] = places(&fence);
        assert_eq!(line.inode, inode(&region), "it is the fence's own storage");
        assert_eq!(
            user_address(&fence) - line.start + line.offset,
            offset,
            "and the place of its CurrentValue"
        );
        fence.signal(4).unwrap();
        assert_eq!(fence.current_value(), 4, "signalled through the API");
        queue.submit(CommandList::new().signal(&fence, 5)).unwrap();
        fence.wait(5, LONG).unwrap();
        assert_eq!(fence.current_value(), 5, "signalled by the engine");
    });
    nothing_from_validation();
}

const SIGSEGV: i32 = 11;

/// Set in the child process that is to die of its store.
const CHILD: &str = "NFENCE_TEST_STORE_THROUGH_USER_MAPPING";

/// NF-02: a store through the user's mapping faults. A child process stores there and dies.
///
/// Mutants: `user-mapping-is-writable`.
#[test]
fn nf_02_a_store_through_the_user_mapping_faults() {
    if !is_usual() {
        return;
    }
    if std::env::var_os(CHILD).is_some() {
        store_through_the_user_mapping();
        return;
    }
    if shader().is_none() {
        return;
    }
    let name = "nf_02_a_store_through_the_user_mapping_faults";
    let output = Command::new(std::env::current_exe().unwrap())
        .args([name, "--exact", "--nocapture"])
        .env(CHILD, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("about to store"), "it came that far: {said}");
    assert!(!said.contains("stored"), "the store went through: {said}");
    assert_eq!(output.status.signal(), Some(SIGSEGV), "{said}");
    nothing_from_validation();
}

fn store_through_the_user_mapping() {
    let device = shader().unwrap().create_device();
    let fence = device.create_fence(1).unwrap();
    println!("about to store over {}", fence.current_value());
    let word = fence.current_value_address().unwrap().cast_mut();
    // SAFETY: the address is mapped and aligned; that the store is not allowed is what the test
    // wants to see, and this process ends by it.
    unsafe { word.write_volatile(2) };
    println!("stored");
}

/// NF-03: MonitoredValue has no user mapping: each mapping of its memory is the OS's or an
/// engine's, whose mappings can be written, and the one kind that is made for users cannot. No page
/// holds both a CurrentValue and a MonitoredValue. What engines do leaves MonitoredValue alone.
///
/// A program is given no pointer to MonitoredValue: `Fence` has `current_value_address` alone.
///
/// Open: a store by a user's own shader through the raw address, which needs user kernels; that
/// the GPU's address of MonitoredValue is handed out for reading, which has no call yet.
///
/// Mutants: `mv-is-mapped-for-users`, `engine-stores-the-monitored-value`.
#[test]
fn nf_03_monitored_value_has_no_user_mapping() {
    if !is_usual() {
        return;
    }
    on_every_engine(|adapter| {
        let device = adapter.create_device();
        let fences = fences(&device, 5);
        let mut queue = device.create_hw_queue().unwrap();
        let of_users: Vec<u64> = fences
            .iter()
            .map(|fence| mapping_at(user_address(fence)).inode)
            .collect();
        let mut mv_inodes = Vec::new();
        for fence in &fences {
            let [cv, mv] = places(fence);
            assert!(!Arc::ptr_eq(&cv.0, &mv.0));
            assert_ne!(page(&cv), page(&mv));
            assert!(!of_users.contains(&inode(&mv.0)), "users map it");
            mv_inodes.push(inode(&mv.0));
        }
        let lines = maps();
        let of_mv = |line: &&MapsLine| mv_inodes.contains(&line.inode);
        assert!(lines.iter().filter(of_mv).count() > 0, "the OS maps it");
        for line in lines.iter().filter(of_mv) {
            assert!(line.name.contains("memfd:fence-mv"), "{line:?}");
            assert_eq!(line.rights, "rw-s", "a user's mapping: {line:?}");
        }
        for line in &lines {
            assert!(
                !line.name.contains("memfd:fence-mv") || line.rights == "rw-s",
                "a user's mapping: {line:?}"
            );
        }

        let mut list = CommandList::new();
        for fence in &fences {
            list.signal(fence, 7).wait(fence, 7);
        }
        let value = queue.submit(&list).unwrap();
        queue.progress_fence().wait(value, LONG).unwrap();
        for fence in &fences {
            let [_, (region, offset)] = places(fence);
            let mv = Block::whole(&region.map().unwrap());
            assert_eq!(mv.word(offset).observe(), u64::MAX);
        }
    });
    nothing_from_validation();
}

/// NF-11: CurrentValue and MonitoredValue of a fence are at separate places; fences of one process
/// that cannot be shared stand in one page, at the strides of the caps; fences of two processes
/// share none.
///
/// Open: shareable fences, which have pages of their own and come with sharing.
///
/// Mutants: `cv-stride-is-not-the-caps`, `processes-share-a-page`.
#[test]
fn nf_11_fences_are_packed_at_the_strides() {
    on_every_engine(|adapter| {
        let caps = adapter.os().ddi().native_fence_caps();
        let strides = [
            u64::from(caps.current_value_stride),
            u64::from(caps.published.monitored_value_stride),
        ];
        assert_eq!(strides[0], strides[1], "choice: the same stride");
        let in_a_page = (PAGE_BYTES / strides[0]) as usize;
        let (one, other) = (adapter.create_device(), adapter.create_device());
        // By turns, so that a common pool would mix them.
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..in_a_page {
            ours.append(&mut fences(&one, 1));
            theirs.append(&mut fences(&other, 1));
        }
        for kind in [0, 1] {
            let offsets = |fences: &[Fence]| -> Vec<u64> {
                let mut offsets: Vec<u64> =
                    fences.iter().map(|fence| places(fence)[kind].1).collect();
                offsets.sort_unstable();
                offsets
            };
            for fences in [&ours, &theirs] {
                let offsets = offsets(fences);
                for pair in offsets.windows(2) {
                    assert_eq!(pair[1] - pair[0], strides[kind], "{offsets:?}");
                }
                let mut pages: Vec<_> = fences.iter().map(|f| page(&places(f)[kind])).collect();
                pages.dedup();
                assert_eq!(pages.len(), 1, "a page full of fences is one page");
            }
            assert_ne!(
                page(&places(&ours[0])[kind]),
                page(&places(&theirs[0])[kind])
            );
        }
        // Neighbours keep their own values, whoever stores.
        let mut queue = one.create_hw_queue().unwrap();
        let mut list = CommandList::new();
        for (i, fence) in ours.iter().enumerate().step_by(2) {
            list.signal(fence, 1000 + i as u64);
        }
        let done = queue.submit(&list).unwrap();
        for (i, fence) in ours.iter().enumerate().skip(1).step_by(2) {
            fence.signal(1000 + i as u64).unwrap();
        }
        queue.progress_fence().wait(done, LONG).unwrap();
        for (i, fence) in ours.iter().enumerate() {
            assert_eq!(fence.current_value(), 1000 + i as u64);
        }
        assert!(theirs.iter().all(|fence| fence.current_value() == 0));
    });
    nothing_from_validation();
}

/// NF-12: a DEFAULT fence lies in system memory: it says so, and its storage is a file of memory
/// that this process maps, in which CPU and GPU store the same words.
///
/// DEFAULT in local memory, on request, is in `local_memory`, INTRA_GPU in `intra_gpu`. Open:
/// cross-adapter fences.
///
/// Mutants: `home-is-not-what-the-region-is`.
#[test]
fn nf_12_default_is_in_system_memory() {
    if !is_usual() {
        return;
    }
    on_every_engine(|adapter| {
        let device = adapter.create_device();
        let fence = device.create_fence(0).unwrap();
        let native = fence.object().fence();
        assert_eq!(native.memory(), (Home::CachedSystem, Home::CachedSystem));
        let lines = maps();
        for (place, name) in places(&fence).iter().zip(["fence-cv", "fence-mv"]) {
            let of_place: Vec<&MapsLine> = lines
                .iter()
                .filter(|line| line.inode == inode(&place.0))
                .collect();
            assert!(!of_place.is_empty(), "{name} is mapped here");
            for line in of_place {
                assert!(line.name.contains(&format!("memfd:{name}")), "{line:?}");
            }
        }
        // The allocation is the memory in use: what the engine stores is in the file.
        let [(region, offset), _] = places(&fence);
        let fresh = Block::whole(&region.map().unwrap());
        let mut queue = device.create_hw_queue().unwrap();
        queue.submit(CommandList::new().signal(&fence, 9)).unwrap();
        fence.wait(9, LONG).unwrap();
        assert_eq!(fresh.word(offset).observe(), 9, "stored by the engine");
        fence.signal(10).unwrap();
        assert_eq!(fresh.word(offset).observe(), 10, "stored by the CPU");
        fence.wait(10, Duration::ZERO).unwrap();
    });
    nothing_from_validation();
}
