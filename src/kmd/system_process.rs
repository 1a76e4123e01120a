//! System process: the address space of the GPU's command processor (NF-16).
//!
//! With MapToGpuSystemProcess the OS maps fence values and logs a second time, at addresses that no
//! process has, and hands these to the driver. Here such an address space is that of an engine, which
//! imports the same pages once more (choice); what the command processor does with them is done at
//! these addresses then: it adopts MonitoredValues, reads CurrentValues against them, and writes the
//! logs. Packets store and look at CurrentValues by the handles of their process, which lead to its
//! own addresses.
//!
//! That a store by one address is seen by a load by the other follows from the meetings and barriers
//! of the engine where both are of one memory; that both are is what import of the same pages means,
//! and no promise of the Vulkan memory model speaks of it (practice).

use super::{DdiError, Place};
use crate::gpu::{EngineMapping, GpuVa, Node};
use crate::sync::Arc;

/// A place in the system process, unmapped when the last of its owners lets go of it.
#[derive(Clone, Debug)]
pub struct SystemProcessPlace {
    /// By node.
    mappings: Arc<[Arc<EngineMapping>]>,
    offset: u64,
}

impl SystemProcessPlace {
    /// Maps a place for each of the nodes, if the driver has the cap.
    pub(super) fn map(
        nodes: &[Arc<Node>],
        place: Place<'_>,
        has_cap: bool,
    ) -> Result<Self, DdiError> {
        if !has_cap {
            return Err(DdiError::InvalidParameter(
                "nothing is mapped there without MapToGpuSystemProcess",
            ));
        }
        let mappings = nodes.iter().map(|node| node.map_beside(place.region));
        Ok(Self {
            mappings: mappings.collect::<Result<_, _>>()?,
            offset: place.offset,
        })
    }

    /// Its address for the engine of a node; 0 for one that there is not.
    #[must_use]
    pub fn gpu_va(&self, node_ordinal: u32) -> GpuVa {
        self.on(node_ordinal)
            .map_or(GpuVa(0), |(mapping, offset)| mapping.va().offset(offset))
    }

    /// Mapping and offset for a node.
    pub(super) fn on(&self, node_ordinal: u32) -> Option<(Arc<EngineMapping>, u64)> {
        let mapping = self.mappings.get(node_ordinal as usize)?;
        Some((Arc::clone(mapping), self.offset))
    }
}
