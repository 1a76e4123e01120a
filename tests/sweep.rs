//! `nfence sweep`: each call that can fail is among those that it has fail, what comes of a fault is judged as it should
//! be, and a run that goes wrong is found.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod rust_source;
}

use assert_cmd::Command;
use assert_cmd::cargo::cargo_bin_cmd;
use native_fence::sweep::{Outcome, Planned, Played, Told, judge, judge_by};
use native_fence::vulkan::faults::VulkanCall;
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::Duration;
use support::rust_source::Source;

/// Beginnings of the names of ash's functions.
const BEGINNINGS: [&str; 18] = [
    "create_",
    "allocate_",
    "map_",
    "bind_",
    "get_",
    "enumerate_",
    "try_enumerate_",
    "queue_",
    "device_wait_",
    "wait_",
    "signal_",
    "begin_",
    "end_",
    "reset_",
    "import_",
    "invalidate_",
    "flush_",
    "merge_",
];

/// Those that cannot fail, and names of others that are called where Vulkan is.
const CANNOT_FAIL: [&str; 12] = [
    "get_physical_device_properties",
    "get_physical_device_properties2",
    "get_physical_device_features2",
    "get_physical_device_memory_properties",
    "get_physical_device_queue_family_properties",
    "get_physical_device_external_buffer_properties",
    "get_device_queue",
    "get_buffer_memory_requirements",
    "get_buffer_memory_requirements2",
    "get_buffer_device_address",
    "get_device_proc_addr",
    // A window's.
    "queue_present",
];

/// As the name of a command is compared: without its vendor, in small letters.
fn compared(name: &str) -> String {
    let name = name.trim_start_matches("try_").trim_end_matches("_ext");
    let name = name.replace('_', "").to_lowercase();
    let name = name.strip_prefix("vk").unwrap_or(&name);
    name.trim_end_matches("ext")
        .trim_end_matches("khr")
        .to_owned()
}

/// Names that are called in the code's `unsafe` blocks.
fn called_unsafely(code: &str) -> BTreeSet<String> {
    let mut called = BTreeSet::new();
    for (at, _) in code.match_indices("unsafe {") {
        let block = &code[at..];
        let mut depth = 0;
        let end = block.find(|c| {
            depth += i32::from(c == '{') - i32::from(c == '}');
            c == '}' && depth == 0
        });
        for part in block[..end.unwrap()].split('.').skip(1) {
            let is_word = |c: char| c.is_alphanumeric() || c == '_';
            let (name, rest) = part.split_at(part.find(|c| !is_word(c)).unwrap_or(part.len()));
            if rest.trim_start_matches(')').trim_start().starts_with('(') {
                called.insert(name.to_owned());
            }
        }
    }
    called
}

/// Every command of Vulkan's that is called in this crate and can fail is made to fail. A window's are not: the story opens
/// none.
///
/// Kills `a-call-has-no-shim`.
#[test]
fn every_call_that_can_fail_is_made_to_fail() {
    let known: BTreeSet<_> = VulkanCall::ALL
        .iter()
        .map(|call| compared(call.name()))
        .collect();
    let mut found = 0;
    for source in Source::all() {
        let is_other = ["vulkan/present/", "vulkan/faults/"];
        let is_other = is_other
            .iter()
            .any(|folder| source.path.starts_with(folder));
        if source.room() != Some("vulkan") || is_other {
            continue;
        }
        for name in called_unsafely(&source.code) {
            let is_ash = BEGINNINGS
                .iter()
                .any(|beginning| name.starts_with(beginning));
            if !is_ash || CANNOT_FAIL.contains(&name.as_str()) {
                continue;
            }
            let path = &source.path;
            assert!(
                known.contains(&compared(&name)),
                "{path}: {name} is not made to fail"
            );
            found += 1;
        }
    }
    assert!(found >= 25, "{found} calls: the sources are read wrongly");
}

