//! Process: handles, and what they keep alive.
//!
//! Dropping the last reference to a fence object closes its handle; the fence goes with the last that
//! has it open (`global_fence`). Storage and handle are used again when no engine refers to it any
//! more, which the driver tells.

use super::adapter::{Adapter, OsError};
use super::allocation_storage::AllocationPools;
use super::cpu_signal::SignalError;
use super::device_state::DeviceState;
use super::fence_options::FenceTerms;
use super::fence_storage::{FenceMemory, FencePools, FenceStorage};
use super::global_fence::GlobalFence;
use super::handle_numbers::HandleNumbers;
use super::handle_rights::HandleRights;
use super::kernel_side::KernelSide;
use super::native_fence::{NativeFence, Reach, Terms};
use super::openers::OpenerId;
use super::process_end::Stage;
use super::queue_storage::QueuePools;
use super::shared_handle::{Named, SharedHandle};
use super::signaller::Signaller;
use super::system_device::SystemDevice;
use super::wait_cell::{WaitError, WaitPart};
use super::waiter_list::WaiterKey;
use crate::abi::wddm::DeviceExecutionState;
use crate::abi::{CURRENT_VALUE_STRIDE, HandleAccess, LocalHandle, WordGroup};
use crate::kmd::{
    ContextKind, CreateNativeFence, CrossAdapterSignals, OpenNativeFence, Place, ProcessId,
};
use crate::shared::{Pool, ReadBlock};
use crate::sync::{Arc, Mutex, lock};
use std::collections::HashMap;

/// A process that uses an adapter.
#[derive(Debug)]
pub struct Process {
    id: ProcessId,
    adapter: Arc<Adapter>,
    pub(super) fence_pools: FencePools,
    queue_pools: QueuePools,
    allocation_pools: AllocationPools,
    monitored_values: Pool,
    kernel_side: KernelSide,
    handles: Arc<Mutex<HandleNumbers>>,
    pub(super) stage: Mutex<Stage>,
    state: Arc<DeviceState>,
    kind: ContextKind,
    /// By node, who initialises what the driver asks for with a context.
    context_paging: Mutex<HashMap<u32, Arc<SystemDevice>>>,
}

/// A slot of a process's handle table, free again on drop.
#[derive(Debug)]
pub(super) struct HandleSlot {
    handles: Arc<Mutex<HandleNumbers>>,
    slot: u32,
}

impl Drop for HandleSlot {
    fn drop(&mut self) {
        lock(&self.handles).free(self.slot);
    }
}

/// A native fence and the handle by which its process knows it.
#[derive(Debug)]
pub struct FenceObject {
    handle: LocalHandle,
    place: Arc<HandleSlot>,
    opener: OpenerId,
    /// The user's view of CurrentValue, for reading; none of type INTRA_GPU.
    view: Option<ReadBlock>,
    rights: HandleRights,
    /// Before the process: the driver destroys the fence before the handles of a process.
    global: Arc<GlobalFence>,
    process: Arc<Process>,
}

impl Process {
    /// `kind` is that of its contexts.
    pub(super) fn new(id: ProcessId, adapter: Arc<Adapter>, kind: ContextKind) -> Arc<Self> {
        let memory = adapter.ddi().providers();
        let caps = adapter.native_fence_caps().ok();
        Arc::new(Self {
            id,
            fence_pools: FencePools::new(memory, caps.as_ref()),
            queue_pools: QueuePools::new(memory),
            allocation_pools: AllocationPools::new(memory),
            monitored_values: Pool::new(memory, WordGroup::CurrentValues, CURRENT_VALUE_STRIDE)
                .with_places(1024),
            kernel_side: KernelSide::default(),
            state: adapter.devices.enter(id),
            adapter,
            handles: Arc::new(Mutex::new(HandleNumbers::new())),
            stage: Mutex::default(),
            kind,
            context_paging: Mutex::default(),
        })
    }

    /// The process, for the driver.
    #[must_use]
    pub fn id(&self) -> ProcessId {
        self.id
    }

    /// The adapter.
    #[must_use]
    pub fn adapter(&self) -> &Arc<Adapter> {
        &self.adapter
    }

    /// Whose its contexts are: the OS's own has those of a system device.
    pub(super) fn kind(&self) -> ContextKind {
        self.kind
    }

    /// Whether it runs, or what became of it: the device that it is (TD-06), which stops with its adapter.
    #[must_use]
    pub fn execution_state(&self) -> DeviceExecutionState {
        match self.state.get() {
            DeviceExecutionState::ACTIVE if self.adapter.stopped().is_some() => {
                DeviceExecutionState::STOPPED
            }
            state => state,
        }
    }

