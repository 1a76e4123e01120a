//! Memory findings: what a device can share, who provides it here, and what is not offered.

use crate::vulkan::{ExternalBuffers, Features};
use crate::{Adapter, FenceMemory};
use serde::Serialize;

/// What the driver says that it can do with memory from outside of a device.
#[derive(Debug, Serialize)]
pub(super) struct MemorySharing {
    host_import: bool,
    opaque_fd: Descriptors,
    /// Reported, not used.
    dma_buf: Descriptors,
}

#[derive(Debug, Serialize)]
struct Descriptors {
    export: bool,
    import: bool,
    dedicated_only: bool,
}

impl From<ExternalBuffers> for Descriptors {
    fn from(can: ExternalBuffers) -> Self {
        Self {
            export: can.export,
            import: can.import,
            dedicated_only: can.dedicated_only,
        }
    }
}

impl Descriptors {
    fn phrase(&self) -> &'static str {
        match (self.export, self.import) {
            (true, true) => "exported and imported",
            (true, false) => "exported alone",
            (false, true) => "imported alone",
            (false, false) => "no",
        }
    }
}

impl MemorySharing {
    pub(super) fn of(features: &Features) -> Self {
        Self {
            host_import: features.host_import,
            opaque_fd: features.opaque_fd.into(),
            dma_buf: features.dma_buf.into(),
        }
    }

    /// All of it, for a person.
    pub(super) fn sentence(&self) -> String {
        format!(
            "Memory from outside of a device, by the driver's word: pages of the host {}; opaque \
             descriptors {}; dma-bufs {}, and not used: their pages come from a kernel's device that \
             few machines open to programs.",
            if self.host_import { "imported" } else { "no" },
            self.opaque_fd.phrase(),
            self.dma_buf.phrase()
        )
    }
}

/// Who provides the memory of an adapter that came up.
#[derive(Debug, Serialize)]
pub(super) struct Memory {
    system: System,
    local: Local,
    /// Where fences lie if nothing else is asked: `system` or `local`.
    fences: &'static str,
}

#[derive(Debug, Serialize)]
struct System {
    provider: &'static str,
    /// Whether users' mappings of values are read-only in the page tables.
    read_only_alias: bool,
    /// Whether a running shader sees what the host stores there: tried where the device has memory of its own.
    host_stores_are_seen: bool,
    /// Who would have been preferred, and why not.
    passed_over: Vec<PassedOver>,
}

#[derive(Debug, Serialize)]
struct PassedOver {
    provider: &'static str,
    reason: String,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Local {
    Offered {
        provider: &'static str,
        read_only_alias: bool,
        /// Whether it stays when the device of an engine is lost.
        outlives_engines: bool,
    },
    NotOffered {
        not_offered: String,
    },
}

impl Memory {
    pub(super) fn of(adapter: &Adapter) -> Self {
        let providers = adapter.providers();
        let passed_over = providers.passed_over().iter();
        Self {
            system: System {
                provider: providers.system().name(),
                read_only_alias: providers.system().has_read_only_alias(),
                host_stores_are_seen: providers.is_system_memory_seen(),
                passed_over: passed_over
                    .map(|(provider, reason)| PassedOver {
                        provider,
                        reason: reason.clone(),
                    })
                    .collect(),
            },
            local: match providers.local() {
                Ok(local) => Local::Offered {
                    provider: local.name(),
                    read_only_alias: local.has_read_only_alias(),
                    outlives_engines: local.outlives_engines(),
                },
                Err(why) => Local::NotOffered {
                    not_offered: why.to_string(),
                },
            },
            fences: match adapter.fence_memory() {
                FenceMemory::System => "system",
                FenceMemory::Local => "local",
            },
        }
    }

    /// All of it, for a person, a sentence each.
    pub(super) fn sentences(&self) -> Vec<String> {
        let System {
            provider,
            read_only_alias,
            passed_over,
            ..
        } = &self.system;
        let mut sentences = vec![format!(
            "System memory: {provider}{}.",
            alias(*read_only_alias)
        )];
        for PassedOver { provider, reason } in passed_over {
            sentences.push(format!("System memory not by {provider}: {reason}."));
        }
        sentences.push(match &self.local {
            Local::Offered {
                provider,
                read_only_alias,
                ..
            } => format!("Local memory: {provider}{}.", alias(*read_only_alias)),
            Local::NotOffered { not_offered } => {
                format!("Local memory is not offered: {not_offered}.")
            }
        });
        if !self.system.host_stores_are_seen {
            let instead = match &self.local {
                Local::Offered { .. } => {
                    "fences and allocations lie in local memory if nothing else is asked, and signals of fences that \
                     processes share always interrupt"
                }
                Local::NotOffered { .. } => "engines see it with their next submission",
            };
            sentences.push(format!(
                "A running shader does not see what the host stores in system memory (tried): {instead}."
            ));
        }
        if let Local::Offered {
            outlives_engines: false,
            ..
        } = &self.local
        {
            sentences.push(String::from(
                "Local memory is of the engines' one device, since the driver exports none: if that device is lost, the \
                 adapter stops.",
            ));
        }
        sentences
    }
}

fn alias(read_only: bool) -> &'static str {
    if read_only {
        "; users' mappings of values cannot be written"
    } else {
        "; mappings that cannot be written are not offered"
    }
}
