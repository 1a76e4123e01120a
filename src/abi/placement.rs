//! Placement: which words lie together, who writes and who polls them, and the memory they belong
//! in (`decisions.md` 18).
//!
//! What the GPU polls belongs in device-local memory that the host can reach, what the CPU polls, or
//! changes by read-modify-write, in cached system memory. So does what must outlive an engine. Where
//! the device has no memory of its own that the host reaches, everything lies in system memory
//! (`shared::Providers` decides); a region says what it is and where it is.

/// Words that are placed together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WordGroup {
    /// CurrentValues of fences for which no local memory is asked.
    CurrentValues,
    /// MonitoredValues, one opener slot a fence.
    MonitoredValues,
    /// Write index and packets of a hardware queue.
    Ring,
    /// What user and OS tell each other about a ring.
    Doorbell,
    /// Read index and doorbell status of a hardware queue.
    Progress,
    /// Descriptor of a hardware queue.
    QueueDescriptor,
    /// Saved states of the queues of a context.
    SaveArea,
    /// A log of waits or of signals, of 4,096 bytes.
    Log,
    /// An enlarged log, alone in its region.
    LargeLog,
    /// Mailbox, slice arguments, run lists, fence directory of an engine.
    EngineControl,
    /// Acknowledgements, slice results and interrupt records of an engine.
    EngineReport,
    /// Fence entries of an engine, shadows among them.
    FenceTable,
    /// Handle directory and entries of a (process, engine).
    HandleTable,
    /// An allocation of a process.
    Allocation,
    /// Cross-adapter doorbells, of all adapters of the process.
    CrossDoorbells,
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
    /// Device-local memory that the host does not reach. No provider makes it: INTRA_GPU fences, which
    /// need no more (NF-12), have their MonitoredValue where the OS stores it, and lie in the other.
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
    /// All.
    pub const ALL: [Self; 15] = [
        Self::CurrentValues,
        Self::MonitoredValues,
        Self::Ring,
        Self::Doorbell,
        Self::Progress,
        Self::QueueDescriptor,
        Self::SaveArea,
        Self::Log,
        Self::LargeLog,
        Self::EngineControl,
        Self::EngineReport,
        Self::FenceTable,
        Self::HandleTable,
        Self::Allocation,
        Self::CrossDoorbells,
    ];

    /// The row of this group.
    #[allow(clippy::match_same_arms, reason = "a table: one row a group")]
    #[must_use]
    pub const fn placement(self) -> Placement {
        use Home::{CachedSystem, LocalHostVisible};
        use Party::{Engine, Os, User};
        let (writers, reader, home): (&'static [Party], _, _) = match self {
            // The CPU reads them as often as engines do; DEFAULT fences are system memory (NF-12).
            Self::CurrentValues => (&[Engine, Os], Os, CachedSystem),
            Self::MonitoredValues => (&[Os], Engine, LocalHostVisible),
            Self::Ring => (&[User], Engine, LocalHostVisible),
            Self::Doorbell => (&[User, Os], Os, CachedSystem),
            Self::Progress => (&[Engine, Os], User, CachedSystem),
            // What must outlive an engine lies outside its device (`decisions.md` 15).
            Self::SaveArea => (&[Engine, Os], Os, CachedSystem),
            // Read once a slice: nobody polls it.
            Self::QueueDescriptor => (&[Os], Engine, CachedSystem),
            Self::Log | Self::LargeLog | Self::EngineReport => (&[Engine], Os, CachedSystem),
            Self::EngineControl | Self::HandleTable => (&[Os], Engine, LocalHostVisible),
            // The OS stores the shadows of an engine that has no slice in flight.
            Self::FenceTable => (&[Engine, Os], Engine, LocalHostVisible),
            Self::Allocation => (&[Engine, User], User, CachedSystem),
            // Of several devices, so in none's memory.
            Self::CrossDoorbells => (&[Engine, Os], Engine, CachedSystem),
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
            Self::Doorbell => "hw-queue-doorbell",
            Self::Progress => "hw-queue-progress",
            Self::QueueDescriptor => "hw-queue",
            Self::SaveArea => "save-area",
            Self::Log => "fence-log",
            Self::LargeLog => "fence-log-large",
            Self::EngineControl => "engine-control",
            Self::EngineReport => "engine-report",
            Self::FenceTable => "fence-table",
            Self::HandleTable => "handle-table",
            Self::Allocation => "allocation",
            Self::CrossDoorbells => "cross-doorbells",
        }
    }
}
