//! Order of commands: what the barriers of a queue's recorded commands promise, and nothing else.
//!
//! Vulkan promises of two commands of a queue that they start in their order, and no more. What a device does is taken
//! apart here into steps of one stage each, over all submissions of the queue; between two of them there is
//!
//! - an execution dependency, where a chain of barriers leads from one to the other: a step in the first scope of a
//!   barrier (its stage is in the source mask, or logically earlier than one there), a step in the second scope (in the
//!   destination mask, or logically later), and from barrier to barrier where the second scope of one and the first of the
//!   next meet. An indirect dispatch reads its counts before its shader runs; both are logically ordered stages of one
//!   command. A host that waited for a submission comes after all of it (the signal's first scope).
//! - a memory dependency, where besides a barrier behind the store has its stage and access in the source masks, by which
//!   it is made available, and the same or a later one of a chain has the reader's stage and access in the destination
//!   masks, by which it is made visible. For accesses a mask means the stages that it names and no others. A semaphore or
//!   fence makes nothing visible to a host.
//!
//! (Vulkan 1.3, 7.1 "Execution and Memory Dependencies", 7.2 "Implicit Synchronization Guarantees", and the notes of
//! `VkFence` and `vkWaitSemaphores` on the host.)

#![allow(dead_code, reason = "each test file uses a part")]

use native_fence::vulkan::{Accesses, Barrier, Recorded, Stages};

/// What is done in one stage.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    Barrier(Barrier),
    /// The counts of the indirect dispatch behind it are read.
    Counts {
        offset: u64,
    },
    /// In as many workgroups as are said, or as the step before it has read.
    Shader {
        pipeline: u64,
        push: Vec<u8>,
        groups: Option<[u32; 3]>,
    },
    Transfer(Recorded),
    /// A host reads, that has waited for the submission before it.
    Host,
    /// A host reads, that has seen what the step before it stored, of a submission that may go on.
    Polls,
}

/// The steps of these commands, as they were recorded.
pub(crate) fn steps(recorded: &[Recorded]) -> Vec<Step> {
    let (mut bound, mut pushed) = (0, Vec::new());
    let mut steps = Vec::new();
    for command in recorded {
        let shader = |push: &Vec<u8>, groups| Step::Shader {
            pipeline: bound,
            push: push.clone(),
            groups,
        };
        match command {
            Recorded::Barrier(barrier) => steps.push(Step::Barrier(*barrier)),
            Recorded::Bind(pipeline) => bound = *pipeline,
            Recorded::Push(push) => pushed.clone_from(push),
            Recorded::Dispatch(groups) => steps.push(shader(&pushed, Some(*groups))),
            Recorded::DispatchIndirect { offset } => {
                steps.push(Step::Counts { offset: *offset });
                steps.push(shader(&pushed, None));
            }
            transfer => steps.push(Step::Transfer(transfer.clone())),
        }
    }
    steps
}

/// Stage, and accesses that read and store.
fn touches(step: &Step) -> Option<(Stages, Accesses, Accesses)> {
    Some(match step {
        Step::Barrier(_) => return None,
        Step::Counts { .. } => (
            Stages::DRAW_INDIRECT,
            Accesses::INDIRECT_COMMAND_READ,
            Accesses::default(),
        ),
        Step::Shader { .. } => (
            Stages::COMPUTE,
            Accesses::SHADER_READ,
            Accesses::SHADER_WRITE,
        ),
        Step::Transfer(_) => (
            Stages::TRANSFER,
            Accesses::TRANSFER_READ,
            Accesses::TRANSFER_WRITE,
        ),
        Step::Host | Step::Polls => (Stages::HOST, Accesses::HOST_READ, Accesses::default()),
    })
}

const EACH: [Stages; 4] = [
    Stages::DRAW_INDIRECT,
    Stages::COMPUTE,
    Stages::TRANSFER,
    Stages::HOST,
];

/// Whether a mask means the stage.
fn names(mask: Stages, stage: Stages) -> bool {
    mask.contains(stage) || mask.contains(Stages::ALL_COMMANDS) && stage != Stages::HOST
}

/// Whether the first scope of a barrier has the stage.
fn is_before(barrier: Barrier, stage: Stages) -> bool {
    let earlier = stage == Stages::DRAW_INDIRECT && names(barrier.src_stage, Stages::COMPUTE);
    names(barrier.src_stage, stage) || earlier
}

