//! Node counters.

/// What a node has counted since it was made, and what it holds now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeCounters {
    /// Slices submitted: calls of `vkQueueSubmit`.
    pub slices: u64,
    /// Slices that ended early to interrupt.
    pub interrupts: u64,
    /// Executions between two adoptions, of the slices that ended.
    pub iterations: u64,
    /// Slices that the driver cut.
    pub cut: u64,
    /// Interrupt records taken.
    pub records: u64,
    /// Those of them that the driver kept to itself: of the progress of kernel-mode queues.
    pub kept_records: u64,
    /// Times the engine parked.
    pub parks: u64,
    /// Times an interrupt brought it back, for a value that one of its queues waits for (NF-09).
    pub returns: u64,
    /// Signals whose value was below the one before (NF-21).
    pub backward_signals: u64,
    /// Words from the engine that could not be.
    pub refused_words: u64,
    /// Regions of fences and queues that have an address in the engine's space now.
    pub mappings: u64,
    /// Processes that have a handle table now.
    pub handle_tables: u64,
    /// Times another engine took the place of one that was given up.
    pub resets: u64,
}

impl NodeCounters {
    /// Of two nodes together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            slices: self.slices + other.slices,
            interrupts: self.interrupts + other.interrupts,
            iterations: self.iterations.wrapping_add(other.iterations),
            cut: self.cut + other.cut,
            records: self.records + other.records,
            kept_records: self.kept_records + other.kept_records,
            parks: self.parks + other.parks,
            returns: self.returns + other.returns,
            backward_signals: self.backward_signals + other.backward_signals,
            refused_words: self.refused_words + other.refused_words,
            mappings: self.mappings + other.mappings,
            handle_tables: self.handle_tables + other.handle_tables,
            resets: self.resets + other.resets,
        }
    }
}
