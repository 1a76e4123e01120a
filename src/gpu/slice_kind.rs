//! Slice kind: what the engine's shader is specialised for.
//!
//! Code that a slice does not need costs every iteration, used or not: so each kind of slices is a pipeline. Verbose ones
//! are one more, which has all of it and is made when it is first asked for; those that dispatch are made with the first
//! kernel.

use super::ShaderTuning;
use super::shader_dispatches::{DISPATCH_KINDS, ENGINE_PUSH_BYTES};
use crate::sync::Arc;
use crate::vulkan::{ComputePipeline, Device, shaders};

/// Identifiers of the engine shader's specialisation constants.
const LANES: u32 = 0;
const ROUNDS: u32 = 1;
const QUANTUM: u32 = 2;
const MANY_QUEUES: u32 = 3;
const TRANSFERS: u32 = 4;
const VERBOSE: u32 = 5;
const STALLS: u32 = 6;
const DISPATCHES: u32 = 7;
const DOORBELLS: u32 = 8;
const RESOLVES: u32 = 9;

/// See the file's head.
#[derive(Clone, Copy, Debug)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "the shader's constants, one a name"
)]
pub(super) struct SliceKind {
    many_queues: bool,
    transfers: bool,
    verbose: bool,
    dispatches: bool,
}

impl SliceKind {
    /// Those that are neither verbose nor dispatch.
    pub(super) const COUNT: usize = 4;
    /// All of it but dispatches.
    pub(super) const VERBOSE: Self = Self {
        verbose: true,
        ..Self::of(Self::COUNT - 1)
    };
    /// Those that dispatch: one that does nothing else, and one that does all of it.
    pub(super) const DISPATCHES: [Self; DISPATCH_KINDS] = [
        Self {
            many_queues: true,
            transfers: false,
            verbose: false,
            dispatches: true,
        },
        Self {
            dispatches: true,
            ..Self::VERBOSE
        },
    ];

    /// The number of one that does no more than this.
    pub(super) const fn number(many_queues: bool, transfers: bool) -> usize {
        many_queues as usize | (transfers as usize) << 1
    }

    /// That of a number.
    pub(super) const fn of(kind: usize) -> Self {
        Self {
            many_queues: kind & 1 != 0,
            transfers: kind >> 1 != 0,
            verbose: false,
            dispatches: false,
        }
    }

    /// The engine's shader for it, with so many lanes; `doorbells`: one that rings for other adapters and hears of them.
    pub(super) fn pipeline(
        self,
        device: &Arc<Device>,
        lanes: u32,
        tuning: ShaderTuning,
        doorbells: bool,
    ) -> anyhow::Result<ComputePipeline> {
        let constants = [
            (LANES, lanes),
            (ROUNDS, tuning.rounds),
            (QUANTUM, tuning.quantum),
            (MANY_QUEUES, u32::from(self.many_queues)),
            (TRANSFERS, u32::from(self.transfers)),
            (VERBOSE, u32::from(self.verbose)),
            (STALLS, u32::from(tuning.stalls)),
            (DISPATCHES, u32::from(self.dispatches)),
            (DOORBELLS, u32::from(doorbells)),
            (RESOLVES, u32::from(tuning.resolves_on(device.adapter()))),
        ];
        Ok(ComputePipeline::new(
            device,
            shaders::ENGINE.words,
            ENGINE_PUSH_BYTES,
            &constants,
        )?)
    }
}
