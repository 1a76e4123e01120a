//! Nodes of a driver, by their ordinals.

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
