//! Chapter: a part of the story, which may begin with few descriptors left.

/// See the file's head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chapter {
    /// User-mode queues on fences of each memory.
    UserMode,
    /// A context that is suspended and resumed, and a device that ends.
    Suspension,
    /// A kernel-mode queue, on an adapter whose engines have shaders.
    KernelMode,
    /// Fences that another adapter has open too.
    CrossAdapter,
    /// Fences that another process has open too, or made.
    SecondProcess,
    /// Bridges to a timeline.
    Bridge,
    /// A program's own command buffers beside.
    Program,
    /// A fence for engines alone.
    IntraGpu,
    /// An adapter whose engine has fewer doorbells than queues.
    FewDoorbells,
    /// An adapter whose engines execute command buffers.
    CommandBuffers,
    /// An adapter whose engine loses its device, and is reset.
    Recovery,
    /// An adapter that is reset as a whole, since its engine was paging.
    Paging,
    /// An adapter whose engine has a process of its own.
    EngineProcess,
}

impl Chapter {
    /// Every one, as they come.
    pub const ALL: [Self; 13] = [
        Self::UserMode,
        Self::Suspension,
        Self::KernelMode,
        Self::CrossAdapter,
        Self::SecondProcess,
        Self::Bridge,
        Self::Program,
        Self::IntraGpu,
        Self::FewDoorbells,
        Self::CommandBuffers,
        Self::Recovery,
        Self::Paging,
        Self::EngineProcess,
    ];

    /// The row of the descriptors that it opens.
    #[must_use]
    pub fn descriptors(self) -> &'static str {
        match self {
            Self::UserMode => "descriptors:user-mode",
            Self::Suspension => "descriptors:suspension",
            Self::KernelMode => "descriptors:kernel-mode",
            Self::CrossAdapter => "descriptors:cross-adapter",
            Self::SecondProcess => "descriptors:second-process",
            Self::Bridge => "descriptors:bridge",
            Self::Program => "descriptors:program",
            Self::IntraGpu => "descriptors:intra-gpu",
            Self::FewDoorbells => "descriptors:few-doorbells",
            Self::CommandBuffers => "descriptors:command-buffers",
            Self::Recovery => "descriptors:recovery",
            Self::Paging => "descriptors:paging",
            Self::EngineProcess => "descriptors:engine-process",
        }
    }
}
