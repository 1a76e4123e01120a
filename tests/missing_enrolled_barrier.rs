//! HQ-08 by data, in a program's own command buffer: what is recorded for an enrolled fence is played on memory that keeps
//! what Vulkan promises and no more (`support/weak_memory.rs`), between what the program does itself. Without any one of the
//! barriers wrong data come out.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![allow(unsafe_code, reason = "the program's command buffers are plain Vulkan")]
#![allow(
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block,
    reason = "a program that makes its handles itself and destroys them last"
)]

mod support {
    pub(crate) mod command_order;
    pub(crate) mod engines;
    pub(crate) mod until;
    pub(crate) mod vulkan_program;
    pub(crate) mod weak_memory;
}

use native_fence::beside::EnrolledFence;
use native_fence::vulkan::{ProgramCommands, Recorded};
use native_fence::{Adapter, AdapterOptions};
use support::command_order::{CommandOrder, Step, steps, unneeded};
use support::engines::patient;
use support::vulkan_program::Program;
use support::weak_memory::{Turn, WeakDevice};

/// Where the program's data and counts lie.
const DATA: u64 = 0x100;
const COUNTS: u64 = 0x200;

/// The program's own pipelines.
const PRODUCES: u64 = u64::MAX;
const LOOKS: u64 = u64::MAX - 1;
const GOES_ON: u64 = u64::MAX - 2;

fn own(pipeline: u64) -> Step {
    Step::Shader {
        pipeline,
        push: Vec::new(),
        groups: Some([1; 3]),
    }
}

/// A dispatch whose counts stand where the condition leaves them.
fn conditional() -> [Step; 2] {
    let shader = Step::Shader {
        pipeline: GOES_ON,
        push: Vec::new(),
        groups: None,
    };
    [Step::Counts { offset: 0 }, shader]
}

/// The program stores, and signals 1; looks, and updates the counts of a dispatch that is to go on from 1 on; and once more
/// with the same counts, which are none from 2 on. Then a host looks.
fn story() -> Vec<Step> {
    let program = Program::new();
    let handed = program.hand_over();
    let options = AdapterOptions {
        tdr: patient(),
        ..AdapterOptions::default()
    };
    let adapter = Adapter::open_on_device(&handed, &options).unwrap();
    let fence = adapter.create_device().create_fence(0).unwrap();
    let enrolled = EnrolledFence::new(&fence, &handed).unwrap();
    let recorded = |record: &dyn Fn(&mut ProgramCommands)| {
        let mut recorded: Vec<Recorded> = Vec::new();
        program.record(|raw| {
            let mut commands = unsafe { ProgramCommands::new(&handed, raw) };
            record(&mut commands);
            recorded = commands.recorded().to_vec();
        });
        steps(&recorded)
    };
    let signal = recorded(&|commands| enrolled.record_signal(commands, 1).unwrap());
    let condition =
        |value| recorded(&|commands| enrolled.record_condition(commands, value, COUNTS).unwrap());
    let mut story = vec![own(PRODUCES)];
    story.extend(signal);
    story.push(own(LOOKS));
    let one = |word| Recorded::Update {
        offset: COUNTS + word,
        data: 1_u64.to_le_bytes().to_vec(),
    };
    story.extend([0, 4, 8].map(|word| Step::Transfer(one(word))));
    for value in [1, 2] {
        story.extend(condition(value));
        story.extend(conditional());
    }
    story.push(Step::Host);
    program.wait_idle();
    story
}

/// What each does and finds; true if it is wrong.
fn is_wrong(turn: &mut Turn, gone_on: &mut u64) -> bool {
    let current_value = |turn: &Turn| turn.read(turn.pushed()[0]);
    let Step::Shader { pipeline, push, .. } = turn.step else {
        return false;
    };
    match (*pipeline, push.len()) {
        (PRODUCES, _) => turn.write(DATA, 1),
        (LOOKS, _) => {
            let is_wrong = turn.read(DATA) != 1;
            turn.write(DATA, 2);
            return is_wrong;
        }
        (GOES_ON, _) => {
            *gone_on += 1;
            return turn.read(DATA) != 2;
        }
        // The signal, whose value stands for what the program stored.
        (_, 16) => {
            let is_wrong = turn.read(DATA) != 1;
            let push = turn.pushed();
            turn.write(push[0], push[1]);
            return is_wrong;
        }
        (_, 24) => {
            if current_value(turn) < turn.pushed()[1] {
                for word in [0, 4, 8] {
                    turn.write(COUNTS + word, 0);
                }
            }
        }
        other => panic!("nobody plays {other:?}"),
    }
    false
}

/// Whether somebody is misled, on a device.
fn misleads(steps: &[Step]) -> bool {
    let order = CommandOrder::new(steps);
    let signal = steps.iter().find_map(|step| match step {
        Step::Shader { push, .. } if push.len() == 16 => Some(support::weak_memory::words(push)),
        _ => None,
    });
    let signal = signal.unwrap();
    WeakDevice::ALL.into_iter().any(|device| {
        let (mut wrong, mut gone_on) = (false, 0);
        device.play((steps, &order), COUNTS, &mut |turn| {
            wrong |= is_wrong(turn, &mut gone_on);
            // Whoever comes behind the signal, and the host at the end, finds its value.
            let is_behind = match turn.step {
                Step::Host => true,
                Step::Shader { pipeline, .. } => [LOOKS, GOES_ON].contains(pipeline),
                _ => false,
            };
            wrong |= is_behind && turn.read(signal[0]) != signal[1];
        });
        wrong || gone_on != 1
    })
}

/// HQ-08: a signal in a program's command buffer comes behind all that the program did before it and before all that it does
/// then, and reaches the host; a condition finds the counts that the program stored, and what is dispatched by them finds
/// what it made of them. Without any one of the barriers somebody is misled.
///
/// Kills `an-enrolled-signal-overtakes`, `a-condition-comes-late`.
#[test]
fn hq_08_each_barrier_of_enrolled_work_is_missed() {
    let unneeded = unneeded(&story(), misleads);
    // Of masks, those that say what they mean twice, for a reader's sake, can do with one.
    let whole = unneeded.iter().filter(|one| one.contains(" at "));
    assert_eq!(whole.collect::<Vec<_>>(), Vec::<&String>::new());
}
