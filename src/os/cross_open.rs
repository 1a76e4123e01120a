//! Opening a cross-adapter fence: on an adapter with native fences it is native there, and monitored where there are
//! none, whatever it was made as (XA-08).

use super::adapter::{Adapter, OsError};
use super::cross_adapter::CrossAdapterFence;
use super::cross_doorbells::CrossDoorbell;
use super::cross_side::Side;
use super::fence_options::FenceTerms;
use super::fence_storage::{FenceMemory, FenceStorage};
use super::global_fence::GlobalFence;
use super::monitored_object::MonitoredFenceObject;
use super::native_fence::{Reach, Terms};
use super::process::{FenceObject, Process};
use super::shared_handle::{Named, SharedHandle};
use super::signaller::Signaller;
use crate::kmd::SetCrossDoorbells;
use crate::sync::Arc;

/// How the adapters that have a fence open hear of each other's signals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrossAdapter {
    /// By the OS, as the article has it: MonitoredValue is 0, each signal interrupts, and the OS has the others look
    /// (XA-03). Also where an adapter has no native fences.
    Propagated,
    /// By a doorbell that engines ring for each other (XA-10): MonitoredValue says what is waited for (NF-04), and a
    /// signal that nobody on a CPU waits for interrupts nobody. Each adapter must have native fences.
    Doorbell,
}

impl Process {
    /// The same as [`Process::create_cross_adapter_fence`] with a doorbell: between adapters with native fences a signal
    /// wakes who waits without the OS (XA-10).
    ///
    /// # Errors
    /// As [`Process::create_shared_fence`]; [`OsError::DoorbellNeedsNativeFences`], [`OsError::DoorbellLines`],
    /// [`OsError::DoorbellsUsedUp`].
    pub fn create_doorbell_fence(
        self: &Arc<Self>,
        initial: u64,
        asked: impl Into<FenceTerms>,
    ) -> Result<FenceObject, OsError> {
        self.begin_doorbells()?;
        let doorbell = CrossDoorbell::new()?;
        let global = self.register_shared(initial, asked.into(), FenceMemory::System)?;
        global.fence().rings(doorbell);
        self.open_first(global)
    }

    /// The adapter's engines ring and hear, when this returns. With no lock held: slices end for it, which tell of what they
    /// have done.
    pub(super) fn begin_doorbells(&self) -> Result<(), OsError> {
        let adapter = self.adapter();
        adapter.check_up()?;
        if adapter.native_fence_caps().is_err() {
            return Err(OsError::DoorbellNeedsNativeFences);
        }
        self.check_fences()?;
        let ddi = adapter.ddi();
        // The page of doorbells is no device's: what one adapter says there of who waits, another's engine has to see.
        if !ddi.providers().is_system_memory_seen() {
            return Err(OsError::DoorbellSeenLate);
        }
        let lines = adapter.cross_doorbells.lines(ddi.node_count())?;
        ddi.set_cross_doorbells(&SetCrossDoorbells {
            page: lines.region(),
            lines: lines.lines(),
        })?;
        Ok(())
    }

    /// `D3DKMTCreateNativeFence` with `CrossAdapter` and `Shared`, type DEFAULT: others open it on this adapter and on
    /// other ones of this process (XA-01, XA-02).
    ///
    /// # Errors
    /// As [`Process::create_shared_fence`].
    pub fn create_cross_adapter_fence(
        self: &Arc<Self>,
        initial: u64,
        asked: impl Into<FenceTerms>,
    ) -> Result<FenceObject, OsError> {
        self.check_fences()?;
        let cross = CrossAdapterFence::new(asked.into())?;
        self.open_side(&cross, Some(initial))
    }

