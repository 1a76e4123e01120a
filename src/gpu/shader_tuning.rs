//! Shader tuning: how the engine's shader is specialised, and what of it a device can run.

use crate::abi::RECORD_RING_CAPACITY;
use crate::vulkan::{AdapterInfo, AdapterKind, Features};

/// Records that each lane may raise between two adoptions; `RAISES` of the shader.
const RAISES: u32 = 2;

/// Lanes of an engine on a GPU: of an H100's, 256 copy seven times as fast as 32, spare 64 queues the change of lanes,
/// and cost a hand-off nothing.
const GPU_LANES: u32 = 256;

/// How the shader is specialised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShaderTuning {
    /// Invocations of the workgroup, whole subgroups; where `None` one subgroup on a CPU device, whose lanes all do what
    /// any of them does, and up to 256 on a GPU, where lanes without a queue wait.
    pub lanes: Option<u32>,
    /// Steps of each lane between two adoptions.
    pub rounds: u32,
    /// Iterations that a queue keeps its lane.
    pub quantum: u32,
    /// Whether a lane that comes to another fence resolves it in the midst of an iteration, not for the next; where
    /// `None` on GPUs, since on a CPU device all lanes pay for it in each round.
    pub resolves: Option<bool>,
    /// Whether the engine knows stalls, with which a test brings it to a standstill; else they are no
    /// opcode.
    pub stalls: bool,
}

/// A tuning that cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TuningError {
    /// A part of a subgroup would run, or no lane at all.
    #[error("{lanes} lanes are not whole subgroups: take a multiple of {subgroup}")]
    NotWhole {
        /// What was asked for.
        lanes: u32,
        /// Invocations of a subgroup of the device.
        subgroup: u32,
    },
    /// More than the device's workgroups, or the records of one iteration, have room for.
    #[error("{lanes} lanes are too many: the device runs engines of at most {most}")]
    TooMany {
        /// What was asked for.
        lanes: u32,
        /// The most that can be.
        most: u32,
    },
    /// The driver ends loops, and with several subgroups those of slices that do transfers too soon.
    #[error(
        "{lanes} lanes are several subgroups, with which this driver, which ends every loop, cuts transfers: \
         take {subgroup}, or Mesa 23 or later"
    )]
    OneSubgroup {
        /// What was asked for.
        lanes: u32,
        /// Invocations of a subgroup of the device.
        subgroup: u32,
    },
    /// A lane would never take a step.
    #[error(
        "an engine of {0} rounds between two adoptions never executes a packet: take at least 1"
    )]
    NoRounds(u32),
}

impl Default for ShaderTuning {
    fn default() -> Self {
        Self {
            lanes: None,
            rounds: 64,
            quantum: 8,
            resolves: None,
            stalls: false,
        }
    }
}

impl ShaderTuning {
    /// The lanes of an engine with this tuning on a device.
    ///
    /// # Errors
    /// [`TuningError`]: the device has no such workgroup, or the engine would stand still.
    pub fn lanes_of(&self, info: &AdapterInfo) -> Result<u32, TuningError> {
        let lanes = self.lanes_on(&info.features, info.kind)?;
        let subgroup = info.features.subgroup_size.max(1);
        if lanes > subgroup && info.ends_loops() {
            return Err(TuningError::OneSubgroup { lanes, subgroup });
        }
        Ok(lanes)
    }

    /// Whether lanes resolve fences in the midst of an iteration on a device.
    pub(super) fn resolves_on(&self, info: &AdapterInfo) -> bool {
        self.resolves.unwrap_or(info.kind != AdapterKind::Cpu)
    }

    fn lanes_on(&self, features: &Features, kind: AdapterKind) -> Result<u32, TuningError> {
        let subgroup = features.subgroup_size.max(1);
        // With more, the record ring would never have room for one iteration.
        let recorded = RECORD_RING_CAPACITY as u32 / RAISES;
        let most = features.workgroup_lanes.min(recorded) / subgroup * subgroup;
        let by_itself = match kind {
            AdapterKind::Cpu => subgroup,
            _ => most.min(GPU_LANES / subgroup * subgroup).max(subgroup),
        };
        let lanes = self.lanes.unwrap_or(by_itself);
        if lanes == 0 || !lanes.is_multiple_of(subgroup) {
            return Err(TuningError::NotWhole { lanes, subgroup });
        }
        if lanes > most {
            return Err(TuningError::TooMany { lanes, most });
        }
        if self.rounds == 0 {
            return Err(TuningError::NoRounds(self.rounds));
        }
        Ok(lanes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lanes(lanes: impl Into<Option<u32>>) -> Result<u32, TuningError> {
        let features = Features {
            subgroup_size: 32,
            workgroup_lanes: 160,
            ..Features::default()
        };
        let tuning = ShaderTuning {
            lanes: lanes.into(),
            ..ShaderTuning::default()
        };
        tuning.lanes_on(&features, AdapterKind::Cpu)
    }

    #[test]
    fn a_gpu_has_many_lanes_as_far_as_its_workgroups_go() {
        let lanes = |subgroup_size, workgroup_lanes| {
            let features = Features {
                subgroup_size,
                workgroup_lanes,
                ..Features::default()
            };
            ShaderTuning::default().lanes_on(&features, AdapterKind::Discrete)
        };
        assert_eq!(lanes(32, 1024), Ok(256));
        assert_eq!(lanes(64, 128), Ok(128));
        assert_eq!(lanes(96, 1024), Ok(192));
        assert_eq!(lanes(512, 512), Ok(512), "one subgroup at least");
    }

    #[test]
    fn lanes_are_whole_subgroups_within_a_workgroup() {
        assert_eq!(lanes(None), Ok(32));
        for good in [32, 64, 160] {
            assert_eq!(lanes(good), Ok(good));
        }
        for bad in [0, 1, 31, 33, 200] {
            let subgroup = 32;
            assert_eq!(
                lanes(bad),
                Err(TuningError::NotWhole {
                    lanes: bad,
                    subgroup
                })
            );
        }
        let error = lanes(192).unwrap_err();
        assert_eq!(
            error,
            TuningError::TooMany {
                lanes: 192,
                most: 160
            }
        );
    }
}
