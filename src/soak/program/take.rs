//! Takes: words that one queue stores and another one copies to its own.
//!
//! The taker waits for a value that the owner signals; what the owner has stored before that signal, and stores to no more
//! behind it, is what the taker reads (HQ-08), whatever was run first. Who reads it sooner, or an engine that signals
//! sooner, takes other words, which are part of the outcome.

use super::super::Random;
use super::{Command, Held, KernelSignals, Mode, Named, Program, Words};

/// Words that are taken at a time, at most.
const MOST: u64 = 64;

impl Program {
    /// Adds takes behind some waits; `may_name` is whether the first of two queues can name memory of the second.
    pub fn add_takes(&mut self, random: &mut Random, may_name: impl Fn(usize, usize) -> bool) {
        // None is taken to there.
        let mut taken: Vec<(usize, Words)> = Vec::new();
        for taker in 0..self.queues.len() {
            let mut at = 0;
            while let Some(command) = self.queues[taker].commands.get(at).copied() {
                at += 1;
                let Command::Wait(Named::Fence(fence), value) = command else {
                    continue;
                };
                let signal = self.signal_of(fence, value);
                let Some((owner, signal)) = signal.filter(|_| random.below(2) == 0) else {
                    continue;
                };
                if owner == taker || !may_name(taker, owner) {
                    continue;
                }
                let Some(words) = self.kept_words(random, owner, signal) else {
                    continue;
                };
                let to = *random.pick(&Held::ALL);
                let first = random.below(to.words() - words.count + 1);
                let to = Words {
                    of: to,
                    first,
                    count: words.count,
                };
                let is_free = |(of, words): &(usize, Words)| *of != taker || !words.overlaps(to);
                if taken.iter().all(is_free) {
                    taken.push((owner, words));
                    let take = Command::Take {
                        queue: owner,
                        from: words.of,
                        first: words.first,
                        to,
                    };
                    self.queues[taker].commands.insert(at, take);
                    at += 1;
                }
            }
        }
    }

    /// Leaves out takes whose words may be others now, after something was left out.
    pub fn leave_out_unguarded(&mut self, may_name: impl Fn(usize, usize) -> bool) {
        for taker in 0..self.queues.len() {
            for at in 0..self.queues[taker].commands.len() {
                if let Command::Take {
                    queue,
                    from,
                    first,
                    to,
                } = self.queues[taker].commands[at]
                {
                    let words = Words {
                        of: from,
                        first,
                        count: to.count,
                    };
                    if !may_name(taker, queue) || !self.is_guarded((taker, at), queue, words) {
                        self.queues[taker].commands[at] = Command::Nop;
                    }
                }
            }
        }
    }

    /// Whether a command is behind a wait after which the owner of the words stores to them no more.
    fn is_guarded(&self, (taker, at): (usize, usize), owner: usize, words: Words) -> bool {
        let mut before = self.queues[taker].commands[..at].iter();
        before.any(|command| match *command {
            Command::Wait(Named::Fence(fence), value) => self
                .signal_of(fence, value)
                .is_some_and(|(by, signal)| by == owner && self.is_kept(owner, signal, words)),
            _ => false,
        })
    }

    /// Words that a queue has stored before a signal of its and stores to no more.
    fn kept_words(&self, random: &mut Random, queue: usize, signal: usize) -> Option<Words> {
        let stored = self.queues[queue].commands[..signal].iter();
        let stored = stored.filter_map(Command::stores);
        let stored = stored.filter(|words| words.count > 0);
        let some = stored.map(|words| Words {
            count: words.count.min(MOST),
            ..words
        });
        let kept: Vec<_> = some
            .filter(|words| self.is_kept(queue, signal, *words))
            .collect();
        (!kept.is_empty()).then(|| *random.pick(&kept))
    }

    /// Whether no command behind a signal of the queue stores to these words of its.
    fn is_kept(&self, queue: usize, signal: usize, words: Words) -> bool {
        let mut behind = self.queues[queue].commands[signal..].iter();
        behind.all(|command| command.stores().is_none_or(|to| !to.overlaps(words)))
    }

    /// The queue whose signal lets a wait go on, and where that stands in it. Not what is signalled when it was submitted:
    /// that says nothing of what was stored.
    fn signal_of(&self, fence: usize, value: u64) -> Option<(usize, usize)> {
        if value <= self.initial[fence] {
            return None;
        }
        let reaches = |command: &Command| matches!(*command, Command::Signal(of, to) if of == fence && to >= value);
        let mut queues = self.queues.iter().enumerate();
        queues.find_map(|(at, queue)| {
            let signal = queue.commands.iter().position(reaches)?;
            (queue.mode != Mode::Kernel(KernelSignals::AtSubmission)).then_some((at, signal))
        })
    }
}
