//! Clock calibration: an engine's clock and the CPU's at one moment (`DXGKARG_CALIBRATEGPUCLOCK`).

use super::DdiError;
use crate::gpu::ClockReading;

/// What `DxgkDdiCalibrateGpuClock` gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GpuClockCalibration {
    /// `GpuFrequency`: ticks of the engine's clock in a second.
    pub gpu_frequency: u64,
    /// `GpuClockCounter`, in these ticks.
    pub gpu_clock_counter: u64,
    /// `CpuClockCounter`: CLOCK_MONOTONIC in nanoseconds (choice: the documents have the performance counter).
    pub cpu_clock_counter: u64,
    /// How far apart the two may have been read, in nanoseconds (choice: the published structure does not say).
    pub max_deviation_ns: u64,
}

impl GpuClockCalibration {
    /// There is no reading.
    pub(super) const NONE: DdiError = DdiError::InvalidParameter(
        "nobody can read the engine's clock and the CPU's at one moment",
    );

    /// Of an engine of a node, by what the node has read.
    pub(super) fn of_engine(
        engine_ordinal: u32,
        read: Option<(ClockReading, u64)>,
    ) -> Result<Self, DdiError> {
        if engine_ordinal != 0 {
            return Err(DdiError::InvalidParameter("each node has one engine, 0"));
        }
        let (reading, gpu_frequency) = read.ok_or(Self::NONE)?;
        Ok(Self {
            gpu_frequency,
            gpu_clock_counter: reading.ticks,
            cpu_clock_counter: reading.monotonic_ns,
            max_deviation_ns: reading.max_deviation_ns,
        })
    }
}
