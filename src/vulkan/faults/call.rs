//! Call: the Vulkan commands that this crate uses and that can fail, the errors that the standard lets each return, and
//! a shim for each.
//!
//! Not listed are errors that need what is never asked for here (captured addresses, layers of a device), and those of a
//! window's commands. `VK_ERROR_DEVICE_LOST` is [`LossyCall`](crate::vulkan::LossyCall)'s. `VK_ERROR_UNKNOWN` is in no
//! row and of all of them: every command that can return an error may return it, and it says nothing of what was done.

use super::Kind;
use super::count::{Struck, faults};
use ash::vk;
use std::ffi::{CStr, CString, c_char, c_void};
use std::fmt;
use std::mem;
use std::sync::OnceLock;

type Callbacks<'a> = *const vk::AllocationCallbacks<'a>;
type Function = unsafe extern "system" fn();

/// An error that a call answers with.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Answer(vk::Result);

impl Answer {
    pub(super) fn code(self) -> vk::Result {
        self.0
    }

    /// The one of this name, of those that any call has.
    pub(super) fn of_name(name: &str) -> Option<Self> {
        let calls = VulkanCall::ALL.iter();
        let lists = calls.flat_map(|call| [call.errors(), call.errors_afterwards()]);
        let mut all = lists.flatten().copied();
        all.find(|error| error.to_string() == name)
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VK_{:?}", self.0)
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The functions that are called in place of the driver's.
macro_rules! calls {
    ($(
        $call:ident $shim:ident $name:literal $pfn:ident ($($arg:ident: $kind:ty),* $(,)?)
        $(makes $made:ident)? : $($error:ident)+;
    )+) => {
        /// A command that can fail.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum VulkanCall {
            $(
                #[doc = concat!("`", $name, "`.")]
                $call,
            )+
        }

        impl VulkanCall {
            /// Every one.
            pub const ALL: &[Self] = &[$(Self::$call),+];

            /// As Vulkan calls it.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$call => $name,)+
                }
            }

            /// The errors that it can answer with.
            #[must_use]
            pub fn errors(self) -> &'static [Answer] {
                match self {
                    $(Self::$call => &[
                        $(Answer(vk::Result::$error),)+
                        Answer(vk::Result::ERROR_UNKNOWN),
                    ],)+
                }
            }

            fn shim(self) -> Function {
                match self {
                    $(Self::$call => {
                        // SAFETY: a function is handed out as a pointer without its type, as Vulkan does.
                        unsafe { mem::transmute::<vk::$pfn, Function>($shim) }
                    })+
                }
            }
        }

        $(
            unsafe extern "system" fn $shim($($arg: $kind),*) -> vk::Result {
                let struck = faults().strike(VulkanCall::$call);
                if let Some(Struck::Instead(answer)) = struck {
                    return answer;
                }
                let real = real_of(VulkanCall::$call as usize);
                // SAFETY: it was found by this name.
                let real = unsafe { mem::transmute::<Function, vk::$pfn>(real) };
                // SAFETY: the caller's arguments, given to the function that they were meant for.
                let answer = unsafe { real($($arg),*) };
                $(
                    if answer == vk::Result::SUCCESS {
                        faults().made(Kind::$made);
                    }
                )?
                match struck {
                    Some(Struck::Afterwards(told)) if answer == vk::Result::SUCCESS => told,
                    _ => answer,
                }
            }
        )+
    };
}

