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
    /// An adapter whose engines execute command buffers.
    CommandBuffers,
    /// An adapter whose engine loses its device, and is reset.
    Recovery,
    /// An adapter whose engine has a process of its own.
    EngineProcess,
}

impl Chapter {
    /// Every one, as they come.
    pub const ALL: [Self; 9] = [
        Self::UserMode,
        Self::Suspension,
        Self::KernelMode,
        Self::CrossAdapter,
        Self::SecondProcess,
        Self::Bridge,
        Self::CommandBuffers,
        Self::Recovery,
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
            Self::CommandBuffers => "descriptors:command-buffers",
            Self::Recovery => "descriptors:recovery",
            Self::EngineProcess => "descriptors:engine-process",
        }
    }
}
