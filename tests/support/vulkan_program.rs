//! An ordinary Vulkan program, in plain ash: its own instance, device, queue, semaphores and command buffers.
//!
//! With `NFENCE_VALIDATION=1` its instance has the validation layer, which sees all that is done on its device,
//! and must have had nothing to say when the program ends: of what was made and never destroyed as well.
#![allow(dead_code, reason = "each test file uses a part")]
#![allow(unsafe_code, reason = "plain Vulkan")]
#![allow(
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block,
    reason = "a program that makes its handles itself and destroys them last"
)]

use super::until::until;
use ash::{ext, vk};
use native_fence::vulkan::{
    Device, DeviceImportError, DeviceLoss, DeviceNeeds, Instance, ProgramDevice, ProgramQueue,
    validation,
};
use std::ffi::{CStr, c_void};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What the layer says of itself (`src/vulkan/validation.rs`).
const LAYERS_OWN_BUG: &CStr = c"UNASSIGNED-VkSemaphore-state-timeout";

static MESSAGES: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// What the program made, and destroys when nobody uses it any more.
pub(crate) struct Handles {
    pub(crate) device: ash::Device,
    physical: vk::PhysicalDevice,
    messenger: Option<(ext::debug_utils::Instance, vk::DebugUtilsMessengerEXT)>,
    instance: ash::Instance,
    entry: ash::Entry,
}

impl Drop for Handles {
    fn drop(&mut self) {
        unsafe {
            self.device.device_wait_idle().ok();
            self.device.destroy_device(None);
            if let Some((functions, messenger)) = self.messenger.take() {
                functions.destroy_debug_utils_messenger(messenger, None);
            }
            self.instance.destroy_instance(None);
        }
    }
}

/// The program. Declared before what lives on its device, so that it ends last.
pub(crate) struct Program {
    handles: Option<Arc<Handles>>,
    pub(crate) turned_on: DeviceNeeds,
    pub(crate) family: u32,
    pub(crate) queue: vk::Queue,
    /// Held for each use of the queue.
    pub(crate) lock: Arc<Mutex<()>>,
    pool: vk::CommandPool,
    semaphores: Mutex<Vec<vk::Semaphore>>,
    buffers: Mutex<Vec<(vk::Buffer, vk::DeviceMemory)>>,
    pipelines: Mutex<Vec<(vk::Pipeline, vk::PipelineLayout)>>,
}

/// A buffer of the program's, which it maps.
pub(crate) struct Words {
    pub(crate) buffer: vk::Buffer,
    pub(crate) address: u64,
    mapped: *mut u32,
}

impl Words {
    /// Stores a word of 32 bits.
    pub(crate) fn put(&self, index: usize, word: u32) {
        unsafe { self.mapped.add(index).write_volatile(word) };
    }

    /// Loads one.
    pub(crate) fn get(&self, index: usize) -> u32 {
        unsafe { self.mapped.add(index).read_volatile() }
    }
}

impl Program {
    /// The program, on the first device that has native fences, with what those need.
    pub(crate) fn new() -> Self {
        Self::that_turns_on(|_| {})
    }

    /// The same, which turns on what `change` leaves of it.
    pub(crate) fn that_turns_on(change: impl Fn(&mut DeviceNeeds)) -> Self {
        let entry = unsafe { ash::Entry::load() }.unwrap();
        let (instance, messenger) = instance(&entry);
        let physical = physical(&instance);
        let mut turned_on = needs(&entry, &instance, physical);
        change(&mut turned_on);
        let family = unsafe { instance.get_physical_device_queue_family_properties(physical) };
        let computes =
            |one: &vk::QueueFamilyProperties| one.queue_flags.contains(vk::QueueFlags::COMPUTE);
        let family = family.iter().position(computes).unwrap() as u32;
        let device = device(&instance, physical, family, &turned_on);
        let queue = unsafe { device.get_device_queue(family, 0) };
        let pool = vk::CommandPoolCreateInfo::default().queue_family_index(family);
        let pool = unsafe { device.create_command_pool(&pool, None) }.unwrap();
        let handles = Handles {
            device,
            physical,
            messenger,
            instance,
            entry,
        };
        Self {
            handles: Some(Arc::new(handles)),
            turned_on,
            family,
            queue,
            lock: Arc::default(),
            pool,
            semaphores: Mutex::default(),
            buffers: Mutex::default(),
            pipelines: Mutex::default(),
        }
    }

    fn handles(&self) -> &Arc<Handles> {
        self.handles.as_ref().unwrap()
    }

    /// Its device.
    pub(crate) fn device(&self) -> &ash::Device {
        &self.handles().device
    }

