//! Cross-adapter doorbells (XA-10): a signal here wakes who waits on another adapter, and the other way round.
//!
//! As `shaders/engine/cross_doorbell.glsl`, which says why no wake-up is lost.

use super::lane::{Globals, Lane, PlainWord, Shared, SharedWord};
use super::violation::Checked;
use crate::abi::{
    CrossDoorbellIndex, CrossDoorbellLine, CrossDoorbells, EngineControl, HandleAccess,
    MAX_HW_QUEUES,
};

/// Of a queue that is not in registers: it was rung for, and is looked at.
const RUNG_FOR: u64 = 1 << 31;
const MOST_RUNG_PLACES: usize = 64;

/// What lanes share of it, of one slice: `s_…`.
#[derive(Debug)]
pub(super) struct Rings {
    /// The fences that were rung for, each by its mark at its place; by the parity of the execution.
    rung: [Vec<PlainWord>; 2],
    /// Two a lane, of those that are there.
    places: PlainWord,
    /// Not 0: whatever was rung for. Likewise.
    all_rung: [PlainWord; 2],
    lines: PlainWord,
    /// Numbers of the own line that were taken.
    taken: SharedWord,
    /// By line: the last number that was heard.
    heard: [PlainWord; CrossDoorbells::LINES as usize],
    /// A queue was closed before the execution.
    awaited: PlainWord,
    /// By queue that is not in registers: its mark, with [`RUNG_FOR`] or not.
    closed: Vec<PlainWord>,
}

impl Rings {
    pub(super) fn new() -> Self {
        Self {
            rung: [(); 2].map(|()| {
                (0..MOST_RUNG_PLACES)
                    .map(|_| PlainWord::default())
                    .collect()
            }),
            places: PlainWord::default(),
            all_rung: Default::default(),
            lines: PlainWord::default(),
            taken: SharedWord::default(),
            heard: Default::default(),
            awaited: PlainWord::default(),
            closed: (0..MAX_HW_QUEUES).map(|_| PlainWord::default()).collect(),
        }
    }

    pub(super) fn is_closed(&self, ordinal: u32) -> bool {
        let closed = self.closed[ordinal as usize].get();
        closed != 0 && closed & RUNG_FOR == 0
    }

    /// What it was rung for is not what it waits for: the look came after the ring.
    pub(super) fn close_again(&self, ordinal: u32) {
        let closed = &self.closed[ordinal as usize];
        closed.set(closed.get() & !RUNG_FOR);
    }

    /// The queue leaves the registers or comes there, or its slice begins.
    pub(super) fn close(&self, ordinal: u32, until: Option<CrossDoorbellIndex>) {
        self.closed[ordinal as usize].set(CrossDoorbellIndex::mark(until).into());
    }

    /// Where the fence stands that was rung for in an execution.
    fn place(&self, mark: u32, execution: u64) -> &PlainWord {
        let places = &self.rung[(execution & 1) as usize];
        let factor = (execution as u32).wrapping_add(1).wrapping_mul(0x9e37_79b9);
        let hash = mark.wrapping_mul((factor ^ factor >> 15) | 1) >> 16;
        &places[hash as usize % self.places.get() as usize]
    }

    /// False where another's name stands at its place: the word is read again in the next execution.
    fn name(&self, mark: u32, execution: u64) -> bool {
        let place = self.place(mark, execution);
        place.replace(0, mark.into()) || place.get() == u64::from(mark)
    }

    fn is_rung(&self, doorbell: CrossDoorbellIndex, execution: u64) -> bool {
        let mark = CrossDoorbellIndex::mark(Some(doorbell)).into();
        self.place(mark, execution).get() == u64::from(mark)
    }

    fn all_rung(&self, execution: u64) -> &PlainWord {
        &self.all_rung[(execution & 1) as usize]
    }

    /// Before an execution.
    fn forget(&self, execution: u64) {
        for place in &self.rung[(execution & 1) as usize] {
            place.set(0);
        }
        self.all_rung(execution).set(0);
    }
}

/// The doorbell that the entry of a handle names.
pub(super) fn doorbell_of(access: u32) -> Option<CrossDoorbellIndex> {
    CrossDoorbellIndex::of_access(HandleAccess(access))
}

fn line_va(g: &Globals<'_>, line: u64) -> u64 {
    g.doorbells_va + CrossDoorbells::line(line)
}

fn own_line_va(g: &Globals<'_>) -> Checked<u64> {
    let line = g.peek(g.control_va + EngineControl::CROSS_DOORBELL_LINE)?;
    Ok(line_va(g, line))
}

/// After CurrentValue was stored.
pub(super) fn ring(g: &Globals<'_>, s: &Shared, doorbell: CrossDoorbellIndex) -> Checked<()> {
    // Who reads the word of a later number sees what was stored before this one was taken.
    let number = (s.rings.taken.meet(1) as u32).wrapping_add(1);
    let word = CrossDoorbellLine::ring(number, doorbell);
    g.publish(own_line_va(g)? + CrossDoorbellLine::word_of(number), word)
}