    /// `D3DKMTCreateSynchronizationObject2` with `CrossAdapter` and `Shared`, on an adapter without native fences: a
    /// monitored fence that is native on others (XA-08).
    ///
    /// # Errors
    /// As [`Process::create_monitored_fence`]; [`OsError::NativeHere`].
    pub fn create_cross_adapter_monitored_fence(
        self: &Arc<Self>,
        initial: u64,
        asked: impl Into<FenceTerms>,
    ) -> Result<MonitoredFenceObject, OsError> {
        self.check_monitored_side()?;
        let cross = CrossAdapterFence::new(asked.into())?;
        self.open_monitored_side(&cross, Some(initial))
    }

    /// A handle on a cross-adapter fence, on an adapter without native fences.
    ///
    /// # Errors
    /// [`OsError::NotCrossAdapter`], [`OsError::NativeHere`]; no memory, no handle left, the driver's reason; a stopped
    /// adapter.
    pub fn open_monitored_fence(
        self: &Arc<Self>,
        shared: &SharedHandle,
    ) -> Result<MonitoredFenceObject, OsError> {
        self.check_monitored_side()?;
        match shared.named() {
            Named::CrossAdapter(cross) => self.open_monitored_side(cross, None),
            Named::Here(global) if global.fence().doorbell().is_some() => {
                Err(OsError::DoorbellNeedsNativeFences)
            }
            Named::Here(_) | Named::Received(_) => Err(OsError::NotCrossAdapter),
        }
    }

    fn check_monitored_side(&self) -> Result<(), OsError> {
        self.adapter().check_up()?;
        match self.adapter().native_fence_caps() {
            Ok(_) => Err(OsError::NativeHere),
            Err(_) => Ok(()),
        }
    }

    fn open_monitored_side(
        self: &Arc<Self>,
        cross: &Arc<CrossAdapterFence>,
        initial: Option<u64>,
    ) -> Result<MonitoredFenceObject, OsError> {
        let side = cross.new_side();
        let number = side.number();
        let object = self.make_cross_adapter_side(side, initial)?;
        cross.joined(number, Side::Monitored(Arc::downgrade(object.fence())));
        Ok(object)
    }

    /// A handle on a fence that another adapter may have made: on this adapter's side, which is made where there is
    /// none.
    pub(super) fn open_cross_adapter(
        self: &Arc<Self>,
        cross: &Arc<CrossAdapterFence>,
    ) -> Result<FenceObject, OsError> {
        self.check_fences()?;
        // One at a time, from the look to the entry: else each of several would make a side.
        let _turn = self.adapter().turn_to_open_passed();
        match native_side_on(cross, self.adapter()) {
            Some(global) => self.open(global, |_| Ok(())),
            None => self.open_side(cross, None),
        }
    }

    fn open_side(
        self: &Arc<Self>,
        cross: &Arc<CrossAdapterFence>,
        initial: Option<u64>,
    ) -> Result<FenceObject, OsError> {
        let adapter = self.adapter();
        let segments = adapter.default_segments(FenceMemory::System, true)?;
        let providers = adapter.ddi().providers();
        let storage = FenceStorage::cross_adapter(cross.current(), providers, segments)?;
        let terms = Terms {
            signaller: Signaller::Openers,
            access: cross.terms().access,
            is_shareable: true,
            keeps_value_on_tdr: cross.terms().no_signal_max_value_on_tdr,
            reach: Reach::Adapters,
        };
        let fence = adapter.register_fence(terms, storage, initial)?;
        let side = cross.new_side();
        let number = side.number();
        fence.crosses(side);
        let object = self.open_first(GlobalFence::new(fence, adapter))?;
        let side = Side::Native {
            fence: Arc::downgrade(object.global().fence()),
            global: Arc::downgrade(object.global()),
        };
        cross.joined(number, side);
        Ok(object)
    }
}

fn native_side_on(cross: &CrossAdapterFence, adapter: &Arc<Adapter>) -> Option<Arc<GlobalFence>> {
    let mut globals = cross
        .find(|side| match side {
            Side::Native { global, .. } => global.upgrade(),
            Side::Monitored(_) => None,
        })
        .into_iter();
    globals.find(|global| Arc::ptr_eq(global.adapter(), adapter))
}
