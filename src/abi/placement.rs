//! Placement: which words lie together, who writes and who polls them, and the memory they belong
//! in (`decisions.md` 18).
//!
//! What the GPU polls belongs in device-local memory that the host can reach, what the CPU polls in
//! cached system memory, what an engine keeps for itself in device-local memory. Where all memory is
//! one heap, and until providers of other memory exist, everything lies in system memory that each
//! engine imports; a region says what it is and where it is.

/// Words that are placed together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WordGroup {
    /// CurrentValues of fences in system memory.
    CurrentValues,
    /// MonitoredValues, one opener slot a fence.
    MonitoredValues,
    /// Ring control and packets of a hardware queue.
    Ring,
    /// Read index and doorbell status of a hardware queue.
    Progress,
    /// Descriptor and saved states of a hardware queue.
    QueueState,
    /// A log of waits or of signals.
    Log,
    /// Mailbox, slice arguments, run lists, fence directory of an engine.
    EngineControl,
    /// Acknowledgements, slice results and interrupt records of an engine.
    EngineReport,
    /// Fence entries of an engine, shadows among them.
    FenceTable,
    /// Handle directory and entries of a (process, engine).
    HandleTable,
}

/// Who writes or reads words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Party {
    /// The operating system's side of the host.
    Os,
    /// The application's side of the host.
    User,
    /// Engines.
    Engine,
}

/// Memory that words belong in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home {
    /// Device-local memory that the host reaches.
    LocalHostVisible,
    /// System memory that the CPU caches.
    CachedSystem,
    /// Device-local memory.
    Local,
}

/// One row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Who writes; two where the words hand over between them.
    pub writers: &'static [Party],
    /// Who polls.
    pub reader: Party,
    /// Where the words belong.
    pub home: Home,
}

impl WordGroup {
    /// The row of this group.
    #[allow(clippy::match_same_arms, reason = "a table: one row a group")]
    #[must_use]
    pub const fn placement(self) -> Placement {
        use Home::{CachedSystem, Local, LocalHostVisible};
        use Party::{Engine, Os, User};
        let (writers, reader, home): (&'static [Party], _, _) = match self {
            // The CPU reads them as often as engines do; DEFAULT fences are system memory (NF-12).
            Self::CurrentValues => (&[Engine, Os], Os, CachedSystem),
            Self::MonitoredValues => (&[Os], Engine, LocalHostVisible),
            Self::Ring => (&[User], Engine, LocalHostVisible),
            Self::Progress => (&[Engine, Os], User, CachedSystem),
            // What must outlive an engine lies outside its device (`decisions.md` 15).
            Self::QueueState => (&[Engine, Os], Os, CachedSystem),
            Self::Log | Self::EngineReport => (&[Engine], Os, CachedSystem),
            Self::EngineControl | Self::HandleTable => (&[Os], Engine, LocalHostVisible),
            Self::FenceTable => (&[Engine, Os], Engine, Local),
        };
        Placement {
            writers,
            reader,
            home,
        }
    }

    /// Name of memory that holds such words; `/proc/self/maps` shows it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::CurrentValues => "fence-cv",
            Self::MonitoredValues => "fence-mv",
            Self::Ring => "hw-queue-ring",
            Self::Progress => "hw-queue-progress",
            Self::QueueState => "hw-queue",
            Self::Log => "fence-log",
            Self::EngineControl => "engine-control",
            Self::EngineReport => "engine-report",
            Self::FenceTable => "fence-table",
            Self::HandleTable => "handle-table",
        }
    }
}
