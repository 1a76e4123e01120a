//! Engine spy: a real engine, whose memory and whose starts a test sees.

#![allow(dead_code, reason = "each test program uses its own part")]

use native_fence::gpu::{
    AddressSpace, Engine, EngineCaps, EngineLost, EngineMapping, GpuVa, MapError, ShaderEngine,
};
use native_fence::shared::{Block, Region};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

/// A region that the engine got an address for.
#[derive(Clone, Debug)]
pub(crate) struct Mapped {
    pub(crate) name: &'static str,
    pub(crate) bytes: usize,
    pub(crate) va: GpuVa,
    pub(crate) host: Block,
}

type StartHook = Box<dyn FnMut(u64) + Send>;

/// See the file's head.
pub(crate) struct EngineSpy {
    engine: OnceLock<ShaderEngine>,
    before: Mutex<Option<ShaderEngine>>,
    pub(crate) mapped: Mutex<Vec<Mapped>>,
    on_start: Mutex<Option<StartHook>>,
}

impl std::fmt::Debug for EngineSpy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("EngineSpy")
    }
}

/// What the node owns.
#[derive(Debug)]
struct Handle(Arc<EngineSpy>);

impl EngineSpy {
    pub(crate) fn over(engine: ShaderEngine) -> Arc<Self> {
        Arc::new(Self {
            engine: OnceLock::new(),
            before: Mutex::new(Some(engine)),
            mapped: Mutex::new(Vec::new()),
            on_start: Mutex::new(None),
        })
    }

    pub(crate) fn boxed(self: &Arc<Self>) -> Box<dyn Engine> {
        Box::new(Handle(Arc::clone(self)))
    }

    /// The regions of a name, oldest first.
    pub(crate) fn named(&self, name: &str) -> Vec<Mapped> {
        let mapped = self.mapped.lock().unwrap();
        let mut found = mapped.clone();
        found.retain(|region| region.name == name);
        found
    }

    /// Calls `hook` before each slice that is started from now on, under the node's lock.
    pub(crate) fn on_start(&self, hook: impl FnMut(u64) + Send + 'static) {
        *self.on_start.lock().unwrap() = Some(Box::new(hook));
    }

    fn attached(&self) -> &ShaderEngine {
        self.engine.get().expect("the node attaches it first")
    }
}

impl AddressSpace for Handle {
    fn map(&self, region: &Arc<Region>) -> Result<EngineMapping, MapError> {
        let before = self.0.before.lock().unwrap();
        let mapping = match before.as_ref() {
            Some(engine) => engine.map(region)?,
            None => self.0.attached().map(region)?,
        };
        self.0.mapped.lock().unwrap().push(Mapped {
            name: region.name(),
            bytes: region.len(),
            va: mapping.va,
            host: mapping.host.clone(),
        });
        Ok(mapping)
    }
}

impl Engine for Handle {
    fn caps(&self) -> EngineCaps {
        self.0.attached().caps()
    }

    fn attach(&mut self, control: GpuVa) -> Result<(), MapError> {
        let mut engine = self.0.before.lock().unwrap().take().expect("attached once");
        engine.attach(control)?;
        self.0.engine.set(engine).expect("attached once");
        Ok(())
    }

    fn start(&self, slice: u64, queues: u64) -> Result<(), EngineLost> {
        if let Some(hook) = self.0.on_start.lock().unwrap().as_mut() {
            hook(slice);
        }
        self.0.attached().start(slice, queues)
    }

    fn wait(&self, slice: u64, timeout: Option<Duration>) -> Result<bool, EngineLost> {
        self.0.attached().wait(slice, timeout)
    }

    fn has_ended(&self, slice: u64) -> Result<bool, EngineLost> {
        self.0.attached().has_ended(slice)
    }

    fn abandon(&self, slice: u64) {
        self.0.attached().abandon(slice);
    }

    fn base_ticks(&self) -> u64 {
        self.0.attached().base_ticks()
    }

    fn clock_bits(&self) -> u64 {
        match self.0.before.lock().unwrap().as_ref() {
            Some(engine) => engine.clock_bits(),
            None => self.0.attached().clock_bits(),
        }
    }

    fn ticks_in(&self, time: Duration) -> u64 {
        self.0.attached().ticks_in(time)
    }
}
