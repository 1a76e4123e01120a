//! Chapter: a part of the story, which may begin with few descriptors left.

/// See the file's head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chapter {
    /// User-mode queues on fences of each memory.
    UserMode,
    /// A kernel-mode queue, on an adapter whose engines have shaders.
    KernelMode,
    /// Fences that another adapter has open too.
    CrossAdapter,
    /// Bridges to a timeline.
    Bridge,
    /// An adapter whose engines execute command buffers.
    CommandBuffers,
    /// An adapter whose engine has a process of its own.
    EngineProcess,
}

impl Chapter {
    /// Every one, as they come.
    pub const ALL: [Self; 6] = [
        Self::UserMode,
        Self::KernelMode,
        Self::CrossAdapter,
        Self::Bridge,
        Self::CommandBuffers,
        Self::EngineProcess,
    ];

    /// The row of the descriptors that it opens.
    #[must_use]
    pub fn descriptors(self) -> &'static str {
        match self {
            Self::UserMode => "descriptors:user-mode",
            Self::KernelMode => "descriptors:kernel-mode",
            Self::CrossAdapter => "descriptors:cross-adapter",
            Self::Bridge => "descriptors:bridge",
            Self::CommandBuffers => "descriptors:command-buffers",
            Self::EngineProcess => "descriptors:engine-process",
        }
    }
}
