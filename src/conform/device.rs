//! Device subject: a Vulkan device, whose engines are shaders, or command buffers, under this crate's driver.

use super::{Form, Subject, Unfit, Wanted};
use crate::gpu::{ShaderTuning, SparePolicy};
use crate::kmd::Ddi;
use crate::sync::Arc;
use crate::sync::plain::{Mutex, lock};
use crate::sync::{AtomicU64, Ordering};
use crate::vulkan::{AdapterInfo, AdapterKind, Instance, LocalMemory, gaps, validation};
use crate::{Adapter, AdapterOptions, EngineKind, FenceMemory, MemoryOptions, MemoryPlacement};
use std::fmt;

/// See the file's head. What the validation layers say, where they are on, are its misdeeds.
pub struct DeviceSubject {
    instance: Arc<Instance>,
    info: AdapterInfo,
    validation: bool,
    fence_memory: Mutex<FenceMemory>,
    /// Messages of the layers that were told already.
    told: AtomicU64,
}

impl fmt::Debug for DeviceSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceSubject")
            .field("device", &self.info.name)
            .finish_non_exhaustive()
    }
}

impl DeviceSubject {
    /// Of an instance's device; `validation` says whether its devices get the validation layers, which the instance has.
    #[must_use]
    pub fn new(instance: &Arc<Instance>, info: &AdapterInfo, validation: bool) -> Self {
        Self {
            instance: Arc::clone(instance),
            info: info.clone(),
            validation,
            fence_memory: Mutex::new(FenceMemory::System),
            told: AtomicU64::new(validation::messages().len() as u64),
        }
    }

    fn has_local_memory(&self) -> bool {
        let features = &self.info.features;
        features.local_memory != LocalMemory::Unreachable && features.opaque_fd.passes()
    }
}

impl Subject for DeviceSubject {
    fn name(&self) -> String {
        format!("{} ({})", self.info.name, self.info.driver_info)
    }

    fn driver(&self, wanted: &Wanted) -> anyhow::Result<Arc<dyn Ddi>> {
        if wanted.hangs && self.info.ends_loops() {
            let why = "this driver ends every loop of a shader: none hangs";
            return Err(Unfit(why.into()).into());
        }
        if wanted.local_memory && !self.has_local_memory() {
            let why = "the device has no memory of its own that the host reaches and that passes between devices";
            return Err(Unfit(why.into()).into());
        }
        let lacks = gaps(&self.info);
        if wanted.form == Form::Native
            && let Some(gap) = lacks.first()
        {
            let why = format!("the device has no native fences: {}", gap.sentence);
            return Err(Unfit(why).into());
        }
        let options = AdapterOptions {
            validation: self.validation,
            engine: match wanted.form {
                Form::Native => EngineKind::Shader,
                Form::Monitored => EngineKind::CommandBuffers,
            },
            nodes: wanted.nodes,
            tuning: ShaderTuning {
                stalls: wanted.hangs,
                ..ShaderTuning::default()
            },
            policy: wanted.policy,
            memory: MemoryOptions {
                placement: if wanted.local_memory {
                    MemoryPlacement::LocalForced
                } else {
                    MemoryPlacement::default()
                },
                ..MemoryOptions::default()
            },
            driver: wanted.driver.clone(),
            // To make one when an engine is suspected takes seconds on a busy machine, which TD-13 does not allow.
            spares: if wanted.hangs {
                SparePolicy::Kept
            } else {
                SparePolicy::OnSuspicion
            },
            ..AdapterOptions::default()
        };
        let opened = Adapter::driver_of(&self.instance, &self.info, &options);
        let (driver, fences) = match opened {
            // It may have not so many queues, or not the memory for them.
            Err(error) if wanted.nodes.get() > 1 => {
                let why = format!("the device gives no {} engines: {error}", wanted.nodes);
                return Err(Unfit(why).into());
            }
            opened => opened?,
        };
        if wanted.form == Form::Native {
            *lock(&self.fence_memory) = fences;
        }
        Ok(driver)
    }

    fn fence_memory(&self) -> FenceMemory {
        *lock(&self.fence_memory)
    }

    /// The library of a GPU may have threads that look now and then, as long as there is a device; where the CPU is the
    /// device, its threads are what executes.
    fn may_be_its_thread(&self, name: &str) -> bool {
        name.starts_with("nf-") || self.info.kind == AdapterKind::Cpu
    }

    /// An engine in a process of its own is the program `nfence`, which may have started itself. Others are helpers of the
    /// driver's library.
    fn may_be_its_process(&self, name: &str) -> bool {
        ["nfence", "exe"].contains(&name) || self.info.kind == AdapterKind::Cpu
    }

    fn take_misdeeds(&self) -> Vec<String> {
        let messages = validation::messages();
        let told = self.told.swap(messages.len() as u64, Ordering::Relaxed);
        messages.into_iter().skip(told as usize).collect()
    }
}
