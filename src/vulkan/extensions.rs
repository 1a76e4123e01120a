//! Extensions: what an adapter's driver offers beyond its version.
//!
//! A later version takes extensions into its core; then the same structures are used and nothing is
//! turned on by name. Which of the two it is depends on the lower of the device's and the
//! instance's version.

use std::ffi::CStr;

use ash::vk;

use super::Refusal;
use super::instance::Instance;

/// What an adapter's extensions and version allow.
pub(super) struct Extensions {
    names: Vec<vk::ExtensionProperties>,
    version: u32,
}

impl Extensions {
    /// # Errors
    /// The driver does not say.
    pub(super) fn read(
        instance: &Instance,
        physical: vk::PhysicalDevice,
        version: u32,
    ) -> Result<Self, Refusal> {
        // SAFETY: the adapter is of this instance.
        let names = unsafe {
            instance
                .raw()
                .enumerate_device_extension_properties(physical)
        };
        let names = names.map_err(|e| Refusal::of("vkEnumerateDeviceExtensionProperties", e))?;
        Ok(Self { names, version })
    }

    pub(super) fn has(&self, name: &CStr) -> bool {
        self.names
            .iter()
            .any(|e| e.extension_name_as_c_str().is_ok_and(|n| n == name))
    }

    /// For what Vulkan 1.3 took into its core.
    pub(super) fn has_or_is_core(&self, name: &CStr) -> bool {
        self.version >= vk::API_VERSION_1_3 || self.has(name)
    }

    /// Whether the extension itself must be turned on to use what Vulkan 1.3 took into its core.
    pub(super) fn is_needed(&self, name: &CStr) -> bool {
        self.version < vk::API_VERSION_1_3 && self.has(name)
    }
}
