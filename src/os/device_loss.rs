//! Device loss: what becomes of devices that are in an error state, and of what others share with them.
//!
//! A reset names the devices of the packets that it aborted, an engine that executes no more those that
//! have a queue on it (TD-06, TD-14). All that such a device has ends: its queues of either kind on every
//! node, whose doorbells read DISCONNECTED_ABORT, and the waits of its CPU side, with its error. Of what
//! others share with it a native fence that it could signal becomes AlwaysSignaled (`always_signaled`),
//! unless it was made with NoSignalMaxValueOnTdr, and then goes on; a monitored fence that it could signal
//! gets its maximum (MF-08), but for a cross-adapter one, which is as a native one on all adapters (choice: its value
//! is the others' too); every other fence is as it was. Engines go on for others.
//!
//! Why nothing of it is missed: the state of the devices is stored before each walk over what there is, and
//! whoever makes something looks at it after that can be found. The lock under which it comes to be found
//! orders the two: either the walk finds it, or its maker reads the error and lets it go again.

use super::adapter_state::AdapterState;
use super::native_fence::NativeFence;
use super::signaller::Signaller;
use super::wait_cell::WaitError;
use crate::abi::wddm::DeviceExecutionState;
use crate::kmd::ProcessId;
use std::collections::BTreeSet;

impl AdapterState {
    /// How many devices are open, lost ones among them.
    #[must_use]
    pub fn open_devices(&self) -> usize {
        self.devices.count()
    }

    /// These devices are lost: `state` is what their next call reports; of several losses of one the first
    /// counts. Engines are left as they are. The caller holds no lock, and may be an interrupt.
    pub fn fail_devices(&self, devices: &BTreeSet<ProcessId>, state: DeviceExecutionState) {
        let is_lost = |device| devices.contains(&device);
        self.devices.fail(devices, state);
        for queue in self.all_queues() {
            if is_lost(queue.process()) {
                queue.fail(WaitError::DeviceLost);
            }
        }
        for queue in self.kernel_queues.all() {
            if is_lost(queue.process()) {
                queue.fail(WaitError::DeviceLost);
            }
        }
        for fence in self.monitored.all() {
            if is_lost(fence.process()) {
                fence.lose();
            }
        }
        for fence in self.all_fences() {
            fence.lose_devices(is_lost);
        }
        self.judge();
    }

    /// The adapter is removed (surprise removal): the loss of all its engines and devices, of those to come as well
    /// (XA-11). What engines have begun they may end, of which nobody is told.
    pub fn remove(&self) {
        self.losses.note_all();
        let devices = self.devices.fail_to_come(DeviceExecutionState::STOPPED);
        for node_ordinal in 0..self.ddi().node_count() {
            self.engine_lost(node_ordinal);
        }
        self.fail_devices(&devices, DeviceExecutionState::STOPPED);
        self.lose_all_fences();
    }

    /// An engine executes no more, and none takes its place: the devices that have a queue on it are lost,
    /// and all fences with the last engine, since nobody else could bring what is waited for.
    pub(super) fn engine_lost(&self, node_ordinal: u32) {
        // Noted before each walk: what comes later finds it (`losses`).
        let all_lost = self.losses.note_node(node_ordinal, self.ddi().node_count());
        for context in self.contexts.all() {
            if context.handle().node_ordinal == node_ordinal {
                context.fail(WaitError::DeviceLost);
            }
        }
        let mut devices = BTreeSet::new();
        // Those on the engine first: of a device's queues they are the reason.
        for queue in self.all_queues() {
            if queue.handle().node_ordinal == node_ordinal {
                devices.insert(queue.process());
                queue.fail(WaitError::DeviceLost);
            }
        }
        for queue in self.kernel_queues.all() {
            if queue.handle().node_ordinal == node_ordinal {
                devices.insert(queue.process());
                queue.fail(WaitError::DeviceLost);
            }
        }
        // After its queues: what was held back for an answer is of theirs.
        self.kernel_queues.engine(node_ordinal).lost();
        self.fail_devices(&devices, DeviceExecutionState::STOPPED);
        if all_lost {
            self.lose_all_fences();
        }
    }

    /// Nobody here could bring what is waited for.
    fn lose_all_fences(&self) {
        for fence in self.monitored.all() {
            fence.lose();
        }
        for fence in self.all_fences() {
            if fence.terms().signaller == Signaller::Openers {
                fence.fail(WaitError::DeviceLost);
                fence.lose_elsewhere();
            }
        }
    }
}

impl NativeFence {
    /// Devices are lost. That of a queue goes with its queue.
    fn lose_devices(&self, is_lost: impl Fn(ProcessId) -> bool) {
        let terms = self.terms();
        if let Signaller::Queue(_) = terms.signaller {
            return;
        }
        if !terms.keeps_value_on_tdr && self.is_signalled_by(&is_lost) {
            self.always_signal();
            if let Some(side) = self.cross_side() {
                side.lose();
            }
        } else {
            // Others can reach its value; those of the lost devices wait for nothing any more.
            self.fail_openers(is_lost, WaitError::DeviceLost);
        }
    }
}
