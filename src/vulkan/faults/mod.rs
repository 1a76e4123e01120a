//! Faults, on purpose: a Vulkan call that answers with an error at its k-th use, or from there on.
//!
//! A driver may answer most calls with an error, and hardly any ever does. So an instance that is made for it
//! ([`Instance::with_faults`](super::Instance::with_faults)) has every command that can fail called through a shim, which
//! counts its uses and at the one that is planned gives the error without calling the driver. gpu-allocator's calls are
//! among them, which go through the same tables. What the calls make and destroy is counted too: what is left in the end
//! has leaked.
//!
//! A fault strikes once; or from a use on until it is lifted, as a driver whose memory is used up for good, which what is
//! called again must end at; or once when the driver has done the work, so that what the caller does again is done twice.
//! Their names are `vkWaitSemaphores#3=VK_ERROR_OUT_OF_HOST_MEMORY`, `vkWaitSemaphores#3+=VK_ERROR_OUT_OF_HOST_MEMORY` and
//! `vkQueueSubmit#3:done=VK_ERROR_UNKNOWN` ([`Strikes`]).
//!
//! A C function has no place for what it needs but its arguments, so there is one list of what fails and one count for the
//! process. Any other instance has nothing of this, and is another adapter that must not notice.
//!
//! A device that is lost is [`DeviceLoss`](super::DeviceLoss)'s: it stays lost, and what it ran is over.

mod call;
mod count;
mod fault;
mod loader;

pub use call::{Answer, VulkanCall};
pub use count::{Faults, Kind, faults};
pub use fault::{Fault, NoFault, Strikes};

pub(super) use loader::with_faults;
