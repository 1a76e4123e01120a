//! How often threads of this process came to a processor, by their name.
#![allow(dead_code, reason = "each test file uses a part")]

use super::until::until;
use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

/// How often each thread of a name was put on a processor, by its folder in `/proc`.
pub(crate) fn switches(of: &str) -> BTreeMap<String, u64> {
    let mut threads = BTreeMap::new();
    for task in fs::read_dir("/proc/self/task").unwrap() {
        let path = task.unwrap().path();
        let name = fs::read_to_string(path.join("comm")).unwrap_or_default();
        if name.trim() == of {
            // One that ends meanwhile has none.
            let status = fs::read_to_string(path.join("status")).unwrap_or_default();
            let switches = status
                .lines()
                .filter_map(|line| line.split_once("ctxt_switches:"))
                .map(|(_, count)| count.trim().parse::<u64>().unwrap());
            threads.insert(path.display().to_string(), switches.sum());
        }
    }
    threads
}

/// Whether all threads of a name sleep.
pub(crate) fn all_sleep(of: &str) -> bool {
    switches(of).keys().all(|thread| {
        let stat = fs::read_to_string(format!("{thread}/stat")).unwrap_or_default();
        stat.rsplit(") ").next().unwrap().starts_with('S')
    })
}

/// Waits until the threads of a name have come to sleep: how often each had been woken by then.
pub(crate) fn until_quiet(of: &str) -> BTreeMap<String, u64> {
    let mut quiet = BTreeMap::new();
    until("threads come to sleep", || {
        let last = std::mem::replace(&mut quiet, switches(of));
        std::thread::sleep(Duration::from_millis(20));
        all_sleep(of) && last == quiet
    });
    quiet
}

/// Watches for half a second: none of those threads is woken.
///
/// # Panics
/// If one is.
pub(crate) fn stays_quiet(of: &str, what: &str) {
    let before = until_quiet(of);
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(switches(of), before, "{what}");
}
