//! Cross-adapter doorbells: the page by which the adapters of this process hear of each other's signals without the OS
//! (XA-10).
//!
//! There is one for as long as an adapter or a fence has it. The OS gives each fence an index and each engine a line of
//! its own, and rings the first line itself for what the CPU stores; engines ring and hear as
//! `shaders/engine/cross_doorbell.glsl` says. On each adapter the fence is what a shared fence of another operating system
//! is there (`peers`): so MonitoredValue follows all of them, and a waiter of a CPU is told by an interrupt. It is not passed
//! to other processes, whose engines have no line.

use super::adapter::OsError;
use super::cross_adapter::next_number;
use crate::abi::{CrossDoorbellIndex, CrossDoorbellLine, CrossDoorbells, WordGroup};
use crate::shared::{Block, Region, RegionError};
use crate::sync::{Arc, Mutex, lock, plain};
use std::collections::{BTreeSet, VecDeque};
use std::sync::Weak;

/// The CPU's.
const CPU_LINE: u64 = 0;

/// What of the page is given out.
#[derive(Debug, Default)]
struct Book {
    /// The first index that nobody has had.
    next: u16,
    /// Oldest first: who hears a late ring of the fence before looks for nothing.
    free: VecDeque<u16>,
    /// Lines of engines.
    lines: BTreeSet<u32>,
    /// Rings of the CPU.
    rings: u32,
}

/// See the file's head.
#[derive(Debug)]
pub(super) struct DoorbellPage {
    region: Arc<Region>,
    view: Block,
    book: Mutex<Book>,
}

static OF_PROCESS: plain::Mutex<Weak<DoorbellPage>> = plain::Mutex::new(Weak::new());

impl DoorbellPage {
    /// The one that there is, or a new one.
    fn of_process() -> Result<Arc<Self>, RegionError> {
        let mut known = plain::lock(&OF_PROCESS);
        if let Some(page) = known.upgrade() {
            return Ok(page);
        }
        let region = Region::for_words(WordGroup::CrossDoorbells, CrossDoorbells::PAGE_BYTES)?;
        let view = region.host()?;
        view.word(CrossDoorbells::LINES_IN_USE)
            .publish(CPU_LINE + 1);
        let page = Arc::new(Self {
            view,
            region,
            book: Mutex::default(),
        });
        *known = Arc::downgrade(&page);
        Ok(page)
    }

    /// Lines that no other engine rings.
    fn take_lines(&self, wanted: u32) -> Result<Vec<u32>, OsError> {
        let mut book = lock(&self.book);
        let all = CPU_LINE as u32 + 1..CrossDoorbells::LINES as u32;
        let free = all.filter(|line| !book.lines.contains(line));
        let lines: Vec<_> = free.take(wanted as usize).collect();
        if lines.len() < wanted as usize {
            let free = lines.len() as u32;
            return Err(OsError::DoorbellLines { wanted, free });
        }
        book.lines.extend(&lines);
        // Before anybody rings there.
        let in_use = book.lines.last().map_or(CPU_LINE, |line| u64::from(*line)) + 1;
        self.view.word(CrossDoorbells::LINES_IN_USE).publish(in_use);
        Ok(lines)
    }
}

/// The lines of an adapter's engines, given back on drop: when they run no more.
#[derive(Debug)]
pub(super) struct DoorbellLines {
    page: Arc<DoorbellPage>,
    /// By node.
    lines: Vec<u32>,
}

impl DoorbellLines {
    fn new(page: &Arc<DoorbellPage>, engines: u32) -> Result<Self, OsError> {
        let lines = page.take_lines(engines)?;
        Ok(Self {
            page: Arc::clone(page),
            lines,
        })
    }

    /// By node.
    pub(super) fn lines(&self) -> &[u32] {
        &self.lines
    }

    /// The page's memory.
    pub(super) fn region(&self) -> &Arc<Region> {
        &self.page.region
    }
}

impl Drop for DoorbellLines {
    fn drop(&mut self) {
        let mut book = lock(&self.page.book);
        for line in &self.lines {
            book.lines.remove(line);
        }
    }
}

/// The doorbell of one fence, of all its sides.
#[derive(Debug)]
pub(super) struct CrossDoorbell {
    page: Arc<DoorbellPage>,
    index: CrossDoorbellIndex,
    number: u64,
}

impl CrossDoorbell {
    /// One more.
    pub(super) fn new() -> Result<Arc<Self>, OsError> {
        let page = DoorbellPage::of_process()?;
        let mut book = lock(&page.book);
        let index = if book.next < CrossDoorbellIndex::END {
            book.next += 1;
            Some(book.next - 1)
        } else {
            book.free.pop_front()
        };
        drop(book);
        let index = CrossDoorbellIndex(index.ok_or(OsError::DoorbellsUsedUp)?);
        Ok(Arc::new(Self {
            page,
            index,
            number: next_number(),
        }))
    }

    /// As of a [`CrossAdapterFence`](super::cross_adapter::CrossAdapterFence); an index is given out again.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// What a ring names.
    pub(super) fn index(&self) -> CrossDoorbellIndex {
        self.index
    }

    /// The CPU has stored CurrentValue.
    pub(super) fn ring(&self) {
        let mut book = lock(&self.page.book);
        book.rings = book.rings.wrapping_add(1);
        let line = self
            .page
            .view
            .part(CrossDoorbells::line(CPU_LINE), CrossDoorbellLine::BYTES);
        let word = CrossDoorbellLine::ring(book.rings, self.index);
        line.word(CrossDoorbellLine::word_of(book.rings))
            .publish(word);
        line.word(CrossDoorbellLine::TAKEN)
            .publish(book.rings.into());
    }
}

impl Drop for CrossDoorbell {
    fn drop(&mut self) {
        lock(&self.page.book).free.push_back(self.index.0);
    }
}

/// What an adapter has of it: from its first fence with a doorbell on, for good.
#[derive(Debug, Default)]
pub(super) struct AdapterDoorbells(Mutex<Option<Arc<DoorbellLines>>>);

impl AdapterDoorbells {
    /// The lines of an adapter with so many engines.
    pub(super) fn lines(&self, engines: u32) -> Result<Arc<DoorbellLines>, OsError> {
        let mut lines = lock(&self.0);
        if let Some(lines) = &*lines {
            return Ok(Arc::clone(lines));
        }
        // While somebody has the page it is the same one for all.
        let taken = Arc::new(DoorbellLines::new(&DoorbellPage::of_process()?, engines)?);
        Ok(Arc::clone(lines.insert(taken)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// XA-10: there are as many fences with a doorbell as a ring can name; one more is refused by name, and takes the
    /// index of the next one that goes. (So many fences are more than a process may map.)
    ///
    /// Kills `an-index-is-given-out-twice`, `an-index-is-not-given-back`.
    #[test]
    fn xa_10_doorbells_are_used_up_by_name() {
        let mut all = BTreeSet::new();
        let mut doorbells: Vec<_> = (0..CrossDoorbellIndex::END)
            .map(|_| CrossDoorbell::new().unwrap())
            .inspect(|doorbell| assert!(all.insert(doorbell.index())))
            .collect();
        assert!(all.iter().all(|index| index.0 < CrossDoorbellIndex::END));
        let refused = CrossDoorbell::new().map(|doorbell| doorbell.index());
        assert!(matches!(refused, Err(OsError::DoorbellsUsedUp)));
        let freed = doorbells.swap_remove(7).index();
        assert_eq!(CrossDoorbell::new().unwrap().index(), freed);
    }
}
