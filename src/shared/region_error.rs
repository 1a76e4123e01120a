//! Region error: why shared memory could not be had.

use super::NoLocalMemory;

/// Why a region could not be made or mapped.
#[derive(Debug, thiserror::Error)]
pub enum RegionError {
    /// The system refused.
    #[error("cannot {action} {len} bytes of shared memory for {name} ({call}): {source}{}", advice(*.source))]
    System {
        /// What was tried.
        action: &'static str,
        /// The system's call.
        call: &'static str,
        /// What the memory is for.
        name: &'static str,
        /// Its size.
        len: usize,
        /// The system's word.
        source: rustix::io::Errno,
    },
    /// The device refused.
    #[error("the device gives no {len} bytes of shared memory for {name}: {reason}")]
    Device {
        /// What the memory is for.
        name: &'static str,
        /// Its size.
        len: usize,
        /// The driver's word.
        reason: String,
    },
    /// Memory that is mapped through Vulkan has one mapping.
    #[error(
        "{name} is memory that the Vulkan driver maps: it has no second mapping that cannot be \
         written"
    )]
    NoReadOnlyAlias {
        /// What the memory is for.
        name: &'static str,
    },
    /// Another process sent it.
    #[error("what was received for {name} is refused: {reason}")]
    Received {
        /// What it should be.
        name: &'static str,
        /// Why.
        reason: &'static str,
    },
    /// There is no local memory.
    #[error("local memory is not offered: {0}; else make it in system memory")]
    NoLocalMemory(NoLocalMemory),
}

/// What the reader of an error can do.
fn advice(source: rustix::io::Errno) -> &'static str {
    use rustix::io::Errno;
    match source {
        Errno::MFILE => "; the program has no file descriptor left: raise its limit (ulimit -n)",
        Errno::NOMEM => "; free memory, or raise the limit of mappings (vm.max_map_count)",
        Errno::NFILE => "; the system has no file descriptor left: raise fs.file-max",
        _ => "",
    }
}
