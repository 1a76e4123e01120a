//! Held engine: a node's engine, and its end.
//!
//! Several threads have it in use for a moment: one waits for a slice, another looks whether one has ended.
//! Whoever lets go of it last ends it, and that waits for what still runs. Of an engine that was given up
//! this may be for ever. So such a one is ended by a thread of its own, the reaper, which nobody waits for. Where the
//! system has no thread it waits for one with all that it has: until the next is given up, or nobody has the reaper any
//! more.

use super::{Engine, EngineAddress};
use crate::supply::{start_thread, start_thread_with};
use crate::sync::Arc;
use crate::sync::plain::{Mutex, lock};
#[cfg(not(loom))]
use crate::vulkan::InVulkan;
use std::any::Any;
use std::ops::Deref;
use std::sync::{Condvar, PoisonError};
use std::time::{Duration, Instant};

/// What the threads are called that end engines.
pub(crate) const REAPER_THREAD: &str = "nf-reaper";

/// Engines that were given up and have not ended.
#[derive(Debug, Default)]
pub struct Reaper {
    left: Mutex<u64>,
    changed: Condvar,
    /// Those that no thread ends yet.
    waiting: Mutex<Vec<Remains>>,
}

impl Reaper {
    /// How many there are.
    #[must_use]
    pub fn left(&self) -> u64 {
        *lock(&self.left)
    }

    /// Sleeps until there is none, or until the deadline.
    pub fn wait_until(self: &Arc<Self>, deadline: Instant) {
        self.end_waiting();
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

    /// Has it ended by a thread.
    fn end(self: &Arc<Self>, remains: Remains) {
        lock(&self.waiting).push(remains);
        self.end_waiting();
    }

    /// Has each that waits for a thread ended by one, as far as there are threads.
    fn end_waiting(self: &Arc<Self>) {
        // Another may do so too: then there is nothing left for one of the threads.
        let waiting = lock(&self.waiting).len();
        for _ in 0..waiting {
            let this = Arc::clone(self);
            let end = move || {
                let next = lock(&this.waiting).pop();
                if let Some(remains) = next {
                    remains.end();
                    *lock(&this.left) -= 1;
                    this.changed.notify_all();
                }
            };
            if let Err(error) = start_thread(REAPER_THREAD, end) {
                eprintln!("native-fence: no thread to end an engine on, for now ({error})");
                return;
            }
        }
    }
}

impl Drop for Reaper {
    fn drop(&mut self) {
        let waiting = self.waiting.get_mut();
        for remains in std::mem::take(waiting.unwrap_or_else(PoisonError::into_inner)) {
            // Here it may never come to its end: then it is kept for as long as the process lives.
            let started = start_thread_with(REAPER_THREAD, remains, Remains::end);
            if let Err((error, remains)) = started {
                eprintln!("native-fence: no thread to end an engine on, which is kept ({error})");
                std::mem::forget(remains);
            }
        }
    }
}

/// An engine that was given up and that nobody has in use any more, with what it has.
#[derive(Debug)]
struct Remains {
    engine: Box<dyn Engine>,
    addresses: Vec<EngineAddress>,
    mapped: Vec<Box<dyn Any + Send + Sync>>,
    #[cfg(not(loom))]
    in_vulkan: InVulkan,
}

impl Remains {
    fn end(self) {
        // In Vulkan until all is gone.
        let Self {
            engine,
            addresses,
            mapped,
            #[cfg(not(loom))]
            in_vulkan,
        } = self;
        // In this order: as long as it runs it may touch what it has.
        drop(engine);
        drop((addresses, mapped));
        #[cfg(not(loom))]
        drop(in_vulkan);
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
        given_up.reaper.end(Remains {
            engine,
            addresses: given_up.addresses,
            mapped: given_up.mapped,
            #[cfg(not(loom))]
            in_vulkan: given_up.in_vulkan,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::{ModelEngine, ModelOptions};
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::thread;

    /// What takes its time to go, and says that it has begun to.
    struct Slow(Mutex<(Sender<()>, Receiver<()>)>);

    impl Drop for Slow {
        fn drop(&mut self) {
            let (goes, may_go) = &*lock(&self.0);
            let _ = goes.send(());
            // Until it is let, or its test has failed.
            let _ = may_go.recv();
        }
    }

    /// A program that ends while an engine is being ended, which nobody waits for, is to know that a thread is in
    /// Vulkan.
    ///
    /// Kills `a-reaper-is-in-vulkan-for-a-moment`.
    #[test]
    fn td_23_whoever_ends_an_engine_is_in_vulkan_until_it_has_gone() {
        let (go, may_go) = channel();
        let (goes, begun) = channel();
        let slow = Slow(Mutex::new((goes, may_go)));
        let reaper = Arc::<Reaper>::default();
        let engine = HeldEngine::new(Box::new(ModelEngine::new(ModelOptions::default())));
        engine.give_up(Vec::new(), Box::new(slow), &reaper);
        drop(engine);
        assert_eq!(begun.recv_timeout(Duration::from_secs(20)), Ok(()));
        assert_eq!((reaper.left(), InVulkan::count()), (1, 1));
        go.send(()).unwrap();
        reaper.wait_until(Instant::now() + Duration::from_secs(20));
        assert_eq!((reaper.left(), InVulkan::count()), (0, 0));
    }

    /// Says when it goes, and on which thread.
    struct Goes(Mutex<Sender<String>>);

    impl Drop for Goes {
        fn drop(&mut self) {
            let thread = thread::current();
            let name = thread.name().unwrap_or_default();
            let _ = lock(&self.0).send(name.to_owned());
        }
    }

    /// An engine for which there was no thread is ended by one when it is next looked for one, or when nobody has the
    /// reaper any more; never by who gave it up, whom it might keep for ever.
    ///
    /// Kills `an-engine-without-a-thread-waits-for-ever`, `an-engine-without-a-thread-goes-with-its-reaper`.
    #[test]
    fn td_23_an_engine_without_a_thread_is_ended_by_the_next_one() {
        for is_waited_for in [true, false] {
            let (goes, gone) = channel();
            let reaper = Arc::<Reaper>::default();
            *lock(&reaper.left) += 1;
            // As if the system had refused one.
            lock(&reaper.waiting).push(Remains {
                engine: Box::new(ModelEngine::new(ModelOptions::default())),
                addresses: Vec::new(),
                mapped: vec![Box::new(Goes(Mutex::new(goes)))],
                in_vulkan: InVulkan::begin(),
            });
            if is_waited_for {
                reaper.wait_until(Instant::now() + Duration::from_secs(20));
                assert_eq!(reaper.left(), 0);
            }
            drop(reaper);
            let by = gone.recv_timeout(Duration::from_secs(20));
            assert_eq!(by.as_deref(), Ok(REAPER_THREAD));
        }
    }
}
