//! Held engine: a node's engine, and its end.
//!
//! Several threads have it in use for a moment: one waits for a slice, another looks whether one has ended.
//! Whoever lets go of it last ends it, and that waits for what still runs. Of an engine that was given up
//! this may be for ever. So such a one is ended by a thread of its own, the reaper, which nobody waits for.

use super::{Engine, EngineAddress};
use crate::supply::start_thread;
use crate::sync::Arc;
use crate::sync::plain::{Mutex, lock};
#[cfg(not(loom))]
use crate::vulkan::InVulkan;
use std::any::Any;
use std::ops::Deref;
use std::sync::{Condvar, PoisonError};
use std::time::{Duration, Instant};

/// Engines that were given up and have not ended.
#[derive(Debug, Default)]
pub struct Reaper {
    left: Mutex<u64>,
    changed: Condvar,
}

impl Reaper {
    /// How many there are.
    #[must_use]
    pub fn left(&self) -> u64 {
        *lock(&self.left)
    }

    /// Sleeps until there is none, or until the deadline.
    pub fn wait_until(&self, deadline: Instant) {
        let mut left = lock(&self.left);
        while *left > 0 {
            let time = deadline.saturating_duration_since(Instant::now());
            if time == Duration::ZERO {
                return;
            }
            let woken = self.changed.wait_timeout(left, time);
            left = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// An engine that was given up, and what it has of regions.
#[derive(Debug)]
struct GivenUp {
    addresses: Vec<EngineAddress>,
    /// What was taken out of its node while it was lost.
    mapped: Vec<Box<dyn Any + Send + Sync>>,
    reaper: Arc<Reaper>,
    #[cfg(not(loom))]
    in_vulkan: InVulkan,
}

/// See the file's head.
#[derive(Debug)]
pub struct HeldEngine {
    /// There until it is ended.
    engine: Option<Box<dyn Engine>>,
    given_up: Mutex<Option<GivenUp>>,
}

impl HeldEngine {
    pub(super) fn new(engine: Box<dyn Engine>) -> Arc<Self> {
        Arc::new(Self {
            engine: Some(engine),
            given_up: Mutex::default(),
        })
    }

    /// It is given up: what it has of regions is kept until it has ended.
    pub(super) fn give_up(
        &self,
        addresses: Vec<EngineAddress>,
        mapped: Box<dyn Any + Send + Sync>,
        reaper: &Arc<Reaper>,
    ) {
        let mut given_up = lock(&self.given_up);
        let given_up = given_up.get_or_insert_with(|| {
            *lock(&reaper.left) += 1;
            GivenUp {
                addresses: Vec::new(),
                mapped: Vec::new(),
                reaper: Arc::clone(reaper),
                #[cfg(not(loom))]
                in_vulkan: InVulkan::begin(),
            }
        });
        given_up.addresses.extend(addresses);
        given_up.mapped.push(mapped);
    }
}

impl Deref for HeldEngine {
    type Target = dyn Engine;

    fn deref(&self) -> &Self::Target {
        match &self.engine {
            Some(engine) => engine.as_ref(),
            None => unreachable!("it is taken by its drop alone"),
        }
    }
}

impl Drop for HeldEngine {
    fn drop(&mut self) {
        let (Some(engine), Some(given_up)) = (self.engine.take(), lock(&self.given_up).take())
        else {
            return;
        };
        let reap = move || {
            // By name, or the closure would not have it: in Vulkan until all is gone.
            let GivenUp {
                addresses,
                mapped,
                reaper,
                #[cfg(not(loom))]
                in_vulkan,
            } = given_up;
            // In this order: as long as it runs it may touch what it has.
            drop(engine);
            drop((addresses, mapped));
            #[cfg(not(loom))]
            drop(in_vulkan);
            *lock(&reaper.left) -= 1;
            reaper.changed.notify_all();
        };
        let spawned = start_thread("nf-reaper", reap);
        if let Err(error) = spawned {
            // The closure is gone with the error, and the engine was ended here.
            eprintln!("native-fence: no thread to end an engine on ({error})");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::{ModelEngine, ModelOptions};
    use std::sync::mpsc::{Receiver, channel};

    /// What takes its time to go.
    struct Slow(Mutex<Receiver<()>>);

    impl Drop for Slow {
        fn drop(&mut self) {
            // Until it is let, or its test has failed.
            let _ = lock(&self.0).recv();
        }
    }

    /// A program that ends while an engine is being ended, which nobody waits for, is to know that a thread is in
    /// Vulkan.
    ///
    /// Kills `a-reaper-is-in-vulkan-for-a-moment`.
    #[test]
    fn td_23_whoever_ends_an_engine_is_in_vulkan_until_it_has_gone() {
        let (go, slow) = channel();
        let reaper = Arc::<Reaper>::default();
        let engine = HeldEngine::new(Box::new(ModelEngine::new(ModelOptions::default())));
        engine.give_up(Vec::new(), Box::new(Slow(Mutex::new(slow))), &reaper);
        drop(engine);
        assert_eq!((reaper.left(), InVulkan::count()), (1, 1));
        go.send(()).unwrap();
        reaper.wait_until(Instant::now() + Duration::from_secs(20));
        assert_eq!((reaper.left(), InVulkan::count()), (0, 0));
    }
}
