//! Monitored fence object: a monitored fence and the handle by which its process knows it
//! (`D3DKMTCreateSynchronizationObject2` with `D3DDDI_MONITORED_FENCE`).
//!
//! The handle is one of the process's one table, but engines find it in another: that of the OS's own
//! queues for the process (`kernel_side`). So a packet of a user-mode queue that carries it names
//! nothing there, and the queue is stopped (MF-09).

use super::adapter::OsError;
use super::cpu_signal::SignalError;
use super::cpu_wait::CpuWait;
use super::cross_side::CrossSide;
use super::fence_options::FenceTerms;
use super::handle_rights::HandleRights;
use super::monitored_fence::{MonitoredFence, MonitoredFenceParts, Width};
use super::process::Process;
use super::wait_cell::WaitError;
use crate::abi::{HandleAccess, LocalHandle};
use crate::kmd::{MapMonitoredFence, Place, VidSchCaps};
use crate::shared::PoolPlace;
use crate::sync::{Arc, monotonic_ns};
use crate::trace::{Note, Recorder};
use std::time::Duration;

/// How a monitored fence is made.
#[derive(Clone, Copy, Debug)]
pub struct CreateMonitoredFence {
    /// The value that it starts at.
    pub initial: u64,
    /// NoSignal or NoWait, or neither.
    pub access: HandleAccess,
    /// NoGPUAccess: it is not mapped for the GPU, has 64 bits always, and is signalled by the OS
    /// alone.
    pub no_gpu_access: bool,
    /// NoSignalMaxValueOnTdr: a lost device does not set it to its maximum (MF-08).
    pub no_signal_max_value_on_tdr: bool,
}

impl Default for CreateMonitoredFence {
    fn default() -> Self {
        Self {
            initial: 0,
            access: HandleAccess::FULL,
            no_gpu_access: false,
            no_signal_max_value_on_tdr: false,
        }
    }
}

/// See the file's head. Dropping the last reference closes the handle and destroys the fence.
#[derive(Debug)]
pub struct MonitoredFenceObject {
    handle: LocalHandle,
    rights: HandleRights,
    /// Engines have it.
    mapped: bool,
    fence: Arc<MonitoredFence>,
    process: Arc<Process>,
}

impl Process {
    /// Creates a monitored fence. An adapter without engines has it too, for the CPU.
    ///
    /// # Errors
    /// No memory, no handle left, the driver's reason; a stopped adapter.
    pub fn create_monitored_fence(
        self: &Arc<Self>,
        args: CreateMonitoredFence,
    ) -> Result<MonitoredFenceObject, OsError> {
        let mapped = !args.no_gpu_access && self.adapter().ddi().node_count() > 0;
        let object = self.make_monitored_fence(args, mapped)?;
        object.map()?;
        Ok(object)
    }

    /// The progress fence of a kernel-mode queue: the queue's engine alone stores it, as the driver
    /// maps it.
    pub(super) fn create_monitored_progress_fence(
        self: &Arc<Self>,
    ) -> Result<MonitoredFenceObject, OsError> {
        let args = CreateMonitoredFence {
            access: HandleAccess::NO_SIGNAL,
            // It tells which packets have run: a maximum would be a lie.
            no_signal_max_value_on_tdr: true,
            ..CreateMonitoredFence::default()
        };
        // The queue's creation maps it, for the queue's engine.
        self.make_monitored_fence(args, true)
    }

    fn make_monitored_fence(
        self: &Arc<Self>,
        args: CreateMonitoredFence,
        mapped: bool,
    ) -> Result<MonitoredFenceObject, OsError> {
        let adapter = self.adapter();
        adapter.check_up()?;
        self.state().check()?;
        let place = self.monitored_values().allocate()?;
        let narrow =
            !args.no_gpu_access && adapter.vidsch_caps().has(VidSchCaps::NO_64_BIT_ATOMICS);
        let width = if narrow { Width::LowHalf } else { Width::Whole };
        let terms = FenceTerms {
            access: args.access,
            no_signal_max_value_on_tdr: args.no_signal_max_value_on_tdr,
        };
        self.enter_monitored_fence((place, width), terms, Some(args.initial), (mapped, None))
    }

    /// A side of a cross-adapter fence, where there are no native fences: all of its value lies in the page that all
    /// adapters have, and the OS alone signals it here (XA-07), whatever the engines can store.
    pub(super) fn make_cross_adapter_side(
        self: &Arc<Self>,
        side: CrossSide,
        initial: Option<u64>,
    ) -> Result<MonitoredFenceObject, OsError> {
        self.state().check()?;
        let place = PoolPlace::of_region(side.fence().current())?;
        let mapped = self.adapter().ddi().node_count() > 0;
        let (terms, of) = (side.fence().terms(), (mapped, Some(side)));
        let object = self.enter_monitored_fence((place, Width::Whole), terms, initial, of)?;
        // Each adapter has the page (XA-02), for what reads it.
        object.map()?;
        Ok(object)
    }

