//! Hand-off between devices with timeline semaphores, which devices do not share: a thread waits for
//! the one's and signals the other's.

use super::{reached, submit_links};
use crate::sync::Arc;
use crate::vulkan::{Queue, Timeline};
use crate::workload::{Counts, Params, Runner, Sample};
use anyhow::Context;
use std::time::Instant;

const LINKS: u64 = 64;

/// See the module's page.
#[derive(Debug)]
pub struct Relay {
    sides: [Side; 2],
    value: u64,
}

/// A device with the links that are its own: each waits for `gate` and raises `done`.
#[derive(Debug)]
struct Side {
    queue: Queue,
    gate: Timeline,
    done: Timeline,
}

impl Side {
    fn new(queue: Queue) -> anyhow::Result<Self> {
        let device = Arc::clone(queue.device());
        Ok(Self {
            queue,
            gate: Timeline::new(&device, 0)?,
            done: Timeline::new(&device, 0)?,
        })
    }
}

impl Relay {
    /// Between two queues of different devices.
    ///
    /// # Errors
    /// The driver gives no timeline.
    pub fn new([first, second]: [Queue; 2]) -> anyhow::Result<Self> {
        Ok(Self {
            sides: [Side::new(first)?, Side::new(second)?],
            value: 0,
        })
    }
}

impl Runner for Relay {
    fn work(&self) -> &'static str {
        "Two devices, which cannot share a timeline semaphore, each with a chain of submissions that \
         were made before; a thread sleeps in vkWaitSemaphores for the one's and calls \
         vkSignalSemaphore for the other's, 64 times; measured is from the first signal to the last \
         wait."
    }

    fn params(&self) -> Params {
        [
            ("variant".into(), "relayed by the CPU".into()),
            ("links".into(), LINKS.into()),
        ]
        .into()
    }

    fn ops_per_batch(&self) -> u64 {
        LINKS
    }

    fn prepare(&mut self) -> anyhow::Result<()> {
        let values = self.value + 1..=self.value + LINKS / 2;
        let mut sides = self.sides.iter_mut();
        sides.try_for_each(|side| {
            submit_links(&mut side.queue, &side.gate, &side.done, values.clone())
        })
    }

    fn batch(&mut self) -> anyhow::Result<Sample> {
        let start = Instant::now();
        for _ in 0..LINKS / 2 {
            self.value += 1;
            for side in &self.sides {
                side.gate.signal(self.value)?;
                reached(&side.done, self.value).context("a link did not end")?;
            }
        }
        Ok(Sample::whole(start.elapsed()))
    }

    fn counts(&self) -> Counts {
        Counts {
            submits: self.sides.iter().map(|side| side.queue.submits()).sum(),
            notifications: None,
        }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        // A batch that was prepared and not run would hold up the queues' drop for ever.
        for side in &self.sides {
            let _passed = side.gate.signal(self.value + LINKS / 2);
        }
    }
}
