//! Layers: an instance that the validation layer watches over, where that is installed.

use super::Teller;
use crate::sweep::play::Told;
use crate::sweep::step::step;
use crate::vulkan::faults::{VulkanCall, faults};
use crate::vulkan::{BringUpError, Instance, InstanceOptions};

/// Tells it. It is of no chapter: a loader that has no descriptor to look for layers by says that there are none.
pub(super) fn tell(teller: &mut Teller<'_>) -> Result<(), Told> {
    teller.end_chapter();
    let options = InstanceOptions { validation: true };
    let asked = || faults().uses(VulkanCall::CreateInstance);
    let before = asked();
    let watched = match Instance::with_faults(options) {
        // The loader lists none, and no instance was asked for: one that was refused for it is a fault.
        Err(BringUpError::ValidationLayerMissing) if asked() == before => None,
        other => Some(step("an instance with the validation layer", other)?),
    };
    teller.count();
    drop(watched);
    teller.beat();
    Ok(())
}
