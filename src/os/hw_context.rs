//! Hardware context: where the queues of one engine are made (HQ-11).
//!
//! Of one process, on one node, with the engine of it that the affinity names. It holds nothing of the
//! driver's: a queue names node and affinity itself when it is made.

use super::adapter::OsError;
use super::hw_queue::HwQueue;
use super::kernel_queue::KernelQueue;
use super::process::Process;
use crate::sync::Arc;

/// The engine of a node, each of which has one: bit `1 << EngineOrdinal`.
const ENGINE_0: u32 = 1 << 0;

/// See the file's head.
#[derive(Debug)]
pub struct HwContext {
    process: Arc<Process>,
    node_ordinal: u32,
    engine_affinity: u32,
}

impl HwContext {
    /// `D3DKMTCreateHwContext`.
    ///
    /// # Errors
    /// A node that the adapter has not; an affinity that is not exactly the bit of an engine; a stopped
    /// adapter.
    pub fn create(
        process: &Arc<Process>,
        node_ordinal: u32,
        engine_affinity: u32,
    ) -> Result<Self, OsError> {
        let adapter = process.adapter();
        adapter.check_up()?;
        process.state().check()?;
        let nodes = adapter.ddi().node_count();
        if node_ordinal >= nodes {
            return Err(OsError::NodeOrdinal {
                node_ordinal,
                nodes,
            });
        }
        if engine_affinity != ENGINE_0 {
            return Err(OsError::EngineAffinity(engine_affinity));
        }
        Ok(Self {
            process: Arc::clone(process),
            node_ordinal,
            engine_affinity,
        })
    }

    /// The node whose engine executes what its queues are given.
    #[must_use]
    pub fn node_ordinal(&self) -> u32 {
        self.node_ordinal
    }

    /// Which engine of the node: exactly one bit.
    #[must_use]
    pub fn engine_affinity(&self) -> u32 {
        self.engine_affinity
    }

    /// A queue of user-mode submission, without a doorbell.
    ///
    /// # Errors
    /// As [`HwQueue::create_without_doorbell`].
    pub fn create_hw_queue(&self, ring_capacity: u64) -> Result<Arc<HwQueue>, OsError> {
        let (node, affinity) = (self.node_ordinal, self.engine_affinity);
        HwQueue::create_without_doorbell(&self.process, node, affinity, ring_capacity)
    }

    /// A queue of kernel-mode submission.
    ///
    /// # Errors
    /// As [`KernelQueue::create`].
    pub fn create_kernel_queue(&self) -> Result<KernelQueue, OsError> {
        KernelQueue::create(&self.process, self.node_ordinal, self.engine_affinity)
    }
}
