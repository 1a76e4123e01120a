//! Device state: whether a device runs, or what became of it (`D3DKMT_DEVICEEXECUTION_STATE`).
//!
//! A device is a process here: what an application opens on an adapter, and what goes into an error state.
//! It never comes back from one: its program destroys it and makes another. So the first error counts, and
//! one word says all of it, which each call of the device reads.

use super::adapter::OsError;
use super::cpu_signal::SignalError;
use crate::abi::wddm::DeviceExecutionState;
use crate::kmd::ProcessId;
use crate::sync::plain::AtomicU64;
use crate::sync::{Arc, Mutex, Ordering, lock};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Weak;

/// Of one device.
#[derive(Debug)]
pub(super) struct DeviceState(AtomicU64);

impl Default for DeviceState {
    fn default() -> Self {
        Self(AtomicU64::new(u64::from(DeviceExecutionState::ACTIVE.0)))
    }
}

impl DeviceState {
    pub(super) fn get(&self) -> DeviceExecutionState {
        DeviceExecutionState(self.0.load(Ordering::Acquire) as u32)
    }

    /// Of several errors the first counts.
    fn fail(&self, state: DeviceExecutionState) {
        let active = u64::from(DeviceExecutionState::ACTIVE.0);
        let _first = self.0.compare_exchange(
            active,
            u64::from(state.0),
            Ordering::AcqRel,
            Ordering::Acquire,
        );
    }

    pub(super) fn is_lost(&self) -> bool {
        self.get() != DeviceExecutionState::ACTIVE
    }

    /// What a call of the device reports (TD-06).
    pub(super) fn check(&self) -> Result<(), OsError> {
        match self.get() {
            DeviceExecutionState::ACTIVE => Ok(()),
            state => Err(OsError::DeviceLost(state)),
        }
    }

    /// The same of a signal from its CPU side.
    pub(super) fn check_signal(&self) -> Result<(), SignalError> {
        if self.is_lost() {
            return Err(SignalError::DeviceLost);
        }
        Ok(())
    }
}

/// Of all devices of an adapter that are open.
#[derive(Debug, Default)]
pub(super) struct DeviceStates(Mutex<Devices>);

#[derive(Debug, Default)]
struct Devices {
    open: BTreeMap<ProcessId, Weak<DeviceState>>,
    /// What became of all of them, those to come among them.
    all: Option<DeviceExecutionState>,
}

impl DeviceStates {
    /// A device is opened.
    pub(super) fn enter(&self, device: ProcessId) -> Arc<DeviceState> {
        let state = Arc::<DeviceState>::default();
        let mut devices = lock(&self.0);
        devices.open.insert(device, Arc::downgrade(&state));
        if let Some(all) = devices.all {
            state.fail(all);
        }
        state
    }

    /// It is closed.
    pub(super) fn take_out(&self, device: ProcessId) {
        lock(&self.0).open.remove(&device);
    }

    /// These devices are lost.
    pub(super) fn fail(&self, devices: &BTreeSet<ProcessId>, state: DeviceExecutionState) {
        let all = lock(&self.0);
        for device in devices.iter().filter_map(|device| all.open.get(device)) {
            if let Some(device) = device.upgrade() {
                device.fail(state);
            }
        }
    }

    /// Those that are opened from now on are lost; which are open, for the caller to fail.
    pub(super) fn fail_to_come(&self, state: DeviceExecutionState) -> BTreeSet<ProcessId> {
        let mut devices = lock(&self.0);
        devices.all = Some(state);
        devices.open.keys().copied().collect()
    }

    /// How many are open.
    pub(super) fn count(&self) -> usize {
        lock(&self.0).open.len()
    }

    /// Whether a device is open, and not lost.
    pub(super) fn is_live(&self, device: ProcessId) -> bool {
        let state = lock(&self.0).open.get(&device).and_then(Weak::upgrade);
        state.is_some_and(|state| !state.is_lost())
    }
}
