//! `nfence litmus` asks in the engine's own words: the shipped SPIR-V of its questions has the engine's orderings, and
//! what is left out is left out and nothing else.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod shader_text;
    pub(crate) mod spirv;
}

use native_fence::vulkan::shaders::{self, Shader};
use support::shader_text::{Event, Kind, ShaderText};
use support::spirv::{Barrier, Module, scope, semantics};

const RELEASE: u64 = semantics::RELEASE | semantics::UNIFORM_MEMORY;
const ACQUIRE: u64 = semantics::ACQUIRE | semantics::UNIFORM_MEMORY;

/// What a function does itself, whoever calls it: kind, word, scope and semantics, in the order of its text.
type Did = (Kind, String, u64, u64);

fn did(shader: &Shader, function: &str) -> Vec<Did> {
    let events = ShaderText::new(Module::new(shader.words)).of(function);
    let own = events
        .into_iter()
        .filter(|event| event.function == function);
    let did: Vec<_> = own
        .map(|event: Event| (event.kind, event.place, event.scope, event.semantics))
        .collect();
    assert!(!did.is_empty(), "{}: {function}", shader.name);
    did
}

/// Semantics of the loads and stores of words.
fn orders(shader: &Shader, function: &str, kind: Kind) -> Vec<u64> {
    let of_kind = did(shader, function)
        .into_iter()
        .filter(|did| did.0 == kind);
    of_kind
        .map(|(_, _, scope_of, semantics)| {
            assert_eq!(scope_of, scope::DEVICE);
            semantics
        })
        .collect()
}

/// Kills `litmus-logs-in-its-own-way`.
#[test]
fn what_is_asked_as_shipped_is_what_the_engine_does() {
    let engine = &shaders::ENGINE;
    assert_eq!(
        did(&shaders::LITMUS_LOG, "log_entry"),
        did(engine, "log_entry")
    );
    let adopted = &shaders::LITMUS_BUFFERING_ADOPTED;
    assert_eq!(did(adopted, "adopt"), did(engine, "adopt"));
    let barrier = "order_log_before_comparison";
    assert_eq!(did(adopted, barrier), did(engine, barrier));
    let meet = |shader: &Shader| -> Vec<Barrier> {
        let mut all = Module::new(shader.words).control_barriers();
        all.dedup();
        all
    };
    assert_eq!(meet(&shaders::LITMUS_MEETING), meet(engine));
}

/// Kills `litmus-posts-without-release` and `litmus-signals-without-its-barrier`.
#[test]
fn a_waiter_posts_as_the_system_does() {
    let adopted = &shaders::LITMUS_BUFFERING_ADOPTED;
    // MonitoredValue, then the post; then it looks at CurrentValue.
    assert_eq!(
        orders(adopted, "wait_for_values", Kind::Store),
        [RELEASE; 2]
    );
    let looks = orders(adopted, "wait_for_values", Kind::Load);
    assert_eq!(looks.last(), Some(&ACQUIRE));
    assert_eq!(orders(adopted, "signal", Kind::Store), [RELEASE, 0]);
    let signal = ShaderText::new(Module::new(adopted.words)).of("signal");
    let kinds = signal.iter().map(|event| event.kind);
    let after_value: Vec<_> = kinds.skip_while(|kind| *kind != Kind::Store).collect();
    let expected = [Kind::Store, Kind::MemoryBarrier, Kind::Load, Kind::Store];
    assert_eq!(after_value, expected);
}