    /// Hands its device over, with its queue to be used in turns.
    pub(crate) fn hand_over(&self) -> Arc<Device> {
        let queue = ProgramQueue::in_turns(self.queue, self.family, self.lock.clone());
        self.try_hand_over(vec![queue], None).unwrap()
    }

    /// The same without a queue.
    pub(crate) fn hand_over_for_timelines(&self) -> Arc<Device> {
        self.try_hand_over(Vec::new(), None).unwrap()
    }

    /// The same with these queues, on a device that is lost as is said.
    pub(crate) fn try_hand_over(
        &self,
        queues: Vec<ProgramQueue>,
        loss: Option<Arc<DeviceLoss>>,
    ) -> Result<Arc<Device>, DeviceImportError> {
        let handles = self.handles();
        let (entry, instance) = (handles.entry.clone(), handles.instance.clone());
        let imported =
            unsafe { Instance::import(entry, instance, vk::API_VERSION_1_3, handles.clone()) };
        let program = ProgramDevice {
            physical: handles.physical,
            raw: handles.device.clone(),
            turned_on: self.turned_on.clone(),
            queues,
            kept: handles.clone(),
            loss,
        };
        unsafe { Device::import(&imported.unwrap(), program) }
    }

    /// A timeline semaphore, destroyed at the program's end.
    pub(crate) fn timeline(&self, initial: u64) -> vk::Semaphore {
        let mut kind = vk::SemaphoreTypeCreateInfo::default()
            .semaphore_type(vk::SemaphoreType::TIMELINE)
            .initial_value(initial);
        let info = vk::SemaphoreCreateInfo::default().push_next(&mut kind);
        let semaphore = unsafe { self.device().create_semaphore(&info, None) }.unwrap();
        self.semaphores.lock().unwrap().push(semaphore);
        semaphore
    }

    /// What a timeline stands at.
    pub(crate) fn value(&self, timeline: vk::Semaphore) -> u64 {
        unsafe { self.device().get_semaphore_counter_value(timeline) }.unwrap()
    }

    /// Whether a timeline comes to have a value, within a time that is long enough for anything.
    pub(crate) fn wait(&self, timeline: vk::Semaphore, value: u64) -> bool {
        let (semaphores, values) = ([timeline], [value]);
        let info = vk::SemaphoreWaitInfo::default()
            .semaphores(&semaphores)
            .values(&values);
        let long = Duration::from_secs(30).as_nanos() as u64;
        unsafe { self.device().wait_semaphores(&info, long) }.is_ok()
    }

    /// `vkSignalSemaphore`.
    pub(crate) fn signal(&self, timeline: vk::Semaphore, value: u64) {
        let info = vk::SemaphoreSignalInfo::default()
            .semaphore(timeline)
            .value(value);
        unsafe { self.device().signal_semaphore(&info) }.unwrap();
    }

    /// A command buffer, recorded by `record`.
    pub(crate) fn record(&self, record: impl FnOnce(vk::CommandBuffer)) -> vk::CommandBuffer {
        let info = vk::CommandBufferAllocateInfo::default()
            .command_pool(self.pool)
            .command_buffer_count(1);
        let commands = unsafe { self.device().allocate_command_buffers(&info) }.unwrap()[0];
        let begin = vk::CommandBufferBeginInfo::default();
        unsafe { self.device().begin_command_buffer(commands, &begin) }.unwrap();
        record(commands);
        unsafe { self.device().end_command_buffer(commands) }.unwrap();
        commands
    }

    /// An ordinary `vkQueueSubmit`: what it waits for, what it runs, what it signals.
    pub(crate) fn submit(
        &self,
        waits: &[(vk::Semaphore, u64)],
        commands: &[vk::CommandBuffer],
        signals: &[(vk::Semaphore, u64)],
    ) {
        let (wait, wait_values): (Vec<_>, Vec<_>) = waits.iter().copied().unzip();
        let (signal, signal_values): (Vec<_>, Vec<_>) = signals.iter().copied().unzip();
        let stages = vec![vk::PipelineStageFlags::ALL_COMMANDS; wait.len()];
        let mut values = vk::TimelineSemaphoreSubmitInfo::default()
            .wait_semaphore_values(&wait_values)
            .signal_semaphore_values(&signal_values);
        let info = vk::SubmitInfo::default()
            .wait_semaphores(&wait)
            .wait_dst_stage_mask(&stages)
            .command_buffers(commands)
            .signal_semaphores(&signal)
            .push_next(&mut values);
        let _turn = self.lock.lock().unwrap();
        unsafe {
            self.device()
                .queue_submit(self.queue, &[info], vk::Fence::null())
        }
        .unwrap();
    }

