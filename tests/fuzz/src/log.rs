//! Log: whatever a log holds and however its index moves while it is read, the reader gives each
//! entry once, as it was written and in its place, or counts it as lost (LG-06); and of an engine
//! that lies it refuses what no log can hold.

use arbitrary::{Arbitrary, Result, Unstructured};
use native_fence::abi::{
    LOG_BUFFER_BYTES, LOG_BUFFER_ENTRIES, LogEntry, LogHeader, LogIndex, LogOperation, LogType,
};
use native_fence::os::{LogRead, LogReader};
use native_fence::shared::{Block, Region};
use std::convert::Infallible;

/// A course of events.
#[derive(Debug)]
pub struct Program {
    waits: bool,
    entries: u32,
    steps: Vec<Step>,
}

/// What an engine does to its log.
#[derive(Clone, Copy, Debug)]
enum Act {
    /// Writes so many entries.
    Log(u8),
    /// What only a lying one does.
    Lie(Lie),
}

#[derive(Clone, Copy, Debug, Arbitrary)]
enum Lie {
    Index(u64),
    /// As many entries, or wraps, ahead as no engine has written.
    Entries(i16),
    Wraps(i32),
    Word {
        at: u16,
        value: u64,
    },
    Operation {
        slot: u8,
        operation: u32,
    },
}

#[derive(Debug)]
enum Step {
    Act(Act),
    /// A read, and what happens between its look at the index and its copies.
    Read(Vec<Act>),
    /// The driver refuses: nothing was read.
    Refused,
}

impl<'a> Arbitrary<'a> for Act {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        // A liar is found out by itself; what an honest one loses is the harder question.
        Ok(if u.int_in_range(0..=15)? == 0 {
            Self::Lie(u.arbitrary()?)
        } else {
            Self::Log(u.arbitrary()?)
        })
    }
}

impl<'a> Arbitrary<'a> for Step {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        Ok(match u.int_in_range(0..=7)? {
            0..=3 => Self::Act(u.arbitrary()?),
            4..=6 => {
                let acts = u.int_in_range(0..=3)?;
                Self::Read((0..acts).map(|_| u.arbitrary()).collect::<Result<_>>()?)
            }
            _ => Self::Refused,
        })
    }
}

impl<'a> Arbitrary<'a> for Program {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let waits = u.arbitrary()?;
        let entries = u.int_in_range(1..=LOG_BUFFER_ENTRIES as u32)?;
        let mut steps = Vec::new();
        while !u.is_empty() {
            steps.push(u.arbitrary()?);
        }
        Ok(Self {
            waits,
            entries,
            steps,
        })
    }
}

struct Engine {
    log: Block,
    entries: u32,
    operation: LogOperation,
    /// It never lied.
    honest: bool,
}

impl Engine {
    fn index(&self) -> LogIndex {
        LogIndex::from_word(self.log.word(LogHeader::INDEX).observe())
    }

    /// Entries written so far, by its index.
    fn total(&self) -> u64 {
        let index = self.index();
        u64::from(index.wraparound_count) * u64::from(self.entries)
            + u64::from(index.first_free_entry_index)
    }

    fn act(&mut self, act: Act) {
        match act {
            Act::Log(count) => (0..count).for_each(|_| self.log_one()),
            Act::Lie(lie) => {
                self.honest = false;
                self.lie(lie);
            }
        }
    }

    fn log_one(&mut self) {
        let index = self.index();
        if index.first_free_entry_index >= self.entries {
            return;
        }
        let entry = LogEntry {
            fence_value: self.total(),
            native_fence: 0x10_0001,
            operation: self.operation as u32,
            reserved0: 0,
            observed_ticks: 1,
            reserved1: 0,
            end_ticks: self.total(),
        };
        let words: [u64; 6] = bytemuck::cast(entry);
        let at = LogIndex::entry_offset(index.first_free_entry_index);
        self.log.put_words(at, &words);
        let next = index.next(self.entries).word();
        self.log.word(LogHeader::INDEX).publish(next);
    }

