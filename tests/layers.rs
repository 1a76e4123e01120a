//! Which room may name which, and what only some of them may say. A room is a folder under `src`;
//! its mod.rs tells what it is.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod rust_source;
}

use std::collections::BTreeSet;

use support::rust_source::{Source, source};

/// What a room may name besides itself and [`DOORWAYS`].
const ROOMS: &[(&str, &[&str])] = &[
    ("abi", &[]),
    ("shared", &[]),
    ("vulkan", &["shared"]),
    ("gpu", &["abi", "shared", "vulkan"]),
    ("kmd", &["abi", "shared", "gpu"]),
    ("os", &["abi", "shared", "kmd", "trace"]),
    ("umd", &["abi", "shared", "os"]),
    ("beside", &["os", "vulkan", PUBLIC]),
    ("trace", &["abi"]),
    ("workload", &["umd", "trace", PUBLIC]),
    ("capi", &["abi", "os", "umd", "vulkan", PUBLIC]),
    // Asks what the others stand on, by their own words: the log's reader, what the engines ask of host stores.
    ("litmus", &["abi", "shared", "vulkan", "gpu", "os", "trace"]),
    // Asks a driver what it does, through what a program links, and sees what passes between it and the OS.
    (
        "conform",
        &[
            "abi", "shared", "vulkan", "gpu", "kmd", "os", "umd", "trace", PUBLIC,
        ],
    ),
    // Asks the engines to their limits, and hangs them: opens adapters of models and of devices.
    (
        "soak",
        &["abi", "vulkan", "gpu", "kmd", "os", "umd", PUBLIC],
    ),
    // A story through what a program links, on adapters whose Vulkan calls fail.
    ("sweep", &["gpu", "vulkan", "umd", "beside", PUBLIC]),
    ("report", &["trace", "workload"]),
    ("viewer", &["trace", "report", PUBLIC]),
    ("window", &["beside", "trace", "viewer", "vulkan", PUBLIC]),
    (
        "cli",
        &[
            "vulkan", "gpu", "kmd", "os", "umd", "trace", "workload", "litmus", "conform", "soak",
            "sweep", "report", "viewer", "window", PUBLIC,
        ],
    ),
];

/// Root files that all but `abi` may name: the way to atomics, locks and threads, and the one to mappings and threads that may
/// be had to be refused.
const DOORWAYS: &[&str] = &["sync", "supply"];

/// What the crate shows at its root: what a program names.
const PUBLIC: &str = "the public names";

/// Files that may name one room more, and why.
const EXCEPTIONS: &[(&str, &str, &str)] = &[
    (
        "shared/region.rs",
        "abi",
        "size of a page, placement of words; abi names nothing",
    ),
    (
        "shared/mapping.rs",
        "abi",
        "size of a page, as in region.rs",
    ),
    (
        "shared/explored.rs",
        "abi",
        "which words of which group loom explores",
    ),
    (
        "shared/pool.rs",
        "abi",
        "placement of words, as in region.rs",
    ),
    (
        "shared/provider.rs",
        "abi",
        "for which words memory is made",
    ),
    (
        "shared/providers.rs",
        "abi",
        "placement of words, by which memory is chosen",
    ),
    (
        "vulkan/exporter.rs",
        "abi",
        "a provider of shared memory, as in shared/provider.rs",
    ),
    (
        "vulkan/memory_providers.rs",
        "abi",
        "makes a page of words to try a provider",
    ),
    (
        "workload/timeline/",
        "vulkan",
        "comparator: the same work with timeline semaphores",
    ),
    (
        "workload/bare/",
        "vulkan",
        "comparator: the same work with two words and nothing else",
    ),
    ("workload/bare/", "shared", "those two words"),
    (
        "workload/queue_copy.rs",
        "shared",
        "memory that a program would have",
    ),
    (
        "workload/queue_copy.rs",
        "vulkan",
        "the comparators' devices copy it",
    ),
    ("workload/work.rs", "shared", "as queue_copy.rs"),
    (
        "workload/native/work_kernel.rs",
        "vulkan",
        "the kernels' shaders, which stand beside the comparators'",
    ),
    (
        "cli/apart.rs",
        "shared",
        "binds a process of the program's own to its life",
    ),
    (
        "sweep/story/recovery.rs",
        "soak",
        "the work of a queue whose engine is lost, and what becomes of it",
    ),
    (
        "sweep/story/own_loss.rs",
        "os",
        "what the OS notes of an engine that the story has lost itself",
    ),
    (
        "sweep/story/paging.rs",
        "os",
        "the OS's own device, whose packets page, is no program's",
    ),
    ("cli/sweep/child.rs", "shared", "as apart.rs"),
    ("cli/sweep/peer.rs", "shared", "as apart.rs"),
    (
        "workload/work.rs",
        "vulkan",
        "the kernel, which the comparators' devices run as well",
    ),
    (
        "workload/program.rs",
        "vulkan",
        "what a program of plain Vulkan has, which the comparators make anew",
    ),
    ("workload/program.rs", "shared", "its memory"),
    (
        "workload/program.rs",
        "gpu",
        "the kernel that hangs, the same for all mechanisms",
    ),
    (
        "workload/trial.rs",
        "gpu",
        "how long a kernel is, the same for all mechanisms",
    ),
    (
        "workload/native/reset.rs",
        "gpu",
        "puts a loss and a kernel in an engine's way",
    ),
    (
        "workload/monitored/",
        "vulkan",
        "comparator: the same work with monitored fences, which the CPU holds",
    ),
    (
        "workload/monitored/",
        "shared",
        "the memory of those fences' values",
    ),
    (
        "workload/bench.rs",
        "vulkan",
        "opens the comparators' device beside the adapter",
    ),
    ("workload/group.rs", "vulkan", "says what a device lacks"),
    (
        "report/device.rs",
        "vulkan",
        "says what the device says of itself",
    ),
];

