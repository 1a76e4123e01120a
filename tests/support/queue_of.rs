//! Queues of a device on a node, by its ordinal.
#![allow(dead_code, reason = "each test file uses a part")]

use native_fence::{Device, HwQueue, HwQueueOptions};

fn on_node(node_ordinal: u32) -> HwQueueOptions {
    HwQueueOptions {
        node_ordinal,
        ..HwQueueOptions::default()
    }
}

/// One that runs.
pub(crate) fn queue_of(device: &Device, node_ordinal: u32) -> HwQueue {
    device.create_hw_queue_with(on_node(node_ordinal)).unwrap()
}

/// One without a doorbell yet.
pub(crate) fn disconnected_queue_of(device: &Device, node_ordinal: u32) -> HwQueue {
    let options = on_node(node_ordinal);
    device.create_hw_queue_disconnected(options).unwrap()
}
