//! Adoption: the engine takes a changed MonitoredValue in its own program order.
//!
//! As `shaders/engine/adopt.glsl`: write the shadow, then read CurrentValue, then raise if it is
//! greater (NF-07).

use super::lane::Globals;
use super::violation::Checked;
use crate::abi::{EngineControl, FenceEntry};

/// Adopts the fence of `slot`; its id and value if it must be raised.
pub(super) fn adopt(g: &Globals<'_>, slot: u32) -> Checked<Option<(u64, u64)>> {
    let slot = u64::from(slot);
    let leaf = g.peek(
        g.control_va + EngineControl::FENCE_DIRECTORY + slot / FenceEntry::LEAF_ENTRIES * 8,
    )?;
    let entry = leaf + slot % FenceEntry::LEAF_ENTRIES * FenceEntry::BYTES;
    let mut monitored_va = 0;
    if leaf != 0 {
        monitored_va = g.observe(entry + FenceEntry::MONITORED_VALUE_VA)?;
    }
    let mut raised = None;
    if monitored_va != 0 {
        let monitored = g.observe(monitored_va)?;
        g.put(entry + FenceEntry::SHADOW, monitored)?;
        let value = g.observe(g.peek(entry + FenceEntry::CURRENT_VALUE_VA)?)?;
        let fence_id = g.peek(entry + FenceEntry::ID)?;
        if value > monitored {
            raised = Some((fence_id, value));
            g.put(entry + FenceEntry::SHADOW, u64::MAX)?;
        }
    }
    Ok(raised)
}
