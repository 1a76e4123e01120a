//! Compute pipeline: a shader, ready to be dispatched.
//!
//! Shaders of this program take their arguments as push constants, among them the addresses of the
//! buffers that they touch; so there are no descriptor sets. Sizes known when the pipeline is made
//! are specialisation constants.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ash::vk;
use thiserror::Error;

use super::{Device, OutOfMemory, Refusal};

/// Why a pipeline could not be made.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PipelineError {
    /// Memory ran out.
    #[error("the Vulkan driver has no memory left for a compute pipeline ({})", .0.call)]
    OutOfMemory(OutOfMemory),
    /// The driver does not take the shader.
    #[error("the driver does not take the shader: {0}")]
    Refused(Refusal),
}

/// A compute pipeline. A clone is the same pipeline.
#[derive(Clone)]
pub struct ComputePipeline(Arc<Inner>);

struct Inner {
    id: u64,
    pipeline: vk::Pipeline,
    layout: vk::PipelineLayout,
    push_constant_bytes: u32,
    device: Arc<Device>,
}

impl ComputePipeline {
    /// Compiles `spirv`, whose entry point is `main`, which takes `push_constant_bytes` of push
    /// constants; `spec` holds specialisation constants as (constant id, value).
    ///
    /// # Errors
    /// The driver is out of memory or does not take the shader.
    pub fn new(
        device: &Arc<Device>,
        spirv: &[u32],
        push_constant_bytes: u32,
        spec: &[(u32, u32)],
    ) -> Result<Self, PipelineError> {
        static NEXT_ID: AtomicU64 = AtomicU64::new(1);
        // Made first and owned at once, so that every early return destroys what there is.
        let mut inner = Inner {
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            pipeline: vk::Pipeline::null(),
            layout: layout(device, push_constant_bytes)?,
            push_constant_bytes,
            device: Arc::clone(device),
        };
        let module_info = vk::ShaderModuleCreateInfo::default().code(spirv);
        // SAFETY: the device is alive; the words are SPIR-V that this program ships, or a kernel of its user,
        // who is trusted as the process is (`decisions.md` 26).
        let module = unsafe { device.raw().create_shader_module(&module_info, None) }
            .map_err(|e| refused("vkCreateShaderModule", e))?;
        let result = compile(device, module, inner.layout, spec);
        // SAFETY: a module may go as soon as the pipeline is made.
        unsafe { device.raw().destroy_shader_module(module, None) };
        inner.pipeline = result?;
        Ok(Self(Arc::new(inner)))
    }

    /// A number that no other pipeline of this process has; recorded commands name it.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.0.id
    }

    /// How many bytes of push constants it takes.
    #[must_use]
    pub fn push_constant_bytes(&self) -> u32 {
        self.0.push_constant_bytes
    }

    pub(super) fn raw(&self) -> vk::Pipeline {
        self.0.pipeline
    }

    pub(super) fn layout(&self) -> vk::PipelineLayout {
        self.0.layout
    }

    pub(super) fn device(&self) -> &Arc<Device> {
        &self.0.device
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if self.device.is_kept() {
            return;
        }
        // SAFETY: command buffers that bind it keep a clone, so no work uses it; null is allowed.
        unsafe { self.device.raw().destroy_pipeline(self.pipeline, None) };
        // SAFETY: as above.
        unsafe { self.device.raw().destroy_pipeline_layout(self.layout, None) };
    }
}

impl fmt::Debug for ComputePipeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ComputePipeline")
            .field("id", &self.0.id)
            .finish_non_exhaustive()
    }
}

fn layout(device: &Device, bytes: u32) -> Result<vk::PipelineLayout, PipelineError> {
    let ranges = [vk::PushConstantRange::default()
        .stage_flags(vk::ShaderStageFlags::COMPUTE)
        .size(bytes)];
    let mut info = vk::PipelineLayoutCreateInfo::default();
    if bytes > 0 {
        info = info.push_constant_ranges(&ranges);
    }
    // SAFETY: the device is alive, and so is all that `info` points to.
    unsafe { device.raw().create_pipeline_layout(&info, None) }
        .map_err(|e| refused("vkCreatePipelineLayout", e))
}

fn compile(
    device: &Device,
    module: vk::ShaderModule,
    layout: vk::PipelineLayout,
    spec: &[(u32, u32)],
) -> Result<vk::Pipeline, PipelineError> {
    let entries: Vec<_> = (0..)
        .zip(spec)
        .map(|(i, (id, _))| {
            vk::SpecializationMapEntry::default()
                .constant_id(*id)
                .offset(4 * i)
                .size(4)
        })
        .collect();
    let data: Vec<u8> = spec
        .iter()
        .flat_map(|(_, value)| value.to_ne_bytes())
        .collect();
    let special = vk::SpecializationInfo::default()
        .map_entries(&entries)
        .data(&data);
    let stage = vk::PipelineShaderStageCreateInfo::default()
        .stage(vk::ShaderStageFlags::COMPUTE)
        .module(module)
        .name(c"main")
        .specialization_info(&special);
    let infos = [vk::ComputePipelineCreateInfo::default()
        .stage(stage)
        .layout(layout)];
    // SAFETY: module and layout are of this device and alive, and so is all that `infos` points to.
    let made = unsafe {
        device
            .raw()
            .create_compute_pipelines(vk::PipelineCache::null(), &infos, None)
    };
    made.map(|pipelines| pipelines[0])
        .map_err(|(_, e)| refused("vkCreateComputePipelines", e))
}

fn refused(call: &'static str, code: vk::Result) -> PipelineError {
    match code {
        vk::Result::ERROR_OUT_OF_HOST_MEMORY | vk::Result::ERROR_OUT_OF_DEVICE_MEMORY => {
            PipelineError::OutOfMemory(OutOfMemory::in_call(call))
        }
        code => PipelineError::Refused(Refusal::of(call, code)),
    }
}