    /// The same, for what its calls report.
    pub(super) fn state(&self) -> &DeviceState {
        &self.state
    }

    /// Memory of the process's hardware queues.
    pub(super) fn queue_pools(&self) -> &QueuePools {
        &self.queue_pools
    }

    /// Memory of the process's allocations.
    pub(super) fn allocation_pools(&self) -> &AllocationPools {
        &self.allocation_pools
    }

    /// Memory of the values of the process's monitored fences, a cache line for each.
    pub(super) fn monitored_values(&self) -> &Pool {
        &self.monitored_values
    }

    /// The system device that initialises contexts' memory on a node, which the process keeps from now on.
    ///
    /// # Errors
    /// As [`SystemDevice::open`].
    pub(super) fn context_paging(&self, node_ordinal: u32) -> Result<Arc<SystemDevice>, OsError> {
        if let Some(known) = lock(&self.context_paging).get(&node_ordinal) {
            return Ok(Arc::clone(known));
        }
        let device = self
            .adapter
            .context_paging
            .of(&self.adapter, node_ordinal)?;
        let kept = Arc::clone(&device);
        // Another thread may have come meanwhile, with the same one.
        lock(&self.context_paging).insert(node_ordinal, kept);
        Ok(device)
    }

    /// What the OS's own queues for the process name.
    pub(super) fn kernel_side(&self) -> &KernelSide {
        &self.kernel_side
    }

    /// A handle that names nothing else.
    pub(super) fn allocate_handle(&self) -> Result<LocalHandle, OsError> {
        lock(&self.handles).allocate().ok_or(OsError::HandlesUsedUp)
    }

    /// How many objects of each kind the process has, by what the kind is called, and how many handles: as many as before
    /// once a call was refused, and once no engine refers any more to what it had made by then.
    #[must_use]
    pub fn object_counts(&self) -> Vec<(&'static str, usize)> {
        let handles = lock(&self.handles).given_out();
        let mut counts = self.adapter.object_counts(self.id).to_vec();
        counts.push(("handle", handles));
        counts
    }

    /// The slot of a handle, to be given back.
    pub(super) fn handle_slot(&self, handle: LocalHandle) -> HandleSlot {
        HandleSlot {
            handles: Arc::clone(&self.handles),
            slot: handle.slot(),
        }
    }

    /// `D3DKMTCreateNativeFence`, type DEFAULT; `asked` says what its handle may do (NF-23).
    ///
    /// # Errors
    /// No memory, no handle left, or the driver's reason; local memory that is not offered; an
    /// adapter without native fences, or a stopped one; a lost device.
    pub fn create_native_fence(
        self: &Arc<Self>,
        initial: u64,
        asked: impl Into<FenceTerms>,
        memory: FenceMemory,
    ) -> Result<FenceObject, OsError> {
        let storage = self.fence_storage(memory)?;
        let asked = asked.into();
        self.create(Some(initial), storage, Signaller::Openers, asked, false)
    }

    /// The same with `Shared`: others can open it (NF-30), with the same access. Its values share no
    /// page with those of another fence (NF-11).
    ///
    /// # Errors
    /// As [`Process::create_native_fence`].
    pub fn create_shared_fence(
        self: &Arc<Self>,
        initial: u64,
        asked: impl Into<FenceTerms>,
        memory: FenceMemory,
    ) -> Result<FenceObject, OsError> {
        self.open_first(self.register_shared(initial, asked.into(), memory)?)
    }

    /// The same before anybody knows it.
    pub(super) fn register_shared(
        &self,
        initial: u64,
        asked: FenceTerms,
        memory: FenceMemory,
    ) -> Result<Arc<GlobalFence>, OsError> {
        self.check_fences()?;
        let segments = self.adapter.default_segments(memory, true)?;
        let storage = FenceStorage::shareable(self.adapter.ddi().providers(), segments)?;
        self.register(Some(initial), storage, Signaller::Openers, asked, true)
    }

