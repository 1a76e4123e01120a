//! Device subject: a Vulkan device, whose engines are shaders, or command buffers, under this crate's driver.

use super::{Form, Subject, Unfit, Wanted};
use crate::gpu::{ShaderTuning, SparePolicy};
use crate::kmd::Ddi;
use crate::sync::Arc;
use crate::sync::plain::{Mutex, lock};
use crate::sync::{AtomicU64, Ordering};
use crate::vulkan::{AdapterInfo, Instance, gaps, validation};
use crate::{Adapter, AdapterOptions, EngineKind, FenceMemory};
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

    /// Whether a shader that never ends goes on there: lavapipe up to 22 ends every loop after some 65,000 passes.
    fn ends_loops(&self) -> bool {
        self.info.driver_info.starts_with("Mesa 22")
    }
}

impl Subject for DeviceSubject {
    fn name(&self) -> String {
        format!("{} ({})", self.info.name, self.info.driver_info)
    }

    fn driver(&self, wanted: &Wanted) -> Result<Arc<dyn Ddi>, Unfit> {
        if wanted.hangs && self.ends_loops() {
            return Err(Unfit(
                "this driver ends every loop of a shader: none hangs".into(),
            ));
        }
        let lacks = gaps(&self.info);
        if wanted.form == Form::Native
            && let Some(gap) = lacks.first()
        {
            return Err(Unfit(format!(
                "the device has no native fences: {}",
                gap.sentence
            )));
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
            driver: wanted.driver.clone(),
            spares: SparePolicy::OnSuspicion,
            ..AdapterOptions::default()
        };
        let (driver, fences) = Adapter::driver_of(&self.instance, &self.info, &options)
            .map_err(|error| Unfit(format!("the device cannot be opened so: {error}")))?;
        if wanted.form == Form::Native {
            *lock(&self.fence_memory) = fences;
        }
        Ok(driver)
    }

    fn fence_memory(&self) -> FenceMemory {
        *lock(&self.fence_memory)
    }

    fn take_misdeeds(&self) -> Vec<String> {
        let messages = validation::messages();
        let told = self.told.swap(messages.len() as u64, Ordering::Relaxed);
        messages.into_iter().skip(told as usize).collect()
    }
}
