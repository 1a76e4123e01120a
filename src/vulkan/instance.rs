//! Instance: the loader, and the drivers it found.
//!
//! The loader is a library of the system that reads which drivers are installed; an instance is one
//! program's connection to all of them. On lavapipe an instance also owns the threads that run
//! shaders, so a program may hold several.
//!
//! This program asks for Vulkan 1.3 where there is such a loader and uses no more than 1.2 of it; the
//! newer version only spares extensions.
//!
//! An instance that a program made for itself, to hand a device of it over (`program_device`), is taken as it
//! is, and is left so.

use std::any::Any;
use std::ffi::CStr;
use std::sync::Arc;

use ash::{ext, vk};

use super::{AdapterInfo, BringUpError, Refusal, faults, validation};

/// How to make an [`Instance`].
#[derive(Clone, Copy, Debug, Default)]
pub struct InstanceOptions {
    /// Core and synchronization validation. `NFENCE_VALIDATION=1` turns it on as well.
    pub validation: bool,
}

/// [`Instance::new`], or one like it.
pub type MakeInstance = fn(InstanceOptions) -> Result<Arc<Instance>, BringUpError>;

/// A connection to the Vulkan drivers of this machine.
pub struct Instance {
    raw: ash::Instance,
    messenger: Option<(ext::debug_utils::Instance, vk::DebugUtilsMessengerEXT)>,
    physical_devices: Vec<vk::PhysicalDevice>,
    api_version: u32,
    /// Of a program's: dropped when nothing here uses it any more.
    kept: Option<Arc<dyn Any + Send + Sync>>,
    /// Its calls are of the process's [`faults`].
    has_faults: bool,
    // The functions above point into the loader's library, which this holds open.
    entry: ash::Entry,
}

impl Instance {
    /// Loads Vulkan and connects to its drivers.
    ///
    /// # Errors
    /// See [`BringUpError`]: no loader, no driver, no device, or no validation layer where it is
    /// asked for.
    pub fn new(options: InstanceOptions) -> Result<Arc<Self>, BringUpError> {
        Self::with_extensions(options, &[])
    }

    /// The same, one call of which may fail ([`faults`]), as of all that is made of it.
    ///
    /// # Errors
    /// As [`Instance::new`].
    pub fn with_faults(options: InstanceOptions) -> Result<Arc<Self>, BringUpError> {
        Self::made(faults::with_faults(load()?), options, &[], true)
    }

    /// What makes another one of its kind: with faults where this has them.
    #[must_use]
    pub fn maker(&self) -> MakeInstance {
        if self.has_faults {
            Self::with_faults
        } else {
            Self::new
        }
    }