/// Every mapping of shared memory, and file for one, is asked of what may refuse it, and so is every thread.
///
/// Kills `a-mapping-is-not-asked-for`.
#[test]
fn every_mapping_and_thread_is_made_to_fail() {
    // What only says that no descriptor was left.
    const TRIED: &str = "vulkan/exporter.rs";
    let rooms = ["shared", "vulkan", "gpu", "kmd", "os", "umd", "beside"];
    let mut found = 0;
    for source in Source::all() {
        let (path, code) = (&source.path, &source.code);
        let code = code.split("#[cfg(test)]").next().unwrap_or_default();
        if !source.room().is_some_and(|room| rooms.contains(&room)) {
            continue;
        }
        assert!(
            !code.contains("thread::Builder") && !code.contains("thread::spawn("),
            "{path}: a thread is not made to fail"
        );
        let calls = ["mm::mmap(", "memfd_create(", "ftruncate("];
        let made: usize = calls.iter().map(|call| code.matches(call).count()).sum();
        if path != TRIED {
            let asked = code.matches("MAPPINGS.ask").count();
            assert_eq!(made, asked, "{path}: a mapping is not made to fail");
            found += made;
        }
    }
    assert!(found >= 4, "{found} calls: the sources are read wrongly");
}

fn told(error: &str) -> Vec<Told> {
    let step = String::from("a buffer");
    let error = String::from(error);
    vec![Told { step, error }]
}

fn fault(name: &str) -> Planned {
    name.parse().unwrap()
}

