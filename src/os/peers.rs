//! Peers: the other operating systems that have a fence open, as the fence's own sees them.
//!
//! A shared fence has waiters in several operating systems, and each has engines of its own. Each
//! keeps its own list of waiters and says in the fence's page what its least waiter waits for; what its
//! engines compare with is the least of all of them. There is no lock between the systems, since a
//! process may be killed while it has one: each word has one writer, or is changed by one
//! read-modify-write, and whatever a process leaves unfinished its death ends, which is an event to all
//! others.
//!
//! **Why no wake-up is lost.** Take a waiter for V in system B, and the signal that stores N ≥ V, made
//! by system A (if B makes it, `native_fence` says why). B stores its word, then a fence, then posts to
//! its own engines and reads CurrentValue; and it calls the others. A, for every signal
//! that it hears of, has CurrentValue stored, then a fence, then reads the words; and where one is
//! exceeded it tells that system.
//! - A signal of A's CPU: of the two fences one comes first. Either B's read finds N, or A's finds the
//!   word and tells B.
//! - A signal of A's engine: B's call has A post the new least value to its engines. By the contract of
//!   UpdateMonitoredValues, N is then readable by A's read after the post, which tells B; or the signal is
//!   compared with what was posted, and raises; or its engine adopts later, and raises. A raise is
//!   answered by reading the words again, and that tells B.
//! - A dies in between. B has A's descriptor among its events: it reads CurrentValue again, and all that
//!   A's engines ever stored is there.
//!
//! **A system that was told is not armed for.** While B's word stands below CurrentValue, A's engines
//! would raise for each of their signals, however long B takes. So A leaves B out until B has answered:
//! it changes its word, or, where it has nothing to change, calls all the same.
//! [`Peers::reached`] says that it was told; it also carries the value, as an interrupt's record does, so
//! that a wait which was satisfied is so although CurrentValue is stored backwards before B looks
//! (NF-26).
//!
//! **The value of a record is told as well**, since CurrentValue may have been stored backwards before A
//! looked: of an engine's 6 and 0, the record of 6 says that a waiter for 5 is satisfied. But a record may
//! be older than a rewind by some CPU, and then says nothing to a waiter that came after that. Who rewinds
//! says so in the page before he stores; a waiter that has seen the lower value comes after that, its word
//! after it, and A reads the word first and then whether there ever was a rewind: then it tells
//! CurrentValue alone, and as it is after the word, as a system's own waiters are released by CurrentValue
//! alone once they came after one. What A read of it before the word may be older than the waiter.
//!
//! Open: so it is with what is told, too. Once B's own CPU has rewound the fence, what A tells releases only
//! those of B's waiters that came before that; later ones wait for CurrentValue. So where A's CPU signals 5
//! and rewinds to 0 before B looks, a waiter of B for 5 sleeps on, which on one system were released before
//! A's first call returns. And what is told is told of a word: where A has read B's word and CurrentValue,
//! both good, and before it tells B a third system rewinds, and B's waiter goes and another one comes for
//! the same value, that one takes what was meant for the first, and wakes too early.
//!
//! **Who writes to the page is not trusted.** A settling ends after a few rounds whatever others store
//! ([`Peers::look_again`]). Who finds that its slot is not its own takes it again where it is free, and
//! else ends its waits with an error, since nobody would tell it anything.

use std::fmt::Debug;

/// What this system has told others, and heard of them, of one fence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PeerCounters {
    /// Notifications: how often another was told that a value is reached for which it has a waiter.
    pub told: u64,
    /// How often another was called to look because a MonitoredValue changed or somebody came or left.
    pub called: u64,
    /// How often this one was called or told.
    pub heard: u64,
    /// Slots that this one cleared because their owners had died; others may have been quicker.
    pub cleared: u64,
}

/// See the file's head. All but `heard` and `keeps_slot` with the fence's lock held; waits for nobody.
pub(super) trait Peers: Send + Sync + Debug {
    /// What the own waiters wait for is this MonitoredValue. If that is news the others are called.
    fn await_own(&self, monitored_value: u64);

    /// The least of what all wait for, for the own engines. Whom CurrentValue satisfies is told, and not
    /// waited for; whom the value of a record satisfies is told. `None` where the own slot is lost: then
    /// nothing is stored there.
    fn least(&self, own: u64, current_value: &dyn Fn() -> u64, recorded: u64) -> Option<u64>;

    /// CurrentValue is about to be stored backwards, or was before there were others.
    fn rewind(&self);

    /// The greatest value that this system was told of since the last call; 0 for none.
    #[must_use]
    fn reached(&self) -> u64;

    /// This system was called; or the process may have ended that has slot `ended`.
    fn heard(&self, ended: Option<usize>);

    /// The others are to look again.
    fn call(&self);

    /// This one is to look again, when whoever has the fence's lock has let it go.
    fn look_again(&self);

    /// Whether the own slot is the own one; one that is free is taken again.
    fn keeps_slot(&self) -> bool;

    /// What was told and heard so far.
    fn counters(&self) -> PeerCounters;
}