calls! {
    EnumerateInstanceVersion enumerate_instance_version "vkEnumerateInstanceVersion" PFN_vkEnumerateInstanceVersion
        (version: *mut u32): ERROR_OUT_OF_HOST_MEMORY;
    EnumerateInstanceLayerProperties enumerate_instance_layer_properties "vkEnumerateInstanceLayerProperties"
        PFN_vkEnumerateInstanceLayerProperties (count: *mut u32, layers: *mut vk::LayerProperties):
        ERROR_OUT_OF_HOST_MEMORY ERROR_OUT_OF_DEVICE_MEMORY;
    CreateInstance create_instance "vkCreateInstance" PFN_vkCreateInstance
        (info: *const vk::InstanceCreateInfo<'_>, callbacks: Callbacks<'_>, made: *mut vk::Instance) makes Instance:
        ERROR_OUT_OF_HOST_MEMORY ERROR_OUT_OF_DEVICE_MEMORY ERROR_INITIALIZATION_FAILED ERROR_LAYER_NOT_PRESENT
        ERROR_EXTENSION_NOT_PRESENT ERROR_INCOMPATIBLE_DRIVER;
    CreateDebugUtilsMessenger create_debug_utils_messenger "vkCreateDebugUtilsMessengerEXT"
        PFN_vkCreateDebugUtilsMessengerEXT (
            instance: vk::Instance,
            info: *const vk::DebugUtilsMessengerCreateInfoEXT<'_>,
            callbacks: Callbacks<'_>,
            made: *mut vk::DebugUtilsMessengerEXT,
        ) makes DebugUtilsMessenger: ERROR_OUT_OF_HOST_MEMORY;
    EnumeratePhysicalDevices enumerate_physical_devices "vkEnumeratePhysicalDevices" PFN_vkEnumeratePhysicalDevices
        (instance: vk::Instance, count: *mut u32, found: *mut vk::PhysicalDevice):
        ERROR_OUT_OF_HOST_MEMORY ERROR_OUT_OF_DEVICE_MEMORY ERROR_INITIALIZATION_FAILED;
    EnumerateDeviceExtensionProperties enumerate_device_extension_properties "vkEnumerateDeviceExtensionProperties"
        PFN_vkEnumerateDeviceExtensionProperties (
            adapter: vk::PhysicalDevice,
            layer: *const c_char,
            count: *mut u32,
            found: *mut vk::ExtensionProperties,
        ): ERROR_OUT_OF_HOST_MEMORY ERROR_OUT_OF_DEVICE_MEMORY;
    GetCalibrateableTimeDomains get_calibrateable_time_domains "vkGetPhysicalDeviceCalibrateableTimeDomainsEXT"
        PFN_vkGetPhysicalDeviceCalibrateableTimeDomainsKHR
        (adapter: vk::PhysicalDevice, count: *mut u32, found: *mut vk::TimeDomainKHR):
        ERROR_OUT_OF_HOST_MEMORY ERROR_OUT_OF_DEVICE_MEMORY;
    CreateDevice create_device "vkCreateDevice" PFN_vkCreateDevice (
            adapter: vk::PhysicalDevice,
            info: *const vk::DeviceCreateInfo<'_>,
            callbacks: Callbacks<'_>,
            made: *mut vk::Device,
        ) makes Device:
        ERROR_OUT_OF_HOST_MEMORY ERROR_OUT_OF_DEVICE_MEMORY ERROR_INITIALIZATION_FAILED ERROR_EXTENSION_NOT_PRESENT
        ERROR_FEATURE_NOT_PRESENT ERROR_TOO_MANY_OBJECTS ERROR_DEVICE_LOST;
    CreateBuffer create_buffer "vkCreateBuffer" PFN_vkCreateBuffer
        (device: vk::Device, info: *const vk::BufferCreateInfo<'_>, callbacks: Callbacks<'_>, made: *mut vk::Buffer)
        makes Buffer: ERROR_OUT_OF_HOST_MEMORY ERROR_OUT_OF_DEVICE_MEMORY;
    AllocateMemory allocate_memory "vkAllocateMemory" PFN_vkAllocateMemory (
            device: vk::Device,
            info: *const vk::MemoryAllocateInfo<'_>,
            callbacks: Callbacks<'_>,
            made: *mut vk::DeviceMemory,
        ) makes DeviceMemory:
        ERROR_OUT_OF_HOST_MEMORY ERROR_OUT_OF_DEVICE_MEMORY ERROR_TOO_MANY_OBJECTS ERROR_INVALID_EXTERNAL_HANDLE;
    MapMemory map_memory "vkMapMemory" PFN_vkMapMemory (
            device: vk::Device,
            memory: vk::DeviceMemory,
            offset: vk::DeviceSize,
            size: vk::DeviceSize,
            flags: vk::MemoryMapFlags,
            data: *mut *mut c_void,
        ): ERROR_OUT_OF_HOST_MEMORY ERROR_OUT_OF_DEVICE_MEMORY ERROR_MEMORY_MAP_FAILED;
    BindBufferMemory bind_buffer_memory "vkBindBufferMemory" PFN_vkBindBufferMemory
        (device: vk::Device, buffer: vk::Buffer, memory: vk::DeviceMemory, offset: vk::DeviceSize):
        ERROR_OUT_OF_HOST_MEMORY ERROR_OUT_OF_DEVICE_MEMORY;
    GetMemoryFd get_memory_fd "vkGetMemoryFdKHR" PFN_vkGetMemoryFdKHR
        (device: vk::Device, info: *const vk::MemoryGetFdInfoKHR<'_>, descriptor: *mut i32):
        ERROR_OUT_OF_HOST_MEMORY ERROR_TOO_MANY_OBJECTS;
    GetMemoryHostPointerProperties get_memory_host_pointer_properties "vkGetMemoryHostPointerPropertiesEXT"
        PFN_vkGetMemoryHostPointerPropertiesEXT (
            device: vk::Device,
            handle: vk::ExternalMemoryHandleTypeFlags,
            pointer: *const c_void,
            properties: *mut vk::MemoryHostPointerPropertiesEXT<'_>,
        ): ERROR_OUT_OF_HOST_MEMORY ERROR_INVALID_EXTERNAL_HANDLE;
    GetCalibratedTimestamps get_calibrated_timestamps "vkGetCalibratedTimestampsEXT" PFN_vkGetCalibratedTimestampsKHR (
            device: vk::Device,
            count: u32,
            infos: *const vk::CalibratedTimestampInfoKHR<'_>,
            timestamps: *mut u64,
            deviation: *mut u64,
        ): ERROR_OUT_OF_HOST_MEMORY ERROR_OUT_OF_DEVICE_MEMORY;
    CreateSemaphore create_semaphore "vkCreateSemaphore" PFN_vkCreateSemaphore (
            device: vk::Device,
            info: *const vk::SemaphoreCreateInfo<'_>,
            callbacks: Callbacks<'_>,
            made: *mut vk::Semaphore,
        ) makes Semaphore: ERROR_OUT_OF_HOST_MEMORY ERROR_OUT_OF_DEVICE_MEMORY;
    GetSemaphoreCounterValue get_semaphore_counter_value "vkGetSemaphoreCounterValue" PFN_vkGetSemaphoreCounterValue
        (device: vk::Device, semaphore: vk::Semaphore, value: *mut u64):
        ERROR_OUT_OF_HOST_MEMORY ERROR_OUT_OF_DEVICE_MEMORY;
    WaitSemaphores wait_semaphores "vkWaitSemaphores" PFN_vkWaitSemaphores
        (device: vk::Device, info: *const vk::SemaphoreWaitInfo<'_>, timeout: u64):
        ERROR_OUT_OF_HOST_MEMORY ERROR_OUT_OF_DEVICE_MEMORY;
    SignalSemaphore signal_semaphore "vkSignalSemaphore" PFN_vkSignalSemaphore
        (device: vk::Device, info: *const vk::SemaphoreSignalInfo<'_>):
        ERROR_OUT_OF_HOST_MEMORY ERROR_OUT_OF_DEVICE_MEMORY;
    CreateCommandPool create_command_pool "vkCreateCommandPool" PFN_vkCreateCommandPool (
            device: vk::Device,
            info: *const vk::CommandPoolCreateInfo<'_>,
            callbacks: Callbacks<'_>,
            made: *mut vk::CommandPool,
        ) makes CommandPool: ERROR_OUT_OF_HOST_MEMORY ERROR_OUT_OF_DEVICE_MEMORY;
    AllocateCommandBuffers allocate_command_buffers "vkAllocateCommandBuffers" PFN_vkAllocateCommandBuffers
        (device: vk::Device, info: *const vk::CommandBufferAllocateInfo<'_>, made: *mut vk::CommandBuffer):
        ERROR_OUT_OF_HOST_MEMORY ERROR_OUT_OF_DEVICE_MEMORY;
    BeginCommandBuffer begin_command_buffer "vkBeginCommandBuffer" PFN_vkBeginCommandBuffer
        (commands: vk::CommandBuffer, info: *const vk::CommandBufferBeginInfo<'_>):
        ERROR_OUT_OF_HOST_MEMORY ERROR_OUT_OF_DEVICE_MEMORY;
    EndCommandBuffer end_command_buffer "vkEndCommandBuffer" PFN_vkEndCommandBuffer (commands: vk::CommandBuffer):
        ERROR_OUT_OF_HOST_MEMORY ERROR_OUT_OF_DEVICE_MEMORY;
    CreateShaderModule create_shader_module "vkCreateShaderModule" PFN_vkCreateShaderModule (
            device: vk::Device,
            info: *const vk::ShaderModuleCreateInfo<'_>,
            callbacks: Callbacks<'_>,
            made: *mut vk::ShaderModule,
        ) makes ShaderModule: ERROR_OUT_OF_HOST_MEMORY ERROR_OUT_OF_DEVICE_MEMORY ERROR_INVALID_SHADER_NV;
    CreatePipelineLayout create_pipeline_layout "vkCreatePipelineLayout" PFN_vkCreatePipelineLayout (
            device: vk::Device,
            info: *const vk::PipelineLayoutCreateInfo<'_>,
            callbacks: Callbacks<'_>,
            made: *mut vk::PipelineLayout,
        ) makes PipelineLayout: ERROR_OUT_OF_HOST_MEMORY ERROR_OUT_OF_DEVICE_MEMORY;
    // One pipeline a call, as this crate makes them.
    CreateComputePipelines create_compute_pipelines "vkCreateComputePipelines" PFN_vkCreateComputePipelines (
            device: vk::Device,
            cache: vk::PipelineCache,
            count: u32,
            infos: *const vk::ComputePipelineCreateInfo<'_>,
            callbacks: Callbacks<'_>,
            made: *mut vk::Pipeline,
        ) makes Pipeline: ERROR_OUT_OF_HOST_MEMORY ERROR_OUT_OF_DEVICE_MEMORY ERROR_INVALID_SHADER_NV;
    CreateQueryPool create_query_pool "vkCreateQueryPool" PFN_vkCreateQueryPool (
            device: vk::Device,
            info: *const vk::QueryPoolCreateInfo<'_>,
            callbacks: Callbacks<'_>,
            made: *mut vk::QueryPool,
        ) makes QueryPool: ERROR_OUT_OF_HOST_MEMORY ERROR_OUT_OF_DEVICE_MEMORY;
    QueueSubmit queue_submit "vkQueueSubmit" PFN_vkQueueSubmit
        (queue: vk::Queue, count: u32, submits: *const vk::SubmitInfo<'_>, fence: vk::Fence):
        ERROR_OUT_OF_HOST_MEMORY ERROR_OUT_OF_DEVICE_MEMORY;
    QueueWaitIdle queue_wait_idle "vkQueueWaitIdle" PFN_vkQueueWaitIdle (queue: vk::Queue):
        ERROR_OUT_OF_HOST_MEMORY ERROR_OUT_OF_DEVICE_MEMORY;
    DeviceWaitIdle device_wait_idle "vkDeviceWaitIdle" PFN_vkDeviceWaitIdle (device: vk::Device):
        ERROR_OUT_OF_HOST_MEMORY ERROR_OUT_OF_DEVICE_MEMORY;
}

/// Shims of what destroys: they count.
macro_rules! ends {
    ($($shim:ident $name:literal $pfn:ident ($($arg:ident: $kind:ty),*) $gone:ident $ends:ident;)+) => {
        const ENDS: &[&str] = &[$($name),+];

        fn end_shim(at: usize) -> Function {
            let shims: [Function; ENDS.len()] = [$(
                // SAFETY: a function is handed out as a pointer without its type, as Vulkan does.
                unsafe { mem::transmute::<vk::$pfn, Function>($shim) }
            ),+];
            shims[at]
        }

        $(
            unsafe extern "system" fn $shim($($arg: $kind),*) {
                let at = ENDS.iter().position(|name| *name == $name);
                let real = real_of(CALLS + at.expect("it is in the list that it is made of"));
                // SAFETY: it was found by this name.
                let real = unsafe { mem::transmute::<Function, vk::$pfn>(real) };
                if $gone != Default::default() {
                    faults().destroyed(Kind::$ends);
                }
                // SAFETY: the caller's arguments, given to the function that they were meant for.
                unsafe { real($($arg),*) };
            }
        )+
    };
}

ends! {
    destroy_instance "vkDestroyInstance" PFN_vkDestroyInstance (gone: vk::Instance, callbacks: Callbacks<'_>) gone Instance;
    destroy_debug_utils_messenger "vkDestroyDebugUtilsMessengerEXT" PFN_vkDestroyDebugUtilsMessengerEXT
        (instance: vk::Instance, gone: vk::DebugUtilsMessengerEXT, callbacks: Callbacks<'_>) gone DebugUtilsMessenger;
    destroy_device "vkDestroyDevice" PFN_vkDestroyDevice (gone: vk::Device, callbacks: Callbacks<'_>) gone Device;
    destroy_buffer "vkDestroyBuffer" PFN_vkDestroyBuffer
        (device: vk::Device, gone: vk::Buffer, callbacks: Callbacks<'_>) gone Buffer;
    free_memory "vkFreeMemory" PFN_vkFreeMemory
        (device: vk::Device, gone: vk::DeviceMemory, callbacks: Callbacks<'_>) gone DeviceMemory;
    destroy_semaphore "vkDestroySemaphore" PFN_vkDestroySemaphore
        (device: vk::Device, gone: vk::Semaphore, callbacks: Callbacks<'_>) gone Semaphore;
    destroy_command_pool "vkDestroyCommandPool" PFN_vkDestroyCommandPool
        (device: vk::Device, gone: vk::CommandPool, callbacks: Callbacks<'_>) gone CommandPool;
    destroy_shader_module "vkDestroyShaderModule" PFN_vkDestroyShaderModule
        (device: vk::Device, gone: vk::ShaderModule, callbacks: Callbacks<'_>) gone ShaderModule;
    destroy_pipeline_layout "vkDestroyPipelineLayout" PFN_vkDestroyPipelineLayout
        (device: vk::Device, gone: vk::PipelineLayout, callbacks: Callbacks<'_>) gone PipelineLayout;
    destroy_pipeline "vkDestroyPipeline" PFN_vkDestroyPipeline
        (device: vk::Device, gone: vk::Pipeline, callbacks: Callbacks<'_>) gone Pipeline;
    destroy_query_pool "vkDestroyQueryPool" PFN_vkDestroyQueryPool
        (device: vk::Device, gone: vk::QueryPool, callbacks: Callbacks<'_>) gone QueryPool;
}

const CALLS: usize = VulkanCall::ALL.len();

/// The loader's trampolines: of the calls, and then of what destroys.
static REALS: [OnceLock<Function>; CALLS + ENDS.len()] =
    [const { OnceLock::new() }; CALLS + ENDS.len()];

fn real_of(at: usize) -> Function {
    *REALS[at]
        .get()
        .expect("a shim is handed out when its function was found")
}

impl VulkanCall {
    /// The one of this name.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|call| call.name() == name)
    }

    /// The errors that its caller may be told when the driver has done what was asked.
    ///
    /// A want of memory is none of them. Of a submission the standard says that what it names is as it was, or the
    /// answer is that the device is lost; and of all calls that such a want does no damage to what is there, which a
    /// semaphore's new value would be to whoever signals it again. Of an error that is not known it says nothing. What
    /// makes something is not here: the caller would never learn what it is to destroy, in a driver that has gone wrong.
    #[must_use]
    pub fn errors_afterwards(self) -> &'static [Answer] {
        match self {
            Self::QueueSubmit => &[
                Answer(vk::Result::ERROR_DEVICE_LOST),
                Answer(vk::Result::ERROR_UNKNOWN),
            ],
            Self::SignalSemaphore => &[Answer(vk::Result::ERROR_UNKNOWN)],
            _ => &[],
        }
    }
}

/// Every function that has a shim, and where its trampoline is kept.
pub(super) fn reals() -> impl Iterator<Item = (CString, &'static OnceLock<Function>)> {
    let calls = VulkanCall::ALL.iter().map(|call| call.name());
    let names = calls.chain(ENDS.iter().copied());
    let names = names.map(|name| CString::new(name).expect("a name has no zero"));
    names.zip(&REALS)
}

/// The shim of the function of this name, if it has one: `real` is its trampoline, where that is asked for.
pub(super) fn shim(name: &CStr, real: Option<Function>) -> Option<Function> {
    let name = name.to_str().ok()?;
    let (at, shim) = if let Some(call) = VulkanCall::of_name(name) {
        (call as usize, call.shim())
    } else {
        let end = ENDS.iter().position(|end| *end == name)?;
        (CALLS + end, end_shim(end))
    };
    if let Some(real) = real {
        REALS[at].get_or_init(|| real);
    }
    REALS[at].get().map(|_| shim)
}
