//! Dispatches of a queue, until it is known when they ran.
//!
//! A queue executes in order. So one began after the packets before it were done, and ended before those behind it were
//! looked at: each wait and each signal that was logged tells of the dispatches beside it, which know by their numbers where
//! they stand. Where the engine logs a dispatch itself, its own times are taken.

use super::super::log_buffer::LogRead;
use crate::abi::{LogEntry, LogOperation};
use crate::trace::{Dispatch, Numbered, Operation};
use std::collections::VecDeque;

/// One that was queued, with an engine's times in its ticks.
#[derive(Clone, Copy, Debug)]
struct Open {
    /// Running index of its packet.
    packet: u64,
    kernel: u32,
    groups: Option<[u32; 3]>,
    /// CLOCK_MONOTONIC.
    queued: u64,
    /// Running numbers of the wait and of the signal that come next behind it.
    next: [u64; 2],
    /// The latest end of those before it.
    began: Option<u64>,
    /// The earliest beginning of those behind it.
    end: Option<u64>,
}

/// See the file's head.
#[derive(Debug, Default)]
pub(super) struct Dispatches {
    open: VecDeque<Open>,
    /// How many of them, from the first on, a wait or a signal behind them has shown to be done.
    passed: [usize; 2],
    /// Running index of the packet that was logged last.
    last: Option<u64>,
}

impl Dispatches {
    /// One was queued.
    pub(super) fn queued(&mut self, numbered: Numbered, queued: u64) {
        self.open.push_back(Open {
            packet: numbered.packet,
            kernel: numbered.command.handle,
            groups: numbered.command.groups(),
            queued,
            next: numbered.next,
            began: None,
            end: None,
        });
    }

    /// The wait or the signal of this number was logged: looked at first and done at these times.
    pub(super) fn beside(&mut self, operation: Operation, number: u64, (first, end): (u64, u64)) {
        let which = operation as usize;
        while let Some(open) = self.open.get_mut(self.passed[which])
            && open.next[which] <= number
        {
            open.end = Some(open.end.map_or(first, |known| known.min(first)));
            self.passed[which] += 1;
        }
        let behind = self.open.iter_mut().skip(self.passed[which]);
        for open in behind.take_while(|open| open.next[which] == number + 1) {
            open.began = open.began.max(Some(end));
        }
    }

    /// What the engine logged of them itself; one that was queued before anybody recorded has no more than that.
    pub(super) fn logged(&mut self, queue: u32, read: &LogRead) -> Vec<Dispatch> {
        let is_dispatch = |entry: &&LogEntry| entry.operation == LogOperation::DispatchDone as u32;
        let mut logged = Vec::new();
        for entry in read.entries.iter().filter(is_dispatch) {
            let packet = entry.fence_value;
            // An engine that came to another's place may have logged it again.
            if self.last.is_some_and(|last| packet <= last) {
                continue;
            }
            self.last = Some(packet);
            let at = self.open.partition_point(|open| open.packet < packet);
            // Of those before it this is the next thing that is known.
            for before in self.open.iter_mut().take(at) {
                let end = entry.observed_ticks;
                before.end = Some(before.end.map_or(end, |known| known.min(end)));
            }
            let is_it = |open: &&Open| (open.packet, open.kernel) == (packet, entry.native_fence);
            let open = self.open.get(at).filter(is_it).copied();
            if open.is_some() {
                self.open.remove(at);
                for passed in &mut self.passed {
                    *passed -= usize::from(*passed > at);
                }
            }
            logged.push(Dispatch {
                queue,
                kernel: entry.native_fence,
                groups: open.and_then(|open| open.groups),
                queued: open.map(|open| open.queued),
                began: Some(entry.observed_ticks),
                end: Some(entry.end_ticks),
                is_logged: true,
            });
        }
        logged
    }

    /// Those that are done by what is known of their neighbours: given once. And then those that are not, or of which nobody
    /// knows.
    pub(super) fn rest(&mut self, queue: u32) -> Vec<Dispatch> {
        let done = self.open.iter().take_while(|open| open.end.is_some());
        let done = done.count();
        let all: Vec<_> = self.open.iter().map(|open| open.event(queue)).collect();
        self.open.drain(..done);
        for passed in &mut self.passed {
            *passed = passed.saturating_sub(done);
        }
        all
    }
}

impl Open {
    fn event(&self, queue: u32) -> Dispatch {
        Dispatch {
            queue,
            kernel: self.kernel,
            groups: self.groups,
            queued: Some(self.queued),
            began: self.began,
            end: self.end,
            is_logged: false,
        }
    }
}
