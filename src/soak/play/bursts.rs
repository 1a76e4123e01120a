//! Bursts: their queues are kept full, and each look at a log checks what was executed since the one before.
//!
//! What the log has lost is overwritten, and still counted: its index goes on by one with each signal. So the number of
//! signals that an engine executed is checked one by one, and their values and order as far as the log holds them.

use super::Counted;
use super::scene::Burster;
use crate::CommandList;
use crate::soak::Random;
use crate::soak::outcome::BurstOutcome;
use std::time::{Duration, Instant};

/// Executes all.
pub(super) fn run(
    bursts: &mut [Burster],
    patience: Duration,
    seed: u64,
    counted: &Counted,
) -> Result<Vec<BurstOutcome>, String> {
    let random = &mut Random(seed);
    let deadline = Instant::now() + patience;
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
                let first = number * burster.burst.signals;
                let value = first + random.below(burster.burst.signals + 1);
                Counted::add(&counted.cpu_waits, 1);
                let woken = burster.fence.wait(value, patience);
                woken.map_err(|error| format!("burst {at}: a wait for {value}: {error}"))?;
            }
            log.look(burster)?;
        }
    }
    let mut outcomes = Vec::new();
    for (at, (burster, mut log)) in bursts.iter_mut().zip(logs).enumerate() {
        let progress = burster.queue.progress_fence().clone();
        let ended = progress.wait(burster.burst.lists, patience);
        ended.map_err(|error| format!("burst {at} does not end: {error}"))?;
        burster
            .until_taken(deadline)
            .map_err(|taken| format!("burst {at} takes {taken} packets only"))?;
        log.look(burster)?;
        Counted::add(&counted.entries_read, log.read);
        outcomes.push(BurstOutcome {
            value: burster.fence.current_value(),
            progress: progress.current_value(),
            logged: log.read + log.lost,
            wrong: log.wrong,
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
        let first = number * self.burst.signals;
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
            let before = value.checked_sub(1)?;
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
