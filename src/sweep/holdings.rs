//! Holdings: what a process has that a fault might leave behind.

use crate::gpu::STARTER_THREAD;
use crate::vulkan::faults::{Kind, faults};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{read_dir, read_link, read_to_string};

/// See the file's head.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holdings {
    /// Threads, but the one that starts engines' processes.
    pub threads: u64,
    /// Their names, which a thread that has only begun does not have yet.
    pub names: BTreeSet<String>,
    /// Processes that it has started and that have not ended, or that nobody has waited for since, by name.
    pub children: BTreeMap<String, u64>,
    /// Open descriptors, by what they are of.
    pub descriptors: BTreeMap<String, u64>,
    /// Mappings of shared memory, by name.
    pub mappings: BTreeMap<String, u64>,
    /// Vulkan's objects of the adapters that have faults, by kind.
    pub objects: BTreeMap<String, u64>,
}

impl Holdings {
    /// The process's.
    pub(super) fn now() -> Self {
        let tasks = entries("/proc/self/task");
        let names = tasks.filter_map(|task| read_to_string(task.join("comm")).ok());
        let names = names.map(|name| name.trim_end().to_owned());
        // There is one, from the first engine's process to the end of this one.
        let names: Vec<_> = names.filter(|name| name != STARTER_THREAD).collect();
        // `/proc/self/task/*/children` may miss one while others end.
        let processes = entries("/proc").filter_map(|of| read_to_string(of.join("stat")).ok());
        let children = processes.filter_map(|stat| child_of(std::process::id(), &stat));
        let descriptors = entries("/proc/self/fd").filter_map(|fd| read_link(fd).ok());
        let maps = read_to_string("/proc/self/maps").unwrap_or_default();
        let shared = maps
            .lines()
            .filter_map(|line| Some(&line[line.find("/memfd:")?..]));
        let alive = Kind::ALL.map(|kind| (format!("{kind:?}"), faults().alive(kind)));
        Self {
            threads: names.len() as u64,
            names: names.into_iter().collect(),
            children: counted(children),
            descriptors: counted(descriptors.map(|of| without_number(&of.to_string_lossy()))),
            mappings: counted(shared.map(without_number)),
            objects: alive.into_iter().filter(|(_, count)| *count > 0).collect(),
        }
    }

    /// What there is more than `before`, in words.
    pub(super) fn more_than(&self, before: &Self) -> Vec<String> {
        let kinds = [
            ("child process", &self.children, &before.children),
            ("descriptor", &self.descriptors, &before.descriptors),
            ("mapping", &self.mappings, &before.mappings),
            ("Vulkan object", &self.objects, &before.objects),
        ];
        let mut more = Vec::new();
        if self.threads > before.threads {
            let names: Vec<_> = self.names.iter().map(String::as_str).collect();
            let (now, before, names) = (self.threads, before.threads, names.join(", "));
            more.push(format!("threads: {now}, was {before} ({names})"));
        }
        for (kind, now, before) in kinds {
            for (name, count) in now {
                let had = before.get(name).copied().unwrap_or(0);
                if *count > had {
                    more.push(format!("{kind} {name}: {count}, was {had}"));
                }
            }
        }
        more
    }
}

fn entries(folder: &str) -> impl Iterator<Item = std::path::PathBuf> {
    let entries = read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path())
}

/// What `/proc/PID/stat` says of a process: its name, if it is a child of this one.
fn child_of(parent: u32, stat: &str) -> Option<String> {
    // The name may have brackets and blanks.
    let (of, rest) = stat.rsplit_once(')')?;
    let (_, name) = of.split_once('(')?;
    let is_child = rest.split_whitespace().nth(1)?.parse() == Ok(parent);
    is_child.then(|| name.to_owned())
}

/// Sockets and pipes have numbers of their own.
fn without_number(name: &str) -> String {
    name.split([':', '('])
        .take(2)
        .map(|part| part.trim_end_matches(|c: char| c.is_ascii_digit() || "[] ".contains(c)))
        .collect::<Vec<_>>()
        .join(":")
}

fn counted(names: impl Iterator<Item = String>) -> BTreeMap<String, u64> {
    let mut counted = BTreeMap::new();
    for name in names {
        *counted.entry(name).or_default() += 1;
    }
    counted
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn what_there_is_more_is_named() {
        let before = Holdings {
            threads: 1,
            ..Holdings::default()
        };
        let now = Holdings {
            threads: 2,
            names: ["engine".to_owned()].into(),
            children: [("nfence".to_owned(), 1)].into(),
            objects: [("Buffer".to_owned(), 1)].into(),
            ..Holdings::default()
        };
        let more = [
            "threads: 2, was 1 (engine)",
            "child process nfence: 1, was 0",
            "Vulkan object Buffer: 1, was 0",
        ];
        assert_eq!(now.more_than(&before), more);
        assert!(before.more_than(&now).is_empty());
    }

    #[test]
    fn a_child_is_known_by_its_parent_until_it_was_waited_for() {
        let stat = "8 (a) (b) S 7 8 8 0";
        assert_eq!(child_of(7, stat).as_deref(), Some("a) (b"));
        assert_eq!(child_of(8, stat), None);
        // Nobody has waited for it, whether or not it has ended; its name may still be that of this program.
        let mut child = Command::new("true").spawn().unwrap();
        let stat = format!("/proc/{}/stat", child.id());
        let stat = read_to_string(stat).unwrap();
        assert!(child_of(std::process::id(), &stat).is_some(), "{stat}");
        child.wait().unwrap();
    }

    #[test]
    fn numbers_of_sockets_do_not_tell_them_apart() {
        assert_eq!(
            without_number("socket:[123]"),
            without_number("socket:[45]")
        );
        assert_eq!(without_number("/memfd:rings (deleted)"), "/memfd:rings");
    }
}