/// Whether the second scope has it.
fn is_behind(barrier: Barrier, stage: Stages) -> bool {
    let later = stage == Stages::COMPUTE && names(barrier.dst_stage, Stages::DRAW_INDIRECT);
    names(barrier.dst_stage, stage) || later
}

fn makes_available(barrier: Barrier, stage: Stages, access: Accesses) -> bool {
    let mask = barrier.src_access;
    let means = mask.contains(access) || mask.contains(Accesses::MEMORY_WRITE);
    names(barrier.src_stage, stage) && access != Accesses::default() && means
}

fn makes_visible(barrier: Barrier, stage: Stages, access: Accesses) -> bool {
    let stores = [Accesses::SHADER_WRITE, Accesses::TRANSFER_WRITE].contains(&access);
    let all = if stores {
        Accesses::MEMORY_WRITE
    } else {
        Accesses::MEMORY_READ
    };
    let mask = barrier.dst_access;
    names(barrier.dst_stage, stage) && (mask.contains(access) || mask.contains(all))
}

/// Which barriers are there for nothing: without which one, or with which bit less in the masks of all that are alike,
/// nobody is misled. What stands before the first is nothing.
pub(crate) fn unneeded(steps: &[Step], misleads: impl Fn(&[Step]) -> bool) -> Vec<String> {
    assert!(!misleads(steps), "it is wrong as it is");
    let mut unneeded = Vec::new();
    let mut kinds = Vec::new();
    for (at, step) in steps.iter().enumerate() {
        let Step::Barrier(barrier) = step else {
            continue;
        };
        if !kinds.contains(barrier) {
            kinds.push(*barrier);
        }
        let less = [&steps[..at], &steps[at + 1..]].concat();
        if at != 0 && !misleads(&less) {
            unneeded.push(format!("{barrier:?} at {at}"));
        }
    }
    for kind in kinds {
        for other in narrowed(kind) {
            let narrow = steps.iter().map(|step| match step {
                Step::Barrier(barrier) if *barrier == kind => Step::Barrier(other),
                step => step.clone(),
            });
            if !misleads(&narrow.collect::<Vec<_>>()) {
                unneeded.push(format!("more of {kind:?} than {other:?}"));
            }
        }
    }
    unneeded
}

/// A barrier with a bit of a mask less, for each bit.
fn narrowed(barrier: Barrier) -> Vec<Barrier> {
    const STAGES: [Stages; 5] = [
        Stages::COMPUTE,
        Stages::DRAW_INDIRECT,
        Stages::TRANSFER,
        Stages::HOST,
        Stages::ALL_COMMANDS,
    ];
    const ACCESSES: [Accesses; 8] = [
        Accesses::SHADER_READ,
        Accesses::SHADER_WRITE,
        Accesses::INDIRECT_COMMAND_READ,
        Accesses::TRANSFER_READ,
        Accesses::TRANSFER_WRITE,
        Accesses::HOST_READ,
        Accesses::MEMORY_READ,
        Accesses::MEMORY_WRITE,
    ];
    let less_stage = |mask: Stages, bit: Stages| {
        let others = STAGES
            .into_iter()
            .filter(|other| mask.contains(*other) && *other != bit);
        others.fold(Stages::default(), Stages::and)
    };
    let less_access = |mask: Accesses, bit: Accesses| {
        let others = ACCESSES
            .into_iter()
            .filter(|other| mask.contains(*other) && *other != bit);
        others.fold(Accesses::default(), Accesses::and)
    };
    let stages = STAGES.into_iter().flat_map(|bit| {
        let src_stage = less_stage(barrier.src_stage, bit);
        let dst_stage = less_stage(barrier.dst_stage, bit);
        [
            Barrier {
                src_stage,
                ..barrier
            },
            Barrier {
                dst_stage,
                ..barrier
            },
        ]
    });
    let accesses = ACCESSES.into_iter().flat_map(|bit| {
        let src_access = less_access(barrier.src_access, bit);
        let dst_access = less_access(barrier.dst_access, bit);
        [
            Barrier {
                src_access,
                ..barrier
            },
            Barrier {
                dst_access,
                ..barrier
            },
        ]
    });
    stages
        .chain(accesses)
        .filter(|other| *other != barrier)
        .collect()
}

/// Steps, by bits.
#[derive(Clone, Debug, Default)]
struct Set(Vec<u64>);

impl Set {
    fn of(steps: usize) -> Self {
        Self(vec![0; steps.div_ceil(64)])
    }

    fn insert(&mut self, step: usize) {
        self.0[step / 64] |= 1 << (step % 64);
    }

