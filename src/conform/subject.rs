//! Subject: an implementation that is asked.

use crate::FenceMemory;
use crate::gpu::NodePolicy;
use crate::kmd::{Ddi, DriverOptions};
use crate::sync::Arc;
use std::fmt::Debug;
use std::num::NonZeroU32;

/// Why a subject, or the machine, has not what a check needs: the reason of a skip.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unfit(pub String);

/// What an adapter can do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// Native fences, and monitored ones beside them.
    #[default]
    Native,
    /// Monitored fences and kernel-mode queues alone, as before WDDM 3.2.
    Monitored,
}

/// The driver that a check wants.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Its nodes.
    pub nodes: NonZeroU32,
    /// What it can do.
    pub form: Form,
    /// Its engines can be made to hang by [`CommandList::stall`](crate::CommandList::stall), and be reset.
    pub hangs: bool,
    /// Device-local memory that the host reaches is used for what belongs there, and where all memory is the system's it
    /// counts as such.
    pub local_memory: bool,
    /// Caps that it makes use of. What no cap tells, such as `basic_monitored_fences`, is done as it stands here, or
    /// answered by [`Unfit`].
    pub driver: DriverOptions,
    /// How slices of its engines end, where they run slices.
    pub policy: NodePolicy,
}

impl Default for Wanted {
    fn default() -> Self {
        Self {
            nodes: NonZeroU32::MIN,
            form: Form::default(),
            hangs: false,
            local_memory: false,
            driver: DriverOptions::default(),
            policy: NodePolicy::default(),
        }
    }
}

impl Wanted {
    /// One of so many nodes.
    ///
    /// # Panics
    /// For 0.
    #[must_use]
    pub fn nodes(nodes: u32) -> Self {
        Self {
            nodes: NonZeroU32::new(nodes).expect("an adapter has a node"),
            ..Self::default()
        }
    }

    /// One with other caps.
    #[must_use]
    pub fn with(driver: DriverOptions) -> Self {
        Self {
            driver,
            ..Self::default()
        }
    }
}

/// See the file's head.
///
/// Checks of recovery have the OS believe that an engine is lost, or hangs, while it runs. A driver that cannot reset such a
/// one says so ([`TdrDdi::resets_running_engines`](crate::kmd::TdrDdi::resets_running_engines)), and if it fails to reset
/// its adapter then, the check is skipped, as where engines were made to hang in truth
/// ([`Ran::reset_failed`](super::Ran::reset_failed)). Else a failed reset of the adapter breaks the rule that was asked.
pub trait Subject: Debug + Send + Sync {
    /// What it is, for people.
    fn name(&self) -> String;

    /// A driver as it is wanted, not started; a new one each time, so that what one check leaves behind is no other's.
    ///
    /// # Errors
    /// [`Unfit`], what of it cannot be had: the check is skipped with this reason. Any other error breaks the rule that
    /// was to be asked.
    fn driver(&self, wanted: &Wanted) -> anyhow::Result<Arc<dyn Ddi>>;

    /// Where fences are made if a check asks for nothing else.
    fn fence_memory(&self) -> FenceMemory {
        FenceMemory::System
    }

    /// Whether two engines of an adapter run at the same time. Where they need not, a wait between them may be ended by the
    /// operating system (NF-09).
    fn engines_run_together(&self) -> bool {
        true
    }

    /// Whether a thread of this name may be its own, of those that begin with its drivers: not one of what lies below
    /// it, whose sleep it has no hand in.
    fn may_be_its_thread(&self, name: &str) -> bool {
        let _ = name;
        true
    }

    /// The same of a process of this name, of those that this one has started since its drivers began.
    fn may_be_its_process(&self, name: &str) -> bool {
        let _ = name;
        true
    }

    /// What it has found itself, since it was last asked, that no implementation may do, as sentences: a wrong access to
    /// memory, say. It fails the check that was running.
    fn take_misdeeds(&self) -> Vec<String> {
        Vec::new()
    }
}
