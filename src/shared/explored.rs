//! Explored memory: regions and mappings as loom has them.
//!
//! A word by which parties hand over to each other is an atomic of loom's, so that every order of
//! its loads and stores that the memory model allows is tried. All other words (descriptors, saved
//! states, packets, logs, tables that are written before they are published) are plain: what is
//! read of them is what was stored last, and loom does not stop at them, which keeps the number of
//! orders within reach. So what is tried is the protocol, and not that it covers every word.
//!
//! A word is made when it is first touched: a region has thousands, of which a scenario touches
//! some dozens. Loom wants an atomic made before any other thread can reach it, so those of a
//! region's first words and of a short part are made with them, by [`Mapping::prepare`].

use super::explored_futex::Sleepers;
use super::{Block, RegionError};
use crate::abi::{
    CrossDoorbellLine, CrossDoorbells, Doorbell, EngineControl, EngineReport, FenceEntry,
    HandleEntry, Home, InterruptRecord, LogHeader, OpenerSlot, PAGE_BYTES, QueueProgress,
    RingControl, SharedFenceHeader, WordGroup,
};
use crate::sync::plain::{self, lock};
use crate::sync::{Arc, AtomicU64, Ordering};
use std::cell::Cell as Choice;
use std::collections::BTreeMap;

/// Longest part whose words are made at once: the entry or the control block of one thing.
const SHORT_BYTES: usize = 256;
/// Words at the start of an engine's blocks, by which its two sides meet.
const FIRST_BYTES: usize = 64;
/// Where openers are told.
const REACHED_WORDS: std::ops::Range<u64> =
    OpenerSlot::reached(0, 0)..OpenerSlot::reached(OpenerSlot::SLOTS, 0);
/// Openers that a scenario has at most.
const EXPLORED_OPENERS: u64 = 4;
/// Lines of the page of cross-adapter doorbells that a scenario has: the CPU's, and two engines'.
const EXPLORED_LINES: u64 = 3;
/// Numbers that each of them takes at most.
const EXPLORED_RINGS: u32 = 4;

std::thread_local! {
    /// The groups of which the scenario explores more. A scenario and all threads that loom gives it are one of the
    /// system's.
    static MORE: Choice<&'static [WordGroup]> = const { Choice::new(&[]) };
}

/// Of these groups more is explored than otherwise, in regions that are made before this is dropped.
#[derive(Debug)]
#[must_use = "nothing more is explored once it is dropped"]
pub struct ExploresMore(());

impl ExploresMore {
    /// Of which groups.
    pub fn of(groups: &'static [WordGroup]) -> Self {
        MORE.set(groups);
        Self(())
    }
}

impl Drop for ExploresMore {
    fn drop(&mut self) {
        MORE.set(&[]);
    }
}

/// Words that a scenario explores which asks for it ([`ExploresMore`]): for others they would only be more to explore.
fn is_one_more(group: WordGroup, offset: u64) -> bool {
    match group {
        // Of the first handles; and of the directory as many leaves, which nobody has.
        WordGroup::HandleTable => {
            offset < FIRST_BYTES as u64 && offset % HandleEntry::BYTES <= HandleEntry::META
        }
        WordGroup::EngineControl => {
            let mailbox = EngineControl::MAILBOX..EngineControl::SLICE_ARGS;
            offset == EngineControl::RECORD_READ || mailbox.contains(&offset)
        }
        WordGroup::EngineReport => {
            let in_records = offset.checked_sub(EngineReport::RECORDS);
            in_records.is_some() || offset == EngineReport::RESCAN_SEEN
        }
        // Who has a slot.
        WordGroup::MonitoredValues => {
            let is_owner = offset % OpenerSlot::BYTES == OpenerSlot::OWNER;
            is_owner && offset < EXPLORED_OPENERS * OpenerSlot::BYTES
                || offset == SharedFenceHeader::ALWAYS_SIGNALED
        }
        _ => false,
    }
}

/// Whether loom explores the word at byte `offset` of a region of this group.
fn is_explored(group: WordGroup, offset: u64) -> bool {
    match group {
        WordGroup::CurrentValues => true,
        WordGroup::MonitoredValues => {
            if REACHED_WORDS.contains(&offset) {
                is_reached(offset)
            } else {
                is_of_opener(offset) || is_called(group, offset)
            }
        }
        // Control words and packets alternate by the page; the first packets of a page count too,
        // and cost little, since they are written before the index.
        WordGroup::Ring => offset % PAGE_BYTES == RingControl::WRITE_INDEX,
        WordGroup::Doorbell => offset % Doorbell::BYTES == Doorbell::RINGS,
        WordGroup::Progress => offset % QueueProgress::BYTES == QueueProgress::DOORBELL_STATUS,
        WordGroup::FenceTable => [
            FenceEntry::MONITORED_VALUE_VA,
            FenceEntry::SHADOW,
            FenceEntry::ID,
        ]
        .contains(&(offset % FenceEntry::BYTES)),
        WordGroup::EngineControl => [
            EngineControl::MAILBOX_WRITE,
            EngineControl::RESCAN,
            EngineControl::REQUEST,
        ]
        .contains(&offset),
        WordGroup::EngineReport => match offset.checked_sub(EngineReport::RECORDS) {
            Some(in_records) => [InterruptRecord::FENCE_ID, InterruptRecord::VALUE]
                .contains(&(in_records % InterruptRecord::BYTES)),
            None => [
                EngineReport::MAILBOX_READ,
                EngineReport::RECORD_WRITE,
                EngineReport::COLLAPSED,
            ]
            .contains(&offset),
        },
        // Of logs that move: an entry and the index that tells of it are another scenario's.
        WordGroup::LargeLog => offset == LogHeader::INDEX,
        WordGroup::CrossDoorbells => line_words().any(|word| word == offset),
        WordGroup::QueueDescriptor
        | WordGroup::SaveArea
        | WordGroup::Log
        | WordGroup::HandleTable
        | WordGroup::Allocation => false,
    }
}