/// What came of a fault is well with an error that names the call, or where it is known why none needs to; and never with a
/// waiter that hangs, with something left behind, or with another adapter that stands.
///
/// Kills `a-story-that-resets-no-adapter-is-well`, `an-error-without-the-call-is-well`, `a-leak-is-well`, `another-adapter-may-stand`, `a-hung-waiter-is-well`,
/// `any-thread-may-fail-in-silence`, `a-recovery-may-be-missing`, `an-error-of-threads-names-nothing`,
/// `an-error-of-descriptors-names-nothing`, `any-call-wants-a-descriptor`, `what-was-tried-again-need-not-go-on`,
/// `what-lasts-is-called-again`.
#[test]
fn what_came_of_a_fault_is_judged() {
    let fault_of = fault("vkCreateBuffer#1=VK_ERROR_OUT_OF_HOST_MEMORY");
    let well = Played {
        struck: true,
        told: told("the device has no memory (vkCreateBuffer)"),
        ..Played::default()
    };
    assert!(matches!(judge(fault_of, &well), Outcome::Told(why) if why.contains("vkCreateBuffer")));
    let resets = |resets_adapter| Played {
        resets_adapter,
        ..Played::default()
    };
    let without_a_fault = |played: &Played| judge(Planned::Nothing, played);
    assert!(matches!(
        without_a_fault(&resets(true)),
        Outcome::Survived(_)
    ));
    assert!(matches!(
        without_a_fault(&resets(false)),
        Outcome::Failed(_)
    ));
    let is_failed = |played: &Played, what: &str| match judge(fault_of, played) {
        Outcome::Failed(why) => assert!(why.contains(what), "{why}"),
        other => panic!("{what}: {other:?}"),
    };
    let unnamed = Played {
        told: told("no memory"),
        ..well.clone()
    };
    is_failed(&unnamed, "no error names the call");
    is_failed(
        &Played {
            told: Vec::new(),
            ..well.clone()
        },
        "nobody was told",
    );
    is_failed(
        &Played {
            left: vec!["threads: 2".into()],
            ..well.clone()
        },
        "threads: 2",
    );
    is_failed(
        &Played {
            hung: vec!["a future".into()],
            ..well.clone()
        },
        "a future",
    );
    is_failed(
        &Played {
            struck: false,
            ..well.clone()
        },
        "without a fault",
    );
    let stands = told("the wait timed out").pop();
    is_failed(
        &Played {
            others: stands,
            ..well.clone()
        },
        "other adapter",
    );
    let announced = Played {
        told: Vec::new(),
        announced: vec!["vulkan-local is passed over: vkCreateBuffer answered".into()],
        ..well.clone()
    };
    assert!(matches!(judge(fault_of, &announced), Outcome::Survived(_)));
    let nothing = Played {
        struck: false,
        told: Vec::new(),
        ..well.clone()
    };
    assert_eq!(judge(fault_of, &nothing), Outcome::NotReached);
    let silent = Played {
        told: Vec::new(),
        ..well
    };
    let on = |thread: &str| Played {
        struck_on: Some(thread.into()),
        ..silent.clone()
    };
    assert!(matches!(
        judge(fault_of, &on("nf-spare")),
        Outcome::Survived(_)
    ));
    // What a spare starts is for it.
    assert!(matches!(
        judge(fault("threads#1"), &on("nf-spare/nf-link")),
        Outcome::Survived(_)
    ));
    // Another engine cuts it off again, and tells; what is kept of a kernel disturbs nobody; and an engine that was
    // given up is ended later.
    for what in ["main/cut-off", "main/kernels", "nf-tdr/nf-reaper"] {
        assert!(matches!(
            judge(fault("mappings#1"), &on(what)),
            Outcome::Survived(_)
        ));
    }
    // Another spare took the place; the thread that sees to that is nobody's spare.
    assert!(matches!(
        judge(fault("mappings#1"), &on("nf-tdr/hw-queue-progress")),
        Outcome::Survived(_)
    ));
    is_failed(&on("main/nf-tdr"), "on main");
    is_failed(&on("main/handle-table"), "on main");
    is_failed(&on("main"), "on main");
    let again = fault("vkQueueSubmit#1=VK_ERROR_OUT_OF_HOST_MEMORY");
    assert!(matches!(judge(again, &silent), Outcome::Survived(why) if why.contains("again")));
    // It lasts, or says nothing of memory: then it does not help to call again, and the device is given up.
    for lasts in [
        "vkQueueSubmit#1+=VK_ERROR_OUT_OF_HOST_MEMORY",
        "vkQueueSubmit#1=VK_ERROR_UNKNOWN",
        "vkQueueSubmit#1:done=VK_ERROR_UNKNOWN",
    ] {
        let silent = judge(fault(lasts), &silent);
        assert!(matches!(silent, Outcome::Survived(why) if why.contains("lost device")));
    }
    let refused = told("no memory (vkCreateBuffer)");
    let tried_again = Played {
        tried_again: refused.first().cloned(),
        told: refused,
        ..silent.clone()
    };
    assert!(matches!(judge(fault_of, &tried_again), Outcome::Told(_)));
    let refused_again = Played {
        told: [told("no memory (vkCreateBuffer)"), told("it is stopped")].concat(),
        ..tried_again
    };
    is_failed(&refused_again, "it is stopped");
    for (planned, said, names) in [
        (
            "mappings#1",
            "cannot map 4096 bytes (mmap): no memory",
            true,
        ),
        ("mappings#1", "no memory (vkAllocateMemory)", false),
        ("threads#1", "no thread (pthread_create)", true),
        ("threads#1", "no thread", false),
    ] {
        let played = Played {
            told: told(said),
            ..silent.clone()
        };
        let outcome = judge(fault(planned), &played);
        assert_eq!(matches!(outcome, Outcome::Told(_)), names, "{said}");
    }
    for (said, names) in [
        ("no descriptor is left: raise ulimit -n", true),
        ("no Vulkan driver answers (vkCreateInstance)", true),
        ("no Vulkan driver answers: install one", false),
        ("no layout is to be had (vkCreatePipelineLayout)", false),
        ("the Vulkan device is lost (vkQueueSubmit)", false),
    ] {
        let played = Played {
            told: told(said),
            ..silent.clone()
        };
        let outcome = judge(fault("descriptors#1"), &played);
        assert_eq!(matches!(outcome, Outcome::Told(_)), names, "{said}");
    }
}

