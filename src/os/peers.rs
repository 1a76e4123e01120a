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
//!   word and tells B. CPU signals of several systems are ordered by their users: of two at the same time
//!   the one that is stored last counts, and of the other nobody is told.
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
//! **What is told says of when it is.** A tells B a value N, and is held up between its read of CurrentValue
//! and that. Meanwhile CurrentValue may be stored backwards, by B's own CPU or another's, and a waiter for N
//! come to B that has seen the lower value: N is nothing to it. But what A reads after that waiter has come
//! satisfies it, however soon A's CPU takes the value away again (NF-26). The two are told apart by the word
//! that N is told in (`reached_words`): on a fence that was ever rewound each waiter of B's comes with
//! another one, after it has seen CurrentValue and before its own word is stored. A looks which it is, says in
//! its slot that it tells in it, then a fence; and only then it reads what it tells. B, when a waiter has seen
//! CurrentValue, makes a fence too, looks who tells in which word, and takes one that nobody tells in and that
//! is empty.
//! - If A tells in the word that the waiter comes with, then B did not find that it does: of the two fences
//!   B's came first, and A reads CurrentValue as the waiter has seen it or as it was later. If A reads N then,
//!   it became that while the waiter waited.
//! - If A tells in a word that waiters came with later, the more so.
//! - If A tells in an earlier one, that satisfies earlier waiters alone. A has looked for the word after the
//!   fence that follows its store, and has not seen that B changed it; so of that fence and B's before it reads
//!   CurrentValue again, A's came first, and B finds what A has stored: nothing is lost to the waiter. If B
//!   finds a later, lower value instead, the waiter has come at the same time as N and as a rewind of it by a
//!   third, and counts as one that came after both.
//! - A process that is killed while it tells keeps one word from being used until its slot has another owner;
//!   there are enough.
//!
//! **That a fence is always signaled** (`always_signaled`) is a word of the page, which goes from 0 to 1 once.
//! Who stores it makes a fence, reads whose the slots are, and calls them; who takes a slot makes a fence too and
//! reads the word: of the two one comes first. Who dies between the word and the calls is an event to all others,
//! and they read it then.
//!
//! **A program that calls exec** goes on as the same process, without the fence: nobody is told that its slot
//! is left, which counts on until the process ends. What its waiters waited for is monitored, and nobody is
//! woken by that. The system has no event for it, and what would make one, a descriptor of each opener's in
//! each other's hands, is more than it is worth: close the fences before.
//!
//! **Who writes to the page is not trusted.** A settling ends after a few rounds whatever others store
//! ([`Peers::look_again`]). Who finds that its slot is not its own takes it again where it is free, and
//! else ends its waits with an error, since nobody would tell it anything. What it has said in the slot since, over
//! what the next owner says there, that one is called to say again.

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
    /// Others whose end will not be noticed, for want of a descriptor or since `/proc` hides them, until their
    /// slots are needed.
    pub unwatched: u64,
}

/// A value that others told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reached {
    pub(super) value: u64,
    /// It satisfies waiters whose numbers in their list are less.
    pub(super) before: u64,
}

/// See the file's head. Waits for nobody. What reads or changes the own slot's words, but for `keeps_slot`,
/// with the fence's lock held.
pub(super) trait Peers: Send + Sync + Debug {
    /// What the own waiters wait for is this MonitoredValue. If that is news the others are called.
    fn await_own(&self, monitored_value: u64);

    /// The least of what all wait for, for the own engines. Whom CurrentValue satisfies is told, and not
    /// waited for; whom the value of a record satisfies is told. `None` where the own slot is lost: then
    /// nothing is stored there.
    fn least(&self, own: u64, current_value: &dyn Fn() -> u64, recorded: u64) -> Option<u64>;

    /// CurrentValue is about to be stored backwards, or was before there were others.
    fn rewind(&self);

    /// How often any system's CPU has stored CurrentValue backwards: a number that changes before it is.
    #[must_use]
    fn rewinds(&self) -> u64;

    /// The fence is always signaled, and all are to know it.
    fn always_signal(&self);

    /// Whether any system has said so.
    #[must_use]
    fn is_always_signaled(&self) -> bool;

    /// Whether another system has it open.
    #[must_use]
    fn has_others(&self) -> bool;

    /// The values that this system was told of since the last call.
    #[must_use]
    fn reached(&self) -> Vec<Reached>;

    /// An own waiter comes, with this number in the list, after [`Peers::reached`]: what others read of
    /// CurrentValue before says nothing to it.
    fn waiter_comes(&self, number: u64);

    /// This system was called; or the process may have ended that has slot `ended`. Says what was to be said
    /// and could not with the fence's lock held.
    fn heard(&self, ended: Option<usize>);

    /// The others are to look again.
    fn call(&self);

    /// This one is to look again, when whoever has the fence's lock has let it go.
    fn look_again(&self);

    /// Whether the own slot is the own one; one that is free is taken again, and what it is to say there is said again.
    fn keeps_slot(&self) -> bool;

    /// What was told and heard so far.
    fn counters(&self) -> PeerCounters;
}