    /// `D3DKMTOpenNativeFenceFromNtHandle`: one more handle of a shared fence, for this process, which may
    /// do what the fence was made for (NF-14, NF-15, NF-30).
    ///
    /// # Errors
    /// Too many operating systems have it open; no memory, no handle left, or the driver's reason; a
    /// stopped adapter.
    pub fn open_native_fence(
        self: &Arc<Self>,
        shared: &SharedHandle,
    ) -> Result<FenceObject, OsError> {
        if let Named::Here(global) = shared.named()
            && global.fence().doorbell().is_some()
        {
            self.begin_doorbells()?;
        }
        self.check_fences()?;
        match shared.named() {
            Named::Here(global) if Arc::ptr_eq(global.adapter(), &self.adapter) => {
                self.open(Arc::clone(global), |_| Ok(()))
            }
            Named::CrossAdapter(cross) => self.open_cross_adapter(cross),
            // Another adapter is another operating system, in whatever process it is.
            Named::Here(global) => self.open_passed(&global.pages()?),
            Named::Received(pages) => self.open_passed(pages),
        }
    }

    /// The progress fence of a hardware queue. Its user may wait and not signal: the value says
    /// which packets of the ring may be overwritten, so only PROGRESS packets of the queue, which
    /// the engine checks, store it. In system memory: the user reads it at every submission.
    pub(super) fn create_progress_fence(self: &Arc<Self>) -> Result<FenceObject, OsError> {
        let asked = HandleAccess::NO_SIGNAL.into();
        let storage = self.fence_storage(FenceMemory::System)?;
        self.create(Some(0), storage, Signaller::Queue(self.id), asked, false)
    }

    /// Refuses fences where there are none, where the adapter is stopped, and where the device is lost.
    pub(super) fn check_fences(&self) -> Result<(), OsError> {
        self.adapter.check_fences()?;
        self.state.check()
    }

    fn fence_storage(&self, memory: FenceMemory) -> Result<FenceStorage, OsError> {
        self.check_fences()?;
        let segments = self.adapter.default_segments(memory, false)?;
        let storage = self.fence_pools.allocate(memory, segments)?;
        Ok(storage)
    }

    /// Without a value to start at it is of type INTRA_GPU.
    pub(super) fn create(
        self: &Arc<Self>,
        initial: Option<u64>,
        storage: FenceStorage,
        signaller: Signaller,
        asked: FenceTerms,
        is_shareable: bool,
    ) -> Result<FenceObject, OsError> {
        self.open_first(self.register(initial, storage, signaller, asked, is_shareable)?)
    }

    fn register(
        &self,
        initial: Option<u64>,
        storage: FenceStorage,
        signaller: Signaller,
        asked: FenceTerms,
        is_shareable: bool,
    ) -> Result<Arc<GlobalFence>, OsError> {
        let terms = Terms {
            signaller,
            access: asked.access,
            is_shareable,
            keeps_value_on_tdr: asked.no_signal_max_value_on_tdr,
            reach: if initial.is_some() {
                Reach::Adapter
            } else {
                Reach::Engines
            },
        };
        let fence = self.adapter.register_fence(terms, storage, initial)?;
        Ok(GlobalFence::new(fence, &self.adapter))
    }

    /// The first handle on a fence, which the driver does not know yet.
    pub(super) fn open_first(
        self: &Arc<Self>,
        global: Arc<GlobalFence>,
    ) -> Result<FenceObject, OsError> {
        let created = Arc::clone(&global);
        self.open(global, |fence| {
            let places = [fence.current_value_place(), fence.monitored_value_place()];
            let [current, monitored] = places.map(|(region, offset)| Place { region, offset });
            let system_process = self.adapter.system_process();
            let system_process = [system_process.map(current)?, system_process.map(monitored)?];
            let ddi = self.adapter.ddi();
            ddi.create_native_fence(&CreateNativeFence {
                global: fence.id(),
                fence_type: fence.fence_type(),
                cross_adapter: match fence.doorbell() {
                    Some(doorbell) => CrossAdapterSignals::Doorbell(doorbell.index()),
                    None if fence.terms().is_cross_adapter() => CrossAdapterSignals::Interrupts,
                    None => CrossAdapterSignals::No,
                },
                current_value: current,
                monitored_value: monitored,
                system_process: match &system_process {
                    [Some(current), Some(monitored)] => Some([current, monitored]),
                    _ => None,
                },
            })?;
            created.is_created();
            Ok(())
        })
    }