    /// 4 KiB, mapped.
    pub(crate) fn words(&self) -> Words {
        let handles = self.handles();
        let usage = vk::BufferUsageFlags::STORAGE_BUFFER
            | vk::BufferUsageFlags::INDIRECT_BUFFER
            | vk::BufferUsageFlags::SHADER_DEVICE_ADDRESS;
        let info = vk::BufferCreateInfo::default().size(4096).usage(usage);
        let buffer = unsafe { handles.device.create_buffer(&info, None) }.unwrap();
        let needs = unsafe { handles.device.get_buffer_memory_requirements(buffer) };
        let types = unsafe {
            let instance = &handles.instance;
            instance.get_physical_device_memory_properties(handles.physical)
        };
        let wanted = vk::MemoryPropertyFlags::HOST_VISIBLE | vk::MemoryPropertyFlags::HOST_COHERENT;
        let is_it = |(index, kind): &(u32, &vk::MemoryType)| {
            needs.memory_type_bits >> index & 1 != 0 && kind.property_flags.contains(wanted)
        };
        let mut types = (0..).zip(types.memory_types_as_slice());
        let (memory_type, _) = types.find(is_it).unwrap();
        let mut flags =
            vk::MemoryAllocateFlagsInfo::default().flags(vk::MemoryAllocateFlags::DEVICE_ADDRESS);
        let info = vk::MemoryAllocateInfo::default()
            .allocation_size(needs.size)
            .memory_type_index(memory_type)
            .push_next(&mut flags);
        let memory = unsafe { handles.device.allocate_memory(&info, None) }.unwrap();
        self.buffers.lock().unwrap().push((buffer, memory));
        let none = vk::MemoryMapFlags::empty();
        unsafe {
            handles
                .device
                .bind_buffer_memory(buffer, memory, 0)
                .unwrap();
            let mapped = handles.device.map_memory(memory, 0, vk::WHOLE_SIZE, none);
            let info = vk::BufferDeviceAddressInfo::default().buffer(buffer);
            Words {
                buffer,
                address: handles.device.get_buffer_device_address(&info),
                mapped: mapped.unwrap().cast(),
            }
        }
    }

    /// A pipeline of a kernel that takes one address as push constant, and its layout.
    pub(crate) fn kernel(&self, code: &[u32]) -> (vk::Pipeline, vk::PipelineLayout) {
        let device = self.device();
        let ranges = [vk::PushConstantRange::default()
            .stage_flags(vk::ShaderStageFlags::COMPUTE)
            .size(8)];
        let layout = vk::PipelineLayoutCreateInfo::default().push_constant_ranges(&ranges);
        let layout = unsafe { device.create_pipeline_layout(&layout, None) }.unwrap();
        let module = vk::ShaderModuleCreateInfo::default().code(code);
        let module = unsafe { device.create_shader_module(&module, None) }.unwrap();
        let stage = vk::PipelineShaderStageCreateInfo::default()
            .stage(vk::ShaderStageFlags::COMPUTE)
            .module(module)
            .name(c"main");
        let infos = [vk::ComputePipelineCreateInfo::default()
            .stage(stage)
            .layout(layout)];
        let cache = vk::PipelineCache::null();
        let made = unsafe { device.create_compute_pipelines(cache, &infos, None) };
        unsafe { device.destroy_shader_module(module, None) };
        let kernel = (made.unwrap()[0], layout);
        self.pipelines.lock().unwrap().push(kernel);
        kernel
    }

    /// What keeps all that the program made.
    pub(crate) fn kept(&self) -> Arc<Handles> {
        Arc::clone(self.handles())
    }

    /// Whether nothing but the program uses the device.
    pub(crate) fn is_alone(&self) -> bool {
        Arc::strong_count(self.handles()) == 1
    }
}

impl Program {
    /// Waits until all that was submitted to the queue has ended.
    pub(crate) fn wait_idle(&self) {
        let _turn = self.lock.lock().unwrap();
        if let Some(handles) = &self.handles {
            unsafe { handles.device.queue_wait_idle(self.queue).unwrap() };
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // What failed may still use all of it.
            std::mem::forget(self.handles.take());
            return;
        }
        until("nobody uses the program's device", || self.is_alone());
        let handles = self.handles.take().unwrap();
        unsafe {
            let _turn = self.lock.lock().unwrap();
            handles.device.queue_wait_idle(self.queue).unwrap();
            for semaphore in self.semaphores.lock().unwrap().drain(..) {
                handles.device.destroy_semaphore(semaphore, None);
            }
            for (pipeline, layout) in self.pipelines.lock().unwrap().drain(..) {
                handles.device.destroy_pipeline(pipeline, None);
                handles.device.destroy_pipeline_layout(layout, None);
            }
            for (buffer, memory) in self.buffers.lock().unwrap().drain(..) {
                handles.device.destroy_buffer(buffer, None);
                handles.device.free_memory(memory, None);
            }
            handles.device.destroy_command_pool(self.pool, None);
        }
        drop(handles);
        assert_eq!(*MESSAGES.lock().unwrap(), [""; 0]);
        assert_eq!(validation::messages(), [""; 0]);
    }
}

