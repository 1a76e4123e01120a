//! What holds the order of the engine in place. No validation layer follows accesses by device
//! address, and a CPU driver forgives nearly everything; so the shipped SPIR-V is read.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod shader_text;
    pub(crate) mod spirv;
}

use std::collections::BTreeSet;

use native_fence::vulkan::shaders;
use support::shader_text::{Event, Kind, ShaderText};
use support::spirv::{Barrier, Module, memory_access, scope, semantics};

const SLICE: &str = "run_slice";
const STEPS: &str = "step_rounds";
const FINISH: &str = "finish_signals";

/// Between the parts of an iteration.
const MEETING: Barrier = Barrier {
    execution: Some(scope::WORKGROUP),
    memory: scope::WORKGROUP,
    semantics: semantics::ACQUIRE_RELEASE | semantics::UNIFORM_MEMORY | semantics::WORKGROUP_MEMORY,
};

/// Between the log index of a signal and its comparison.
const LOG_BARRIER: Barrier = Barrier {
    execution: None,
    memory: scope::DEVICE,
    semantics: semantics::ACQUIRE_RELEASE | semantics::UNIFORM_MEMORY,
};

/// Of a lane before and after its share of a transfer.
const SHARE: [Barrier; 2] = [
    Barrier {
        execution: None,
        memory: scope::DEVICE,
        semantics: semantics::ACQUIRE | semantics::UNIFORM_MEMORY | semantics::MAKE_VISIBLE,
    },
    Barrier {
        execution: None,
        memory: scope::DEVICE,
        semantics: semantics::RELEASE | semantics::UNIFORM_MEMORY | semantics::MAKE_AVAILABLE,
    },
];

const READ_INDEX: &str = "QueueProgress.read_index";
const RELEASE: u64 = semantics::RELEASE | semantics::UNIFORM_MEMORY;
const ACQUIRE: u64 = semantics::ACQUIRE | semantics::UNIFORM_MEMORY;

fn engines() -> impl Iterator<Item = (&'static str, Module<'static>)> {
    let engines = shaders::ALL
        .iter()
        .filter(|shader| shader.name.starts_with("engine"));
    engines.map(|shader| (shader.name, Module::new(shader.words)))
}