    /// A handle of its own on a fence, which `create` makes known to the driver if nobody has yet.
    pub(super) fn open(
        self: &Arc<Self>,
        global: Arc<GlobalFence>,
        create: impl FnOnce(&NativeFence) -> Result<(), OsError>,
    ) -> Result<FenceObject, OsError> {
        let handle = self.allocate_handle()?;
        let place = Arc::new(self.handle_slot(handle));
        let (opener, view) = global.fence().open(self.id)?;
        let (fence, rights) = (
            global.fence(),
            HandleRights::new(global.fence().terms().access),
        );
        self.adapter.handle_opened(self.id, handle, fence);
        let opened = create(fence).and_then(|()| {
            let ddi = self.adapter.ddi();
            Ok(ddi.open_native_fence(&OpenNativeFence {
                global: fence.id(),
                process: self.id,
                local: handle,
                access: rights.access(),
            })?)
        });
        if let Err(error) = opened {
            // The driver has opened no such handle, so it is not told to close it (NF-14).
            fence.close(opener);
            self.adapter.forget_handle(self.id, handle);
            return Err(error);
        }
        self.adapter.fence_opened(fence);
        let object = FenceObject {
            handle,
            place,
            opener,
            view,
            rights,
            global,
            process: Arc::clone(self),
        };
        // After it can be found among those that have the fence open: a loss that did not find it is seen here,
        // and the handle closed again.
        self.state.check()?;
        Ok(object)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Every fence and queue held a reference: none is left.
        self.adapter.ddi().destroy_process(self.id);
        if let Some(kernel_side) = self.kernel_side.id_if_used() {
            self.adapter.ddi().destroy_process(kernel_side);
        }
        self.adapter.devices.take_out(self.id);
    }
}

impl FenceObject {
    /// The handle that the process's packets carry.
    #[must_use]
    pub fn handle(&self) -> LocalHandle {
        self.handle
    }

    /// The global object.
    #[must_use]
    pub fn fence(&self) -> &Arc<NativeFence> {
        self.global.fence()
    }

    /// The same, for as long as anybody has it open.
    pub(super) fn global(&self) -> &Arc<GlobalFence> {
        &self.global
    }

    /// The user's view of CurrentValue, for reading; [`ReadBlock::is_protected`] says whether its
    /// pages are read-only as well (NF-02), which those of local memory are not. `None` of type
    /// INTRA_GPU, which has no CPU mapping (NF-13).
    #[must_use]
    pub fn user_view(&self) -> Option<&ReadBlock> {
        self.view.as_ref()
    }

    /// Adds a CPU wait of this handle: as [`NativeFence::arm`].
    pub(super) fn arm(&self, value: u64, part: WaitPart) -> Option<WaiterKey> {
        self.fence().arm(self.opener, value, part)
    }

    /// How a wait for `value` would end now; `None` while it would last.
    pub(super) fn outlook(&self, value: u64) -> Option<Result<(), WaitError>> {
        self.fence().outlook(self.opener, value)
    }

    /// The process whose handle it is.
    #[must_use]
    pub fn process(&self) -> &Arc<Process> {
        &self.process
    }

    /// Whether the handle was closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.rights.is_closed()
    }

    /// Whether a CPU signal may be made by this handle.
    ///
    /// # Errors
    /// [`SignalError::Closed`]; [`SignalError::AccessDenied`] for one without the right (NF-23);
    /// [`SignalError::IntraGpu`] (NF-13); [`SignalError::DeviceLost`].
    pub fn check_signal(&self) -> Result<(), SignalError> {
        if !self.is_closed() && self.fence().terms().is_intra_gpu() {
            return Err(SignalError::IntraGpu);
        }
        self.rights.check_signal()?;
        self.process.state().check_signal()
    }

    /// Whether a CPU wait may be made by this handle.
    ///
    /// # Errors
    /// [`WaitError::Closed`]; [`WaitError::AccessDenied`] for one without the right (NF-23);
    /// [`WaitError::IntraGpu`] (NF-13).
    pub fn check_wait(&self) -> Result<(), WaitError> {
        if !self.is_closed() && self.fence().terms().is_intra_gpu() {
            return Err(WaitError::IntraGpu);
        }
        self.rights.check_wait()
    }

    /// Closes the handle: its CPU waits end with an error, packets that carry it fault; what others
    /// have open stays. The storage goes when the last of them is dropped.
    pub fn close(&self) {
        if self.rights.close() {
            self.fence().close(self.opener);
            let place = Arc::clone(&self.place);
            let adapter = &self.process.adapter;
            adapter.close_fence(self.process.id, self.handle, place);
        }
    }
}

impl Drop for FenceObject {
    fn drop(&mut self) {
        self.close();
        // Not with the handle: what was logged under it before may still be read.
        let adapter = &self.process.adapter;
        adapter.forget_handle(self.process.id, self.handle);
    }
}
