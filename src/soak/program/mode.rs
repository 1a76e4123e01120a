//! Mode: by which way a queue's packets come to its engine, and how that is drawn.

use super::super::Random;

/// By which way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// By a ring and a doorbell. Engines wait and signal.
    User,
    /// Through the operating system, submission by submission. It waits, and signals when it is said.
    Kernel(KernelSignals),
}

/// When the signals of a kernel-mode queue are made: all of one queue alike, so that their order is that of its commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelSignals {
    /// By packets, of fences that are monitored; of native ones, which no such queue's engine stores, as at completion.
    ByPacket,
    /// By the operating system, when all before has completed.
    AtCompletion,
    /// By the operating system, when all before was submitted.
    AtSubmission,
}

impl KernelSignals {
    /// All.
    pub const ALL: [Self; 3] = [Self::ByPacket, Self::AtCompletion, Self::AtSubmission];
}

impl Mode {
    /// Whether the operating system gets what is submitted.
    #[must_use]
    pub fn is_kernel(self) -> bool {
        matches!(self, Self::Kernel(_))
    }
}

/// Of each queue: in one of two programs that may have any, one of three is of kernel mode.
pub(super) fn modes(random: &mut Random, queues: usize, has_any: bool) -> Vec<Mode> {
    // Where there are none, no chance is taken: others draw what they drew.
    let has_any = has_any && random.below(2) == 0;
    let mut mode = || {
        if has_any && random.below(3) == 0 {
            Mode::Kernel(*random.pick(&KernelSignals::ALL))
        } else {
            Mode::User
        }
    };
    (0..queues).map(|_| mode()).collect()
}
