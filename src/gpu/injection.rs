//! Injection: what is put in the way of an adapter's engines, to see it recover.
//!
//! A program's kernel runs on the engine's queue and cannot be interrupted; a driver loses its device
//! at any call. Both are real here: the kernel is a dispatch before the node's next slice, and the loss
//! is what the driver's functions answer. An adapter is opened with an injection that the test keeps;
//! without one nothing is looked at.

use crate::shared::{Block, Region, RegionError};
use crate::sync::{Arc, plain};
use crate::vulkan::DeviceLoss;
use std::collections::HashMap;

/// A kernel that takes its time. Its workgroups do nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LongKernel {
    /// Workgroups, which run one after another where there are more than the device has room for.
    pub workgroups: u32,
    /// Passes of each workgroup's loop, each of which looks at one word; not more than 60,000, or a
    /// driver may cut it.
    pub passes: u32,
}

/// See the file's head.
#[derive(Debug)]
pub struct Injection {
    /// Kernels to come, by node.
    kernels: plain::Mutex<HashMap<u32, LongKernel>>,
    /// Words of the kernels, which each engine maps by itself; a line for each node.
    words: Arc<Region>,
    view: Block,
    losses: Vec<Arc<DeviceLoss>>,
}

impl Injection {
    const LINE_BYTES: u64 = 64;

    /// For an adapter of so many nodes.
    ///
    /// # Errors
    /// When there is no memory for a word of each.
    pub fn new(nodes: u32) -> Result<Arc<Self>, RegionError> {
        let bytes = u64::from(nodes) * Self::LINE_BYTES;
        let words = Region::new("injection", bytes)?;
        Ok(Arc::new(Self {
            kernels: plain::Mutex::default(),
            view: Block::whole(&words.map()?),
            words,
            losses: (0..nodes).map(|_| DeviceLoss::new()).collect(),
        }))
    }

    /// Runs a kernel on the node's queue right before its next slice.
    pub fn before_next_slice(&self, node_ordinal: u32, kernel: LongKernel) {
        plain::lock(&self.kernels).insert(node_ordinal, kernel);
    }

    /// Workgroups of the node's kernels that are done, as the host sees it now.
    #[must_use]
    pub fn workgroups_done(&self, node_ordinal: u32) -> u64 {
        self.view.word(Self::offset(node_ordinal)).observe()
    }

    /// When the node's Vulkan device is lost. Nodes that share a device share the first one's.
    ///
    /// # Panics
    /// There is no such node.
    #[must_use]
    pub fn device_loss(&self, node_ordinal: u32) -> &Arc<DeviceLoss> {
        &self.losses[node_ordinal as usize]
    }

    /// The kernel to run now, if there is one.
    pub(super) fn take(&self, node_ordinal: u32) -> Option<LongKernel> {
        plain::lock(&self.kernels).remove(&node_ordinal)
    }

    pub(super) fn words(&self) -> &Arc<Region> {
        &self.words
    }

    /// Byte of the node's word in the words.
    pub(super) fn offset(node_ordinal: u32) -> u64 {
        u64::from(node_ordinal) * Self::LINE_BYTES
    }
}
