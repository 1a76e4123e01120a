//! Devices: what the commands start from.

use crate::sync::Arc;
use crate::vulkan::{AdapterInfo, Instance, InstanceOptions};

/// The Vulkan instance and its adapters.
pub(super) fn connect() -> anyhow::Result<(Arc<Instance>, Vec<AdapterInfo>)> {
    let instance = Instance::new(InstanceOptions::default())?;
    let adapters = instance.adapters();
    Ok((instance, adapters))
}
