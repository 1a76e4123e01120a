//! CPU log: the reader of log entries, by the operating system's reader and by one that lacks its order.

use super::Order;
use super::areas::Areas;
use super::looks::Looks;
use super::outcome::Outcomes;
use super::setup::{Setup, line};
use crate::abi::{LOG_BUFFER_BYTES, LOG_BUFFER_ENTRIES, LogEntry, LogHeader, LogIndex, LogType};
use crate::os::{LogRead, LogReader};
use crate::shared::Block;
use crate::sync::{Ordering, fence};
use std::convert::Infallible;
use std::hint::black_box;

const ENTRIES: u32 = LOG_BUFFER_ENTRIES as u32;

/// Instances that the engine may be ahead at most: more would overrun the reader, which is no question of order.
pub(super) const MOST_SLACK: u64 = LOG_BUFFER_ENTRIES / 3;

/// One lane's log.
struct Log {
    block: Block,
    /// Where this party tells how far it has read.
    mine: Block,
    reader: LogReader,
    next: LogIndex,
    read: u64,
}

impl Log {
    /// What stands between the index that was read up to and the one that stands now.
    fn new_entries(&mut self, acquires: bool) -> LogRead {
        if acquires {
            let read = self.reader.read(|| {
                // `UpdateNativeFenceLogs` on coherent memory.
                fence(Ordering::Acquire);
                Ok::<_, Infallible>(())
            });
            let Ok(read) = read;
            return read;
        }
        let index = LogIndex::from_word(self.block.word(LogHeader::INDEX).peek());
        let mut read = LogRead::default();
        while self.next != index && read.entries.len() < ENTRIES as usize {
            let offset = LogIndex::entry_offset(self.next.first_free_entry_index);
            let words = self
                .block
                .peek_words::<{ LogEntry::BYTES as usize / 8 }>(offset);
            read.entries.push(bytemuck::cast(words));
            self.next = self.next.next(ENTRIES);
        }
        read
    }
}

/// Empties the logs, before the engine is submitted.
pub(super) fn come(areas: &Areas, setup: &Setup) {
    for lane in 0..areas.size().lanes() {
        let log = areas
            .first()
            .part(lane * LOG_BUFFER_BYTES, LOG_BUFFER_BYTES);
        let kind = u64::from(LogType::Signals as u32);
        log.put_words(LogHeader::INDEX, &[0, kind, LOG_BUFFER_ENTRIES, 0, 0]);
        log.keep_order();
        let mine = areas.line(1, lane);
        mine.word(line::DONE).put(setup.word(0));
        mine.keep_order();
    }
}

/// Reads while the engine logs.
pub(super) fn play(
    order: Order,
    areas: &Areas,
    setup: &Setup,
    has_ended: &dyn Fn() -> bool,
) -> Outcomes {
    let mut logs: Vec<_> = (0..areas.size().lanes())
        .map(|lane| {
            let block = areas
                .first()
                .part(lane * LOG_BUFFER_BYTES, LOG_BUFFER_BYTES);
            Log {
                reader: LogReader::new(block.clone(), LogType::Signals, ENTRIES),
                block,
                mine: areas.line(1, lane),
                next: LogIndex::from_word(0),
                read: 0,
            }
        })
        .collect();
    let mut outcomes = Outcomes::of_a_batch();
    let mut looks = Looks::new(has_ended);
    let mut is_last = false;
    loop {
        for log in &mut logs {
            let read = log.new_entries(order.acquires());
            outcomes.forbidden += read.refused;
            log.read += read.lost;
            for entry in read.entries {
                outcomes.runs += 1;
                outcomes.forbidden += u64::from(!is_right(&entry, setup, log.read));
                log.read += 1;
            }
            log.mine.word(line::DONE).put(setup.word(log.read));
        }
        logs[0].mine.keep_order();
        if is_last || logs.iter().all(|log| log.read >= setup.iterations) {
            break;
        }
        is_last = !looks.again();
    }
    let asked = areas.size().lanes() * setup.iterations;
    outcomes.not_met = asked.saturating_sub(outcomes.runs);
    outcomes
}

/// Whether it is the entry that the engine logged as the one of this number.
fn is_right(entry: &LogEntry, setup: &Setup, number: u64) -> bool {
    let value = setup.word(number);
    entry.fence_value == value
        && entry.end_ticks == value
        && u64::from(entry.native_fence) == number
}

/// Looks that find an entry, with nobody to wait for.
pub(super) fn alone(order: Order, areas: &Areas, iterations: u64) {
    let block = areas.first().part(0, LOG_BUFFER_BYTES);
    let index = block.word(LogHeader::INDEX);
    for _ in 0..iterations {
        if order.acquires() {
            black_box(index.observe());
        } else {
            black_box(index.peek());
        }
        let entry = block.peek_words::<{ LogEntry::BYTES as usize / 8 }>(LogHeader::BYTES);
        black_box(entry);
    }
}
