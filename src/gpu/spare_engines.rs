//! Spare engines: what takes the place of an engine that is given up.
//!
//! To make one takes tens of milliseconds: an instance, a device, the compilation of its shader, which some
//! drivers do at the first dispatch. So a spare is made by a thread of its own before it is needed, and has
//! executed a slice of each kind. It has the kernels that the engines have, and takes those that come since on such a
//! thread as well: none is compiled while a reset waits, but what came in the moment before. When it is taken the next
//! one is made.

#[cfg(not(loom))]
use super::EngineUnit;
use super::{Engine, EngineMapping, Kernels, MapError, SliceWork};
use crate::abi::{EngineControl, EngineReport, SliceArgs, WordGroup};
use crate::supply::start_thread;
use crate::sync::Arc;
use crate::sync::plain::{Mutex, lock};
use std::fmt;
use std::sync::{Condvar, PoisonError};
use std::time::Duration;

/// What the threads are called that make them.
pub(crate) const SPARE_THREAD: &str = "nf-spare";

/// When spares are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SparePolicy {
    /// Kept where an engine is a process of its own: one that is killed was not suspected before, and none takes
    /// longer to make. Else on suspicion.
    #[default]
    ByUnit,
    /// One is kept ready from the adapter's start on, and costs its memory and its threads.
    Kept,
    /// One is made when an engine is suspected: it has not answered for a part of its time.
    OnSuspicion,
}

#[cfg(not(loom))]
impl SparePolicy {
    /// What it is for engines of a unit.
    #[must_use]
    pub fn for_unit(self, unit: EngineUnit) -> Self {
        match (self, unit) {
            (Self::ByUnit, EngineUnit::Process) => Self::Kept,
            (Self::ByUnit, _) => Self::OnSuspicion,
            (policy, _) => policy,
        }
    }
}

/// Makes an engine of the node's kind, apart from all there are: why not, as a sentence.
type Make = dyn Fn() -> Result<Box<dyn Engine>, String> + Send + Sync;

#[derive(Debug, Default)]
enum Spare {
    #[default]
    None,
    Making,
    Ready(Box<dyn Engine>),
    /// It could not be made, for this reason; it is tried again when it is needed.
    Failed(String),
}

/// See the file's head.
pub struct SpareEngines {
    make: Box<Make>,
    policy: SparePolicy,
    spare: Mutex<Spare>,
    /// What a spare is to have. Taken within `spare`, or alone.
    kernels: Mutex<Kernels>,
    changed: Condvar,
}

impl fmt::Debug for SpareEngines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpareEngines")
            .field("policy", &self.policy)
            .field("spare", &*lock(&self.spare))
            .finish_non_exhaustive()
    }
}

/// An engine is being made; without one at its end, by a panic, it has failed.
struct Making<'a>(&'a SpareEngines);

impl Drop for Making<'_> {
    fn drop(&mut self) {
        self.0.put(Err(String::from("its thread panicked")));
    }
}

