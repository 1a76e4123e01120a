//! Shader tuning: how the engine's shader is specialised, and what of it a device can run.

use crate::abi::RECORD_RING_CAPACITY;
use crate::vulkan::{AdapterInfo, Features};

/// Records that each lane may raise between two adoptions; `RAISES` of the shader.
const RAISES: u32 = 2;

/// How the shader is specialised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShaderTuning {
    /// Invocations of the workgroup, whole subgroups; one subgroup of the device where `None`.
    pub lanes: Option<u32>,
    /// Steps of each lane between two adoptions.
    pub rounds: u32,
    /// Iterations that a queue keeps its lane.
    pub quantum: u32,
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
        let lanes = self.lanes_on(&info.features)?;
        let subgroup = info.features.subgroup_size.max(1);
        if lanes > subgroup && info.ends_loops() {
            return Err(TuningError::OneSubgroup { lanes, subgroup });
        }
        Ok(lanes)
    }

    fn lanes_on(&self, features: &Features) -> Result<u32, TuningError> {
        let subgroup = features.subgroup_size.max(1);
        let lanes = self.lanes.unwrap_or(subgroup);
        if lanes == 0 || !lanes.is_multiple_of(subgroup) {
            return Err(TuningError::NotWhole { lanes, subgroup });
        }
        // With more, the record ring would never have room for one iteration.
        let recorded = RECORD_RING_CAPACITY as u32 / RAISES;
        let most = features.workgroup_lanes.min(recorded) / subgroup * subgroup;
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
        tuning.lanes_on(&features)
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
