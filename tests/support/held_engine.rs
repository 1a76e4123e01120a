//! Held engine: an engine whose ends of slices a test can keep back.
//!
//! While it is held, slices run and end as ever, but nobody is told: no report is taken and no
//! interrupt comes. The test alone can ask whether a slice has really ended.
#![allow(dead_code, reason = "each test file uses a part")]

use native_fence::gpu::{
    AddressSpace, Engine, EngineCaps, EngineLost, EngineMapping, GpuVa, MapError,
};
use native_fence::shared::Region;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, RwLock};
use std::time::{Duration, Instant};

/// The test's side of the engine.
#[derive(Debug)]
pub(crate) struct Holder {
    engine: RwLock<Box<dyn Engine>>,
    held: Mutex<bool>,
    changed: Condvar,
    started: AtomicU64,
}

/// The node's side of the engine.
#[derive(Debug)]
pub(crate) struct HeldEngine(Arc<Holder>);

impl HeldEngine {
    /// Over any engine; not held at first.
    pub(crate) fn new(engine: Box<dyn Engine>) -> (Self, Arc<Holder>) {
        let holder = Arc::new(Holder {
            engine: RwLock::new(engine),
            held: Mutex::new(false),
            changed: Condvar::new(),
            started: AtomicU64::new(0),
        });
        (Self(Arc::clone(&holder)), holder)
    }
}

impl Holder {
    /// Tells nobody that a slice has ended, or tells everybody.
    pub(crate) fn hold(&self, held: bool) {
        *self.held.lock().unwrap() = held;
        self.changed.notify_all();
    }

    /// The last slice that was started.
    pub(crate) fn started(&self) -> u64 {
        self.started.load(Ordering::SeqCst)
    }

    /// Whether a slice has really ended.
    pub(crate) fn has_really_ended(&self, slice: u64) -> bool {
        self.engine.read().unwrap().has_ended(slice).unwrap()
    }

    /// Sleeps until a slice has really ended.
    pub(crate) fn wait_really(&self, slice: u64) {
        let limit = Some(Duration::from_secs(30));
        assert_eq!(self.engine.read().unwrap().wait(slice, limit), Ok(true));
    }
}

impl AddressSpace for HeldEngine {
    fn map(&self, region: &Arc<Region>) -> Result<EngineMapping, MapError> {
        self.0.engine.read().unwrap().map(region)
    }
}

impl Engine for HeldEngine {
    fn caps(&self) -> EngineCaps {
        self.0.engine.read().unwrap().caps()
    }

    fn attach(&mut self, control: GpuVa) -> Result<(), MapError> {
        self.0.engine.write().unwrap().attach(control)
    }

    fn start(&self, slice: u64, queues: u64) -> Result<(), EngineLost> {
        self.0.engine.read().unwrap().start(slice, queues)?;
        self.0.started.store(slice, Ordering::SeqCst);
        Ok(())
    }

    fn wait(&self, slice: u64, timeout: Option<Duration>) -> Result<bool, EngineLost> {
        let deadline = timeout.map(|timeout| Instant::now() + timeout);
        let left = || deadline.map(|end| end.saturating_duration_since(Instant::now()));
        loop {
            let mut held = self.0.held.lock().unwrap();
            while *held {
                held = match left() {
                    None => self.0.changed.wait(held).unwrap(),
                    Some(Duration::ZERO) => return Ok(false),
                    Some(left) => self.0.changed.wait_timeout(held, left).unwrap().0,
                };
            }
            drop(held);
            let ended = self.0.engine.read().unwrap().wait(slice, left())?;
            if !ended || !*self.0.held.lock().unwrap() {
                return Ok(ended);
            }
        }
    }

    fn has_ended(&self, slice: u64) -> Result<bool, EngineLost> {
        Ok(!*self.0.held.lock().unwrap() && self.0.engine.read().unwrap().has_ended(slice)?)
    }

    fn abandon(&self, slice: u64) {
        self.0.engine.read().unwrap().abandon(slice);
    }

    fn base_ticks(&self) -> u64 {
        self.0.engine.read().unwrap().base_ticks()
    }

    fn clock_bits(&self) -> u64 {
        self.0.engine.read().unwrap().clock_bits()
    }

    fn ticks_in(&self, time: Duration) -> u64 {
        self.0.engine.read().unwrap().ticks_in(time)
    }
}