impl SpareEngines {
    /// Engines that `make` makes.
    #[must_use]
    pub fn new(
        policy: SparePolicy,
        make: impl Fn() -> Result<Box<dyn Engine>, String> + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self {
            make: Box::new(make),
            policy,
            spare: Mutex::default(),
            kernels: Mutex::default(),
            changed: Condvar::new(),
        })
    }

    /// Has one made where one is kept.
    pub fn keep(self: &Arc<Self>) {
        if self.policy == SparePolicy::Kept {
            self.prepare();
        }
    }

    /// One will be needed: has it made, unless it is there or being made.
    pub fn prepare(self: &Arc<Self>) {
        let mut spare = lock(&self.spare);
        match *spare {
            Spare::Making | Spare::Ready(_) => return,
            Spare::None | Spare::Failed(_) => {}
        }
        *spare = Spare::Making;
        drop(spare);
        self.make_by(Self::make_warm);
    }

    /// Engines have these kernels from now on. A spare takes them before it counts as ready again; one that is being
    /// made takes them in the end.
    pub fn have_kernels(self: &Arc<Self>, kernels: &Kernels) {
        let mut own = lock(&self.kernels);
        // Of two that tell the later may come first.
        if kernels.version() >= own.version() {
            own.clone_from(kernels);
        }
        drop(own);
        let mut spare = lock(&self.spare);
        match std::mem::take(&mut *spare) {
            Spare::Ready(engine) => {
                *spare = Spare::Making;
                drop(spare);
                self.make_by(|_| Ok(engine));
            }
            other => *spare = other,
        }
    }

    /// Has an engine made by a thread of its own, which gives it the kernels.
    fn make_by(
        self: &Arc<Self>,
        make: impl FnOnce(&Self) -> Result<Box<dyn Engine>, String> + Send + 'static,
    ) {
        let this = Arc::clone(self);
        let made = start_thread(SPARE_THREAD, move || {
            // A program that ends meanwhile leaves at once: this thread is in Vulkan.
            #[cfg(not(loom))]
            let _in_vulkan = crate::vulkan::InVulkan::begin();
            // It may be the last that has it, and a spare goes with it: before this thread is out of Vulkan.
            let this = this;
            // Nobody waits in vain for one that comes to no end.
            let made = Making(&this);
            let engine = make(&this);
            this.put_with_kernels(engine);
            std::mem::forget(made);
        });
        if let Err(error) = made {
            self.put(Err(format!("no thread to make an engine on: {error}")));
        }
    }

    /// The same of one that has the kernels which there are by then.
    fn put_with_kernels(&self, made: Result<Box<dyn Engine>, String>) {
        let engine = match made {
            Ok(engine) => engine,
            Err(why) => return self.put(Err(why)),
        };
        loop {
            let kernels = lock(&self.kernels).clone();
            if let Err(error) = engine.set_kernels(&kernels) {
                return self.put(Err(format!(
                    "a new engine does not take the kernels: {error}"
                )));
            }
            let mut spare = lock(&self.spare);
            if lock(&self.kernels).version() == kernels.version() {
                *spare = Spare::Ready(engine);
                break;
            }
        }
        self.changed.notify_all();
    }

    fn put(&self, made: Result<Box<dyn Engine>, String>) {
        *lock(&self.spare) = made.map_or_else(Spare::Failed, Spare::Ready);
        self.changed.notify_all();
    }

    /// Whether one is ready.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        matches!(*lock(&self.spare), Spare::Ready(_))
    }

    /// Takes one, and waits for it where it is being made.
    ///
    /// # Errors
    /// It cannot be made: why, as a sentence.
    pub fn take(self: &Arc<Self>) -> Result<Box<dyn Engine>, String> {
        self.prepare();
        let mut spare = lock(&self.spare);
        let taken = loop {
            match std::mem::take(&mut *spare) {
                Spare::Ready(engine) => break Ok(engine),
                Spare::Failed(why) => break Err(why),
                still => {
                    *spare = still;
                    let woken = self.changed.wait(spare);
                    spare = woken.unwrap_or_else(PoisonError::into_inner);
                }
            }
        };
        drop(spare);
        if taken.is_ok() {
            self.keep();
        }
        taken
    }

    fn make_warm(&self) -> Result<Box<dyn Engine>, String> {
        // Made first, to go last, however this ends: as long as an engine is there it may run, and store to them. That it has
        // gone means that its queue is idle, or that its device keeps what it imported.
        let mut blocks = Vec::new();
        let mut engine = (self.make)()?;
        warm_up(engine.as_mut(), &mut blocks)
            .map_err(|error| format!("a new engine executes nothing: {error}"))?;
        Ok(engine)
    }
}

/// A new engine has executed a slice within this, and compiled for it; else it is none.
const WARM_TIME: Duration = Duration::from_secs(60);

/// Slices that an engine has executed when it is warm: one of each kind.
pub(super) const WARM_SLICES: u64 = 4;

/// Has an engine execute slices without a queue, over blocks of its own: the caller's, who lets them go after the engine, or
/// when this has ended well.
fn warm_up(engine: &mut dyn Engine, blocks: &mut Vec<EngineMapping>) -> Result<(), MapError> {
    for (group, bytes) in [
        (WordGroup::EngineControl, EngineControl::BLOCK_BYTES),
        (WordGroup::EngineReport, EngineReport::BLOCK_BYTES),
    ] {
        let region = engine.providers().for_words(group, bytes)?;
        blocks.push(EngineMapping::new(engine, &region)?);
    }
    let [control, report] = &blocks[..] else {
        unreachable!("both are mapped, and nothing was before");
    };
    super::node::attach(engine, control.host(), control.va(), report.va(), 0)?;
    let engine = &*engine;
    let lost = |_| {
        let why = engine.failure();
        MapError::Refused(why.unwrap_or_else(|| String::from("its device is lost")))
    };
    for slice in 1..=WARM_SLICES {
        let at = EngineControl::slice_args(slice);
        for (offset, value) in [
            (SliceArgs::SLICE, slice),
            (SliceArgs::BASE_TICKS, engine.base_ticks()),
            (SliceArgs::PASS_BUDGET, 1),
        ] {
            control.host().word(at + offset).put(value);
        }
        let work = SliceWork {
            // More than there are lanes, in every other slice; the list that is read has none.
            queues: (slice % 2) * u64::from(u32::MAX),
            transfers: slice > WARM_SLICES / 2,
            verbose: false,
            dispatches: false,
            schedules_itself: false,
            doorbells: false,
        };
        engine.start(slice, work).map_err(lost)?;
        let has_ended = engine.wait(slice, Some(WARM_TIME)).map_err(lost)?;
        if !has_ended {
            return Err(MapError::Refused(String::from("it comes to no end")));
        }
    }
    Ok(())
}
