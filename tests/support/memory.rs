//! Memory that the tests' adapters are opened with: `NFENCE_TEST_MEMORY=local` puts what the GPU polls,
//! and fences, into local memory, forced where that is system memory; `exported` has Vulkan allocate
//! system memory. So the whole suite can be run over each provider.
#![allow(dead_code, reason = "each test file uses a part")]

use native_fence::{FenceMemory, LocalProvider, MemoryOptions, MemoryPlacement, SystemMemory};

/// What the GPU polls lies in local memory, whatever that is.
pub(crate) const LOCAL: MemoryOptions = MemoryOptions {
    placement: MemoryPlacement::LocalForced,
    system: SystemMemory::Best,
    local: LocalProvider::Best,
};

/// Vulkan allocates all that is shared, and no pages of the host are imported.
pub(crate) const EXPORTED: MemoryOptions = MemoryOptions {
    placement: MemoryPlacement::AllInSystem,
    system: SystemMemory::Exported,
    local: LocalProvider::Best,
};

/// As the environment asks, and what fences are made in then.
pub(crate) fn asked_for() -> (MemoryOptions, FenceMemory) {
    match std::env::var("NFENCE_TEST_MEMORY").as_deref() {
        Ok("local") => (LOCAL, FenceMemory::Local),
        Ok("exported") => (EXPORTED, FenceMemory::System),
        Ok(other) => panic!("NFENCE_TEST_MEMORY is {other:?}: it is `local` or `exported`"),
        Err(_) => (MemoryOptions::default(), FenceMemory::System),
    }
}

/// Whether the suite runs over the usual memory; a test of that memory alone is left out else.
pub(crate) fn is_usual() -> bool {
    let usual = std::env::var_os("NFENCE_TEST_MEMORY").is_none();
    if !usual {
        println!("left out: it is about files of memory, and NFENCE_TEST_MEMORY is set");
    }
    usual
}
