//! Storm with timeline semaphores: 64 of them, raised together by submissions without work.
//!
//! The fastest form that is still the same work: one submission raises all 64, so a thousand signals
//! of a semaphore are a thousand submissions, and those go in few calls. It ties the 64 together,
//! which hardware queues are not.

use super::reached;
use crate::sync::Arc;
use crate::vulkan::{Device, Queue, Submission, Timeline};
use crate::workload::native::StormForm;
use crate::workload::sleeper::Sleeper;
use crate::workload::{Counts, Params, Runner, Sample};
use anyhow::Context;
use std::time::Instant;

const TIMELINES: u64 = 64;
/// Signals of each timeline in a batch: fewer than those of the native storm, since each costs much
/// more; the figures are of one signal.
const SIGNALS: u64 = 128;
/// Submissions of one `vkQueueSubmit` where they are made in the measured time.
const CHUNK: u64 = 64;

/// See the module's page.
pub struct Storm {
    form: StormForm,
    timelines: Vec<Timeline>,
    /// Holds back the submissions that are made before the measured time.
    gate: Timeline,
    gate_value: u64,
    queue: Queue,
    value: u64,
    sleeper: Sleeper,
}

impl Storm {
    /// On a queue of a device.
    ///
    /// # Errors
    /// The driver gives no queue or no timeline.
    pub fn new(device: &Arc<Device>, form: StormForm) -> anyhow::Result<Self> {
        let timelines = (0..TIMELINES).map(|_| Timeline::new(device, 0));
        Ok(Self {
            form,
            timelines: timelines.collect::<Result<_, _>>()?,
            gate: Timeline::new(device, 0)?,
            gate_value: 0,
            queue: device.queue(0).context("the device gives out no queue")?,
            value: 0,
            sleeper: Sleeper::new()?,
        })
    }

    fn submit(&mut self, after: u64, signals: u64, gate: Option<u64>) -> anyhow::Result<()> {
        let values: Vec<Vec<_>> = (1..=signals)
            .map(|signal| {
                let raise = |timeline| (timeline, after + signal);
                self.timelines.iter().map(raise).collect()
            })
            .collect();
        let gate = gate.map(|value| (&self.gate, value));
        let submissions: Vec<_> = values
            .iter()
            .enumerate()
            .map(|(number, signals)| Submission {
                commands: &[],
                // What is submitted later signals later, so the first one's wait holds all.
                waits: if number == 0 { gate.as_slice() } else { &[] },
                signals,
            })
            .collect();
        self.queue.submit(&submissions)?;
        Ok(())
    }
}

impl Runner for Storm {
    fn work(&self) -> &'static str {
        match self.form {
            StormForm::Filled => {
                "128 submissions without command buffers signal 64 timeline semaphores each, one of \
                 which has a CPU waiter; all are submitted before and held back by another \
                 semaphore, measured is from vkSignalSemaphore of that until all 64 are reached and \
                 the waiter has returned (an eighth of the native storm's signals, and the 64 are \
                 tied together)."
            }
            StormForm::Live => {
                "128 submissions without command buffers signal 64 timeline semaphores each, one of \
                 which has a CPU waiter, 64 submissions a vkQueueSubmit; measured is from the first \
                 call until all 64 are reached and the waiter has returned (an eighth of the native \
                 storm's signals, and the 64 are tied together)."
            }
        }
    }

    fn params(&self) -> Params {
        let submissions = match self.form {
            StormForm::Filled => SIGNALS,
            StormForm::Live => CHUNK,
        };
        [
            ("form".into(), self.form.name().into()),
            ("timelines".into(), TIMELINES.into()),
            ("signals_per_timeline".into(), SIGNALS.into()),
            ("submissions_per_vkQueueSubmit".into(), submissions.into()),
            ("watched_timelines".into(), 1.into()),
        ]
        .into()
    }

    fn ops_per_batch(&self) -> u64 {
        TIMELINES * SIGNALS
    }

    fn prepare(&mut self) -> anyhow::Result<()> {
        if self.form == StormForm::Filled {
            self.submit(self.value, SIGNALS, Some(self.gate_value + 1))?;
        }
        let (watched, last) = (self.timelines[0].clone(), self.value + SIGNALS);
        self.sleeper.begin(move || reached(&watched, last))
    }

    fn batch(&mut self) -> anyhow::Result<Sample> {
        let start = Instant::now();
        match self.form {
            StormForm::Filled => {
                self.gate_value += 1;
                self.gate.signal(self.gate_value)?;
            }
            StormForm::Live => {
                for after in (0..SIGNALS).step_by(CHUNK as usize) {
                    self.submit(self.value + after, CHUNK, None)?;
                }
            }
        }
        self.value += SIGNALS;
        for timeline in &self.timelines {
            reached(timeline, self.value)?;
        }
        self.sleeper.end()?;
        Ok(Sample::whole(start.elapsed()))
    }

    fn counts(&self) -> Counts {
        Counts {
            submits: self.queue.submits(),
            notifications: None,
        }
    }
}

impl Drop for Storm {
    fn drop(&mut self) {
        // A batch that was prepared and not run would hold up the queue's drop for ever.
        let _passed = self.gate.signal(self.gate_value + 1);
    }
}
