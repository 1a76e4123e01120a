//! Limit: so many file descriptors more, and then none: the system's own refusal.

use rustix::fd::{AsRawFd, OwnedFd};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The program's limit, which is put back when this is dropped.
#[derive(Debug)]
pub(super) struct Limit(Rlimit);

impl Limit {
    /// Leaves room for so many less one: the one of this number fails, and those after it.
    pub(super) fn before(number: u64) -> rustix::io::Result<Self> {
        let usual = getrlimit(Resource::Nofile);
        let lowered = Rlimit {
            // Numbers begin at 0, and the limit is above the last.
            current: Some(highest_descriptor() + number),
            ..usual
        };
        setrlimit(Resource::Nofile, lowered)?;
        Ok(Self(usual))
    }
}

impl Drop for Limit {
    fn drop(&mut self) {
        let _ = setrlimit(Resource::Nofile, self.0);
    }
}

/// Takes the numbers that are free below the greatest one: the limit is one of numbers, and the least is given first.
pub(super) fn fill_gaps() -> rustix::io::Result<Vec<OwnedFd>> {
    let highest = highest_descriptor();
    let mut filled = Vec::new();
    loop {
        let next = rustix::io::dup(std::io::stdin())?;
        if u64::from(next.as_raw_fd().unsigned_abs()) > highest {
            return Ok(filled);
        }
        filled.push(next);
    }
}

/// How many descriptors are open; `None` where none is left to look by.
pub(super) fn open_descriptors() -> Option<u64> {
    let descriptors = std::fs::read_dir("/proc/self/fd").ok()?;
    // One is the folder's own.
    Some(descriptors.count() as u64 - 1)
}

/// The greatest number of an open descriptor, where the limit is counted from.
pub(super) fn highest_descriptor() -> u64 {
    let descriptors = std::fs::read_dir("/proc/self/fd").into_iter().flatten();
    let numbers = descriptors.flatten().filter_map(|entry| {
        let of = entry.path().read_link().ok()?;
        // The folder's own, which is closed by now.
        let is_open = !(of.starts_with("/proc") && of.ends_with("fd"));
        entry.file_name().to_str()?.parse().ok().filter(|_| is_open)
    });
    numbers.max().unwrap_or(0)
}