fn instance(
    entry: &ash::Entry,
) -> (
    ash::Instance,
    Option<(ext::debug_utils::Instance, vk::DebugUtilsMessengerEXT)>,
) {
    let validate = validation::asked_for_by_environment();
    let application = vk::ApplicationInfo::default().api_version(vk::API_VERSION_1_3);
    let layers = [c"VK_LAYER_KHRONOS_validation".as_ptr()];
    let extensions = [ext::debug_utils::NAME.as_ptr()];
    let mut info = vk::InstanceCreateInfo::default().application_info(&application);
    if validate {
        info = info
            .enabled_layer_names(&layers)
            .enabled_extension_names(&extensions);
    }
    let instance = unsafe { entry.create_instance(&info, None) }.unwrap();
    let messenger = validate.then(|| {
        let functions = ext::debug_utils::Instance::new(entry, &instance);
        let severity = vk::DebugUtilsMessageSeverityFlagsEXT::WARNING
            | vk::DebugUtilsMessageSeverityFlagsEXT::ERROR;
        let info = vk::DebugUtilsMessengerCreateInfoEXT::default()
            .message_severity(severity)
            .message_type(vk::DebugUtilsMessageTypeFlagsEXT::VALIDATION)
            .pfn_user_callback(Some(on_message));
        let messenger = unsafe { functions.create_debug_utils_messenger(&info, None) };
        (functions, messenger.unwrap())
    });
    (instance, messenger)
}

unsafe extern "system" fn on_message(
    _: vk::DebugUtilsMessageSeverityFlagsEXT,
    _: vk::DebugUtilsMessageTypeFlagsEXT,
    data: *const vk::DebugUtilsMessengerCallbackDataEXT<'_>,
    _: *mut c_void,
) -> vk::Bool32 {
    let data = unsafe { &*data };
    if unsafe { data.message_id_name_as_c_str() } != Some(LAYERS_OWN_BUG) {
        let text = unsafe { data.message_as_c_str() }.unwrap_or_default();
        let text = text.to_string_lossy().into_owned();
        eprintln!("validation: {text}");
        MESSAGES.lock().unwrap().push(text);
    }
    vk::FALSE
}

/// The one that the tests of this machine are about: a GPU before lavapipe.
fn physical(instance: &ash::Instance) -> vk::PhysicalDevice {
    let all = unsafe { instance.enumerate_physical_devices() }.unwrap();
    let worth = |one: &vk::PhysicalDevice| {
        let properties = unsafe { instance.get_physical_device_properties(*one) };
        let name = properties.device_name_as_c_str().unwrap_or_default();
        let is_cpu = properties.device_type == vk::PhysicalDeviceType::CPU;
        (!is_cpu, name.to_string_lossy().contains("llvmpipe"))
    };
    all.into_iter().max_by_key(worth).unwrap()
}

/// What the library says that is needed.
fn needs(
    entry: &ash::Entry,
    instance: &ash::Instance,
    physical: vk::PhysicalDevice,
) -> DeviceNeeds {
    let (entry, instance) = (entry.clone(), instance.clone());
    let imported =
        unsafe { Instance::import(entry, instance, vk::API_VERSION_1_3, Arc::new(())) }.unwrap();
    imported.device_needs(physical).unwrap()
}

fn device(
    instance: &ash::Instance,
    physical: vk::PhysicalDevice,
    family: u32,
    turned_on: &DeviceNeeds,
) -> ash::Device {
    let names: Vec<_> = turned_on.extensions.iter().map(|n| n.as_ptr()).collect();
    let queues = [vk::DeviceQueueCreateInfo::default()
        .queue_family_index(family)
        .queue_priorities(&[1.0])];
    let mut needs = turned_on.clone();
    let mut info = vk::DeviceCreateInfo::default()
        .queue_create_infos(&queues)
        .enabled_extension_names(&names)
        .enabled_features(&needs.core)
        .push_next(&mut needs.vulkan_1_1)
        .push_next(&mut needs.vulkan_1_2);
    if let Some(clock) = &mut needs.shader_clock {
        info = info.push_next(clock);
    }
    if let Some(maintenance4) = &mut needs.maintenance4 {
        info = info.push_next(maintenance4);
    }
    unsafe { instance.create_device(physical, &info, None) }.unwrap()
}