/// As a slice or a round begins, before any look: by lane 0, which the others come after.
pub(super) fn begin_hearing(g: &Globals<'_>, s: &Shared) -> Checked<()> {
    let places = (2 * u64::from(g.lanes)).min(MOST_RUNG_PLACES as u64);
    s.rings.places.set(places);
    for (line, heard) in (0..).zip(&s.rings.heard) {
        heard.set(g.observe(line_va(g, line) + CrossDoorbellLine::TAKEN)? & 0xffff_ffff);
    }
    s.rings
        .taken
        .set(g.peek(own_line_va(g)? + CrossDoorbellLine::TAKEN)?);
    Ok(())
}

/// By lane 0, behind executions: all words up to the last number are stored.
pub(super) fn say_what_was_taken(g: &Globals<'_>, s: &Shared) -> Checked<()> {
    let own = own_line_va(g)? + CrossDoorbellLine::TAKEN;
    let taken = s.rings.taken.get() & 0xffff_ffff;
    if g.peek(own)? != taken {
        g.publish(own, taken)?;
    }
    Ok(())
}

/// By lane 0, between executions, of which so many are over.
pub(super) fn prepare_hearing(g: &Globals<'_>, s: &Shared, executions: u64) -> Checked<()> {
    say_what_was_taken(g, s)?;
    let lines = g.observe(g.doorbells_va + CrossDoorbells::LINES_IN_USE)?;
    s.rings.lines.set(lines.min(CrossDoorbells::LINES));
    s.rings.forget(executions);
    Ok(())
}

/// By lane 0, between executions: ticks without a step after which the slice is idle: at least so many, and as many as
/// `awaited` while a queue waits for another adapter.
pub(super) fn take_window(s: &Shared, least: u64, awaited: u64) -> u64 {
    let awaits = s.rings.awaited.get() != 0;
    s.rings.awaited.set(0);
    if awaits { awaited.max(least) } else { least }
}

impl Lane<'_> {
    /// The next word of the line that the lane reads: where it has heard up to, the number that comes next, and how far
    /// ahead of it the number is that stands there, modulo 2^32: what was there a lap before is behind.
    fn next_word(&self) -> Checked<Option<(&PlainWord, u32, u64, u32)>> {
        if self.line >= self.s.rings.lines.get() {
            return Ok(None);
        }
        let heard = &self.s.rings.heard[self.line as usize];
        let next = (heard.get() as u32).wrapping_add(1);
        let at = line_va(self.g, self.line) + CrossDoorbellLine::word_of(next);
        let word = self.g.observe(at)?;
        let ahead = ((word >> 32) as u32).wrapping_sub(next);
        Ok(Some((heard, next, word, ahead)))
    }

    /// Reads the next word of a line; lanes that are fewer than lines take turns.
    fn hear(&mut self) -> Checked<()> {
        if let Some((heard, _, word, ahead)) = self.next_word()?
            && ahead < 1 << 31
        {
            let rings = &self.s.rings;
            let names = ahead == 0 && word as u32 != CrossDoorbellLine::ALL;
            let is_heard = if names {
                rings.name((word as u32).wrapping_add(1), self.iterations)
            } else {
                rings.all_rung(self.iterations).set(1);
                true
            };
            if is_heard {
                heard.set(word >> 32);
            }
        }
        self.line += u64::from(self.g.lanes);
        if self.line >= self.s.rings.lines.get() {
            self.line = self.id.into();
        }
        Ok(())
    }

    /// As an execution begins: whether the next word of the line that the lane reads was stored over.
    fn find_lost_word(&self) -> Checked<()> {
        if self.line >= self.s.rings.lines.get() {
            return Ok(());
        }
        let said =
            self.g
                .observe(line_va(self.g, self.line) + CrossDoorbellLine::TAKEN)? as u32;
        if let Some((heard, next, _, ahead)) = self.next_word()?
            && said.wrapping_sub(next) < 1 << 31
            && ahead >= 1 << 31
        {
            heard.set(said.into());
            self.s.rings.all_rung(self.iterations).set(1);
        }
        Ok(())
    }

    /// As an execution begins: opens the queues for which something came in the one before.
    pub(super) fn open_rung_queues(&mut self) -> Checked<()> {
        self.find_lost_word()?;
        if self.iterations == 0 {
            return Ok(());
        }
        let (rings, before) = (&self.s.rings, self.iterations - 1);
        let all = rings.all_rung(before).get() != 0;
        let is_open = |doorbell| all || rings.is_rung(doorbell, before);
        // Whoever goes on now steps; who was rung for in vain still waits.
        let mut awaits = self.q.closed.is_some();
        self.q.closed = self.q.closed.filter(|doorbell| !is_open(*doorbell));
        for place in 0..self.places {
            let closed = &rings.closed[self.ordinal_of(place) as usize];
            let until = CrossDoorbellIndex::of_mark(closed.get() as u16);
            awaits |= until.is_some();
            if until.is_some_and(is_open) {
                closed.set(closed.get() | RUNG_FOR);
            }
            if self.g.passes.end_loop() {
                break;
            }
        }
        if awaits {
            rings.awaited.join(1);
        }
        Ok(())
    }

    /// In each round of a lane. True if it has nothing to step: its queue is closed, or it has none; then it hears for
    /// others.
    pub(super) fn only_hears(&mut self) -> Checked<bool> {
        self.hear()?;
        let is_open = |doorbell| self.s.rings.is_rung(doorbell, self.iterations);
        self.q.closed = self.q.closed.filter(|doorbell| !is_open(*doorbell));
        Ok(self.has_nothing_to_step() || self.q.closed.is_some())
    }
}