/// Files at the root of `src`. The adapter, with the place where it is opened, puts the rooms together and may
/// name all of them.
const ROOT_FILES: &[&str] = &[
    "adapter.rs",
    "lib.rs",
    "made_driver.rs",
    "main.rs",
    "place.rs",
    "supply.rs",
    "sync.rs",
];

/// Rooms that may contain `unsafe`.
const UNSAFE_ROOMS: &[&str] = &["shared", "vulkan", "capi"];

/// Where atomics are named without `sync.rs`, and why loom need not take their place there.
const OWN_ATOMICS: &[(&str, &str)] = &[
    ("sync.rs", "the doorway itself"),
    (
        "vulkan/compute_pipeline.rs",
        "a counter that numbers pipelines",
    ),
    ("cli/interrupt.rs", "a flag that a signal handler sets"),
];

fn is_of(source: &Source, path: &str) -> bool {
    source.path == path || (path.ends_with('/') && source.path.starts_with(path))
}

/// Names that `source` may not name, each with its line.
fn trespasses(source: &Source) -> Vec<String> {
    let Some(room) = source.room() else {
        return Vec::new();
    };
    let Some((_, allowed)) = ROOMS.iter().find(|(name, _)| *name == room) else {
        return vec![format!("{}: room {room} is not in the table", source.path)];
    };
    let may = |name: &str| {
        let is_room = ROOMS.iter().any(|(other, _)| *other == name);
        let is_public = !is_room && name != "adapter" && allowed.contains(&PUBLIC);
        let is_excepted = EXCEPTIONS
            .iter()
            .any(|(path, other, _)| is_of(source, path) && *other == name);
        let is_doorway = DOORWAYS.contains(&name) && room != "abi";
        name == room || is_doorway || allowed.contains(&name) || is_public || is_excepted
    };
    let names = source.root_names();
    let refused = names.iter().filter(|(_, name)| !may(name));
    let complain = |(line, name): &(usize, String)| {
        format!("{}:{line}: room {room} names {name}", source.path)
    };
    refused.map(complain).collect()
}

/// Ways around `crate::`: out of the room by `super`, or by another name for the crate.
fn detours(source: &Source) -> Vec<String> {
    // From a file of the room the first `super` is the room; tests inside of it have one more.
    let depth = source.path.matches('/').count();
    let too_far = "super::".repeat(depth + 2);
    let words = source.words().filter(|(_, word, rest)| {
        rest.starts_with("extern crate") || (*word == "super" && rest.starts_with(&too_far))
    });
    words
        .map(|(line, word, _)| format!("{}:{line}: {word}", source.path))
        .collect()
}