    fn has(&self, step: usize) -> bool {
        self.0[step / 64] >> (step % 64) & 1 == 1
    }

    fn extend(&mut self, other: &Self) {
        for (own, others) in self.0.iter_mut().zip(&other.0) {
            *own |= others;
        }
    }

    fn meets(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).any(|(one, two)| one & two != 0)
    }
}

/// See the file's head.
pub(crate) struct CommandOrder {
    /// By step: those that it comes after.
    after: Vec<Set>,
    /// By step: the barriers behind which its stores are available.
    available: Vec<Set>,
    /// By step: the barriers that make visible to its reads, and to its stores, what is available.
    read: Vec<Set>,
    stored: Vec<Set>,
}

impl CommandOrder {
    pub(crate) fn new(steps: &[Step]) -> Self {
        let none = || vec![Set::of(steps.len()); steps.len()];
        let mut order = Self {
            after: none(),
            available: none(),
            read: none(),
            stored: none(),
        };
        for (at, step) in steps.iter().enumerate() {
            for (earlier, other) in steps[..at].iter().enumerate() {
                if !order.after[at].has(earlier) && comes_after(step, other, at - earlier == 1) {
                    let before = order.after[earlier].clone();
                    order.after[at].extend(&before);
                    order.after[at].insert(earlier);
                }
            }
            order.note_memory(steps, at);
        }
        order
    }

    fn note_memory(&mut self, steps: &[Step], at: usize) {
        let Step::Barrier(barrier) = &steps[at] else {
            let touched = touches(&steps[at]);
            for (earlier, other) in steps[..at].iter().enumerate() {
                if let (Some((stage, reads, stores)), Step::Barrier(barrier)) = (touched, other) {
                    if makes_visible(*barrier, stage, reads) {
                        self.read[at].insert(earlier);
                    }
                    if stores != Accesses::default() && makes_visible(*barrier, stage, stores) {
                        self.stored[at].insert(earlier);
                    }
                }
            }
            return;
        };
        for (earlier, other) in steps[..at].iter().enumerate() {
            let Some((stage, _, stores)) = touches(other) else {
                continue;
            };
            let follows = self.available[earlier].meets(&self.after[at]);
            if follows || makes_available(*barrier, stage, stores) {
                self.available[earlier].insert(at);
            }
        }
    }

    /// Whether what `store` has stored is visible to reads of `reader`.
    pub(crate) fn is_seen(&self, store: usize, reader: usize) -> bool {
        self.available[store].meets(&self.read[reader])
    }

    /// Whether it is there before `other` stores.
    pub(crate) fn is_overwritten(&self, store: usize, other: usize) -> bool {
        self.available[store].meets(&self.stored[other])
    }

    /// The steps in an order that is allowed: of those that may come next the first one, or the last.
    pub(crate) fn schedule(&self, latest_first: bool) -> Vec<usize> {
        let steps = self.after.len();
        let behind = |one: usize| (one + 1..steps).filter(move |other| self.after[*other].has(one));
        let mut missing = vec![0; steps];
        for one in 0..steps {
            behind(one).for_each(|other| missing[other] += 1);
        }
        let mut ready: std::collections::BTreeSet<_> =
            (0..steps).filter(|step| missing[*step] == 0).collect();
        let mut schedule = Vec::new();
        while let Some(step) = if latest_first {
            ready.pop_last()
        } else {
            ready.pop_first()
        } {
            schedule.push(step);
            for other in behind(step) {
                missing[other] -= 1;
                if missing[other] == 0 {
                    ready.insert(other);
                }
            }
        }
        assert_eq!(schedule.len(), steps);
        schedule
    }
}

/// Whether a step comes after one that was recorded before it, by these two alone.
fn comes_after(step: &Step, earlier: &Step, is_next: bool) -> bool {
    match (earlier, step) {
        (_, Step::Host) => true,
        (Step::Counts { .. }, Step::Shader { groups: None, .. }) | (_, Step::Polls) if is_next => {
            true
        }
        (Step::Barrier(first), Step::Barrier(next)) => {
            let meets = |stage: &Stages| is_behind(*first, *stage) && is_before(*next, *stage);
            EACH.iter().any(meets)
        }
        (Step::Barrier(barrier), _) => {
            touches(step).is_some_and(|(stage, ..)| is_behind(*barrier, stage))
        }
        (_, Step::Barrier(barrier)) => {
            touches(earlier).is_some_and(|(stage, ..)| is_before(*barrier, stage))
        }
        _ => false,
    }
}
