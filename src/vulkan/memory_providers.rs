//! Memory providers: which of them a device works with, by trying.
//!
//! What a driver says of host import and of descriptors is not enough: some import host memory and
//! refuse pages that a file backs. So a provider is taken when a page of its memory was imported into
//! an engine's device. System memory has two, tried in order (`decisions.md` 17): pages of the host
//! that each engine imports; memory that Vulkan allocates and exports, without read-only mappings for
//! users. Local memory has two as well: exported by a device of its own (`decisions.md` 19), and, where no driver exports
//! it and all engines are of one device, that device's own. The third of the list of system memory, dma-buf, is not made: its pages come from a kernel's device
//! (`/dev/udmabuf`) that few machines open to programs.

use super::mapped_memory::Reach;
use super::{
    AdapterInfo, BringUpError, Device, Exporter, ImportError, Instance, LocalMemory, RegionImport,
};
use crate::abi::{PAGE_BYTES, WordGroup};
use crate::shared::{NoLocalMemory, Provider, Providers, RegionError, SystemPages};
use std::sync::Arc;

/// Where what an adapter's parties share is placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum MemoryPlacement {
    /// By the placement table where the device has a heap of its own that the CPU reaches; else, all
    /// in system memory.
    #[default]
    ByTable,
    /// All in system memory; fences in local memory are refused.
    AllInSystem,
    /// By the table, also where local memory is system memory under another name: for tests, and
    /// to compare.
    LocalForced,
}

/// Which provider of system memory is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum SystemMemory {
    /// The first that works.
    #[default]
    Best,
    /// Pages of the host, which each engine imports.
    HostImport,
    /// Memory that Vulkan allocates and exports.
    Exported,
}

/// Which provider of local memory is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum LocalProvider {
    /// The first that works.
    #[default]
    Best,
    /// Memory that a device of its own allocates and exports: it outlives each engine's.
    Exported,
    /// Memory of the one device that all engines are of: it is lost with that.
    OneDevice,
}

/// Who shares the memory, besides the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharers {
    /// Engines that are queues of one device.
    OneDevice,
    /// Engines of several devices, or of several processes.
    Several,
}

/// How memory is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct MemoryOptions {
    /// Where things are placed.
    pub placement: MemoryPlacement,
    /// Who provides system memory.
    pub system: SystemMemory,
    /// Who provides local memory.
    pub local: LocalProvider,
}

