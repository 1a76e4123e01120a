//! Always signaled: a fence whose signaller is lost, so that nobody stalls at it (NF-19).
//!
//! From then on GPU waits on the fence pass and GPU signals of it leave its storage alone, those that the OS
//! makes for kernel-mode queues as well. CurrentValue keeps its last good value, though the call to the
//! driver carries another. CPU waits that it does not satisfy end with the error of the device that was
//! lost, in every process: each operating system that has the fence open reads it in the fence's page, is
//! called when it comes to stand there, and tells its own driver. What a CPU that is not lost signals is
//! stored as ever (choice): the error of a fence is apart from its value (NF-26).
//!
//! It is for good. Why no queue stalls: the driver is told, lets the engines go that stand at the fence, and
//! parks none there from then on (`gpu::node::parking`).

use super::native_fence::NativeFence;
use super::record::Record;
use super::wait_cell::WaitError;
use crate::kmd::{CurrentValueUpdate, Level, UpdateCurrentValuesFlags};

/// What the call carries in CurrentValue's stead: 32 bits, as published.
const ALWAYS_SIGNALED_VALUE: u64 = 0xFFFF_FFFF;

impl NativeFence {
    /// See the file's head.
    pub(super) fn always_signal(&self) {
        self.with_state(|state, told| {
            if std::mem::replace(&mut state.is_always_signaled, true) {
                return;
            }
            state.failed.get_or_insert(WaitError::DeviceLost);
            self.tell_driver();
            if let Some(peers) = self.peers.get() {
                peers.always_signal();
            }
            self.end_all_waits(state, WaitError::DeviceLost, told);
        });
    }

    /// Whether a GPU wait on it passes, whatever the value.
    pub(super) fn is_always_signaled(&self) -> bool {
        self.state().is_always_signaled
    }

    /// With the fence's lock held, as of every update.
    fn tell_driver(&self) {
        if self.life().end().is_some() {
            return;
        }
        let update = CurrentValueUpdate {
            fence: self.id(),
            value: ALWAYS_SIGNALED_VALUE,
            word: self.current_word(),
        };
        let flags = UpdateCurrentValuesFlags::ALWAYS_SIGNALED;
        let call = || self.ddi().update_current_values_from_cpu(&[update], flags);
        // For whose lock an interrupt of another adapter may wait, as deferred work (`cross_side`).
        let told = match self.cross_side() {
            Some(_) => Level::Dispatch.raised(call),
            None => call(),
        };
        if let Err(error) = told {
            let record = Record::update_of_current_value_failed(self.id(), &error);
            self.life().bug_check(record);
        }
    }
}
