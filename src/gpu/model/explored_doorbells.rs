//! Explored doorbells: an engine that rings, and one that hears, as loom explores them.
//!
//! Lines and words, and what is done with them, are the real ones; the rest of the engines is left out: a queue that waits
//! is what is closed, and looks at its fence.

use super::clock::Ticks;
use super::cross_doorbell::{begin_hearing, prepare_hearing, ring, say_what_was_taken};
use super::cut::{CutPlan, Passes};
use super::lane::{Globals, Lane, Shared};
use super::memory::ModelMemory;
use super::violation::Checked;
use super::write_back::Arrival;
use crate::abi::{CrossDoorbellIndex, CrossDoorbells, EngineControl, PAGE_BYTES, WordGroup};
use crate::gpu::{EngineAddress, MapError, ModelOptions, SliceWork};
use crate::shared::Region;
use crate::sync::{Arc, thread};

/// Line of the engine that rings; the one that hears hears no other.
const LINE: u64 = 0;

/// See the file's head. One fence is waited for.
#[derive(Debug)]
pub struct ExploredDoorbells {
    memory: Arc<ModelMemory>,
    options: ModelOptions,
    page: EngineAddress,
    current_value: EngineAddress,
    /// Of the one that rings, and of the one that hears.
    controls: [EngineAddress; 2],
    rings: Shared,
}

impl ExploredDoorbells {
    /// The fence that is waited for.
    const AWAITED: CrossDoorbellIndex = CrossDoorbellIndex(3);
    /// Another one.
    const OTHER: CrossDoorbellIndex = CrossDoorbellIndex(4);

    /// Nobody has rung.
    ///
    /// # Errors
    /// Never.
    pub fn new() -> Result<Self, MapError> {
        let memory = Arc::new(ModelMemory::new(None, Arrival::AtOnce));
        let page = Region::for_words(WordGroup::CrossDoorbells, CrossDoorbells::PAGE_BYTES)?;
        let lines = page.host()?;
        lines.word(CrossDoorbells::LINES_IN_USE).put(LINE + 1);
        let control = |line| {
            let control = Region::for_words(WordGroup::EngineControl, PAGE_BYTES)?;
            let at = EngineControl::CROSS_DOORBELL_LINE;
            control.host()?.word(at).put(line);
            memory.map(&control)
        };
        Ok(Self {
            page: memory.map(&page)?,
            current_value: memory.map(&Region::new("fence-cv", PAGE_BYTES)?)?,
            controls: [control(LINE)?, control(LINE + 1)?],
            options: ModelOptions {
                lanes: 1,
                ..ModelOptions::default()
            },
            rings: Shared::new(),
            memory,
        })
    }

    fn globals(&self, control: &EngineAddress) -> Globals<'_> {
        let (passes, work) = (Passes::new(CutPlan::Never.passes(0)), SliceWork::default());
        let (memory, clock) = (&*self.memory, &*self.options.clock);
        let mut g = Globals::new(
            memory,
            clock,
            passes,
            control.va.0,
            &self.options,
            work,
            (0, 0),
        );
        g.doorbells_va = self.page.va.0;
        g
    }

    /// A lane signals the fence that is waited for.
    ///
    /// # Errors
    /// Never.
    pub fn signal(&self, value: u64) -> Checked<()> {
        let g = self.globals(&self.controls[0]);
        g.publish(self.current_value.va.0, value)?;
        ring(&g, &self.rings, Self::AWAITED)
    }

    /// A lane rings for another one.
    ///
    /// # Errors
    /// Never.
    pub fn ring_for_another(&self) -> Checked<()> {
        ring(&self.globals(&self.controls[0]), &self.rings, Self::OTHER)
    }

    /// What all lanes have done is behind this.
    ///
    /// # Errors
    /// Never.
    pub fn end_execution(&self) -> Checked<()> {
        say_what_was_taken(&self.globals(&self.controls[0]), &self.rings)
    }

    /// A slice that hears, of one lane with a queue that waits for `value`: until it goes on.
    ///
    /// # Errors
    /// Never.
    pub fn wait(&self, value: u64) -> Checked<()> {
        let g = self.globals(&self.controls[1]);
        let s = Shared::new();
        begin_hearing(&g, &s)?;
        let mut lane = Lane::without_queue(&g, &s, (0, 1), Ticks(0), 0);
        loop {
            if lane.q.closed.is_none() {
                if g.observe(self.current_value.va.0)? >= value {
                    return Ok(());
                }
                lane.q.closed = Some(Self::AWAITED);
            }
            prepare_hearing(&g, &s, lane.iterations)?;
            lane.open_rung_queues()?;
            lane.only_hears()?;
            lane.iterations += 1;
            if lane.q.closed.is_some() {
                thread::yield_now();
            }
        }
    }
}
