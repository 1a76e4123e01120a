//! Injection: what is put in the way of an adapter's engines, to see it recover.
//!
//! A program's kernel runs on the engine's queue and cannot be interrupted; a driver loses its device
//! at any call. Both are real here: the kernel is a dispatch before the node's next slice, and the loss
//! is what the driver's functions answer. An adapter is opened with an injection that the test keeps;
//! without one nothing is looked at.

use crate::shared::{Block, Region, RegionError};
use crate::sync::{Arc, plain};
use crate::vulkan::DeviceLoss;
use std::collections::{HashMap, VecDeque};

/// A kernel that takes its time. Its workgroups do nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LongKernel {
    /// Workgroups, which run one after another where there are more than the device has room for.
    pub workgroups: u32,
    /// Passes of each workgroup's loop, each of which looks at one word; not more than 60,000, or a
    /// driver may cut it.
    pub passes: u32,
}

impl LongKernel {
    /// Least workgroups of a kernel whose length counts: more than any device runs at once, so that its time
    /// grows with each pass.
    pub const WORKGROUPS: u64 = 8192;
    /// More than any device needs for some seconds, and less than a dispatch may have.
    const MOST_WORKGROUPS: u64 = 1 << 24;
    /// Passes of each: more may be cut ([`LongKernel::passes`]).
    const MOST_PASSES: u64 = 60_000;
    /// Of the longest with the least workgroups.
    pub const MOST_OF_LEAST: u64 = Self::WORKGROUPS * Self::MOST_PASSES;

    /// One of so many passes, of all workgroups together: in more of them rather than in longer ones where it
    /// must be.
    #[must_use]
    pub fn of_passes(passes: u64) -> Self {
        let each = (passes / Self::WORKGROUPS).clamp(1, Self::MOST_PASSES);
        Self {
            workgroups: (passes / each).min(Self::MOST_WORKGROUPS) as u32,
            passes: each as u32,
        }
    }

    /// What its shader is given: where it counts its workgroups, and its passes.
    #[must_use]
    pub fn push(self, word: u64) -> [u8; 16] {
        let mut push = [0; 16];
        push[..8].copy_from_slice(&word.to_le_bytes());
        push[8..12].copy_from_slice(&self.passes.to_le_bytes());
        push[12..].copy_from_slice(&u32::MAX.to_le_bytes());
        push
    }
}

/// See the file's head.
#[derive(Debug)]
pub struct Injection {
    /// Kernels to come, by node.
    kernels: plain::Mutex<HashMap<u32, LongKernel>>,
    /// Words of the kernels, which each engine maps by itself; a line for each node.
    words: Arc<Region>,
    view: Block,
    /// Of the device that each node's engine has now.
    losses: plain::Mutex<Vec<Arc<DeviceLoss>>>,
    /// Of the devices of spares that are made next, in their order.
    of_spares: plain::Mutex<VecDeque<Arc<DeviceLoss>>>,
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
            losses: plain::Mutex::new((0..nodes).map(|_| DeviceLoss::new()).collect()),
            of_spares: plain::Mutex::default(),
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

    /// When the Vulkan device is lost that the node's engine has now. Nodes that share a device share the
    /// first one's.
    ///
    /// # Panics
    /// There is no such node.
    #[must_use]
    pub fn device_loss(&self, node_ordinal: u32) -> Arc<DeviceLoss> {
        Arc::clone(&plain::lock(&self.losses)[node_ordinal as usize])
    }

    /// When the Vulkan device of a spare is lost, from its making on: of the one that is made next, and of
    /// the one after it where this is asked for again before.
    pub fn next_spare(&self) -> Arc<DeviceLoss> {
        let loss = DeviceLoss::new();
        plain::lock(&self.of_spares).push_back(Arc::clone(&loss));
        loss
    }

    /// What loses the spare that is made now.
    pub(crate) fn take_spare(&self) -> Arc<DeviceLoss> {
        let asked_for = plain::lock(&self.of_spares).pop_front();
        asked_for.unwrap_or_default()
    }

    /// The node has another engine, whose device is lost by this.
    pub(super) fn has_another(&self, node_ordinal: u32, loss: &Arc<DeviceLoss>) {
        if let Some(of_node) = plain::lock(&self.losses).get_mut(node_ordinal as usize) {
            *of_node = Arc::clone(loss);
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_grows_by_passes_and_then_by_workgroups() {
        let kernel = |passes| {
            let LongKernel { workgroups, passes } = LongKernel::of_passes(passes);
            (u64::from(workgroups), u64::from(passes))
        };
        let (least, most_passes) = (LongKernel::WORKGROUPS, LongKernel::MOST_PASSES);
        assert_eq!(kernel(least), (least, 1));
        assert_eq!(kernel(1000 * least), (least, 1000));
        let most = LongKernel::MOST_OF_LEAST;
        assert_eq!(kernel(most), (least, most_passes));
        assert_eq!(kernel(2 * most), (2 * least, most_passes));
        assert_eq!(kernel(u64::MAX), (LongKernel::MOST_WORKGROUPS, most_passes));
    }
}
