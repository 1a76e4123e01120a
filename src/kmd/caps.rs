//! Caps: what the driver reports of its native fences (`DXGK_NATIVE_FENCE_CAPS`; `layouts.md` 1.5).

use super::DriverFaults;
use crate::abi::wddm::{ComputePreemption, GraphicsPreemption, PreemptionCaps};
use crate::abi::{CURRENT_VALUE_STRIDE, MONITORED_VALUE_STRIDE, wddm};
use crate::gpu::{EngineCaps, GpuVa, LocalMemory};
use crate::sync::Arc;
use bytemuck::Zeroable;
use std::num::NonZeroU32;
use std::time::Duration;

/// The published caps with what they do not say and the OS asks too, all true of a Vulkan device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NativeFenceCaps {
    /// `DXGK_NATIVE_FENCE_CAPS` itself.
    pub published: wddm::NativeFenceCaps,
    /// Distance in bytes of CurrentValues that share a page (choice: not in the published caps).
    pub current_value_stride: u32,
    /// 64-bit values: the engine has 64-bit atomics.
    pub has_64_bit_atomics: bool,
    /// Device-local memory that the CPU reaches (choice: not in the published caps).
    pub local_storage: LocalMemory,
}

/// What an adapter without nodes has.
const NO_ENGINE: EngineCaps = EngineCaps {
    addresses: (GpuVa(0), GpuVa(0)),
    has_64_bit_atomics: false,
    local_storage: LocalMemory::Unreachable,
    scheduling_lanes: 0,
};

impl NativeFenceCaps {
    /// Of an adapter with these engines, what all of them have; `mapped_twice`: values are mapped a second
    /// time for the CMP.
    pub(super) fn of(engines: impl Iterator<Item = EngineCaps>, mapped_twice: bool) -> Self {
        let engine = engines.reduce(EngineCaps::and).unwrap_or(NO_ENGINE);
        Self {
            published: wddm::NativeFenceCaps {
                monitored_value_stride: MONITORED_VALUE_STRIDE as u32,
                map_to_gpu_system_process: u8::from(mapped_twice),
                minimum_address: engine.addresses.0.0,
                maximum_address: engine.addresses.1.0,
                ..wddm::NativeFenceCaps::zeroed()
            },
            current_value_stride: CURRENT_VALUE_STRIDE as u32,
            has_64_bit_atomics: engine.has_64_bit_atomics,
            local_storage: engine.local_storage,
        }
    }
}

/// The granularity of a driver that is not PreemptionAware.
pub(super) const NOT_PREEMPTED: PreemptionCaps = PreemptionCaps {
    graphics: GraphicsPreemption::NONE,
    compute: ComputePreemption::NONE,
};

/// What a [`Driver`](super::Driver) makes use of.
#[allow(clippy::struct_excessive_bools, reason = "each is a cap of its own")]
#[derive(Clone, Debug)]
pub struct DriverOptions {
    /// `OptimizedNativeFenceSignaledInterrupt`: interrupts name the queue, and the OS reads its log.
    /// Off by default: to read a log takes the OS longer than to look at the fences that are named.
    pub optimized_interrupt: bool,
    /// `MapToGpuSystemProcess`: fence values and logs are mapped a second time, at addresses by which
    /// the engine adopts and logs. Off by default: each region is imported twice then, and drivers
    /// have a most of imports.
    pub map_to_gpu_system_process: bool,
    /// `No64BitAtomics` though the engines have them: monitored fences are kept by 32-bit stores, and
    /// there are no native ones.
    pub no_64_bit_atomics: bool,
    /// Engines are of the basic form: their signals of monitored fences raise no interrupt, and their
    /// waiters are found when a command buffer has completed (MF-02, MF-07).
    pub basic_monitored_fences: bool,
    /// Why there are no native fences, as sentences for people: then the driver neither asks for
    /// them nor advertises them.
    pub without_native_fences: Option<String>,
    /// Physical doorbells of each engine. `None`: as many as its run list has places
    /// ([`MAX_HW_QUEUES`](crate::abi::MAX_HW_QUEUES)), which limits the queues that have one then. With
    /// fewer than queues the driver takes one away for another (HQ-13).
    pub doorbells: Option<NonZeroU32>,
    /// No `SupportPerEngineTDR` though engines could be reset one by one: every time-out resets the whole
    /// adapter (TD-16).
    pub adapter_wide_tdr: bool,
    /// The engines share a device and are lost with it: a group of dependent engines (TD-09).
    pub shared_device: bool,
    /// `PreemptionAware` and NoDmaPatching are clear though the engines can be preempted: the OS does not
    /// ask for it (PR-11).
    pub not_preemption_aware: bool,
    /// Within this time from being asked to an engine ends a slice, or it is hung (TD-19). By default 500 ms:
    /// more than a part of the longest packet takes on a busy machine, since an engine that had no core for so
    /// long is taken for one that hangs.
    ///
    /// The time is that of the request that TdrDelay begins with: where this is less it adds nothing, and where
    /// it is more a hung engine is reset so much later, of which a recovery has less than a second (TD-13). It is
    /// to be less than TdrDdiDelay, since the thread that asks is in the driver until then. An engine of a group
    /// has 500 ms at least, which the documents give those that depend on one that is reset (TD-09).
    pub answer_time: Duration,
    /// What the driver does wrong while it recovers; none but where that is tried.
    pub faults: Option<Arc<DriverFaults>>,
}

impl Default for DriverOptions {
    fn default() -> Self {
        Self {
            optimized_interrupt: false,
            map_to_gpu_system_process: false,
            no_64_bit_atomics: false,
            basic_monitored_fences: false,
            without_native_fences: None,
            doorbells: None,
            adapter_wide_tdr: false,
            shared_device: false,
            not_preemption_aware: false,
            answer_time: Duration::from_millis(500),
            faults: None,
        }
    }
}

impl DriverOptions {
    pub(super) fn is_preemption_aware(&self) -> bool {
        !self.not_preemption_aware
    }
}