/// Why a provider is not used.
#[derive(Debug, thiserror::Error)]
pub enum TrialError {
    /// The driver offers nothing of the kind.
    #[error(transparent)]
    NotOffered(#[from] NoLocalMemory),
    /// The exporting device could not be opened.
    #[error(transparent)]
    BringUp(#[from] BringUpError),
    /// No page could be had.
    #[error(transparent)]
    Region(#[from] RegionError),
    /// An engine's device did not take it.
    #[error(transparent)]
    Import(#[from] ImportError),
}

/// Why an adapter has no memory that its parties can share.
#[derive(Debug, thiserror::Error)]
pub enum MemoryError {
    /// No provider of system memory works.
    #[error("no system memory can be shared with the device: {}", said(.0))]
    NoSystemMemory(Vec<(&'static str, TrialError)>),
    /// Local memory was asked for.
    #[error("local memory was asked for, and is not to be had: {0}")]
    NoLocalMemory(NoLocalMemory),
}

fn said(tried: &[(&'static str, TrialError)]) -> String {
    let said = |(name, why): &(&str, TrialError)| format!("{name}: {why}");
    tried.iter().map(said).collect::<Vec<_>>().join("; ")
}

/// The providers that work with engines on `device`, alone or among others.
///
/// # Errors
/// [`MemoryError`].
pub fn memory_providers(
    instance: &Arc<Instance>,
    device: &Arc<Device>,
    sharers: Sharers,
    options: MemoryOptions,
) -> Result<Providers, MemoryError> {
    let (system, passed_over) = system(instance, device, options.system)?;
    let local = local(instance, device, sharers, options);
    if let (MemoryPlacement::LocalForced, Err(why)) = (options.placement, &local) {
        return Err(MemoryError::NoLocalMemory(why.clone()));
    }
    let passed_over = passed_over
        .into_iter()
        .map(|(name, why)| (name, why.to_string()));
    Ok(Providers::new(system, local).with_passed_over(passed_over.collect()))
}

type Found = (Arc<dyn Provider>, Vec<(&'static str, TrialError)>);

fn system(
    instance: &Arc<Instance>,
    device: &Arc<Device>,
    wanted: SystemMemory,
) -> Result<Found, MemoryError> {
    let mut passed_over = Vec::new();
    if wanted != SystemMemory::Exported {
        match tried(SystemPages, device) {
            Ok(provider) => return Ok((provider, passed_over)),
            Err(why) => passed_over.push((SystemPages.name(), why)),
        }
    }
    if wanted != SystemMemory::HostImport {
        let exporter = can_export(device.adapter())
            .and_then(|()| Ok(Exporter::of_system_memory(instance, device.adapter())?));
        match exporter.and_then(|exporter| tried(exporter, device)) {
            Ok(provider) => return Ok((provider, passed_over)),
            Err(why) => passed_over.push(("vulkan-system", why)),
        }
    }
    Err(MemoryError::NoSystemMemory(passed_over))
}

fn local(
    instance: &Arc<Instance>,
    device: &Arc<Device>,
    sharers: Sharers,
    options: MemoryOptions,
) -> Result<Arc<dyn Provider>, NoLocalMemory> {
    let adapter = device.adapter();
    wants_local(adapter.features.local_memory, options.placement)?;
    let try_way = |reach| match reach {
        Reach::Exported => can_export(adapter)
            .and_then(|()| Ok(Exporter::of_local_memory(instance, adapter)?))
            .and_then(|exporter| tried(exporter, device)),
        Reach::OwnDevice => tried(Exporter::of_one_device(device), device),
    };
    let exports = || can_export(adapter).is_ok() && Exporter::has_local_memory(device);
    let provider = try_way(local_reach(options.local, sharers, exports)?);
    provider.map_err(|why| match why {
        TrialError::NotOffered(why) => why,
        why => NoLocalMemory::Refused(why.to_string()),
    })
}

/// Which local memory is tried: what outlives an engine's device, where the driver has it to export. Pure.
fn local_reach(
    wanted: LocalProvider,
    sharers: Sharers,
    exports: impl FnOnce() -> bool,
) -> Result<Reach, NoLocalMemory> {
    match (wanted, sharers) {
        (LocalProvider::Best, Sharers::OneDevice) if !exports() => Ok(Reach::OwnDevice),
        (LocalProvider::Best | LocalProvider::Exported, _) => Ok(Reach::Exported),
        (LocalProvider::OneDevice, Sharers::OneDevice) => Ok(Reach::OwnDevice),
        (LocalProvider::OneDevice, Sharers::Several) => Err(NoLocalMemory::SeveralDevices),
    }
}

/// Whether local memory is to be tried. Pure.
fn wants_local(has: LocalMemory, placement: MemoryPlacement) -> Result<(), NoLocalMemory> {
    match (placement, has) {
        (MemoryPlacement::AllInSystem, _) => Err(NoLocalMemory::NotWanted),
        (_, LocalMemory::Unreachable) => Err(NoLocalMemory::Unreachable),
        (MemoryPlacement::ByTable, LocalMemory::SameAsSystem) => Err(NoLocalMemory::SameAsSystem),
        (MemoryPlacement::LocalForced, LocalMemory::SameAsSystem)
        | (_, LocalMemory::Separate { .. }) => Ok(()),
    }
}

fn can_export(adapter: &AdapterInfo) -> Result<(), TrialError> {
    if adapter.features.opaque_fd.passes() {
        Ok(())
    } else {
        Err(NoLocalMemory::NoExport.into())
    }
}

/// The provider, once a page of it was imported into the device.
fn tried<P: Provider + 'static>(
    provider: P,
    device: &Arc<Device>,
) -> Result<Arc<dyn Provider>, TrialError> {
    let page = provider.region(WordGroup::CurrentValues, PAGE_BYTES)?;
    let import = RegionImport::new(device, &page.map()?)?;
    drop(import);
    Ok(Arc::new(provider))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_outlives_an_engine_comes_first_and_what_one_device_has_is_for_that_alone() {
        use LocalProvider::{Best, Exported, OneDevice};
        let (one, several) = (Sharers::OneDevice, Sharers::Several);
        let (exported, own) = (Ok(Reach::Exported), Ok(Reach::OwnDevice));
        assert_eq!(local_reach(Best, one, || true), exported);
        assert_eq!(local_reach(Best, one, || false), own);
        assert_eq!(local_reach(Best, several, || false), exported);
        assert_eq!(local_reach(Exported, one, || false), exported);
        assert_eq!(local_reach(OneDevice, one, || true), own);
        let refused = Err(NoLocalMemory::SeveralDevices);
        assert_eq!(local_reach(OneDevice, several, || true), refused);
    }

    #[test]
    fn local_memory_is_wanted_where_it_is_another_or_forced() {
        use MemoryPlacement::{AllInSystem, ByTable, LocalForced};
        let separate = LocalMemory::Separate { bytes: 1 };
        let same = LocalMemory::SameAsSystem;
        assert_eq!(wants_local(separate, ByTable), Ok(()));
        assert_eq!(wants_local(separate, LocalForced), Ok(()));
        assert_eq!(wants_local(same, LocalForced), Ok(()));
        let no = |why| Err(why);
        assert_eq!(wants_local(same, ByTable), no(NoLocalMemory::SameAsSystem));
        assert_eq!(
            wants_local(separate, AllInSystem),
            no(NoLocalMemory::NotWanted)
        );
        let none = LocalMemory::Unreachable;
        assert_eq!(
            wants_local(none, LocalForced),
            no(NoLocalMemory::Unreachable)
        );
    }
}