/// Runs `hold` on what each shipped engine does to memory.
fn in_every_engine(hold: impl Fn(&ShaderText<'_>)) {
    assert!(engines().next().is_some(), "an engine is shipped");
    for (name, module) in engines() {
        println!("{name}");
        hold(&ShaderText::new(module));
    }
}

fn places(events: &[Event], wanted: impl Fn(&Event) -> bool) -> Vec<usize> {
    let those = events.iter().enumerate().filter(|(_, event)| wanted(event));
    those.map(|(place, _)| place).collect()
}

/// Kills `engine-meets-for-shared-memory-only`, `engine-meets-once-an-iteration`, `engine-meets-in-the-subgroup`
/// (`decisions.md` 2) and `a-queue-is-loaded-while-its-dispatch-is-marked`.
#[test]
fn lanes_meet_around_each_execution_and_after_each_part() {
    for (name, module) in engines() {
        for barrier in module.control_barriers() {
            assert_eq!(barrier, MEETING, "{name}");
        }
    }
    in_every_engine(|text| {
        let events = text.of(SLICE);
        let meetings = places(&events, |e| e.kind == Kind::ControlBarrier);
        let [hearing, begin, first, part, second] = meetings[..] else {
            panic!("a slice meets twice at its begin, and an iteration three times: {meetings:?}");
        };
        // Lane 0 says which numbers come next before any lane takes one.
        let takes = places(&events, |e| e.is(Kind::Modify, "s_taken"));
        assert!(!takes.is_empty() && takes.iter().all(|at| hearing < *at));
        let begins = places(&events, |e| e.function == "begin_hearing");
        assert!(!begins.is_empty() && begins.iter().all(|at| *at < hearing));
        // What a round before released is marked as done by one lane, and loaded by another.
        let marks = places(&events, |e| e.is(Kind::Store, "QueueState.transferred"));
        assert!(marks.iter().any(|at| *at < begin));
        let loads = places(&events, |e| e.is(Kind::Load, "QueueState.transferred"));
        assert!(!loads.is_empty() && loads.iter().all(|at| begin < *at));
        let adopts = places(&events, |e| {
            e.is(Kind::Load, "FenceEntry.monitored_value_va") && e.function != "disarm"
        });
        assert!(!adopts.is_empty() && adopts.iter().all(|at| *at < first));
        for what in ["LogHeader.index", "QueueProgress.read_index"] {
            let steps = places(&events, |e| e.is(Kind::Store, what));
            assert!(!steps.is_empty(), "{what}");
            // What a kernel signalled is logged before its dispatch is marked as done.
            let is_of_step = |at: &usize| part < *at && *at < second;
            let is_of_kernel = |at: &usize| *at < begin && what == "LogHeader.index";
            assert!(
                steps.iter().all(|at| is_of_step(at) || is_of_kernel(at)),
                "{what}"
            );
        }
        // Records of lanes are stored before lane 0 publishes their index, after the meeting.
        let raises = places(&events, |e| e.is(Kind::Modify, "s_raised"));
        assert!(!raises.is_empty() && raises.iter().all(|at| part < *at && *at < second));
        // A part's job is written before the lanes do it, and they have done it before it counts.
        // (Those of a dispatch are read in the execution.)
        let read = places(&events, |e| e.is(Kind::Load, "Packet.destination_offset"));
        assert!(read.iter().any(|at| *at < first));
        assert!(
            read.iter()
                .all(|at| *at < first || part < *at && *at < second)
        );
        let done = places(&events, |e| e.is(Kind::Modify, "s_job_shares"));
        assert!(!done.is_empty() && done.iter().all(|at| first < *at && *at < part));
    });
}

/// Kills `engine-signals-without-a-barrier`, `engine-orders-its-log-relaxed` (LG-05),
/// `engine-transfers-without-a-barrier` and `engine-dispatches-without-a-barrier`.
#[test]
fn lg_05_a_signal_has_one_memory_barrier_and_a_share_of_a_transfer_its_two() {
    for (name, module) in engines() {
        let barriers = [LOG_BARRIER, SHARE[0], SHARE[1]];
        assert_eq!(module.memory_barriers(), barriers, "{name}");
    }
    in_every_engine(|text| {
        let barriers =
            |events: Vec<Event>| places(&events, |e| e.kind == Kind::MemoryBarrier).len();
        let steps = text.of(STEPS);
        let signals = places(&steps, |e| e.is(Kind::Store, "Word.value")).len();
        let others = places(&steps, |e| e.is(Kind::Store, READ_INDEX)).len();
        assert_eq!(barriers(steps), signals + others);
        let part = text.of("do_part");
        let meeting = places(&part, |e| e.kind == Kind::ControlBarrier)[0];
        let shares = places(&part, |e| e.kind == Kind::MemoryBarrier);
        assert_eq!(shares.len(), 2, "before and after the share");
        assert!(shares.iter().all(|at| *at < meeting), "before it counts");
        // A dispatch's parameters and counts are seen as they were stored before.
        let dispatch = text.of("prepare_dispatch");
        let sees = places(&dispatch, |e| e.kind == Kind::MemoryBarrier);
        assert_eq!(sees.len(), 1, "before they are copied");
        // A kernel's signal has one, as a packet's.
        let kernels = barriers(text.of(FINISH));
        assert_eq!(kernels, 1);
        assert_eq!(
            barriers(text.of(STEPS)) + shares.len() + sees.len() + kernels,
            barriers(text.of(SLICE))
        );
    });
}

/// Behind the comparison of a signal the one barrier of its step is done. Of a step without one it stands before the
/// read index, which follows the log's index: so the entry that is logged next is not seen before that (LG-06).
///
/// Kills `wait-without-barrier`.
#[test]
fn lg_06_a_step_that_signals_nothing_has_a_barrier_before_its_read_index() {
    in_every_engine(|text| {
        let events = text.of(STEPS);
        let barriers = places(&events, |e| e.kind == Kind::MemoryBarrier);
        let signals = places(&events, |e| e.is(Kind::Store, "Word.value"));
        let steps = places(&events, |e| e.is(Kind::Store, READ_INDEX));
        assert_eq!(barriers.len(), signals.len() + steps.len());
        for step in steps {
            let last = events[..step]
                .iter()
                .rposition(|e| e.kind == Kind::MemoryBarrier || e.structure() == "LogHeader");
            assert!(last.is_some_and(|at| events[at].kind == Kind::MemoryBarrier));
        }
    });
}

/// Kills `engine-logs-before-the-value`, `engine-publishes-the-index-before-the-entry` and
/// `engine-signals-without-a-barrier` (IN-01).
#[test]
fn in_01_a_signal_stores_value_entry_index_and_then_the_barrier() {
    in_every_engine(|text| {
        let events = text.of(STEPS);
        let values = places(&events, |e| e.is(Kind::Store, "Word.value"));
        assert!(!values.is_empty());
        for (turn, start) in values.iter().enumerate() {
            let end = values.get(turn + 1).copied().unwrap_or(events.len());
            let mut kinds: Vec<&str> = events[*start..end]
                .iter()
                .filter_map(|event| match (event.kind, event.structure()) {
                    (Kind::Store, "Word") => Some("value"),
                    (Kind::Store, "CrossDoorbellLine") => Some("ring"),
                    (Kind::Store, "LogEntry") => Some("entry"),
                    (Kind::Store, "LogHeader") => Some("index"),
                    (Kind::MemoryBarrier, _) => Some("barrier"),
                    _ => None,
                })
                .collect();
            kinds.dedup();
            // Who waits on another adapter looks when it was rung (XA-10).
            assert_eq!(kinds, ["value", "ring", "entry", "index", "barrier"]);
        }
        // The read index says that all of it was done.
        let last = events.iter().rposition(|e| {
            matches!(e.kind, Kind::MemoryBarrier)
                || matches!(e.structure(), "LogEntry" | "LogHeader")
        });
        let reads = places(&events, |e| e.is(Kind::Store, "QueueProgress.read_index"));
        assert!(!reads.is_empty() && reads.iter().all(|at| Some(*at) > last));
    });
}

/// Of a kernel's signal the engine does the rest in that order, whose CurrentValue the kernel has stored, and then says
/// where the log goes on, before the dispatch is done; the comparison is with the shadow of that time, and the lanes
/// meet before lane 0 adopts.
///
/// Kills `engine-compares-before-a-kernels-entry` and `engine-finishes-signals-after-the-mark`.
#[test]
fn in_01_a_kernels_signal_is_logged_and_then_compared() {
    in_every_engine(|text| {
        let events = text.of("begin_round");
        let mut order: Vec<&str> = events
            .iter()
            .filter_map(|event| match (event.kind, event.place.as_str()) {
                (Kind::Store, place) if place.starts_with("LogEntry.") => Some("entry"),
                (Kind::Store, "LogHeader.index") => Some("index"),
                (Kind::MemoryBarrier, _) => Some("barrier"),
                (Kind::Load, "FenceEntry.shadow") => Some("comparison"),
                (Kind::Store, "FenceEntry.shadow") => Some("arming"),
                (Kind::Modify, "DispatchRound.raised") => Some("record"),
                (Kind::Store, "CrossDoorbellLine.words") => Some("ring"),
                (Kind::Store, "QueueState.signal_log_index") => Some("state"),
                (Kind::Store, "QueueState.transferred") => Some("done"),
                (Kind::Store, "Word.value") => panic!("the kernel has stored it"),
                _ => None,
            })
            .collect();
        order.dedup();
        let expected = [
            "entry",
            "index",
            "barrier",
            "comparison",
            "arming",
            "record",
            "ring",
            "state",
            "done",
        ];
        assert_eq!(order, expected);
    });
}

/// IN-01 in the shader library: what the invocation stored before is available, then CurrentValue is stored, with
/// Release; the note for the engine follows, into a place that an atomic of the packet gave. The library stores nothing
/// else (NF-03), and looks with Acquire.
///
/// Kills `the-library-makes-nothing-available`, `the-library-publishes-no-value`, `the-library-looks-relaxed`,
/// `the-library-sees-nothing-anew` and `the-librarys-note-comes-first`.
#[test]
fn in_01_the_librarys_signal_stores_what_was_before_then_the_value_then_its_note() {
    let text = ShaderText::new(Module::new(shaders::SIGNAL_VALUES.words));
    let events = text.of("nf_signal");
    let mut order: Vec<&str> = events
        .iter()
        .filter_map(|event| match (event.kind, event.place.as_str()) {
            (Kind::Modify, "DispatchJob.signals") => Some("place"),
            (Kind::MemoryBarrier, _) => Some("available"),
            (Kind::Store, "Word.value") => {
                assert_eq!((event.scope, event.semantics), (scope::DEVICE, RELEASE));
                Some("value")
            }
            (Kind::Store, place) if place.starts_with("KernelSignal.") => Some("note"),
            (Kind::Load, _) => None,
            _ => panic!("nothing else is done: {event:?}"),
        })
        .collect();
    order.dedup();
    assert_eq!(order, ["place", "available", "value", "note"]);
    let module = Module::new(shaders::SIGNAL_VALUES.words);
    assert_eq!(module.memory_barriers(), [SHARE[1]]);
    let looks = [
        (shaders::WAIT_VALUES.words, "nf_wait"),
        (shaders::READ_VALUES.words, "nf_current_value"),
    ];
    for (words, function) in looks {
        let events = ShaderText::new(Module::new(words)).of(function);
        let [look, barrier] = &events[..] else {
            panic!("{function} looks and makes visible: {events:?}");
        };
        assert!(look.is(Kind::Load, "Word.value"));
        assert_eq!((look.scope, look.semantics), (scope::DEVICE, ACQUIRE));
        assert_eq!(barrier.kind, Kind::MemoryBarrier);
        assert_eq!(barrier.semantics, SHARE[0].semantics, "{function}");
    }
}

/// Kills `engine-adopts-after-the-look` (NF-07).
#[test]
fn an_adoption_stores_the_shadow_and_then_looks_at_the_value() {
    in_every_engine(|text| {
        let events = text.of("adopt");
        let stores = places(&events, |e| e.is(Kind::Store, "FenceEntry.shadow"));
        let looks = places(&events, |e| {
            e.is(Kind::Load, "Word.value") && e.semantics == ACQUIRE
        });
        let [monitored, current] = looks[..] else {
            panic!("an adoption observes two words, not {}", looks.len());
        };
        let shadow = *stores.first().expect("an adoption stores the shadow");
        assert!(monitored < shadow && shadow < current);
    });
}

/// Kills `engine-does-not-publish-the-value` and its like: what tells another party that something
/// is done is stored with Release, and nothing else tells it.
#[test]
fn what_is_published_is_released() {
    let published = [
        "Word.value",
        "LogHeader.index",
        "QueueProgress.read_index",
        "QueueState.sequence",
        "EngineReport.record_write",
        "EngineReport.mailbox_read",
        "EngineReport.rescan_seen",
        "EngineReport.collapsed",
        "EngineReport.stalled_queue",
        "SliceResult.reason",
    ];
    in_every_engine(|text| {
        let events = text.of(SLICE);
        for place in published {
            let stores: Vec<_> = events.iter().filter(|e| e.is(Kind::Store, place)).collect();
            assert!(!stores.is_empty(), "{place} is never stored");
            // Behind a barrier one store needs no release of its own: a step's read index, as
            // `lg_06_a_step_that_signals_nothing_has_a_barrier_before_its_read_index` says.
            let behind_barrier = |e: &&&Event| {
                e.function == "step_queue" && e.place == READ_INDEX && e.semantics == 0
            };
            let free = stores.iter().filter(behind_barrier).count();
            assert_eq!(free, usize::from(place == READ_INDEX), "{place}");
            for store in stores.into_iter().filter(|e| !behind_barrier(&e)) {
                let order = (store.scope, store.semantics);
                assert_eq!(
                    order,
                    (scope::DEVICE, RELEASE),
                    "{place} in {}",
                    store.function
                );
            }
        }
    });
}

/// Kills `engine-does-not-observe-the-mailbox` and its like: what another party published is
/// loaded with Acquire.
#[test]
fn what_others_publish_is_acquired() {
    let observed = [
        "EngineControl.mailbox_write",
        "EngineControl.request",
        "HandleEntry.meta",
        "FenceEntry.monitored_value_va",
        "QueueState.sequence",
    ];
    in_every_engine(|text| {
        let events = text.of(SLICE);
        let acquires = |event: &Event| (event.scope, event.semantics) == (scope::DEVICE, ACQUIRE);
        for place in observed {
            let loads: Vec<_> = events.iter().filter(|e| e.is(Kind::Load, place)).collect();
            assert!(!loads.is_empty(), "{place} is never loaded");
            for load in loads {
                assert!(acquires(load), "{place} in {}", load.function);
            }
        }
        // Looks at CurrentValues and write indices; in other functions a word may be a table's.
        let steps = text.of(STEPS);
        let looks = steps
            .iter()
            .filter(|e| e.is(Kind::Load, "Word.value") && e.function != "look_up_in")
            // What a signal is compared with, that is done in any case: nothing is read by it.
            .filter(|e| e.function != "step_signal");
        let chooses = text.of("choose_queue");
        let looks: Vec<_> = looks
            .chain(
                chooses
                    .iter()
                    .filter(|e| e.is(Kind::Load, "Word.value") && e.function == "find_other"),
            )
            .collect();
        assert!(looks.len() >= 2, "a step looks, and so does a choice");
        for look in looks {
            assert!(acquires(look), "a look in {}", look.function);
        }
        // The room in the record ring is taken from what the OS published.
        let room = |e: &&Event| e.is(Kind::Load, "EngineControl.record_read");
        assert!(text.of("record_ring_has").iter().filter(room).any(acquires));
    });
}

/// Kills `engine-saves-the-state-after-its-sequence` and
/// `engine-gives-its-reason-before-its-result`.
#[test]
fn what_publishes_a_structure_is_stored_after_the_rest_of_it() {
    in_every_engine(|text| {
        for (function, structure, publisher) in [
            ("save_queue", "QueueState", "QueueState.sequence"),
            (SLICE, "SliceResult", "SliceResult.reason"),
            (SLICE, "EngineReport", "SliceResult.reason"),
        ] {
            let events = text.of(function);
            let is_part = |e: &Event| e.kind == Kind::Store && e.structure() == structure;
            let parts = places(&events, |e| is_part(e) && e.place != publisher);
            let publishes = places(&events, |e| e.is(Kind::Store, publisher));
            assert!(!parts.is_empty(), "{structure}");
            assert!(parts.last() < publishes.last(), "{structure}");
        }
        let events = text.of("publish_and_adopt");
        let records = places(&events, |e| e.structure() == "InterruptRecord");
        let index = places(&events, |e| e.is(Kind::Store, "EngineReport.record_write"));
        assert!(!records.is_empty() && records.last() < index.first());
    });
}

/// Kills `engine-reads-the-handle-table-plainly` and `engine-transfers-plainly`: one word is read once
/// and whole, or written once and whole, in memory that others touch at the same time; what is
/// transferred is ordered by signals and waits, and no access of it is the lane's own.
#[test]
fn every_access_by_address_is_atomic_or_of_a_transfer() {
    for (name, module) in engines() {
        assert!(module.private_accesses().is_empty(), "{name}");
        let plain = module.plain_accesses();
        assert!(!plain.is_empty(), "{name} transfers");
        let wanted = memory_access::NON_PRIVATE | memory_access::ALIGNED;
        assert!(plain.iter().all(|access| *access == wanted), "{name}");
    }
    in_every_engine(|text| {
        let events = text.of(SLICE);
        let shared: Vec<_> = events.iter().filter(|e| e.is_at_address).collect();
        assert!(shared.len() > 50, "the walker sees {}", shared.len());
        for event in shared {
            assert_eq!(event.scope, scope::DEVICE, "{event:?}");
            assert!(
                event.place.contains('.'),
                "a word without a name: {event:?}"
            );
        }
    });
}

/// Kills `engine-writes-the-ring`: the engine writes what is the engine's.
#[test]
fn the_engine_stores_nothing_that_belongs_to_others() {
    let own = BTreeSet::from([
        "DispatchJob",
        "DispatchRecord",
        "DispatchRound",
        "KernelJob",
        "KernelUse",
        "QueueLook",
        "EngineReport",
        "InterruptRecord",
        "LogEntry",
        "QueueState",
        "SliceResult",
    ]);
    let own_words = [
        "CrossDoorbellLine.taken",
        "CrossDoorbellLine.words",
        "FenceEntry.shadow",
        "LogHeader.index",
        "QueueProgress.read_index",
    ];
    in_every_engine(|text| {
        let events = text.of(SLICE);
        let shared = events.iter().filter(|e| e.is_at_address);
        for event in shared.filter(|e| e.kind != Kind::Load) {
            // A word by itself is a CurrentValue, which a step alone stores.
            let is_value = event.place == "Word.value"
                && text.of(STEPS).iter().any(|e| e.function == event.function);
            let is_own = own.contains(event.structure())
                || own_words.contains(&event.place.as_str())
                || is_value;
            assert!(is_own, "{} in {}", event.place, event.function);
            // Lanes count together what signals of kernels raise.
            let is_counted = ["DispatchRound.raised", "DispatchRound.logged"];
            if !is_counted.contains(&event.place.as_str()) {
                assert_eq!(event.kind, Kind::Store, "one writer needs no {event:?}");
            }
        }
    });
}

/// The walker itself: every function that it was asked for is there, and none is out of reach.
#[test]
fn every_function_of_the_engine_is_reached_from_the_slice() {
    in_every_engine(|text| {
        let main: Vec<_> = text.of("main");
        assert_eq!(main, text.of(SLICE));
        let reached: BTreeSet<_> = main.iter().map(|event| event.function.as_str()).collect();
        for function in text.functions() {
            let acts = text.of(function).iter().any(|e| e.function == function);
            assert!(
                !acts || reached.contains(function),
                "{function} is never called"
            );
        }
    });
}