/// Kills `litmus-leaves-out-nothing`.
#[test]
fn what_is_left_out_is_left_out_and_nothing_else() {
    for (shader, releases, acquires) in [
        (&shaders::LITMUS_MESSAGE, RELEASE, ACQUIRE),
        (&shaders::LITMUS_MESSAGE_NO_RELEASE, 0, ACQUIRE),
        (&shaders::LITMUS_MESSAGE_NO_ACQUIRE, RELEASE, 0),
        (&shaders::LITMUS_MESSAGE_NEITHER, 0, 0),
    ] {
        // Data, and the word that says that it is there.
        let stores = orders(shader, "write_messages", Kind::Store);
        assert_eq!(stores, [0, releases], "{}", shader.name);
        // A look at the data before, that word, the data.
        let loads = orders(shader, "read_messages", Kind::Load);
        assert!(
            loads.ends_with(&[0, acquires, 0]),
            "{}: {loads:?}",
            shader.name
        );
    }
    let stores = |shader| orders(shader, "log_entry", Kind::Store);
    let mut unordered = stores(&shaders::LITMUS_LOG);
    assert_eq!(unordered.last(), Some(&RELEASE));
    *unordered.last_mut().unwrap() = 0;
    assert_eq!(stores(&shaders::LITMUS_LOG_NO_RELEASE), unordered);
    let count = |shader: &Shader, kind| {
        let events = ShaderText::new(Module::new(shader.words)).of("main");
        events.iter().filter(|event| event.kind == kind).count()
    };
    let barriers = |shader| count(shader, Kind::MemoryBarrier);
    assert_eq!(barriers(&shaders::LITMUS_BUFFERING), 0);
    assert_eq!(barriers(&shaders::LITMUS_BUFFERING_FENCED), 1);
    let meetings = |shader| count(shader, Kind::ControlBarrier);
    assert_eq!(meetings(&shaders::LITMUS_MEETING), 2);
    assert_eq!(meetings(&shaders::LITMUS_MEETING_ONE_MEETING), 1);
    assert_eq!(meetings(&shaders::LITMUS_MEETING_NO_SECOND), 1);
    let kinds = |shader: &Shader| -> Vec<Kind> {
        let events = ShaderText::new(Module::new(shader.words)).of("main");
        events.iter().map(|event| event.kind).collect()
    };
    let places = |shader| {
        let kinds = kinds(shader);
        let meets = kinds.iter().position(|kind| *kind == Kind::ControlBarrier);
        let signals = kinds.iter().position(|kind| *kind == Kind::MemoryBarrier);
        (meets, signals)
    };
    // The signal's barrier has the meeting that is left before it or behind it.
    let (meets, signals) = places(&shaders::LITMUS_MEETING_NO_SECOND);
    assert!(meets < signals);
    let (meets, signals) = places(&shaders::LITMUS_MEETING_ONE_MEETING);
    assert!(meets > signals);
}

/// Without an atomic access nothing is left to say that a word is whole: those of the plain questions, a store
/// and a load of tearing and a load of visibility, are the only ones.
///
/// Kills `litmus-polls-plainly-by-atomics`.
#[test]
fn words_that_parties_share_are_atomic_but_where_the_question_is_what_else() {
    for shader in shaders::ALL {
        if shader.name.starts_with("litmus_") {
            let plain = Module::new(shader.words).plain_accesses().len();
            let asked = match shader.name {
                "litmus_tearing.plain" => 2,
                "litmus_visibility.plain" => 1,
                _ => 0,
            };
            assert_eq!(plain, asked, "{}", shader.name);
        }
    }
}

/// Its twin in Rust writes these words in this order (src/litmus/setup.rs).
#[test]
fn a_run_is_told_to_the_shader_as_words_in_a_row() {
    let members = Module::new(shaders::LITMUS_MESSAGE.words)
        .members("Setup")
        .unwrap();
    let names: Vec<_> = members.iter().map(|member| member.name.as_str()).collect();
    let expected = [
        "generation",
        "iterations",
        "slack",
        "most_delay",
        "seed",
        "warm",
        "cell_mask",
        "first_step",
        "first_offset",
        "second_step",
        "second_offset",
    ];
    assert_eq!(names, expected);
    for (member, offset) in members.iter().zip((0..).step_by(8)) {
        assert_eq!(member.offset, offset, "{}", member.name);
    }
}