    fn lie(&self, lie: Lie) {
        let index = self.index();
        let set = |index: LogIndex| self.log.word(LogHeader::INDEX).publish(index.word());
        match lie {
            Lie::Index(word) => set(LogIndex::from_word(word)),
            Lie::Entries(by) => set(LogIndex {
                first_free_entry_index: index.first_free_entry_index.wrapping_add_signed(by.into()),
                ..index
            }),
            Lie::Wraps(by) => set(LogIndex {
                wraparound_count: index.wraparound_count.wrapping_add_signed(by),
                ..index
            }),
            Lie::Word { at, value } => {
                let words = LOG_BUFFER_BYTES / 8;
                self.log.word(u64::from(at) % words * 8).publish(value);
            }
            Lie::Operation { slot, operation } => {
                let at = LogIndex::entry_offset(u32::from(slot) % self.entries);
                let word = self.log.word(at + LogEntry::NATIVE_FENCE);
                word.publish(u64::from(operation) << 32 | word.peek() & 0xffff_ffff);
            }
        }
    }
}

impl Program {
    /// Plays the program; how many entries were told or lost.
    ///
    /// # Panics
    /// If the reader did something that the contract forbids.
    #[must_use]
    pub fn play(self) -> u64 {
        let region = Region::new("fence-log", LOG_BUFFER_BYTES).expect("memory");
        let log = Block::whole(&region.map().expect("memory"));
        let (kind, operation) = if self.waits {
            (LogType::Waits, LogOperation::WaitUnblocked)
        } else {
            (LogType::Signals, LogOperation::SignalExecuted)
        };
        let mut reader = LogReader::new(log.clone(), kind, self.entries);
        let mut engine = Engine {
            log,
            entries: self.entries,
            operation,
            honest: true,
        };
        let (mut read_to, mut told) = (engine.index(), 0);
        for step in self.steps {
            match step {
                Step::Act(act) => engine.act(act),
                Step::Refused => assert_eq!(refuse(&mut reader, &engine, read_to), None),
                Step::Read(acts) => {
                    let seen = engine.index();
                    let acts = |engine: &mut Engine| acts.iter().for_each(|act| engine.act(*act));
                    let read = reader.read(|| {
                        acts(&mut engine);
                        Ok::<_, Infallible>(())
                    });
                    let Ok(read) = read;
                    check(&engine, &read, read_to, seen);
                    if seen.since(read_to, self.entries).is_some() {
                        read_to = seen;
                        told += read.entries.len() as u64 + read.lost;
                    }
                }
            }
        }
        told
    }
}

/// A read whose driver fails; what came of it although nothing may, if anything did.
fn refuse(reader: &mut LogReader, engine: &Engine, read_to: LogIndex) -> Option<LogRead> {
    let read = reader.read(|| Err(())).ok();
    // An index that cannot be is refused before the driver is asked.
    let impossible = engine.index().since(read_to, engine.entries).is_none();
    read.filter(|read| !(impossible && read.refused == 1 && read.entries.is_empty()))
}

/// What a read from `read_to` gave that saw the index at `seen`.
fn check(engine: &Engine, read: &LogRead, read_to: LogIndex, seen: LogIndex) {
    let Some(new) = seen.since(read_to, engine.entries) else {
        let refused = LogRead {
            refused: 1,
            ..LogRead::default()
        };
        assert_eq!(*read, refused, "of an index that cannot be");
        return;
    };
    let given = read.entries.len() as u64;
    assert_eq!(
        given + read.lost + read.refused,
        new,
        "each is counted once"
    );
    assert!(
        given < u64::from(engine.entries),
        "the place written next is not data"
    );
    for entry in &read.entries {
        assert_eq!(entry.operation, engine.operation as u32);
    }
    if !engine.honest {
        return;
    }
    assert_eq!(read.refused, 0, "nothing was wrong");
    let capacity = u64::from(engine.entries);
    let last = u64::from(seen.wraparound_count) * capacity + u64::from(seen.first_free_entry_index);
    // What the engine has not reached again, nor is about to.
    let whole = (engine.total() + 1).saturating_sub(capacity);
    let first = whole.max(last - new).min(last);
    let values: Vec<u64> = read.entries.iter().map(|entry| entry.fence_value).collect();
    assert_eq!(values, (first..last).collect::<Vec<_>>());
    assert!(
        read.entries
            .iter()
            .all(|entry| entry.end_ticks == entry.fence_value)
    );
}
