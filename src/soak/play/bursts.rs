//! Bursts: their queues are kept full, and each look at a log checks what was executed since the one before.
//!
//! What the log has lost is overwritten, and still counted: its index goes on by one with each signal. So the number of
//! signals that an engine executed is checked one by one, and their values and order as far as the log holds them.

use super::Counted;
use super::collect;
use super::waits::{one, released};
use crate::soak::outcome::{BurstOutcome, WaitEnd};
use crate::soak::round::Burst;
use crate::soak::{Random, Stage};
use crate::{CommandList, Fence, HwQueue};
use std::time::{Duration, Instant};

/// A queue of a burst.
#[derive(Debug)]
pub(super) struct Burster {
    pub(super) burst: Burst,
    pub(super) queue: HwQueue,
    pub(super) fence: Fence,
    /// Interrupts may name its fence, though nobody ever waited for it.
    pub(super) may_be_named: bool,
}

/// Executes all.
pub(super) fn run(
    stage: &Stage,
    bursts: &mut [Burster],
    seed: u64,
    counted: &Counted,
) -> Result<Vec<BurstOutcome>, String> {
    let (random, patience) = (&mut Random(seed), stage.patience);
    let mut logs: Vec<_> = bursts.iter().map(|_| Checked::default()).collect();
    let mut list = CommandList::new();
    let most = bursts.iter().map(|burster| burster.burst.lists).max();
    for number in 0..most.unwrap_or(0) {
        for (at, (burster, log)) in bursts.iter_mut().zip(&mut logs).enumerate() {
            if number >= burster.burst.lists {
                continue;
            }
            burster
                .submit(&mut list, number, patience)
                .map_err(|how| format!("burst {at}: {how}"))?;
            if random.below(8) == 0 {
                // Somebody sleeps for a value in the midst of it.
                let first = burster.burst.initial + number * burster.burst.signals;
                let value = first + random.below(burster.burst.signals + 1);
                Counted::add(&counted.cpu_waits, 1);
                let end = released(patience, |time| one(burster.fence.wait(value, time)));
                match end {
                    WaitEnd::Came => {}
                    WaitEnd::TimedOut => {
                        let stands = burster.fence.current_value();
                        return Err(format!(
                            "burst {at}: a wait for {value} was not woken, and its fence is at {stands}"
                        ));
                    }
                    WaitEnd::Failed(how) => {
                        return Err(format!("burst {at}: a wait for {value}: {how}"));
                    }
                    WaitEnd::Dropped | WaitEnd::Closed | WaitEnd::Lost => {
                        return Err(format!("burst {at}: a wait for {value} ended: {end:?}"));
                    }
                }
            }
            log.look(burster)?;
        }
    }
    let mut outcomes = Vec::new();
    for (at, (burster, mut log)) in bursts.iter_mut().zip(logs).enumerate() {
        let progress = burster.queue.progress_fence().clone();
        let ended = progress.wait(burster.burst.lists, patience);
        ended.map_err(|error| format!("burst {at} does not end: {error}"))?;
        // Whatever the burst itself has taken is not taken from this.
        let deadline = Instant::now() + patience;
        burster
            .until_taken(deadline)
            .map_err(|taken| format!("burst {at} takes {taken} packets only"))?;
        let before = [log.read, log.lost];
        log.look(burster)?;
        Counted::add(&counted.entries_read, log.read);
        outcomes.push(BurstOutcome {
            value: burster.fence.current_value(),
            progress: progress.current_value(),
            logged: log.read + log.lost,
            last_look: [log.read - before[0], log.lost - before[1]],
            wrong: log.wrong,
            fence: collect::fence_end(&burster.fence, burster.may_be_named, deadline),
        });
    }
    Ok(outcomes)
}

impl Burster {
    fn submit(
        &mut self,
        list: &mut CommandList,
        number: u64,
        patience: Duration,
    ) -> Result<(), String> {
        list.clear();
        let first = self.burst.initial + number * self.burst.signals;
        for value in first + 1..=first + self.burst.signals {
            list.signal(&self.fence, value);
        }
        let submitted = self.queue.submit_blocking(list, patience);
        submitted.map(|_| ()).map_err(|error| error.to_string())
    }

    /// The progress value is stored before its log entry is, and the read index after both.
    fn until_taken(&self, deadline: Instant) -> Result<(), u64> {
        let packets = self.burst.lists * (self.burst.signals + 1);
        loop {
            match self.queue.read_index() {
                taken if taken >= packets => return Ok(()),
                taken if Instant::now() > deadline => return Err(taken),
                _ => std::thread::yield_now(),
            }
        }
    }

    /// Which entry of its log of signals this is, counted from 0; none that is due where `None`.
    fn place(&self, handle: u32, value: u64) -> Option<u64> {
        let signals = self.burst.signals;
        if handle == self.fence.handle().raw() {
            let before = value.checked_sub(self.burst.initial + 1)?;
            Some(before + before / signals)
        } else if handle == self.queue.progress_fence().handle().raw() {
            Some((signals + 1).checked_mul(value)? - 1)
        } else {
            None
        }
    }
}

/// What was read of a log.
#[derive(Debug, Default)]
struct Checked {
    read: u64,
    lost: u64,
    /// The entry that is due next, at the earliest.
    next: u64,
    wrong: Option<String>,
}

impl Checked {
    fn look(&mut self, burster: &Burster) -> Result<(), String> {
        let read = burster.queue.read_signal_log();
        let read = read.map_err(|error| format!("a log is not read: {error}"))?;
        let mut complaints = Vec::new();
        if read.refused > 0 {
            complaints.push(format!("{} words that no log can hold", read.refused));
        }
        for entry in &read.entries {
            let place = burster.place(entry.native_fence, entry.fence_value);
            match place.filter(|place| *place >= self.next) {
                Some(place) => self.next = place + 1,
                None => complaints.push(format!(
                    "the log has value {} of fence {:#x} after {} entries",
                    entry.fence_value, entry.native_fence, self.next
                )),
            }
        }
        self.read += read.entries.len() as u64;
        self.lost += read.lost;
        // Entries that were lost lie between those that were read: none stands further on than there are.
        if self.next > self.read + self.lost {
            complaints.push(format!(
                "the log comes to entry {} and has counted {}",
                self.next,
                self.read + self.lost
            ));
        }
        if self.wrong.is_none() {
            self.wrong = complaints.into_iter().next();
        }
        Ok(())
    }
}