/// Words of the page of cross-adapter doorbells by which engines meet.
fn line_words() -> impl Iterator<Item = u64> {
    let of_line = |line| {
        let rings = (1..=EXPLORED_RINGS).map(CrossDoorbellLine::word_of);
        let words = rings.chain([CrossDoorbellLine::TAKEN]);
        words.map(move |word| CrossDoorbells::line(line) + word)
    };
    (0..EXPLORED_LINES).flat_map(of_line)
}

/// Words of an opener's slot, but for who has it, which only some scenarios change while others look; and by
/// which it tells and is told, of those that a scenario has.
fn is_of_opener(offset: u64) -> bool {
    match offset % OpenerSlot::BYTES {
        // Of REWINDS as well, which lies at the start of its line.
        OpenerSlot::MONITORED_VALUE | OpenerSlot::AWAITED => true,
        OpenerSlot::REACHED_WORD | OpenerSlot::TELLING => {
            offset < EXPLORED_OPENERS * OpenerSlot::BYTES
        }
        _ => false,
    }
}

/// The first reached words of an opener: later ones come into use when many tell at a time.
fn is_reached(offset: u64) -> bool {
    (0..EXPLORED_OPENERS).any(|slot| {
        let words = OpenerSlot::reached(slot, 0)..OpenerSlot::reached(slot, 2);
        words.contains(&offset)
    })
}

/// Whether somebody sleeps for the word at byte `offset` of a region of this group.
fn is_called(group: WordGroup, offset: u64) -> bool {
    group == WordGroup::MonitoredValues
        && offset < OpenerSlot::reached(0, 0)
        && offset % OpenerSlot::BYTES == OpenerSlot::CALLS
}

/// A word.
#[derive(Debug)]
pub(super) enum Cell {
    /// Loom stops at every access.
    Explored(AtomicU64),
    /// So it does, and somebody may sleep for it.
    Called(AtomicU64, Sleepers),
    /// What was stored last is read.
    Plain(plain::AtomicU64),
}

/// The same access to a word of either kind.
macro_rules! access {
    ($cell:expr, $word:ident => $access:expr) => {
        match $cell {
            Self::Explored($word) | Self::Called($word, _) => $access,
            Self::Plain($word) => $access,
        }
    };
}

impl Cell {
    pub(super) fn load(&self, order: Ordering) -> u64 {
        access!(self, word => word.load(order))
    }

    pub(super) fn store(&self, value: u64, order: Ordering) {
        access!(self, word => word.store(value, order));
    }

    pub(super) fn fetch_add(&self, add: u64, order: Ordering) -> u64 {
        access!(self, word => word.fetch_add(add, order))
    }

    pub(super) fn swap(&self, value: u64, order: Ordering) -> u64 {
        access!(self, word => word.swap(value, order))
    }

    pub(super) fn fetch_max(&self, value: u64, order: Ordering) -> u64 {
        access!(self, word => word.fetch_max(value, order))
    }

    pub(super) fn compare_exchange(
        &self,
        old: u64,
        new: u64,
        yes: Ordering,
        no: Ordering,
    ) -> Result<u64, u64> {
        access!(self, word => word.compare_exchange(old, new, yes, no))
    }

    /// Who sleeps for it.
    pub(super) fn sleepers(&self) -> &Sleepers {
        match self {
            Self::Called(_, sleepers) => sleepers,
            Self::Explored(_) | Self::Plain(_) => unreachable!("nobody is called by this word"),
        }
    }
}

/// Files of memory that were made.
static FILES: plain::AtomicU64 = plain::AtomicU64::new(0);

/// Memory of whole pages, zero at first.
#[derive(Debug)]
pub struct Region {
    group: Option<WordGroup>,
    /// The scenario asked for more of the group.
    explores_more: bool,
    name: &'static str,
    file: u64,
    len: usize,
    /// Never taken out, so that a reference to a word is good while the region lives.
    cells: plain::Mutex<BTreeMap<usize, Box<Cell>>>,
}

