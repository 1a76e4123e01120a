//! Work's kernels: the same passes, as programs write kernels for hardware queues.

use crate::KernelCode;
use crate::vulkan::shaders;
use crate::workload::work::PARAMETER_BYTES;

/// What the engine makes of packets that name the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkKernel {
    /// A shader as any, whose workgroups do not know of packets: a dispatch for each.
    Plain,
    /// One with the shader library, whose workgroups ask which packet they are of: a dispatch of all that are ready.
    Merged,
    /// One whose last workgroup does the engine's step as well: what follows needs no round of the engine.
    SchedulesItself,
}

impl WorkKernel {
    /// All, in the order in which they are shown.
    pub const ALL: [Self; 3] = [Self::Plain, Self::Merged, Self::SchedulesItself];

    /// Its shader.
    pub(super) fn code(self) -> anyhow::Result<KernelCode> {
        let shader = match self {
            Self::Plain => &shaders::WORK,
            Self::Merged => &shaders::WORK_TOGETHER,
            Self::SchedulesItself => &shaders::WORK_SELF_SCHEDULING,
        };
        Ok(KernelCode::new(shader.words, PARAMETER_BYTES)?)
    }

    /// What tells its row from the others.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Plain => "dispatches each packet",
            Self::Merged => "merges what is ready",
            Self::SchedulesItself => "schedules itself",
        }
    }

    /// What a batch is.
    pub(super) fn work(self) -> &'static str {
        match self {
            Self::Plain => {
                "Two hardware queues a chain take turns, all of one engine: each waits for the other's fence, \
                 dispatches, and signals its own; each packet is a dispatch, and stands in its ring before; the CPU \
                 waits for the last link of each chain. Measured is from the first doorbell to the return of the last wait."
            }
            Self::Merged => {
                "The same by a kernel of the shader library: packets of several chains that are ready run as one \
                 dispatch."
            }
            Self::SchedulesItself => {
                "The same by a kernel that schedules itself: the last workgroup of what runs as one dispatch does the \
                 engine's step, so the next dispatch follows without the engine."
            }
        }
    }
}
