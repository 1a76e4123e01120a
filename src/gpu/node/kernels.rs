//! Kernels of a node: what DISPATCH packets of its queues name.

use super::inner::Inner;
use super::retirement::{Kept, retire};
use super::{Node, NodeError};
use crate::abi::{
    Dispatch, EngineControl, HandleAccess, KernelDetail, KernelId, LocalHandle, ObjectId,
};
use crate::gpu::{Engine, GpuVa, KernelCode, KernelError, Kernels};
use crate::sync::{Arc, MutexGuard, lock};

/// What an engine has of a kernel.
#[derive(Clone, Copy, Debug)]
pub(super) struct KnownKernel(KernelDetail);

impl KnownKernel {
    /// The words of a handle's entry.
    pub(super) fn place(self) -> (GpuVa, u64) {
        (GpuVa(0), Dispatch::kernel_detail(self.0))
    }
}

impl Node {
    /// Gives the engine a kernel, and opens a handle of a process on it. Slices go on meanwhile, but for the
    /// moment in which the engine takes what was made.
    ///
    /// # Errors
    /// The engine does not take it, or the table cannot grow.
    pub fn add_kernel(
        &self,
        id: KernelId,
        (process, handle): (u64, LocalHandle),
        code: &Arc<KernelCode>,
    ) -> Result<(), NodeError> {
        let _turn = lock(&self.registering);
        let mut more = lock(&self.kernels).clone();
        let slot = more.add(code)?;
        let known = KnownKernel(KernelDetail {
            slot,
            schedules_itself: code.has_epilogue(self.caps),
            finds_job: code.finds_job(),
            parameter_bytes: code.parameter_bytes(),
            version: more.version(),
        });
        let mut inner = self.set_kernels(&more)?;
        inner.kernels.insert(id, known);
        self.tell_of_kernels(true);
        let engine = Arc::clone(&inner.engine);
        let table = Self::handle_table(&mut inner, process)?;
        let (object, place) = (ObjectId::Kernel(id), known.place());
        table.open(&**engine, handle, HandleAccess::KERNEL, object, place)?;
        Ok(())
    }

    /// Whether packets of its queues can have run kernels: the engine has ever had one.
    #[must_use]
    pub fn runs_kernels(&self) -> bool {
        lock(&self.kernels).version() > 0
    }

    /// Whether the engine can make dispatches: it has had a kernel.
    pub(super) fn tell_of_kernels(&self, can_dispatch: bool) {
        let can = self.control.host().word(EngineControl::DISPATCHES);
        can.publish(u64::from(can_dispatch));
    }

    /// Takes a kernel out, whose handle is closed: its place is another's. `true` if no slice refers to the
    /// handle any more; else a report says so later.
    #[must_use]
    pub fn remove_kernel(&self, id: KernelId) -> bool {
        let _turn = lock(&self.registering);
        let known = lock(&self.inner).kernels.remove(&id);
        if let Some(known) = known {
            let mut fewer = lock(&self.kernels).clone();
            fewer.remove(known.0.slot);
            // An engine that does not let go of it, as a lost one, has one more than packets can name.
            if self.set_kernels(&fewer).is_err() {
                *lock(&self.kernels) = fewer;
            }
        }
        retire(lock(&self.inner), Kept::kernel(id))
    }

    /// Has the engine take these. Compiling takes time, in which the node goes on, and its engine may be given up:
    /// then the one that has taken its place takes them, whatever the other one said. An engine that is found lost by
    /// it is lost from then on, also where no slice is in flight that would find it (TD-12). The caller has its turn.
    fn set_kernels(&self, kernels: &Kernels) -> Result<MutexGuard<'_, Inner>, KernelError> {
        loop {
            let engine = self.engine();
            let taken = engine.set_kernels(kernels);
            // Before `inner`, as whoever replaces the engine.
            let mut own = lock(&self.kernels);
            let mut inner = lock(&self.inner);
            if Arc::ptr_eq(&inner.engine, &engine) {
                if taken == Err(KernelError::Lost) {
                    self.lose_device(&mut inner);
                }
                taken?;
                own.clone_from(kernels);
                return Ok(inner);
            }
        }
    }

    /// Has an engine that is to take the place of the node's take its kernels, without a lock: it may have to compile
    /// those that came when it was made already. Then the locks, under which it has them all; it may have some that
    /// are gone, which nobody can name.
    pub(super) fn hand_kernels(
        &self,
        spare: &dyn Engine,
    ) -> Result<(MutexGuard<'_, Kernels>, MutexGuard<'_, Inner>), KernelError> {
        let mut has = lock(&self.kernels).clone();
        loop {
            spare.set_kernels(&has)?;
            let own = lock(&self.kernels);
            if own.version() == has.version() {
                return Ok((own, lock(&self.inner)));
            }
            has.clone_from(&own);
        }
    }

    /// What the engine has.
    #[must_use]
    pub fn kernels(&self) -> Kernels {
        lock(&self.kernels).clone()
    }
}
