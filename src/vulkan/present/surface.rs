//! Surface: a window, as a device that shows something knows it.

use super::super::device::{Owner, Parts};
use super::super::instance::refused;
use super::super::opening::{create, find};
use super::super::{AdapterInfo, BringUpError, Device, Instance, InstanceOptions, Refusal};
use ash::{khr, vk};
use raw_window_handle::{HandleError, HasDisplayHandle, HasWindowHandle};
use std::any::Any;
use std::ffi::CStr;
use std::fmt;
use std::sync::Arc;

/// A window of whichever library.
pub trait Window: HasWindowHandle + HasDisplayHandle + Any + Send + Sync {}

impl<W: HasWindowHandle + HasDisplayHandle + Any + Send + Sync> Window for W {}

/// See the file's head. It keeps its window.
pub struct Surface {
    pub(super) raw: vk::SurfaceKHR,
    pub(super) functions: khr::surface::Instance,
    instance: Arc<Instance>,
    // Last: the surface is of it.
    _window: Arc<dyn Window>,
}

impl Surface {
    /// An instance that can show something on a display.
    ///
    /// # Errors
    /// As [`Instance::new`]; the drivers show nothing on such a display.
    pub fn instance(display: &dyn HasDisplayHandle) -> Result<Arc<Instance>, BringUpError> {
        let handle = display.display_handle().map_err(|e| gone(&e))?;
        let needed = ash_window::enumerate_required_extensions(handle.as_raw())
            .map_err(|e| refused("vkEnumerateInstanceExtensionProperties", e))?;
        let names: Vec<_> = needed
            .iter()
            // SAFETY: they are names of extensions, which are static.
            .map(|name| unsafe { CStr::from_ptr(*name) })
            .collect();
        Instance::with_extensions(InstanceOptions::default(), &names)
    }

    /// Of a window on the display that the instance was made for.
    ///
    /// # Errors
    /// The window is gone, or the driver refuses.
    pub fn new(
        instance: &Arc<Instance>,
        window: Arc<dyn Window>,
    ) -> Result<Arc<Self>, BringUpError> {
        let raw = {
            let display = window.display_handle().map_err(|e| gone(&e))?;
            let handle = window.window_handle().map_err(|e| gone(&e))?;
            // SAFETY: the instance has the extensions of this display; the window is kept as long as the surface is.
            unsafe {
                ash_window::create_surface(
                    instance.entry(),
                    instance.raw(),
                    display.as_raw(),
                    handle.as_raw(),
                    None,
                )
            }
            .map_err(|e| refused("vkCreateSurfaceKHR", e))?
        };
        Ok(Arc::new(Self {
            raw,
            functions: khr::surface::Instance::new(instance.entry(), instance.raw()),
            instance: Arc::clone(instance),
            _window: window,
        }))
    }

    /// Opens an adapter with one queue that can show something on this surface.
    ///
    /// # Errors
    /// As [`Device::open`]; the adapter shows nothing on this surface.
    pub fn open(&self, adapter: &AdapterInfo) -> Result<Arc<Device>, BringUpError> {
        let (physical, adapter) = find(&self.instance, adapter)?;
        let shows = |family: u32| {
            // SAFETY: the adapter and the surface are of this instance; it has a family of this number.
            let shows = unsafe {
                self.functions
                    .get_physical_device_surface_support(physical, family, self.raw)
            };
            shows.unwrap_or(false)
        };
        let families = &adapter.features.compute_families;
        let family = families.iter().find(|family| shows(family.index));
        let Some(family) = family.map(|family| family.index) else {
            return Err(BringUpError::Refused(Refusal {
                call: "vkGetPhysicalDeviceSurfaceSupportKHR",
                code: format!("that {:?} shows nothing in this window", adapter.name),
            }));
        };
        let raw = create(
            &self.instance,
            physical,
            &adapter.features,
            (family, 1),
            &[khr::swapchain::NAME],
            None,
        )?;
        Device::of_parts(Parts {
            instance: Arc::clone(&self.instance),
            physical,
            adapter,
            raw,
            family,
            queues: 1,
            owner: Owner::Library,
            loss: None,
        })
    }

    /// What it is of.
    pub(super) fn instance_of(&self) -> &Arc<Instance> {
        &self.instance
    }

    /// The physical device, looked up again.
    pub(super) fn of(&self, device: &Device) -> Result<vk::PhysicalDevice, BringUpError> {
        let (physical, _) = find(&self.instance, device.adapter())?;
        Ok(physical)
    }
}

impl Drop for Surface {
    fn drop(&mut self) {
        // SAFETY: swapchains keep it, so none is left.
        unsafe { self.functions.destroy_surface(self.raw, None) };
    }
}

impl fmt::Debug for Surface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Surface").finish_non_exhaustive()
    }
}

fn gone(error: &HandleError) -> BringUpError {
    BringUpError::Refused(Refusal {
        call: "the window's handle",
        code: error.to_string(),
    })
}