    fn enter_monitored_fence(
        self: &Arc<Self>,
        (place, width): (PoolPlace, Width),
        terms: FenceTerms,
        initial: Option<u64>,
        (mapped, cross_side): (bool, Option<CrossSide>),
    ) -> Result<MonitoredFenceObject, OsError> {
        let adapter = self.adapter();
        let user = place.read_only()?;
        let handle = self.allocate_handle()?;
        let parts = MonitoredFenceParts {
            id: adapter.reserve_fence(),
            process: self.id(),
            // None is set to its maximum that its device could not signal (MF-08).
            ends_on_tdr: !terms.no_signal_max_value_on_tdr
                && !terms.access.has(HandleAccess::NO_SIGNAL),
            width,
            place,
            user,
            ddi: Arc::clone(adapter.ddi()),
            waited_for: Arc::clone(adapter.monitored.waited_for()),
            cross_side,
        };
        let fence = MonitoredFence::new(parts, initial);
        adapter.monitored.enter(&fence, handle);
        adapter
            .recording
            .named(fence.process(), handle.raw(), fence.as_ref().into());
        adapter.monitored_fence_made(&fence);
        let object = MonitoredFenceObject {
            handle,
            rights: HandleRights::new(terms.access),
            mapped,
            fence,
            process: Arc::clone(self),
        };
        // After it can be found, as for native fences.
        adapter.check_up()?;
        self.state().check()?;
        Ok(object)
    }
}

impl MonitoredFenceObject {
    fn map(&self) -> Result<(), OsError> {
        if self.mapped {
            let ddi = self.process.adapter().ddi();
            ddi.map_monitored_fence(&MapMonitoredFence {
                global: self.fence.id(),
                current_value: Place::from(self.fence.place()),
                process: self.process.kernel_side().id(self.process.adapter()),
                local: self.handle,
            })?;
        }
        Ok(())
    }

    /// The handle that packets of kernel-mode queues carry.
    #[must_use]
    pub fn handle(&self) -> LocalHandle {
        self.handle
    }

    /// The object.
    #[must_use]
    pub fn fence(&self) -> &Arc<MonitoredFence> {
        &self.fence
    }

    /// The process whose handle it is.
    #[must_use]
    pub fn process(&self) -> &Arc<Process> {
        &self.process
    }

    /// Whether engines can store to it: of a cross-adapter fence the OS does.
    #[must_use]
    pub fn has_gpu_access(&self) -> bool {
        self.mapped && !self.is_cross_adapter()
    }

    /// Whether it is one of several adapters (XA-08).
    #[must_use]
    pub fn is_cross_adapter(&self) -> bool {
        self.fence.cross_side().is_some()
    }

    /// Whether the handle was closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.rights.is_closed()
    }

    /// Whether a signal may be made by this handle, from the CPU or by a queue.
    ///
    /// # Errors
    /// [`SignalError::Closed`]; [`SignalError::AccessDenied`] for one without the right (NF-23);
    /// [`SignalError::DeviceLost`].
    pub fn check_signal(&self) -> Result<(), SignalError> {
        self.rights.check_signal()?;
        self.process.state().check_signal()
    }

    /// Whether a wait may be made by this handle.
    ///
    /// # Errors
    /// [`WaitError::Closed`]; [`WaitError::AccessDenied`] for one without the right (NF-23).
    pub fn check_wait(&self) -> Result<(), WaitError> {
        self.rights.check_wait()
    }

    /// What the handle may do.
    pub(super) fn access(&self) -> HandleAccess {
        self.rights.access()
    }

    /// Signals from the CPU (MF-04), with `AllowFenceRewind` where asked for.
    ///
    /// # Errors
    /// [`SignalError`]; then nothing was stored.
    pub fn signal(&self, value: u64, allow_rewind: bool) -> Result<(), SignalError> {
        self.check_signal()?;
        self.process
            .adapter()
            .check_up()
            .map_err(|_| SignalError::AdapterStopped)?;
        let begun = self.recorder().now();
        self.fence.signal(value, allow_rewind)?;
        if let Some(begun) = begun {
            self.note_cpu_signal(value, begun);
        }
        Ok(())
    }

    pub(super) fn recorder(&self) -> &Recorder {
        self.process.adapter().recording.recorder()
    }

    /// As [`NativeFence::note_cpu_signal`](super::NativeFence).
    pub(super) fn note_cpu_signal(&self, value: u64, at: u64) {
        self.recorder().note(|| Note::CpuSignal {
            fence: self.fence.id(),
            value,
            at,
            done: monotonic_ns(),
        });
    }

    /// Waits until CurrentValue is at least `value` (MF-04).
    ///
    /// # Errors
    /// [`WaitError`].
    pub fn wait(&self, value: u64, timeout: Option<Duration>) -> Result<(), WaitError> {
        CpuWait::one(self, value, timeout)
    }

    /// Closes the handle: waits end with an error, and packets that carry it fault.
    pub fn close(&self) {
        if self.rights.close() {
            self.fence.fail(WaitError::Closed);
            if self.mapped {
                let adapter = self.process.adapter();
                let kernel_side = self.process.kernel_side().id(adapter);
                adapter
                    .ddi()
                    .close_monitored_fence(kernel_side, self.handle);
            }
        }
    }
}

impl Drop for MonitoredFenceObject {
    fn drop(&mut self) {
        self.close();
        let adapter = self.process.adapter();
        adapter.monitored.take_out(&self.fence, self.handle);
        let handle = self.process.handle_slot(self.handle);
        adapter.retire_monitored_fence(&self.fence, self.mapped, handle);
    }
}
