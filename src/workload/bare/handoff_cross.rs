//! Hand-off between engines of the bare control: two dispatches of two queues pass two words to and
//! fro.

use super::lines::{ANSWERS, WORDS};
use super::together::Together;
use super::{Dispatch, Width, page, party};
use crate::sync::Arc;
use crate::vulkan::{Queue, shaders};
use crate::workload::{Counts, Params, Runner, Sample};
use std::time::Instant;

const ROUNDS: u64 = 128;
/// Looks in vain after which the other is taken for not running: some 0.2 ms, more than it takes to
/// begin and a hundred times what a hand-off takes.
const MOST_SILENCE: u32 = 8_000;

/// See the module's page.
#[derive(Debug)]
pub struct HandoffCross {
    sides: [Dispatch; 2],
    width: Width,
    one_device: bool,
    together: Together,
}

impl HandoffCross {
    /// On two queues, of one device or of two.
    ///
    /// # Errors
    /// The driver takes no shader or no memory.
    pub fn new([first, second]: [Queue; 2]) -> anyhow::Result<Self> {
        let one_device = Arc::ptr_eq(first.device(), second.device());
        let width = Width::of(first.device());
        let shader = width.shader(&shaders::BARE_HANDOFF, &shaders::BARE_HANDOFF_NARROW);
        let page = page()?;
        let side = |role, queue: Queue| {
            let spec = party(queue.device(), role, ROUNDS, MOST_SILENCE);
            Dispatch::over(&page, queue, shader, &spec)
        };
        Ok(Self {
            sides: [side(0, first)?, side(1, second)?],
            width,
            one_device,
            together: Together::new(),
        })
    }

    /// `None` where one of the two gave up.
    fn attempt([first, second]: &mut [Dispatch; 2]) -> anyhow::Result<Option<Sample>> {
        for line in WORDS {
            first.put(line, 0);
        }
        let start = Instant::now();
        second.submit()?;
        first.submit()?;
        first.wait()?;
        let wall = start.elapsed();
        second.wait()?;
        let answered = ANSWERS.map(|line| first.word(line)) == [ROUNDS; 2];
        Ok(answered.then(|| Sample::whole(wall)))
    }
}

impl Runner for HandoffCross {
    fn work(&self) -> &'static str {
        if self.one_device {
            "Two dispatches of two queues of one device pass two words to and fro, 128 times there \
             and back; measured is from the first vkQueueSubmit to the end of the one that began; \
             no packet, no log."
        } else {
            "Two dispatches of two devices of two instances pass two words to and fro, 128 times \
             there and back; measured is from the first vkQueueSubmit to the end of the one that \
             began; no packet, no log."
        }
    }

    fn params(&self) -> Params {
        let mut params: Params = [
            ("rounds".into(), ROUNDS.into()),
            ("bits".into(), self.width.bits().into()),
        ]
        .into();
        self.together.tell(&mut params);
        params
    }

    fn ops_per_batch(&self) -> u64 {
        2 * ROUNDS
    }

    fn batch(&mut self) -> anyhow::Result<Sample> {
        self.together.batch(|| Self::attempt(&mut self.sides))
    }

    fn counts(&self) -> Counts {
        Counts {
            submits: self.sides.iter().map(|side| side.counts().submits).sum(),
            notifications: None,
        }
    }
}
