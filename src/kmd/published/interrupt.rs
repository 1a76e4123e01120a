//! What the driver tells the OS: interrupts, and the questions about features (`layouts.md` 1.8, 1.11).

use super::PublishedHandle;
use super::address::address_of;
use crate::abi::wddm::{
    self, DmaCompleted, DmaPreempted, EngineInterrupt, Handle, InterruptType,
    IsFeatureEnabledResult, NotifyInterruptData, NotifyInterruptDataFlags, SuspendContextCompleted,
};
use crate::kmd::{FeatureId, Interrupt, QueryFeatureInterface};
use bytemuck::{Pod, Zeroable};
use std::mem::offset_of;

/// An interrupt, and the array that it points to. The address of the array is asked for and not kept: a
/// clone has an array of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PublishedInterrupt {
    fences: Option<Vec<Handle>>,
    interrupt_type: InterruptType,
    payload: [u64; 8],
    flags: NotifyInterruptDataFlags,
}

/// The word of the union that points to the array of fences.
const ARRAY: usize = offset_of!(wddm::NativeFenceSignaled, signaled_native_fence_array) / 8;

/// The bytes of the union, of which the payload is the first.
fn in_union(payload: impl Pod) -> [u64; 8] {
    let mut union = [0; 8];
    let bytes = bytemuck::bytes_of(&payload);
    bytemuck::bytes_of_mut(&mut union)[..bytes.len()].copy_from_slice(bytes);
    union
}

impl Interrupt {
    /// The published interrupt; `None` of those that are this project's own.
    #[must_use]
    pub fn published(&self) -> Option<PublishedInterrupt> {
        match self {
            Self::NativeFenceSignaled(signaled) => {
                let fences = signaled.fences.as_ref();
                let fences: Option<Vec<_>> =
                    fences.map(|named| named.iter().map(|n| n.fence.handle()).collect());
                let legacy = signaled.evaluate_legacy_monitored_fences;
                Some(PublishedInterrupt {
                    interrupt_type: InterruptType::NATIVE_FENCE_SIGNALED,
                    payload: in_union(wddm::NativeFenceSignaled {
                        node_ordinal: signaled.node_ordinal,
                        engine_ordinal: signaled.engine_ordinal,
                        signaled_native_fence_count: fences.as_ref().map_or(0, Vec::len) as u32,
                        padding: 0,
                        // Its address, in `data`.
                        signaled_native_fence_array: 0,
                        hw_queue: signaled.hw_queue.map_or(0, PublishedHandle::handle),
                    }),
                    flags: if legacy {
                        NotifyInterruptDataFlags::EVALUATE_LEGACY_MONITORED_FENCES
                    } else {
                        NotifyInterruptDataFlags::default()
                    },
                    fences,
                })
            }
            Self::MonitoredFenceSignaled {
                node_ordinal,
                engine_ordinal,
            } => Some(PublishedInterrupt {
                interrupt_type: InterruptType::MONITORED_FENCE_SIGNALED,
                payload: in_union(EngineInterrupt {
                    node_ordinal: *node_ordinal,
                    engine_ordinal: *engine_ordinal,
                }),
                ..PublishedInterrupt::default()
            }),
            Self::DmaCompleted {
                submission_id,
                node_ordinal,
                engine_ordinal,
            } => Some(PublishedInterrupt {
                interrupt_type: InterruptType::DMA_COMPLETED,
                payload: in_union(DmaCompleted {
                    // A published id has 32 bits, and wraps.
                    submission_fence_id: *submission_id as u32,
                    node_ordinal: *node_ordinal,
                    engine_ordinal: *engine_ordinal,
                }),
                ..PublishedInterrupt::default()
            }),
            Self::DmaPreempted {
                preemption_id,
                last_completed_id,
                node_ordinal,
                engine_ordinal,
            } => Some(PublishedInterrupt {
                interrupt_type: InterruptType::DMA_PREEMPTED,
                payload: in_union(DmaPreempted {
                    // Published ids have 32 bits, and wrap.
                    preemption_fence_id: *preemption_id as u32,
                    last_completed_fence_id: *last_completed_id as u32,
                    node_ordinal: *node_ordinal,
                    engine_ordinal: *engine_ordinal,
                }),
                ..PublishedInterrupt::default()
            }),
            Self::SuspendContextCompleted {
                context,
                suspend_fence,
            } => Some(PublishedInterrupt {
                interrupt_type: InterruptType::SUSPEND_CONTEXT_COMPLETED,
                payload: in_union(SuspendContextCompleted {
                    context: context.handle(),
                    context_suspend_fence: *suspend_fence,
                }),
                ..PublishedInterrupt::default()
            }),
            Self::ResampleFences { .. }
            | Self::HwQueueFaulted { .. }
            | Self::ObjectsRetired { .. }
            | Self::EngineParking { .. }
            | Self::EngineLost { .. } => None,
        }
    }
}

impl PublishedInterrupt {
    /// `DXGKARGCB_NOTIFY_INTERRUPT_DATA`, which points to the array of this very value.
    #[must_use]
    pub fn data(&self) -> NotifyInterruptData {
        let mut payload = self.payload;
        if let Some(fences) = self.fences.as_deref() {
            payload[ARRAY] = address_of(fences);
        }
        NotifyInterruptData {
            interrupt_type: self.interrupt_type,
            payload,
            flags: self.flags,
            ..NotifyInterruptData::zeroed()
        }
    }

    /// `pSignaledNativeFenceArray`; `None` where it is NULL.
    #[must_use]
    pub fn fences(&self) -> Option<&[Handle]> {
        self.fences.as_deref()
    }
}

impl QueryFeatureInterface {
    /// `DXGKARGCB_QUERYFEATUREINTERFACE`, with the address that the interface is written to.
    #[must_use]
    pub fn published(&self, interface: u64) -> wddm::QueryFeatureInterface {
        wddm::QueryFeatureInterface {
            feature_id: self.feature,
            version: self.version,
            interface_size: self.interface_size,
            interface,
        }
    }
}

impl IsFeatureEnabledResult {
    /// `DXGKARGCB_ISFEATUREENABLED2`: what was asked, with this answer.
    #[must_use]
    pub fn published(self, feature_id: FeatureId) -> wddm::IsFeatureEnabled {
        wddm::IsFeatureEnabled {
            feature_id,
            flags: 0,
            result: self,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::FenceId;
    use crate::kmd::{NativeFenceSignaled, SignaledFence};
    use std::time::Instant;

    fn published() -> PublishedInterrupt {
        let fence = |slot| SignaledFence {
            fence: FenceId {
                slot,
                generation: 1,
            },
            value: 5,
            hw_queue: None,
        };
        let interrupt = Interrupt::NativeFenceSignaled(NativeFenceSignaled {
            node_ordinal: 0,
            engine_ordinal: 0,
            fences: Some([3, 4].map(fence).to_vec()),
            hw_queue: None,
            evaluate_legacy_monitored_fences: false,
            taken: Instant::now(),
        });
        interrupt.published().unwrap()
    }

    /// Kills `a-published-clone-points-to-the-original`.
    #[test]
    fn a_clone_points_to_its_own_array() {
        let one = published();
        let other = one.clone();
        for published in [&one, &other] {
            let array = published.fences().map_or(0, address_of);
            assert_eq!(published.data().payload[ARRAY], array);
        }
        assert_ne!(one.data().payload[ARRAY], other.data().payload[ARRAY]);
        assert_eq!(one, other);
        assert_eq!(one, published(), "wherever its array lies");
    }
}