/// An error is named by itself, or by what the adapter that it is of says beside it: what another one has said of the fault
/// does not explain it.
///
/// Kills `another-adapter-names-an-error`.
#[test]
fn an_error_is_not_explained_by_what_another_adapter_says() {
    let fault = fault("vkQueueSubmit#9+=VK_ERROR_OUT_OF_HOST_MEMORY");
    let said = || vec![String::from("the engine of node 0 was lost, and was reset")];
    let elsewhere = Played {
        struck: true,
        told: told("it stored another sum"),
        announced: said(),
        ..Played::default()
    };
    let outcome = judge(fault, &elsewhere);
    assert!(matches!(outcome, Outcome::Failed(why) if why.contains("no error names the call")));
    let beside = Played {
        announced_with_errors: said(),
        ..elsewhere.clone()
    };
    assert!(matches!(judge(fault, &beside), Outcome::Told(_)));
    let untold = Played {
        told: Vec::new(),
        ..elsewhere
    };
    assert!(matches!(judge(fault, &untold), Outcome::Survived(why) if why == said()[0]));
}

/// A call that every engine needs and that fails for good from early on is told; one that waits for what is in flight loses no
/// device, and silence has another reason.
///
/// Kills `what-no-engine-can-do-without-fails-in-silence`, `a-wait-for-all-loses-a-device`.
#[test]
fn a_fault_that_lasts_is_silent_where_nobody_needs_the_call() {
    let uses = ["vkQueueSubmit", "vkWaitSemaphores", "vkQueueWaitIdle"];
    let counted = Played {
        uses: uses.map(|call| (call.to_owned(), 8)).into(),
        ..Played::default()
    };
    let silent = Played {
        struck: true,
        ..Played::default()
    };
    let outcome = |name: &str| judge_by(fault(name), &silent, &counted);
    for name in [
        "vkQueueSubmit#2+=VK_ERROR_UNKNOWN",
        "vkWaitSemaphores#1+=VK_ERROR_OUT_OF_HOST_MEMORY",
    ] {
        let told = outcome(name);
        assert!(matches!(told, Outcome::Failed(why) if why.contains("nobody was told")));
    }
    // All may have been done before; or another engine does it, which has what this one has not.
    for name in [
        "vkQueueSubmit#3+=VK_ERROR_UNKNOWN",
        "vkQueueSubmit#1=VK_ERROR_UNKNOWN",
        "vkQueueSubmit#1=lost",
    ] {
        let told = outcome(name);
        assert!(matches!(told, Outcome::Survived(why) if why.contains("lost device")));
    }
    for name in [
        "vkQueueWaitIdle#1+=VK_ERROR_OUT_OF_HOST_MEMORY",
        "vkQueueWaitIdle#1=VK_ERROR_UNKNOWN",
        "vkDeviceWaitIdle#1=VK_ERROR_UNKNOWN",
    ] {
        let told = outcome(name);
        assert!(matches!(told, Outcome::Survived(why) if why.contains("in another way")));
    }
    let lost = outcome("vkQueueWaitIdle#1=lost");
    assert!(matches!(lost, Outcome::Survived(why) if why.contains("lost device")));
}

/// A fault at a use that every run comes to has struck, or nothing was tried.
///
/// Kills `a-sweep-that-strikes-nothing-is-well`.
#[test]
fn a_fault_that_never_strikes_has_failed() {
    let uses = [("vkCreateBuffer".to_owned(), 9)].into();
    let counted = Played {
        uses,
        ..Played::default()
    };
    let outcome = |at: u64| {
        let name = format!("vkCreateBuffer#{at}=VK_ERROR_OUT_OF_HOST_MEMORY");
        judge_by(fault(&name), &Played::default(), &counted)
    };
    assert!(matches!(outcome(1), Outcome::Failed(why) if why.contains("not struck")));
    assert_eq!(outcome(9), Outcome::NotReached);
}

fn sweep(arguments: &[&str]) -> Command {
    let mut command = cargo_bin_cmd!("nfence");
    command.arg("sweep").args(arguments);
    if let Some(driver) = std::env::var_os("NFENCE_REQUIRE_DEVICE") {
        let name = if driver == "lavapipe" {
            "llvmpipe".into()
        } else {
            driver
        };
        command.arg("--device").arg(name);
    }
    command.env_remove("NFENCE_VALIDATION");
    command.timeout(Duration::from_secs(170));
    command
}

