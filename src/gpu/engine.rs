//! Engine: what executes slices.

use super::{ClockReading, EngineAddress, EngineCaps, GpuVa, KernelError, Kernels};
use crate::shared::{Providers, Region, RegionError};
use crate::sync::Arc;
use std::fmt::Debug;
use std::time::Duration;

/// Why a region could not be given an address.
#[derive(Debug, thiserror::Error)]
pub enum MapError {
    /// The host could not map it.
    #[error(transparent)]
    Region(#[from] RegionError),
    /// The device did not take it.
    #[error("the device refused to import memory: {0}")]
    Refused(String),
    /// The engine is in another process, and takes files of memory alone.
    #[error(
        "memory of group {0} is a device's, which passes to no engine in a process of its own: open the \
         adapter with all in system memory that the host maps"
    )]
    OfDevice(&'static str),
    /// The address is not one that the caps tell of.
    #[error("the device gave address {0:#x}, which is outside of its caps' range")]
    Address(u64),
}

/// The engine executes no more: its device is lost. So it counts where the driver gives up on it, by memory that stays
/// wanting or an error that it does not explain (choice): when a slice ends can then not be learned, nor what was taken of what
/// was started, and the device may go on ([`Engine::is_surely_lost`]). Whoever has work on it is told the same, and what it
/// has stays mapped until its queue is idle. But what it still stores counts no more than what an engine stores that hangs: it
/// is cut off (TD-23), and where it cannot be no other takes its place. What was answered to which call is told apart
/// ([`Engine::failure`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the engine's device is lost")]
pub struct EngineLost;

/// What gives regions addresses.
pub trait AddressSpace {
    /// Who makes memory that can be given one.
    fn providers(&self) -> &Arc<Providers>;

    /// Gives a region an address in this engine's space, by a mapping or an import of its own.
    ///
    /// # Errors
    /// When the host or the device refuses.
    fn map(&self, region: &Arc<Region>) -> Result<EngineAddress, MapError>;
}

/// What a slice has to do. An engine may leave out what it has not to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "what a slice can do, one a name"
)]
pub struct SliceWork {
    /// Queues of its run list.
    pub queues: u64,
    /// Whether it does transfers; without, it ends at the first with
    /// [`SliceReason::Transfer`](crate::abi::SliceReason).
    pub transfers: bool,
    /// Whether it logs waits that it finds unsatisfied, of queues that have such a log (LG-11).
    pub verbose: bool,
    /// Whether it makes dispatches; without, it ends at the first with
    /// [`SliceReason::Dispatch`](crate::abi::SliceReason).
    pub dispatches: bool,
    /// Whether its kernels may go on without the engine, where they schedule themselves. Not in one that is verbose, since
    /// it is the engine that logs waits which it finds unsatisfied.
    pub schedules_itself: bool,
    /// Whether it rings for other adapters and hears of them (XA-10).
    pub doorbells: bool,
}

/// Executes slices, one after another, on whatever it is made of.
pub trait Engine: AddressSpace + Send + Sync + Debug {
    /// What the engine has.
    fn caps(&self) -> EngineCaps;

    /// Tells the engine where its control block lies, while no slice is in flight: before the first one,
    /// and once more when an engine that was kept warm takes another's place. The next slice is the one
    /// after `before`, which is not below those that it has executed.
    ///
    /// # Errors
    /// When the engine cannot prepare its slices.
    fn attach(&mut self, control: GpuVa, before: u64) -> Result<(), MapError>;

    /// What its device answered when it last failed, and to which call: why it is lost, as a sentence.
    fn failure(&self) -> Option<String> {
        None
    }

    /// Asked of one that is lost ([`EngineLost`]): whether that is certain, so that nothing which it still does counts. Else it
    /// may be well, and go on with what it was given.
    fn is_surely_lost(&self) -> bool {
        true
    }

    /// Tells an engine that was kept warm which node it is of from now on.
    fn serve(&mut self, _node_ordinal: u32) {}

    /// Makes ready for slices that are verbose; called before the first of them, and maybe again.
    ///
    /// # Errors
    /// When the engine cannot prepare such slices: then it gets none.
    fn prepare_verbose(&self) -> Result<(), MapError>;

    /// Makes ready for slices that ring for other adapters; called before the first of them, and maybe again. The control
    /// block says where already: what is made ready may be used at once.
    ///
    /// # Errors
    /// When the engine cannot prepare such slices: then it gets none.
    fn prepare_doorbells(&self) -> Result<(), MapError>;

    /// Has these kernels from now on, in slices that are started from now on; those in flight go on with what
    /// they have. Once there has been one, slices may make dispatches.
    ///
    /// # Errors
    /// Then it has those that it had.
    fn set_kernels(&self, kernels: &Kernels) -> Result<(), KernelError> {
        if kernels.is_empty() {
            return Ok(());
        }
        Err(KernelError::Unsupported("this engine"))
    }

    /// Whether a slice may end before its vote, as on a driver that counts the passes of loops; the
    /// node then finds out after how many.
    fn cuts_slices(&self) -> bool {
        true
    }

    /// Starts slice `slice`, whose arguments and run list are written; it runs after the one
    /// before. Callers take turns (the node's lock).
    ///
    /// # Errors
    /// [`EngineLost`].
    fn start(&self, slice: u64, work: SliceWork) -> Result<(), EngineLost>;

    /// Sleeps until slice `slice`, which need not be started yet, has ended and all that it wrote
    /// is visible to the host; `false` when the time-out came first.
    ///
    /// # Errors
    /// [`EngineLost`].
    fn wait(&self, slice: u64, timeout: Option<Duration>) -> Result<bool, EngineLost>;

    /// Whether slice `slice` has ended and all that it wrote is visible to the host; never sleeps.
    ///
    /// # Errors
    /// [`EngineLost`].
    fn has_ended(&self, slice: u64) -> Result<bool, EngineLost>;

    /// Slice `slice` is never started, nor those after it; those before it were, and have ended or
    /// the engine is lost, or were abandoned. Whoever waits for it returns.
    fn abandon(&self, slice: u64);

    /// The whole GPU clock now, from which a short clock is extended; 0 where the shader's clock
    /// is whole.
    fn base_ticks(&self) -> u64;

    /// Bits of the clock that the engine reads: 32 or 64.
    fn clock_bits(&self) -> u64;

    /// Ticks of the clock in a time.
    fn ticks_in(&self, time: Duration) -> u64;

    /// Its clock and the CPU's at one moment; nothing where nobody can read both.
    fn read_clocks(&self) -> Option<ClockReading> {
        None
    }

    /// The process that it is in, where that is not this one.
    fn process_id(&self) -> Option<u32> {
        None
    }
}
