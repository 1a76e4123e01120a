//! Pair: the two devices, by the article's names. The iGPU may have no native fences, or be opened as if it had none.

use crate::sync::Arc;
use crate::vulkan::{self, AdapterInfo, Instance, InstanceOptions};
use crate::{Adapter, AdapterOptions, EngineKind, TdrPolicy};
use anyhow::ensure;
use std::time::Duration;

/// See the file's head.
pub(super) struct Pair<'a> {
    /// The dGPU.
    pub(super) native: &'a AdapterInfo,
    /// The iGPU.
    pub(super) other: &'a AdapterInfo,
    /// It could have native fences, and is opened without.
    pub(super) is_opened_without: bool,
    other_is_native: bool,
}

/// Both, opened.
pub(super) struct Adapters {
    pub(super) dgpu: Adapter,
    pub(super) igpu: Adapter,
}

impl<'a> Pair<'a> {
    pub(super) fn choose(
        adapters: &'a [AdapterInfo],
        other_is_native: bool,
        (device, other): (Option<&str>, Option<&str>),
    ) -> anyhow::Result<Self> {
        let native = vulkan::choose(adapters, device)?;
        ensure!(
            vulkan::has_native_fences(native),
            "{} has no native fences: name one that has by --device; `nfence doctor` says what each lacks",
            native.name
        );
        let other = match other {
            Some(name) => vulkan::choose(adapters, Some(name))?,
            None => Self::other_of(adapters, native, other_is_native),
        };
        let has = vulkan::has_native_fences(other);
        ensure!(
            has || !other_is_native,
            "{} has no native fences, which scenario 1 needs on both: leave out --other",
            other.name
        );
        Ok(Self {
            native,
            other,
            is_opened_without: has && !other_is_native,
            other_is_native,
        })
    }

    /// One without native fences where such a one is wanted and there, else the same.
    fn other_of(
        adapters: &'a [AdapterInfo],
        native: &'a AdapterInfo,
        other_is_native: bool,
    ) -> &'a AdapterInfo {
        let mut without = adapters
            .iter()
            .filter(|adapter| !vulkan::has_native_fences(adapter));
        let found = without.find(|adapter| vulkan::has_command_engines(adapter));
        match found {
            Some(found) if !other_is_native => found,
            _ => native,
        }
    }

    /// Each on an instance of its own: drivers on the CPU have a pool of threads for each.
    pub(super) fn open(&self, instance: &Arc<Instance>) -> anyhow::Result<Adapters> {
        let another = Instance::new(InstanceOptions::default())?;
        let engine = if self.other_is_native {
            EngineKind::Shader
        } else {
            EngineKind::CommandBuffers
        };
        let options = |engine| AdapterOptions {
            engine,
            // Nothing hangs here; a driver that compiles for seconds on a busy machine is no matter of the table.
            tdr: TdrPolicy {
                delay: Duration::from_secs(60),
                ..TdrPolicy::default()
            },
            ..AdapterOptions::default()
        };
        Ok(Adapters {
            dgpu: Adapter::open_on(instance, self.native, &options(EngineKind::Shader))?,
            igpu: Adapter::open_on(&another, self.other, &options(engine))?,
        })
    }
}
