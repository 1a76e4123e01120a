//! System process: what the OS maps a second time for the GPU's command processor (NF-16).

use super::adapter::OsError;
use crate::kmd::{Ddi, Place, SystemProcessPlace};
use crate::sync::Arc;

/// The system process of an adapter.
#[derive(Clone, Debug)]
pub(super) struct SystemProcess {
    ddi: Arc<dyn Ddi>,
    /// MapToGpuSystemProcess.
    is_mapped: bool,
}

impl SystemProcess {
    /// Of a driver with the cap, or without.
    pub(super) fn new(ddi: &Arc<dyn Ddi>, is_mapped: bool) -> Self {
        Self {
            ddi: Arc::clone(ddi),
            is_mapped,
        }
    }

    /// Maps a place there; nothing where the driver does not ask for it.
    ///
    /// # Errors
    /// The driver's: no memory or address for it.
    pub(super) fn map(&self, place: Place<'_>) -> Result<Option<SystemProcessPlace>, OsError> {
        if !self.is_mapped {
            return Ok(None);
        }
        Ok(Some(self.ddi.map_to_gpu_system_process(place)?))
    }
}
