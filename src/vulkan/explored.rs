//! What loom explores of the room `vulkan`: what needs no device.
#![forbid(unsafe_code)]

mod idle_waits;

use idle_waits::IdleWaits;

/// The sleepers of a device, without the device.
#[derive(Debug, Default)]
pub struct ExploredIdleWaits(IdleWaits);

impl ExploredIdleWaits {
    /// Sleeps until a look says that it is over, or the device is known to be lost.
    pub fn sleep_until(&self, is_over: impl Fn() -> bool) {
        self.0.sleep_until(is_over);
    }

    /// What is looked at under a lock has changed.
    pub fn call(&self) {
        self.0.call();
    }

    /// What is looked at without a lock has.
    pub fn call_anyway(&self) {
        self.0.call_anyway();
    }

    /// The device is lost.
    pub fn note_loss(&self) {
        self.0.note_loss();
    }
}
