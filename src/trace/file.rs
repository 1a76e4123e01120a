//! File: a trace in a compact form that is read back.
//!
//! Eight bytes that say what it is, then the trace in postcard's wire format (numbers of variable length, no names). Times
//! of events are written as the difference from the one before, and those within an event as the difference from its
//! start, so that most take two bytes. Whatever bytes are read, the result is a trace whose indices are good or an error.

use super::{Command, CpuWait, Dispatch, Event, LostFrom, Slice, Trace, What};
use std::io::{Read, Write};

/// What a file begins with; the last byte is the format's number.
pub const MAGIC: [u8; 8] = *b"NFTRACE\x02";

/// Of times in a trace: a hundred years.
const MOST_NS: u64 = 100 * 366 * 86_400 * 1_000_000_000;

/// Why a trace was not written, or not read.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The file could not be read or written.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// It begins otherwise.
    #[error("it is not a trace of nfence")]
    NotATrace,
    /// A trace in a format that is not this one.
    #[error(
        "it is a trace of format {0}, which this program does not read: use the nfence that wrote it"
    )]
    OtherFormat(u8),
    /// It ends early, or holds what no trace does.
    #[error("the trace is damaged: {0}")]
    Damaged(String),
}

impl From<postcard::Error> for FileError {
    fn from(error: postcard::Error) -> Self {
        Self::Damaged(error.to_string())
    }
}

impl Trace {
    /// Writes it in its own format.
    ///
    /// # Errors
    /// [`FileError`].
    pub fn write(&self, mut to: impl Write) -> Result<(), FileError> {
        to.write_all(&MAGIC)?;
        let mut packed = self.clone();
        let mut before = 0;
        for event in &mut packed.events {
            let at = event.at;
            event.shift(|time| time.wrapping_sub(at));
            event.at = at.wrapping_sub(before);
            before = at;
        }
        postcard::to_io(&packed, &mut to)?;
        to.flush()?;
        Ok(())
    }

    /// Reads one that was written by [`Trace::write`].
    ///
    /// # Errors
    /// [`FileError`].
    pub fn read(mut from: impl Read) -> Result<Self, FileError> {
        let mut bytes = Vec::new();
        from.read_to_end(&mut bytes)?;
        let Some((magic, packed)) = bytes.split_first_chunk::<8>() else {
            return Err(FileError::NotATrace);
        };
        if magic[..7] != MAGIC[..7] {
            return Err(FileError::NotATrace);
        }
        if *magic != MAGIC {
            return Err(FileError::OtherFormat(magic[7]));
        }
        let (mut trace, rest): (Self, _) = postcard::take_from_bytes(packed)?;
        if !rest.is_empty() {
            return Err(FileError::Damaged(format!(
                "{} bytes follow it",
                rest.len()
            )));
        }
        let errors = trace.clocks.iter().map(|clock| clock.max_error_ns);
        let mut latest = errors
            .chain([trace.length, trace.began_ns])
            .max()
            .unwrap_or(0);
        let mut at = 0u64;
        for event in &mut trace.events {
            at = at.wrapping_add(event.at);
            event.at = at;
            latest = latest.max(at);
            event.shift(|time| {
                let time = time.wrapping_add(at);
                latest = latest.max(time);
                time
            });
        }
        if latest > MOST_NS {
            return Err(FileError::Damaged(
                "it has a time that no machine runs for".to_owned(),
            ));
        }
        trace.check()?;
        Ok(trace)
    }

    fn check(&self) -> Result<(), FileError> {
        let damaged = |what: &str| Err(FileError::Damaged(what.to_owned()));
        let queue = |index: u32| (index as usize) < self.queues.len();
        let fence = |index: u32| (index as usize) < self.fences.len();
        for event in &self.events {
            let is_good = match &event.what {
                What::Command(command) => queue(command.queue) && fence(command.fence),
                What::Dispatch(dispatch) => queue(dispatch.queue),
                What::CpuSignal { fence: index, .. }
                | What::MonitoredValue { fence: index, .. }
                | What::CpuWait(CpuWait { fence: index, .. }) => fence(*index),
                What::Lost(lost) => match lost.from {
                    LostFrom::WaitLog(index)
                    | LostFrom::SignalLog(index)
                    | LostFrom::VerboseLog(index) => queue(index),
                    LostFrom::Notes | LostFrom::Slices(_) | LostFrom::Trace => true,
                },
                What::Slice(_)
                | What::Interrupt { .. }
                | What::Preemption { .. }
                | What::Recovery { .. } => true,
            };
            if !is_good {
                return damaged("an event names a queue or a fence that is none");
            }
        }
        if self.events.windows(2).any(|two| two[0].at > two[1].at) {
            return damaged("its events are not in order");
        }
        Ok(())
    }
}

impl Event {
    /// Brings the times within it, but for its start, to another origin.
    pub(super) fn shift(&mut self, mut to: impl FnMut(u64) -> u64) {
        let mut shift = |time: &mut u64| *time = to(*time);
        match &mut self.what {
            What::Command(Command {
                queued,
                observed,
                end,
                ..
            }) => [queued, observed, end]
                .into_iter()
                .flatten()
                .for_each(shift),
            What::Dispatch(Dispatch {
                queued, began, end, ..
            }) => [queued, began, end].into_iter().flatten().for_each(shift),
            What::Slice(Slice {
                submitted,
                begin,
                end,
                seen,
                ..
            }) => [submitted, begin, end, seen].into_iter().for_each(shift),
            What::Interrupt { done, .. } | What::CpuSignal { done, .. } => shift(done),
            What::CpuWait(CpuWait { began, woke, .. }) => {
                [began, woke].into_iter().for_each(shift);
            }
            What::MonitoredValue { .. }
            | What::Preemption { .. }
            | What::Recovery { .. }
            | What::Lost(_) => {}
        }
    }
}