impl Region {
    /// A region for words of one group.
    ///
    /// # Errors
    /// Never.
    pub fn for_words(group: WordGroup, bytes: u64) -> Result<Arc<Self>, RegionError> {
        Ok(Self::make(Some(group), group.name(), bytes))
    }

    /// A region all of whose words are explored.
    ///
    /// # Errors
    /// Never.
    pub fn new(name: &'static str, bytes: u64) -> Result<Arc<Self>, RegionError> {
        Ok(Self::make(None, name, bytes))
    }

    fn make(group: Option<WordGroup>, name: &'static str, bytes: u64) -> Arc<Self> {
        let region = Self {
            group,
            explores_more: group.is_some_and(|group| MORE.get().contains(&group)),
            name,
            file: FILES.fetch_add(1, Ordering::Relaxed),
            len: bytes.max(1).next_multiple_of(PAGE_BYTES) as usize,
            cells: plain::Mutex::default(),
        };
        region.prepare(0, FIRST_BYTES);
        if group == Some(WordGroup::MonitoredValues) {
            // The only word of the page's header that is written when several have it.
            region.prepare(SharedFenceHeader::REWINDS as usize, size_of::<u64>());
        }
        if group == Some(WordGroup::CrossDoorbells) {
            line_words().for_each(|word| region.prepare(word as usize, size_of::<u64>()));
        }
        Arc::new(region)
    }

    /// Which file of memory it stands for: no other region has this one.
    ///
    /// # Errors
    /// Never.
    pub fn file(&self) -> Result<Option<(u64, u64)>, RegionError> {
        Ok(Some((0, self.file)))
    }

    /// The memory that the region stands for.
    #[must_use]
    pub fn home(&self) -> Home {
        Home::CachedSystem
    }

    /// Size in bytes, whole pages.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Regions are never empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        false
    }

    /// What the region holds.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Whether it can be mapped for reading alone.
    #[must_use]
    pub fn has_read_only_alias(&self) -> bool {
        true
    }

    /// A mapping for reading and writing.
    ///
    /// # Errors
    /// Never.
    pub fn map(self: &Arc<Self>) -> Result<Arc<Mapping>, RegionError> {
        Ok(Arc::new(Mapping(Arc::clone(self))))
    }

    /// The OS's view of all of it.
    ///
    /// # Errors
    /// Never.
    pub fn host(self: &Arc<Self>) -> Result<Block, RegionError> {
        Ok(Block::whole(&self.map()?))
    }

    /// A mapping for reading.
    ///
    /// # Errors
    /// Never.
    pub fn map_read_only(self: &Arc<Self>) -> Result<Arc<ReadMapping>, RegionError> {
        Ok(Arc::new(ReadMapping(Arc::clone(self))))
    }

    fn is_explored(&self, offset: usize) -> bool {
        let offset = offset as u64;
        self.group.is_none_or(|group| {
            is_explored(group, offset) || self.explores_more && is_one_more(group, offset)
        })
    }

    fn is_called(&self, offset: usize) -> bool {
        self.group
            .is_some_and(|group| is_called(group, offset as u64))
    }

    fn prepare(&self, offset: usize, bytes: usize) {
        for word in (offset..offset + bytes).step_by(8) {
            if self.is_explored(word) {
                self.cell(word);
            }
        }
    }

    fn cell(&self, offset: usize) -> &Cell {
        let mut cells = lock(&self.cells);
        let cell = cells.entry(offset).or_insert_with(|| {
            Box::new(if self.is_called(offset) {
                Cell::Called(AtomicU64::new(0), Sleepers::default())
            } else if self.is_explored(offset) {
                Cell::Explored(AtomicU64::new(0))
            } else {
                Cell::Plain(plain::AtomicU64::new(0))
            })
        });
        let cell: *const Cell = &raw const **cell;
        // SAFETY: the box is never moved out of or dropped before the region, which outlives the
        // borrow; nobody has a unique reference to what is in it.
        unsafe { &*cell }
    }
}

/// A party's way to a region, for reading and writing.
#[derive(Debug)]
pub struct Mapping(Arc<Region>);

impl Mapping {
    /// Size in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len
    }

    /// Mappings are never empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        false
    }

    pub(super) fn cell(&self, offset: usize) -> &Cell {
        self.0.cell(offset)
    }

    pub(super) fn is_write_combined(&self) -> bool {
        false
    }

    /// Makes the explored words of a short part, while its maker alone knows it.
    pub(super) fn prepare(&self, offset: usize, bytes: usize) {
        if bytes <= SHORT_BYTES {
            self.0.prepare(offset, bytes);
        }
    }
}

/// A party's way to a region, for reading.
#[derive(Debug)]
pub struct ReadMapping(Arc<Region>);

impl ReadMapping {
    /// Size in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len
    }

    /// Mappings are never empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        false
    }

    pub(super) fn cell(&self, offset: usize) -> &Cell {
        self.0.cell(offset)
    }
}
