//! Cross-adapter doorbells of a node: where its engine rings for other adapters, and hears of them (XA-10).

use super::inner::Inner;
use super::{Node, NodeError};
use crate::abi::{CrossDoorbellIndex, CrossDoorbellLine, CrossDoorbells, EngineControl, FenceId};
use crate::gpu::{EngineMapping, SliceReport};
use crate::shared::{Block, Region};
use crate::sync::{Arc, lock};

/// The page, and the line of it that is an engine's own.
#[derive(Debug)]
pub(super) struct OwnLine {
    mapping: Arc<EngineMapping>,
    line: u32,
    /// Slices ring and hear. The engine is told where before it is made ready for them.
    pub(super) rings: bool,
}

/// Whoever rang in this line before may have been stopped with a number taken and nothing stored, for which those who hear
/// would wait; and before it said which numbers it took. So what is missing is rung for all, and the next number is one
/// that nobody has taken.
fn settle(line: &Block) {
    let word_of = |number: u32| line.word(CrossDoorbellLine::word_of(number));
    let said = line.word(CrossDoorbellLine::TAKEN).observe() as u32;
    let stored_at = |number: u32| (word_of(number).observe() >> 32) as u32;
    // Numbers are modulo 2^32; what was stored a lap before is behind.
    let ahead = |number: u32| number.wrapping_sub(said).cast_signed();
    let all = 0..CrossDoorbellLine::PLACES as u32;
    let most = all.clone().map(|word| ahead(stored_at(word))).max();
    let last = said.wrapping_add(most.unwrap_or(0).max(0).cast_unsigned() + 1);
    // Words of numbers before these were stored over.
    for number in all.map(|back| last.wrapping_sub(back)) {
        if ahead(number) > 0 && stored_at(number) != number {
            word_of(number).publish(CrossDoorbellLine::ring_for_all(number));
        }
    }
    line.word(CrossDoorbellLine::TAKEN).publish(last.into());
}

impl OwnLine {
    /// Nobody rings here any more, or not yet.
    pub(super) fn settle(&self) {
        let at = CrossDoorbells::line(self.line.into());
        settle(&self.mapping.host().part(at, CrossDoorbellLine::BYTES));
    }
}

impl Node {
    /// Has the engine ring and hear by this page, with a line that is its own: from the first call on, for good. When this
    /// returns, no slice runs that does not; those that have ended for it may have something to report. The line is one
    /// that [`CrossDoorbells::LINES_IN_USE`] counts.
    ///
    /// # Errors
    /// The page cannot be mapped, or the engine cannot prepare such slices.
    pub fn set_cross_doorbells(
        &self,
        page: &Arc<Region>,
        line: u32,
    ) -> Result<Vec<SliceReport>, NodeError> {
        let _turn = lock(&self.registering);
        let mut guard = lock(&self.inner);
        let inner = &mut *guard;
        match &inner.cross_doorbells {
            Some(own) if own.rings => return Ok(Vec::new()),
            Some(_) => {}
            None => {
                let mapping = Self::map_locked(inner, page)?;
                let control = self.control.host();
                control
                    .word(EngineControl::CROSS_DOORBELL_LINE)
                    .put(line.into());
                inner.cross_doorbells = Some(OwnLine {
                    mapping,
                    line,
                    rings: false,
                });
                self.place_cross_doorbells(inner);
            }
        }
        drop(guard);
        loop {
            // Compiling takes time, in which the node goes on, and its engine may be given up: then the one that has
            // taken its place is to be ready, whatever the other one said.
            let engine = self.engine();
            let prepared = engine.prepare_doorbells();
            let mut guard = lock(&self.inner);
            if !Arc::ptr_eq(&guard.engine, &engine) {
                continue;
            }
            prepared?;
            if let Some(own) = &mut guard.cross_doorbells {
                own.rings = true;
            }
            // Those in flight do not ring.
            return Ok(self.drain_slices(guard));
        }
    }

    /// Whether slices ring.
    pub(super) fn rings(&self) -> bool {
        lock(&self.inner).rings()
    }

    /// Writes where the engine finds the page, for an engine that goes on where another one has stopped.
    pub(super) fn place_cross_doorbells(&self, inner: &Inner) {
        if let Some(own) = &inner.cross_doorbells {
            own.settle();
            self.control
                .host()
                .word(EngineControl::CROSS_DOORBELLS_VA)
                .publish(own.mapping.va().0);
        }
    }

    /// Signals of a fence that was entered, and has no handle yet, ring this doorbell; waits for it are looked at when it
    /// was rung.
    pub fn give_cross_doorbell(&self, id: FenceId, doorbell: CrossDoorbellIndex) {
        let inner = &mut *lock(&self.inner);
        let known = inner.known.get_mut(&id.slot);
        if let Some(known) = known {
            known.doorbell = Some(doorbell);
        }
    }
}

impl Inner {
    /// Whether slices ring.
    pub(super) fn rings(&self) -> bool {
        self.cross_doorbells.as_ref().is_some_and(|own| own.rings)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn what_a_stopped_engine_has_not_rung_is_rung_for_all() {
        // What the line says were taken, of numbers that are stored; then what it says, and who is rung for all.
        let settled = |said: u32, stored: &[u32]| {
            let line = Region::new("line", CrossDoorbellLine::BYTES).unwrap();
            let line = line.host().unwrap();
            line.word(CrossDoorbellLine::TAKEN).put(said.into());
            let index = CrossDoorbellIndex(3);
            for number in stored {
                let word = line.word(CrossDoorbellLine::word_of(*number));
                word.put(CrossDoorbellLine::ring(*number, index));
            }
            settle(&line);
            let words = (0..CrossDoorbellLine::PLACES as u32)
                .map(|word| line.word(CrossDoorbellLine::word_of(word)).observe());
            let for_all = words.filter(|word| *word as u32 == CrossDoorbellLine::ALL);
            let mut for_all: Vec<_> = for_all.map(|word| (word >> 32) as u32).collect();
            for_all.sort_unstable();
            (
                line.word(CrossDoorbellLine::TAKEN).observe() as u32,
                for_all,
            )
        };
        assert_eq!(settled(0, &[]), (1, vec![1]));
        assert_eq!(settled(5, &[4, 5]), (6, vec![6]));
        assert_eq!(settled(5, &[5, 6, 8]), (9, vec![7, 9]));
        // More than a lap before it said so.
        let stored: Vec<_> = (20..84).collect();
        assert_eq!(settled(5, &stored), (84, vec![84]));
        assert_eq!(settled(u32::MAX, &[0, 2]), (3, vec![1, 3]));
    }
}
