//! Holdings: what a program has, as the kernel says.
//!
//! All of it is the whole program's: a test that looks at it runs in a process of its own.

use std::fs::{read_dir, read_to_string};

/// See the file's head.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Holdings {
    pub(crate) threads: usize,
    pub(crate) descriptors: usize,
    /// Processes that it has started and not asked about since.
    pub(crate) children: usize,
    pub(crate) mappings: usize,
    pub(crate) resident_kib: usize,
}

impl Holdings {
    pub(crate) fn now() -> Self {
        let count = |folder| read_dir(folder).unwrap().count();
        let status = read_to_string("/proc/self/status").unwrap();
        let mut lines = status.lines();
        let resident = lines.find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        let children = of_threads("children");
        Self {
            threads: count("/proc/self/task"),
            descriptors: count("/proc/self/fd"),
            children: children.iter().map(|of| of.split(' ').count() - 1).sum(),
            mappings: read_to_string("/proc/self/maps").unwrap().lines().count(),
            resident_kib: resident.trim().trim_end_matches(" kB").parse().unwrap(),
        }
    }
}

/// Whether there is a thread of this name.
pub(crate) fn has_thread(name: &str) -> bool {
    of_threads("comm")
        .iter()
        .any(|comm| comm.trim_end() == name)
}

/// A file that the kernel has of each thread; one that has ended meanwhile has none.
fn of_threads(file: &str) -> Vec<String> {
    let tasks = read_dir("/proc/self/task").unwrap();
    let files = tasks.map(|task| read_to_string(task.unwrap().path().join(file)));
    files.flatten().collect()
}
