//! Faults, on purpose: a Vulkan call that answers with an error at its k-th use.
//!
//! A driver may answer most calls with an error, and hardly any ever does. So an instance that is made for it
//! ([`Instance::with_faults`](super::Instance::with_faults)) has every command that can fail called through a shim, which
//! counts its uses and at the one that is planned gives the error without calling the driver. gpu-allocator's calls are
//! among them, which go through the same tables. What the calls make and destroy is counted too: what is left in the end
//! has leaked.
//!
//! A C function has no place for what it needs but its arguments, so there is one plan and one count for the process. Any
//! other instance has nothing of this, and is another adapter that must not notice.
//!
//! A device that is lost is [`DeviceLoss`](super::DeviceLoss)'s: it stays lost, and what it ran is over.

mod call;
mod count;
mod loader;

pub use call::{Answer, VulkanCall};
pub use count::{Fault, Kind, faults};

pub(super) use loader::with_faults;
