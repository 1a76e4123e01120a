//! How a slice that dispatches is laid out.

use crate::abi::Dispatch;

/// Rounds of the engine behind its first, and times that kernels run between two of them.
#[derive(Clone, Copy, Debug)]
pub(in crate::gpu) struct SliceLayout {
    pub(in crate::gpu) rounds: u64,
    pub(in crate::gpu) depth: u64,
}

impl SliceLayout {
    /// By whether kernels may go on without the engine.
    pub(in crate::gpu) const ALL: [Self; 2] = [
        Self {
            rounds: Dispatch::ROUNDS,
            depth: 1,
        },
        Self {
            rounds: Dispatch::LONG_ROUNDS,
            depth: Dispatch::DEPTH,
        },
    ];

    pub(in crate::gpu) fn of(schedules_itself: bool) -> Self {
        Self::ALL[usize::from(schedules_itself)]
    }
}