    /// The same, with more extensions on.
    pub(super) fn with_extensions(
        options: InstanceOptions,
        more: &[&'static CStr],
    ) -> Result<Arc<Self>, BringUpError> {
        Self::made(load()?, options, more, false)
    }

    fn made(
        entry: ash::Entry,
        options: InstanceOptions,
        more: &[&'static CStr],
        has_faults: bool,
    ) -> Result<Arc<Self>, BringUpError> {
        let validate = options.validation || validation::asked_for_by_environment();
        let api_version = newest_used_version(&entry)?;
        let raw = create(&entry, api_version, validate, more)?;
        let mut instance = Self {
            raw,
            messenger: None,
            physical_devices: Vec::new(),
            api_version,
            kept: None,
            has_faults,
            entry,
        };
        if validate {
            instance.messenger = Some(instance.messenger()?);
        }
        instance.with_physical_devices()
    }

    /// Takes an instance that the program made for itself, with `api_version` in its
    /// `VkApplicationInfo`. It stays the program's.
    ///
    /// # Errors
    /// It was made for a version below 1.2, or has no device.
    ///
    /// # Safety
    /// The instance was made by `entry` for that version. Both stay valid until `kept` is dropped, which is
    /// when nothing of this library uses the instance any more, on whichever thread that is.
    pub unsafe fn import(
        entry: ash::Entry,
        raw: ash::Instance,
        api_version: u32,
        kept: Arc<dyn Any + Send + Sync>,
    ) -> Result<Arc<Self>, BringUpError> {
        check_version(api_version, BringUpError::OldInstance)?;
        let instance = Self {
            raw,
            messenger: None,
            physical_devices: Vec::new(),
            api_version: api_version.min(vk::API_VERSION_1_3),
            kept: Some(kept),
            has_faults: false,
            entry,
        };
        instance.with_physical_devices()
    }

    fn with_physical_devices(mut self) -> Result<Arc<Self>, BringUpError> {
        // SAFETY: the instance is alive.
        self.physical_devices = unsafe { self.raw.enumerate_physical_devices() }
            .map_err(|e| refused("vkEnumeratePhysicalDevices", e))?;
        if self.physical_devices.is_empty() {
            return Err(BringUpError::NoDevice);
        }
        Ok(Arc::new(self))
    }

    /// All adapters, in the loader's order. Plain data, good for any instance of this process.
    #[must_use]
    pub fn adapters(&self) -> Vec<AdapterInfo> {
        self.physical_devices
            .iter()
            .map(|&p| AdapterInfo::read(self, p))
            .collect()
    }

    pub(super) fn raw(&self) -> &ash::Instance {
        &self.raw
    }

    pub(super) fn entry(&self) -> &ash::Entry {
        &self.entry
    }

    /// The version that was asked for: a device's newer functions must not be used.
    pub(super) fn api_version(&self) -> u32 {
        self.api_version
    }

    pub(super) fn physical_devices(&self) -> &[vk::PhysicalDevice] {
        &self.physical_devices
    }

    fn messenger(
        &self,
    ) -> Result<(ext::debug_utils::Instance, vk::DebugUtilsMessengerEXT), BringUpError> {
        let functions = ext::debug_utils::Instance::new(&self.entry, &self.raw);
        let info = validation::messenger_create_info();
        // SAFETY: the instance was made with VK_EXT_debug_utils; the callback is a static function.
        let messenger = unsafe { functions.create_debug_utils_messenger(&info, None) }
            .map_err(|e| refused("vkCreateDebugUtilsMessengerEXT", e))?;
        Ok((functions, messenger))
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        if let Some((functions, messenger)) = self.messenger.take() {
            // SAFETY: it was made on this instance, which is alive, and is destroyed once.
            unsafe { functions.destroy_debug_utils_messenger(messenger, None) };
        }
        if self.kept.is_none() {
            // SAFETY: every device holds an Arc of this, so none is left.
            unsafe { self.raw.destroy_instance(None) };
        }
    }
}

fn load() -> Result<ash::Entry, BringUpError> {
    // SAFETY: the system's Vulkan loader is a library whose initialisers may be run at any time.
    unsafe { ash::Entry::load() }.map_err(|e| BringUpError::NoLoader {
        reason: e.to_string(),
    })
}

fn newest_used_version(entry: &ash::Entry) -> Result<u32, BringUpError> {
    // SAFETY: the function has no preconditions.
    let offered = unsafe { entry.try_enumerate_instance_version() }
        .map_err(|e| refused("vkEnumerateInstanceVersion", e))?
        .unwrap_or(vk::API_VERSION_1_0);
    check_version(offered, BringUpError::OldLoader)?;
    Ok(offered.min(vk::API_VERSION_1_3))
}

fn check_version(version: u32, too_old: fn(u32, u32) -> BringUpError) -> Result<(), BringUpError> {
    if version >= vk::API_VERSION_1_2 {
        return Ok(());
    }
    let (major, minor) = (
        vk::api_version_major(version),
        vk::api_version_minor(version),
    );
    Err(too_old(major, minor))
}

fn create(
    entry: &ash::Entry,
    api_version: u32,
    validate: bool,
    more: &[&'static CStr],
) -> Result<ash::Instance, BringUpError> {
    if validate && !has_validation_layer(entry)? {
        return Err(BringUpError::ValidationLayerMissing);
    }
    let application = vk::ApplicationInfo::default()
        .application_name(c"native-fence")
        .api_version(api_version);
    let layers = [validation::LAYER.as_ptr()];
    let mut extensions: Vec<_> = more.iter().map(|name| name.as_ptr()).collect();
    if validate {
        extensions.extend([
            ext::debug_utils::NAME.as_ptr(),
            ext::validation_features::NAME.as_ptr(),
        ]);
    }
    let checks = [vk::ValidationFeatureEnableEXT::SYNCHRONIZATION_VALIDATION];
    let mut features = vk::ValidationFeaturesEXT::default().enabled_validation_features(&checks);
    // This messenger sees vkCreateInstance and vkDestroyInstance only, the one made later the rest.
    let mut messenger = validation::messenger_create_info();
    let mut info = vk::InstanceCreateInfo::default()
        .application_info(&application)
        .enabled_extension_names(&extensions);
    if validate {
        info = info
            .enabled_layer_names(&layers)
            .push_next(&mut features)
            .push_next(&mut messenger);
    }
    // SAFETY: all that `info` points to lives until after the call.
    unsafe { entry.create_instance(&info, None) }.map_err(|e| match e {
        vk::Result::ERROR_INCOMPATIBLE_DRIVER => BringUpError::NoDriver,
        vk::Result::ERROR_LAYER_NOT_PRESENT => BringUpError::ValidationLayerMissing,
        e => refused("vkCreateInstance", e),
    })
}

fn has_validation_layer(entry: &ash::Entry) -> Result<bool, BringUpError> {
    // SAFETY: the function has no preconditions.
    let layers = unsafe { entry.enumerate_instance_layer_properties() }
        .map_err(|e| refused("vkEnumerateInstanceLayerProperties", e))?;
    let is_it = |name: &CStr| name == validation::LAYER;
    Ok(layers
        .iter()
        .any(|layer| layer.layer_name_as_c_str().is_ok_and(is_it)))
}

pub(super) fn refused(call: &'static str, code: vk::Result) -> BringUpError {
    BringUpError::Refused(Refusal::of(call, code))
}
