//! Bystander: a queue of an innocent program, which signals and waits all the time, whatever others do.

use crate::sync::plain::{Mutex, lock};
use crate::sync::{Arc, AtomicBool, Ordering, thread};
use crate::{CommandList, Device, Fence, HwQueue, HwQueueOptions};
use anyhow::Context;
use std::time::{Duration, Instant};

/// Between two submissions: the processors are for engines, where the device is a CPU.
const PAUSE: Duration = Duration::from_micros(500);

/// A signal was submitted, and waited for.
#[derive(Clone, Copy, Debug)]
struct Turn {
    began: Instant,
    ended: Instant,
}

#[derive(Debug, Default)]
struct Turns {
    stops: AtomicBool,
    done: Mutex<Done>,
}

#[derive(Debug, Default)]
struct Done {
    turns: Vec<Turn>,
    /// Why there are no more.
    error: Option<String>,
}

/// See the file's head.
#[derive(Debug)]
pub(crate) struct Bystander {
    turns: Arc<Turns>,
    thread: Option<thread::JoinHandle<()>>,
}

/// What it went through between two moments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stretch {
    /// Submissions that completed.
    pub(crate) completed: u64,
    /// The longest time of one that was under way then.
    pub(crate) longest: Duration,
}

/// A queue of the device on this node.
pub(crate) fn queue_on(device: &Device, node_ordinal: u32) -> anyhow::Result<HwQueue> {
    let options = HwQueueOptions {
        node_ordinal,
        ..HwQueueOptions::default()
    };
    Ok(device.create_hw_queue_with(options)?)
}

impl Bystander {
    /// One more queue of a program, at work; a submission that takes longer than `patience` is its end.
    pub(crate) fn start(
        device: &Device,
        node_ordinal: u32,
        patience: Duration,
    ) -> anyhow::Result<Self> {
        let queue = queue_on(device, node_ordinal)?;
        let fence = device.create_fence(0)?;
        let turns = Arc::new(Turns::default());
        let run = {
            let turns = Arc::clone(&turns);
            move || turns.go_on(queue, &fence, patience)
        };
        let thread = thread::Builder::new().spawn(run).context("no thread")?;
        Ok(Self {
            turns,
            thread: Some(thread),
        })
    }

    /// When the first submission completed that did so after this moment.
    pub(crate) fn first_completed_after(&self, moment: Instant) -> Option<Instant> {
        let done = lock(&self.turns.done);
        let mut turns = done.turns.iter();
        Some(turns.find(|turn| turn.ended > moment)?.ended)
    }

    /// Waits for that one, unless there are none any more.
    pub(crate) fn wait_for_one_after(&self, moment: Instant) -> Option<Instant> {
        loop {
            let has_ended = self.error().is_some();
            let first = self.first_completed_after(moment);
            if first.is_some() || has_ended {
                return first;
            }
            thread::sleep(PAUSE);
        }
    }

    /// Waits until there are none any more, or for so long.
    pub(crate) fn wait_for_end(&self, most: Duration) {
        let begin = Instant::now();
        while self.error().is_none() && begin.elapsed() < most {
            thread::sleep(PAUSE);
        }
    }

    /// What became of it between these moments.
    pub(crate) fn between(&self, from: Instant, to: Instant) -> Stretch {
        let done = lock(&self.turns.done);
        let turns = done.turns.iter();
        let turns = turns.filter(|turn| turn.ended >= from && turn.began <= to);
        let times = turns.clone().map(|turn| turn.ended - turn.began);
        Stretch {
            completed: turns.filter(|turn| turn.ended <= to).count() as u64,
            longest: times.max().unwrap_or_default(),
        }
    }

    /// Why it does not go on, if so.
    pub(crate) fn error(&self) -> Option<String> {
        lock(&self.turns.done).error.clone()
    }
}

impl Drop for Bystander {
    fn drop(&mut self) {
        self.turns.stops.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            eprintln!("nfence: a thread that submits panicked");
        }
    }
}

impl Turns {
    fn go_on(&self, mut queue: HwQueue, fence: &Fence, patience: Duration) {
        for value in 1.. {
            if self.stops.load(Ordering::Relaxed) {
                return;
            }
            let began = Instant::now();
            let mut list = CommandList::new();
            let submitted = queue.submit(list.signal(fence, value));
            let submitted = submitted.map_err(|error| error.to_string());
            let waited = submitted.and_then(|_| {
                let waited = fence.wait(value, patience);
                waited.map_err(|error| error.to_string())
            });
            let ended = Instant::now();
            let mut done = lock(&self.done);
            if let Err(error) = waited {
                done.error = Some(error);
                return;
            }
            done.turns.push(Turn { began, ended });
            drop(done);
            thread::sleep(PAUSE);
        }
    }
}
