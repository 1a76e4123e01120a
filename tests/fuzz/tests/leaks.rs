//! A thousand inputs of what starts threads and passes descriptors leave none of them behind, and no page mapped. In a
//! program of its own: others have threads and descriptors meanwhile.

mod support {
    pub(crate) mod random_bytes;
}

use native_fence::conform::until;
use nfence_fuzz::{from_bytes, peers, request};
use support::random_bytes::fill;

/// What a program has of the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Holdings {
    descriptors: usize,
    threads: usize,
    /// Mappings of files of memory.
    pages: usize,
}

impl Holdings {
    fn now() -> Self {
        let entries = |folder: &str| std::fs::read_dir(folder).expect("/proc is mounted").count();
        let maps = std::fs::read_to_string("/proc/self/maps").expect("/proc is mounted");
        Self {
            descriptors: entries("/proc/self/fd"),
            threads: entries("/proc/self/task"),
            pages: maps.lines().filter(|line| line.contains("/memfd:")).count(),
        }
    }

    fn are_within(self, most: Self) -> bool {
        self.descriptors <= most.descriptors
            && self.threads <= most.threads
            && self.pages <= most.pages
    }
}

fn play(inputs: std::ops::Range<u64>) {
    let mut bytes = vec![0; 4096];
    for input in inputs {
        fill(input, &mut bytes);
        if let Some(program) = from_bytes::<peers::Program>(&bytes) {
            let _ = program.play();
        }
        if let Some(program) = from_bytes::<request::Program>(&bytes) {
            let _ = program.play();
        }
    }
}

#[test]
fn a_thousand_inputs_leave_nothing_behind() {
    // What a process has once is no leak.
    play(1000..1010);
    let before = Holdings::now();
    play(0..1000);
    // Threads that are on their way out have a while.
    let mut now = Holdings::now();
    let is_back = until("all is as it was", || {
        now = Holdings::now();
        now.are_within(before)
    });
    assert!(is_back.is_ok(), "{before:?} before, {now:?} after");
}
