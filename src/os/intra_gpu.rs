//! Fences of type INTRA_GPU: what the OS makes of them, and leaves alone (NF-13).
//!
//! It reads no CurrentValue of such a fence. The only waiters in its list are parked engines: what would
//! be read for them they look at themselves, each time that it would be read here (`gpu::node`,
//! parking). MonitoredValue, which the OS posts for them, is visible to the CPU as of every type.

use super::adapter::OsError;
use super::fence_options::FenceTerms;
use super::fence_storage::FenceStorage;
use super::native_fence::{NativeFence, State};
use super::process::{FenceObject, Process};
use super::signaller::Signaller;
use super::waiter::Waiter;
use crate::kmd::NativeFenceType;
use crate::sync::Arc;

impl Process {
    /// `D3DKMTCreateNativeFence`, type INTRA_GPU (NF-13): for one GPU's engines alone, in its own memory where it has
    /// such. It starts at 0, and at another value when a packet of its creator has stored that.
    ///
    /// # Errors
    /// [`OsError::NoIntraGpu`] where `GetOSCaps` does not report the type; as
    /// [`Process::create_native_fence`].
    pub fn create_intra_gpu_fence(
        self: &Arc<Self>,
        asked: impl Into<FenceTerms>,
        is_shareable: bool,
    ) -> Result<FenceObject, OsError> {
        self.check_fences()?;
        if !self.adapter().has_intra_gpu_fences() {
            return Err(OsError::NoIntraGpu);
        }
        let segments = self.adapter().asked_segments(NativeFenceType::INTRA_GPU)?;
        let storage = if is_shareable {
            FenceStorage::shareable(self.adapter().ddi().providers(), segments)?
        } else {
            self.fence_pools.allocate_intra_gpu(segments)?
        };
        let asked = asked.into();
        self.create(None, storage, Signaller::Openers, asked, is_shareable)
    }
}

impl NativeFence {
    /// `Type`.
    #[must_use]
    pub fn fence_type(&self) -> NativeFenceType {
        if self.terms().is_intra_gpu() {
            NativeFenceType::INTRA_GPU
        } else {
            NativeFenceType::DEFAULT
        }
    }

    /// Waiters that CurrentValue satisfies, taken out; of type INTRA_GPU none.
    pub(super) fn release_reached(&self, state: &mut State) -> Vec<Waiter> {
        if self.terms().is_intra_gpu() {
            return Vec::new();
        }
        state.waiters.release(self.current_value())
    }

    /// Whether a wait for `value` is satisfied now.
    pub(super) fn is_reached(&self, value: u64) -> bool {
        !self.terms().is_intra_gpu() && self.current_value() >= value
    }

    /// Reads CurrentValue again and releases whom it satisfies. Who waits for what is not read looks for
    /// himself.
    pub(super) fn resample(&self) {
        self.look_again(false);
    }

    /// The same for an interrupt that may be about this fence and does not say with which value, which is
    /// answered: the NULL array, the NULL queue, entries of a log that are lost.
    pub(super) fn raised_with_any(&self) {
        self.look_again(true);
        self.propagate_what_there_is();
    }

    fn look_again(&self, answers: bool) {
        self.with_state(|state, told| {
            let ended = if self.terms().is_intra_gpu() {
                state.waiters.drain()
            } else {
                Vec::new()
            };
            self.settle(state, ended, answers, told);
        });
    }
}
