//! Violation: a load or store that no engine may do.

use crate::abi::{
    CURRENT_VALUE_STRIDE, CrossDoorbells, EngineReport, FenceEntry, LOG_BUFFER_BYTES, LogEntry,
    LogHeader, QueueProgress,
};

/// What was tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryAccess {
    /// Reading a word.
    Load,
    /// Storing one.
    Store,
}

/// A load or store outside what the engine, or the queue that it executed, may touch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{access:?} at {va:#x}, in {region} + {offset:#x}: {rule}")]
pub struct Violation {
    /// What was tried.
    pub access: MemoryAccess,
    /// The engine's address.
    pub va: u64,
    /// Name of the region there, if there is one.
    pub region: &'static str,
    /// Byte in the region.
    pub offset: u64,
    /// What forbids it.
    pub rule: &'static str,
}

/// What an access to the model's memory gives.
pub(in crate::gpu) type Checked<T> = Result<T, Violation>;

/// Whether an engine may store to the word at `offset` of a region of this name: the list of
/// `shaders/engine.comp`, with the regions told apart by the names that they were made with.
pub(super) fn engine_may_store(region: &str, offset: u64) -> bool {
    match region {
        "fence-cv" => offset.is_multiple_of(CURRENT_VALUE_STRIDE),
        "fence-log" => {
            let offset = offset % LOG_BUFFER_BYTES;
            offset == LogHeader::INDEX || is_log_entry_word(offset)
        }
        // Enlarged: a region of its own.
        "fence-log-large" => offset == LogHeader::INDEX || is_log_entry_word(offset),
        "hw-queue-progress" => offset % QueueProgress::BYTES == QueueProgress::READ_INDEX,
        "fence-table" => offset % FenceEntry::BYTES == FenceEntry::SHADOW,
        "engine-report" => offset < EngineReport::BLOCK_BYTES,
        "save-area" | "allocation" => true,
        // Its own line is a matter of its own (`cross_doorbell.rs`); the word before the lines is the OS's.
        "cross-doorbells" => offset >= CrossDoorbells::BYTES,
        // Rings, control, descriptors, handles, MonitoredValues.
        _ => false,
    }
}

fn is_log_entry_word(offset: u64) -> bool {
    let Some(in_entries) = offset.checked_sub(LogHeader::BYTES) else {
        return false;
    };
    [
        LogEntry::FENCE_VALUE,
        LogEntry::NATIVE_FENCE,
        LogEntry::OBSERVED_TICKS,
        LogEntry::END_TICKS,
    ]
    .contains(&(in_entries % LogEntry::BYTES))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_user_or_the_os_writes_is_not_the_engines() {
        for region in [
            "hw-queue",
            "hw-queue-ring",
            "engine-control",
            "handle-table",
            "fence-mv",
        ] {
            assert!(!engine_may_store(region, 0), "{region}");
        }
        assert!(!engine_may_store(
            "hw-queue-progress",
            QueueProgress::DOORBELL_STATUS
        ));
        assert!(!engine_may_store("fence-log", LogHeader::NUMBER_OF_ENTRIES));
        assert!(!engine_may_store("fence-table", FenceEntry::ID));
    }

    #[test]
    fn what_the_engine_publishes_is_its_own() {
        assert!(engine_may_store("fence-cv", 3 * CURRENT_VALUE_STRIDE));
        assert!(engine_may_store(
            "fence-log",
            LogHeader::BYTES + 83 * LogEntry::BYTES + 40
        ));
        assert!(engine_may_store("save-area", 0) && engine_may_store("save-area", 4088));
    }
}
