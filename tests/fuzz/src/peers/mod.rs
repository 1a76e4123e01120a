//! Peers: whatever another process stores in the pages of a shared fence, and whatever it sends instead of one, this one
//! neither panics nor hangs, its other fences are as they were, and a waiter ends only by what the fence's documentation
//! says (NF-06, NF-15, `decisions.md` 26).
//!
//! Two operating systems of this process have two fences of one another open, each with an engine of its own. The case
//! signals and waits by both, and stores to the pages of the first fence as the other's process could; of the second
//! nobody does. As long as nothing was scribbled each wait ends when its value has come, and none does before.
//!
//! What hears of the others is a thread. Where a case says that whoever scribbles calls the others, it goes on when all
//! of them have looked; so one input is one course of events, but for what a thread sees of words that are stored with no
//! call while it looks.

mod message;
mod system;
mod waiting;
mod world;

use arbitrary::{Arbitrary, Result, Unstructured};
use message::Message;
use native_fence::conform::LONG;
use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;
use world::World;

const MOST_STEPS: usize = 24;

/// A course of events.
#[derive(Debug)]
pub struct Program {
    initial: u8,
    /// The handles pass as descriptors, and not over a socket.
    as_descriptors: bool,
    steps: Vec<Step>,
}

/// A value near what stands there, or any.
#[derive(Clone, Copy, Debug, Arbitrary)]
enum Value {
    Small(u8),
    By(i8),
    Greatest,
    /// This process, as a slot names its owner.
    Own,
    /// One with its number that has ended.
    OwnOfAnotherTime,
    /// The first process, which lives.
    First,
    Any(u64),
}

/// A word of the first fence's pages.
#[derive(Clone, Copy, Debug, Arbitrary)]
enum Place {
    CurrentValue,
    /// Of a slot, one of those that are in use most of the time.
    Slot {
        slot: u8,
        word: u8,
    },
    Owner {
        slot: u8,
    },
    Awaited {
        slot: u8,
    },
    /// What a slot's owner is told in.
    Reached {
        slot: u8,
        word: u8,
    },
    Header(u8),
    Rewinds,
    AlwaysSignaled,
    Any(u16),
}

#[derive(Debug)]
enum Step {
    Arm {
        side: bool,
        value: u8,
    },
    /// A wait is given up.
    Drop(u8),
    Signal {
        side: bool,
        value: u8,
        rewind: bool,
    },
    GpuSignal {
        side: bool,
        value: u8,
    },
    /// A queue comes to stand at a wait, to the end of the case.
    GpuWait {
        side: bool,
        value: u8,
    },
    /// Words are stored, and the others called to look or not.
    Scribble {
        words: Vec<(Place, Value)>,
        calls: bool,
    },
    /// A side closes the fence, and opens it again.
    Reopen(bool),
    /// Something is sent, or kept as a descriptor.
    Message(Message),
    /// The second fence is used.
    Other,
}

impl<'a> Arbitrary<'a> for Program {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let (initial, as_descriptors) = (u.arbitrary()?, u.arbitrary()?);
        let steps = (0..u.int_in_range(1..=MOST_STEPS)?).map(|_| u.arbitrary());
        Ok(Self {
            initial,
            as_descriptors,
            steps: steps.collect::<Result<_>>()?,
        })
    }
}

impl<'a> Arbitrary<'a> for Step {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        Ok(match u.int_in_range(0..=19)? {
            0..=3 => Self::Arm {
                side: u.arbitrary()?,
                value: u.arbitrary()?,
            },
            4 => Self::Drop(u.arbitrary()?),
            5..=7 => Self::Signal {
                side: u.arbitrary()?,
                value: u.arbitrary()?,
                rewind: u.arbitrary()?,
            },
            8 | 9 => Self::GpuSignal {
                side: u.arbitrary()?,
                value: u.arbitrary()?,
            },
            10 => Self::GpuWait {
                side: u.arbitrary()?,
                value: u.arbitrary()?,
            },
            11..=15 => {
                let words = (0..u.int_in_range(1..=4)?).map(|_| u.arbitrary());
                Self::Scribble {
                    words: words.collect::<Result<_>>()?,
                    calls: u.arbitrary()?,
                }
            }
            16 => Self::Reopen(u.arbitrary()?),
            17 | 18 => Self::Message(u.arbitrary()?),
            _ => Self::Other,
        })
    }
}

/// What became of it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Played {
    /// Waits that ended with their values.
    pub satisfied: u64,
    /// Those that ended with an error.
    pub failed: u64,
    /// Words that were scribbled.
    pub scribbled: u64,
    /// Messages that were no fence.
    pub refused: u64,
}

/// Panics of the library's own threads, which end no case by themselves.
static PANICS: AtomicU64 = AtomicU64::new(0);

/// Whether a thread of this name is the library's own: what hears of others, takes interrupts, or is an engine. All of them
/// read what others store.
fn is_of_the_library(thread: &str) -> bool {
    thread.starts_with("nf-")
}

fn watch_threads() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if thread::current().name().is_some_and(is_of_the_library) {
                PANICS.fetch_add(1, Ordering::Relaxed);
            }
            usual(panic);
        }));
    });
}

impl Program {
    /// Plays the program.
    ///
    /// # Panics
    /// What another process may do had an effect that it may not have.
    #[must_use]
    pub fn play(self) -> Played {
        watch_threads();
        let mut world = World::new(self.initial.into(), self.as_descriptors);
        for step in self.steps {
            let (began, what) = (Instant::now(), format!("{step:?}"));
            world.step(step);
            assert!(began.elapsed() < LONG, "{what} took {:?}", began.elapsed());
        }
        let played = world.end();
        assert_eq!(PANICS.load(Ordering::Relaxed), 0, "a thread panicked");
        played
    }
}

#[cfg(test)]
mod tests {
    use super::message::{File, Text};
    use super::*;

    /// A fence has so many openers at a time and no more: who opens it again and again by messages may be refused.
    #[test]
    fn a_fence_is_opened_by_as_many_messages_as_there_are() {
        for files in [
            [File::Current, File::Monitored],
            [File::OtherCurrent, File::OtherMonitored],
        ] {
            let message = |number: usize| {
                Step::Message(Message {
                    side: number.is_multiple_of(2),
                    text: Text::Good,
                    files: files.to_vec(),
                    is_kept: false,
                })
            };
            let program = Program {
                initial: 0,
                as_descriptors: false,
                steps: (0..3 * MOST_STEPS).map(message).collect(),
            };
            let played = program.play();
            assert_eq!((played.scribbled, played.refused), (0, 0));
        }
    }

    /// Panics of all threads that read what others store are counted, and no other's.
    #[test]
    fn whoever_reads_what_others_store_is_of_the_library() {
        for thread in ["nf-peer", "nf-peers", "nf-irq-0", "nf-model", "nf-stop"] {
            assert!(is_of_the_library(thread), "{thread}");
        }
        assert!(!is_of_the_library("peers::tests::a_fence"));
    }
}
