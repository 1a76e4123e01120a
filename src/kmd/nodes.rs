//! Nodes of a driver, by their ordinals, and their engines.

use super::DdiError;
use crate::sync::Arc;

/// The one of an ordinal.
///
/// # Errors
/// There is none.
pub(super) fn node_of<N>(nodes: &[Arc<N>], ordinal: u32) -> Result<&Arc<N>, DdiError> {
    nodes
        .get(ordinal as usize)
        .ok_or(DdiError::InvalidParameter(
            "the node ordinal is not below the number of nodes",
        ))
}

/// Every node has one engine, and whoever names engines names that one (HQ-11).
///
/// # Errors
/// Others, or none, are named.
pub(super) fn one_engine(engine_affinity: u32) -> Result<(), DdiError> {
    if engine_affinity != 1 {
        return Err(DdiError::InvalidParameter(
            "the engine affinity must be exactly bit 0: every node has one engine",
        ));
    }
    Ok(())
}
