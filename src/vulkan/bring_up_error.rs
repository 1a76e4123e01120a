//! Why Vulkan does not come up on this machine.
//!
//! A loader, a driver, a device, a queue: each may be missing, and it is the user's machine that
//! lacks it. So every failure of bring-up is one sentence that says what to do about it; programs
//! print it as it is.

use thiserror::Error;

use super::Refusal;

/// Why an instance or a device could not be brought up, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BringUpError {
    /// `libvulkan` could not be loaded.
    #[error(
        "there is no Vulkan loader: install libvulkan1 (Debian, Ubuntu) or vulkan-loader ({reason})"
    )]
    NoLoader {
        /// What the dynamic linker said.
        reason: String,
    },
    /// The loader knows no Vulkan 1.2.
    #[error(
        "the Vulkan loader offers only Vulkan {0}.{1}, and 1.2 is needed: install a newer libvulkan1"
    )]
    OldLoader(
        /// Major version.
        u32,
        /// Minor version.
        u32,
    ),
    /// A program's instance, which was made for an older Vulkan.
    #[error(
        "the instance was made for Vulkan {0}.{1}, and 1.2 is needed: ask for it in VkApplicationInfo"
    )]
    OldInstance(
        /// Major version.
        u32,
        /// Minor version.
        u32,
    ),
    /// No installed driver answers.
    #[error(
        "no Vulkan driver answers (vkCreateInstance): install the one of your GPU, or mesa-vulkan-drivers for lavapipe"
    )]
    NoDriver,
    /// Validation was asked for and the layer is not installed.
    #[error(
        "the Vulkan validation layer is not installed (vkCreateInstance): install vulkan-validationlayers, or do not ask for it"
    )]
    ValidationLayerMissing,
    /// Drivers answer, but offer no adapter.
    #[error(
        "the Vulkan drivers offer no device: check the permissions of /dev/dri, or install mesa-vulkan-drivers"
    )]
    NoDevice,
    /// The adapter asked for is not among those of this instance.
    #[error("the Vulkan device {name:?} is not there any more: list the devices again")]
    DeviceGone {
        /// Its name.
        name: String,
    },
    /// The adapter knows no Vulkan 1.2.
    #[error("{name:?} offers only Vulkan {major}.{minor}, and 1.2 is needed: update its driver")]
    OldDevice {
        /// Its name.
        name: String,
        /// Major version.
        major: u32,
        /// Minor version.
        minor: u32,
    },
    /// The adapter has no queue that runs compute shaders.
    #[error("{name:?} runs no compute shaders: choose another device")]
    NoComputeQueue {
        /// Its name.
        name: String,
    },
    /// The device was lost before anybody had it.
    #[error("the device is lost: vkCreateDevice answered VK_ERROR_DEVICE_LOST; open it again")]
    LostInMaking,
    /// The driver answered with an error that says no more than its name.
    #[error("{0}: update the driver, or choose another device")]
    Refused(#[from] Refusal),
}