fn refuse(complaints: &[String]) {
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

#[test]
fn a_room_names_only_the_rooms_that_it_may() {
    let found: Vec<_> = Source::all().iter().flat_map(trespasses).collect();
    refuse(&found);
}

#[test]
fn every_exception_is_one() {
    let sources = Source::all();
    for (path, room, _) in EXCEPTIONS {
        let mut files = sources.iter().filter(|source| is_of(source, path));
        let names = |source: &Source| source.root_names().iter().any(|(_, name)| name == room);
        assert!(files.any(names), "{path} does not name {room} any more");
    }
    for (path, _) in OWN_ATOMICS {
        let there = sources.iter().any(|source| source.path == *path);
        assert!(there, "{path} is not there any more");
    }
}

#[test]
fn no_room_is_left_by_a_side_door() {
    let sources = Source::all();
    let rooms = sources.iter().filter(|source| source.room().is_some());
    refuse(&rooms.flat_map(detours).collect::<Vec<_>>());
}

#[test]
fn only_known_files_lie_outside_of_the_rooms() {
    let sources = Source::all();
    let at_root = sources.iter().filter(|source| source.room().is_none());
    let found: BTreeSet<&str> = at_root.map(|source| source.path.as_str()).collect();
    assert_eq!(found, ROOT_FILES.iter().copied().collect());
}

/// The OS calls the driver by its trait, so that another driver can take its place.
#[test]
fn the_os_does_not_know_the_driver() {
    let sources = Source::all();
    let os = sources.iter().filter(|source| source.room() == Some("os"));
    let named = os.flat_map(|source| {
        // What follows the room's name in one statement.
        let uses = source.words().filter(|(_, _, rest)| {
            let statement = rest.split([';', '(']).next().unwrap_or_default();
            let is_word = |c: char| c.is_alphanumeric() || c == '_';
            rest.starts_with("kmd::")
                && statement
                    .split(|c| !is_word(c))
                    .any(|word| word == "Driver")
        });
        uses.map(|(line, _, _)| format!("{}:{line}: Driver", source.path))
    });
    refuse(&named.collect::<Vec<_>>());
}

#[test]
fn only_three_rooms_are_unsafe() {
    let mut complaints = Vec::new();
    for source in Source::all() {
        if source
            .room()
            .is_some_and(|room| UNSAFE_ROOMS.contains(&room))
        {
            continue;
        }
        let unsafes = source.words().filter(|(_, word, _)| *word == "unsafe");
        complaints.extend(unsafes.map(|(line, _, _)| format!("{}:{line}: unsafe", source.path)));
        let is_head = source
            .room()
            .is_some_and(|room| source.path == format!("{room}/mod.rs"));
        if is_head && !source.code.contains("#![forbid(unsafe_code)]") {
            complaints.push(format!("{}: no #![forbid(unsafe_code)]", source.path));
        }
    }
    refuse(&complaints);
}

#[test]
fn one_room_says_vk() {
    let mut complaints = Vec::new();
    for source in Source::all() {
        if source.room() == Some("vulkan") {
            continue;
        }
        let names = source.words().filter(|(_, word, rest)| {
            ["vk::", "ash::"]
                .iter()
                .any(|n| *word == n.trim_end_matches(':') && rest.starts_with(n))
        });
        complaints.extend(names.map(|(line, word, _)| format!("{}:{line}: {word}", source.path)));
    }
    refuse(&complaints);
}

#[test]
fn atomics_come_through_one_door() {
    let is_atomic = |source: &Source| {
        let mut words = source.words();
        words.any(|(_, word, rest)| {
            let path = matches!(word, "std" | "core")
                .then(|| rest.split_once("::").map(|(_, path)| path))
                .flatten();
            let grouped = path.is_some_and(|p| {
                p.starts_with("sync::{")
                    && p.split(';')
                        .next()
                        .is_some_and(|group| group.contains("atomic"))
            });
            grouped || path.is_some_and(|p| p.starts_with("sync::atomic"))
        })
    };
    let sources = Source::all();
    let others = sources
        .iter()
        .filter(|source| OWN_ATOMICS.iter().all(|(path, _)| *path != source.path));
    let complaints = others
        .filter(|source| is_atomic(source))
        .map(|source| format!("{}: std::sync::atomic", source.path));
    refuse(&complaints.collect::<Vec<_>>());
}

/// The walker, by sources that break each rule.
#[test]
fn a_source_that_trespasses_is_found() {
    let found = |path: &str, text: &str| trespasses(&source(path, text));
    assert_eq!(
        found("os/x.rs", "use crate::abi;\nuse crate::gpu::Node;"),
        ["os/x.rs:2: room os names gpu"]
    );
    assert_eq!(
        found("kmd/x.rs", "use crate::{abi::{A, B}, os, gpu::Node};"),
        ["kmd/x.rs:1: room kmd names os"]
    );
    assert_eq!(found("abi/x.rs", "crate::sync::lock(x)").len(), 1);
    assert_eq!(found("gpu/x.rs", "crate::Adapter::open()").len(), 1);
    assert_eq!(found("attic/x.rs", "").len(), 1);
    assert_eq!(
        found("workload/x.rs", "use crate::{Adapter, umd, adapter};").len(),
        1
    );
    assert_eq!(found("workload/x.rs", "use crate::vulkan;").len(), 1);
    let none: [&str; 0] = [];
    assert_eq!(found("workload/bare/x.rs", "use crate::vulkan;"), none);
    let quoted = "//! crate::os\n/* crate::os */ fn f<'a>() { (\"crate::os\", r#\"\"crate::os\"#, '\"', \
                  '\\'', \"\\\"crate::os\"); }";
    assert_eq!(found("kmd/x.rs", quoted), none);
    assert_eq!(detours(&source("os/x.rs", "use super::super::X;")), none);
    assert_eq!(
        detours(&source("os/x.rs", "use super::super::super::gpu;")).len(),
        1
    );
    assert_eq!(
        detours(&source("os/x.rs", "extern crate self as me;")).len(),
        1
    );
}