/// What was found, as JSON and as text.
fn found(command: &mut Command, code: i32) -> (Value, String) {
    let output = command.args(["--json", "-"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{said}");
    let json = serde_json::from_slice(&output.stdout);
    (json.unwrap_or_else(|error| panic!("{error}: {said}")), said)
}

/// Seconds that a run may take on a machine that has much else to do.
const PATIENT: [&str; 2] = ["--limit", "120"];

/// Faults of several kinds in processes of their own: those that are told of by name where they were silent or nameless
/// once, two of calls that the story needs a clock and a layer for, one that is survived, one of descriptors from the story's begin and from a chapter's, of mappings and of
/// threads, one of a lost device.
///
/// Kills `a-fault-strikes-one-use-late`, `a-pool-is-refused-without-a-name`, `what-is-not-said-is-absent`,
/// `a-mapping-is-refused-without-a-name`, `a-refused-thread-is-started`, `a-chapter-has-no-limit`,
/// `the-story-notes-no-time`, `the-story-looks-for-no-layers`, `released-and-nobody-told`,
/// `the-storys-own-loss-is-announced`, `the-storys-own-reset-is-announced`, `the-story-has-doorbells-enough`, `the-story-resets-no-adapter`,
/// `a-fence-for-engines-alone-is-any-fence`, `a-program-enrols-nothing`.
#[test]
fn faults_end_as_they_should() {
    let faults = [
        (
            "vkCreateCommandPool#1=VK_ERROR_OUT_OF_DEVICE_MEMORY",
            "told",
        ),
        (
            "vkEnumerateDeviceExtensionProperties#1=VK_ERROR_OUT_OF_HOST_MEMORY",
            "told",
        ),
        (
            "vkEnumerateInstanceVersion#1=VK_ERROR_OUT_OF_HOST_MEMORY",
            "told",
        ),
        ("vkQueueWaitIdle#1=VK_ERROR_OUT_OF_HOST_MEMORY", "survived"),
        ("vkCreateDevice#1=lost", "told"),
        ("descriptors#2", "told"),
        ("descriptors:bridge#1", "told"),
        ("descriptors:suspension#1", "told"),
        ("descriptors:second-process#1", "told"),
        ("descriptors:program#1", "told"),
        ("descriptors:intra-gpu#1", "told"),
        ("descriptors:few-doorbells#1", "told"),
        ("descriptors:recovery#1", "told"),
        ("descriptors:paging#1", "told"),
        ("mappings#1", "told"),
        ("threads#1", "told"),
        ("vkCreateQueryPool#1=VK_ERROR_OUT_OF_DEVICE_MEMORY", "told"),
        (
            "vkEnumerateInstanceLayerProperties#1=VK_ERROR_OUT_OF_HOST_MEMORY",
            "told",
        ),
    ];
    let mut arguments = Vec::new();
    for (fault, _) in faults {
        arguments.extend(["--play", fault]);
    }
    let (found, _) = found(sweep(&arguments).args(PATIENT), 0);
    assert_eq!(found["schema"], 1);
    let runs = found["runs"].as_array().unwrap();
    assert_eq!(runs.len(), faults.len());
    for (fault, outcome) in faults {
        let run = runs.iter().find(|run| run["fault"] == fault).unwrap();
        assert_eq!(run["outcome"], outcome, "{run}");
        assert_eq!(run["played"]["struck"], true, "{run}");
        if fault.starts_with("vkEnumerateInstanceVersion") {
            let uses = &run["played"]["uses"]["vkEnumerateInstanceVersion"];
            assert_eq!(*uses, 1, "the first use is the one that fails");
        }
        if outcome == "survived" {
            // The story goes to its end, and has lost engines: what is said of those names no fault.
            assert_eq!(run["played"]["resets_adapter"], true, "{run}");
            let announced = run["played"]["announced"].to_string();
            for of_loss in ["device is lost", "was lost", "was reset"] {
                assert!(!announced.contains(of_loss), "{announced}");
            }
        }
    }
    let calls = found["calls"].as_array().unwrap();
    let sum = |column: &str| {
        calls
            .iter()
            .map(|row| row[column].as_u64().unwrap())
            .sum::<u64>()
    };
    assert_eq!(
        (sum("runs"), sum("told"), sum("survived"), sum("failed")),
        (18, 17, 1, 0)
    );
}

/// Threads that the recovery of an engine asks for are refused: that of a spare, that of its interrupts, and that which ends
/// the engine before it; and one that an adapter's reset asks for, of a spare's interrupts. Their numbers go up where the
/// story comes to have more threads before them.
///
/// Kills `the-story-loses-no-engine`.
#[test]
fn a_recovery_goes_without_a_thread() {
    let numbers = [20, 21, 22, 27].map(|at| format!("threads#{at}"));
    let mut arguments = Vec::new();
    for number in &numbers {
        arguments.extend(["--play", number]);
    }
    let (found, _) = found(sweep(&arguments).args(PATIENT), 0);
    let runs = found["runs"].as_array().unwrap();
    let struck = runs.iter().map(|run| run["played"]["struck_on"].as_str());
    let mut struck: Vec<_> = struck.map(Option::unwrap_or_default).collect();
    struck.sort_unstable();
    let of_interrupts = "nf-tdr/nf-irq-0";
    let due = [
        of_interrupts,
        of_interrupts,
        "nf-tdr/nf-reaper",
        "nf-tdr/nf-spare",
    ];
    assert_eq!(struck, due, "{found}");
}

/// A run that hangs, is silent, leaves something behind, panics, or holds up others is a failure, with what plays it again.
///
/// Kills `what-is-left-is-not-looked-at`, `a-run-has-no-limit`.
#[test]
fn a_run_that_goes_wrong_is_found() {
    let fault = "vkCreateInstance#1=VK_ERROR_OUT_OF_HOST_MEMORY";
    for (hook, why) in [
        ("hang", "it did not end within"),
        ("silent", "nobody was told"),
        ("leak", "eventfd"),
        ("panic", "it panicked"),
        ("others", "the other adapter does not go on"),
    ] {
        let mut command = sweep(&["--play", fault]);
        if hook == "hang" {
            command.args(["--limit", "30"]);
        }
        let (found, text) = found(command.env("NFENCE_SWEEP_HOOK", hook), 1);
        let run = &found["runs"][0];
        assert_eq!(run["outcome"], "failed", "{run}");
        assert!(run["why"].as_str().unwrap().contains(why), "{run}");
        let again = format!("nfence sweep --play '{fault}'");
        assert!(text.contains(&again), "{text}");
        assert!(text.contains("1 failed"), "{text}");
    }
}

/// A sweep of a use that no run comes to has tried nothing, and says so.
///
/// Kills `a-row-that-nothing-struck-is-well`.
#[test]
fn a_run_that_goes_wrong_by_striking_nothing_is_found() {
    let fault = "vkCreateInstance#1000000=VK_ERROR_OUT_OF_HOST_MEMORY";
    let (found, text) = found(sweep(&["--play", fault]).args(PATIENT), 1);
    assert_eq!(found["runs"][0]["outcome"], "not_reached", "{found}");
    assert_eq!(found["not_struck"][0], "vkCreateInstance", "{found}");
    assert!(text.contains("nothing was struck"), "{text}");
}

#[test]
fn the_calls_are_listed_and_others_are_refused() {
    let mut list = cargo_bin_cmd!("nfence");
    let output = list.args(["sweep", "--list"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success());
    for name in [
        "vkAllocateMemory",
        "VK_ERROR_TOO_MANY_OBJECTS",
        "descriptors",
        "descriptors:bridge",
        "mappings",
        "threads",
        "lost",
        "VK_ERROR_OUT_OF_HOST_MEMORY from then on",
        "VK_ERROR_UNKNOWN when it is done",
    ] {
        assert!(text.contains(name), "{name}: {text}");
    }
    for arguments in [
        &["--call", "vkDance"][..],
        &["--play", "vkCreateBuffer#0=VK_ERROR_OUT_OF_HOST_MEMORY"],
        &["--play", "nonsense"],
        &["--most-uses", "0"],
        &["--play", "descriptors#1", "--most-uses", "2"],
        &["--play", "descriptors#1", "--list"],
    ] {
        let mut refused = cargo_bin_cmd!("nfence");
        let output = refused.arg("sweep").args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    }
}
