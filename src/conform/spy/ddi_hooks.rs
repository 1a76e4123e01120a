//! What a test has a DDI spy do: hooks, failures, interrupts of its own.

use super::DdiSpy;
use super::book::{Call, Failing, MadeDoorbell, Moment, Passed, Published, lock};
use crate::abi::FenceId;
use crate::abi::wddm::FenceStorageSurfaceData;
use crate::kmd::{
    Callbacks, ContextAllocation, ContextHandle, DoorbellId, Interrupt, SystemProcessPlace,
};
use crate::sync::Ordering;
use std::sync::Arc;

impl DdiSpy {
    /// Calls `hook` with each interrupt before the OS gets it; it may change it. With several at once where they come at
    /// once.
    pub fn on_interrupt(&self, hook: impl Fn(&mut Interrupt) + Send + Sync + 'static) {
        *lock(&self.book.interrupt) = Some(Arc::new(hook));
    }

    /// From now on the OS learns of no interrupt: no raise is answered.
    pub fn keep_interrupts(&self) {
        self.book.keeps_interrupts.store(true, Ordering::Release);
    }

    /// From now on it learns of them again; what was kept is lost.
    pub fn pass_interrupts(&self) {
        self.book.keeps_interrupts.store(false, Ordering::Release);
    }

    /// From now on such interrupts are held back from the OS, and written down as if they were not.
    pub fn hold_interrupts(&self, which: impl Fn(&Interrupt) -> bool + Send + 'static) {
        *lock(&self.book.holds) = Some(Box::new(which));
    }

    /// The OS gets those that were held back, in their order, and those to come at once.
    pub fn pass_held_interrupts(&self) {
        *lock(&self.book.holds) = None;
        let held = std::mem::take(&mut *lock(&self.book.held));
        for interrupt in held {
            self.interrupt(interrupt);
        }
    }

    /// The OS, as the driver sees it.
    ///
    /// # Panics
    /// When the driver was not started, or is stopped.
    pub fn os(&self) -> Arc<dyn Callbacks> {
        let os = lock(&self.book.os).clone();
        os.expect("the driver was started")
    }

    /// Interrupts the OS as a driver does, past the hook.
    pub fn interrupt(&self, interrupt: Interrupt) {
        self.os().notify_interrupt(interrupt);
    }

    /// From now on such calls fail, and the driver does not get them.
    pub fn fail(&self, call: Failing) {
        lock(&self.book.fails).push(call);
    }

    /// From now on no call fails.
    pub fn succeed(&self) {
        lock(&self.book.fails).clear();
    }

    /// Places that the OS had mapped for the system process, or not, with those that they are a second
    /// mapping of, as they came to the driver.
    pub fn passed(&self) -> Vec<Passed> {
        lock(&self.book.passed).clone()
    }

    /// From now on the driver gets what `instead` gives in the stead of what the OS had mapped.
    pub fn pass_instead(
        &self,
        instead: impl Fn(&'static str) -> Option<SystemProcessPlace> + Send + 'static,
    ) {
        *lock(&self.book.instead) = Some(Box::new(instead));
    }

    /// From now on `answer` changes what the driver answers of segments.
    pub fn answer_segments(&self, answer: impl Fn(&mut FenceStorageSurfaceData) + Send + 'static) {
        *lock(&self.book.segments) = Some(Box::new(answer));
    }

    /// From now on hooks in calls run at the level of the call.
    pub fn keep_level_in_hooks(&self) {
        self.book.keeps_level.store(true, Ordering::Release);
    }

    /// Calls `hook` at every moment; with fences and values where those are updated.
    pub fn hook(&self, hook: impl Fn(Moment, &[(FenceId, u64)]) + Send + Sync + 'static) {
        *lock(&self.book.hook) = Some(Arc::new(hook));
    }

    /// Takes that hook away.
    pub fn unhook(&self) {
        *lock(&self.book.hook) = None;
    }

    /// Calls `hook` at the next such moment.
    pub fn once(&self, moment: Moment, hook: impl FnOnce() + Send + 'static) {
        lock(&self.book.once).push((moment, Box::new(hook)));
    }

    /// A doorbell that was created, with the arguments of it.
    ///
    /// # Panics
    /// When there was none.
    pub fn made_doorbell(&self, doorbell: DoorbellId) -> MadeDoorbell {
        let made = lock(&self.book.doorbells).get(&doorbell).cloned();
        made.expect("CreateDoorbell was called for it")
    }

    /// The context allocations of a context, where they lie now.
    pub fn save_areas(&self, context: ContextHandle) -> Vec<ContextAllocation> {
        let areas = lock(&self.book.save_areas);
        let its = |call: Call| match call {
            Call::CreateContextAllocation(asked, id) if asked.context == Some(context) => {
                areas.get(&id).cloned()
            }
            _ => None,
        };
        self.calls().into_iter().filter_map(its).collect()
    }

    /// Calls and callbacks so far as published structures, oldest first.
    pub fn published(&self) -> Vec<Published> {
        lock(&self.book.published).clone()
    }
}
