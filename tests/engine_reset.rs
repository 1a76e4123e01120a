//! An engine that does not answer is replaced, and all but the guilty go on.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod until;
}

use native_fence::abi::StallKind;
use native_fence::gpu::{
    Crowd, Engine, ModelEngine, ModelMemory, ModelOptions, Node, NodePolicy, ShaderTuning,
    SpareEngines, SparePolicy, Violation,
};
use native_fence::kmd::{Driver, DriverOptions};
use native_fence::os::{Features, Record};
use native_fence::vulkan::validation;
use native_fence::{Adapter, AdapterOptions, CommandList, TdrPolicy, WaitError};
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use support::until::{LONG, until};

/// More passes than end within any test: the engine does not come back.
const FOR_EVER: u64 = 1 << 40;

fn policy() -> TdrPolicy {
    TdrPolicy {
        delay: Duration::from_millis(100),
        ..TdrPolicy::default()
    }
}

/// Of the models of this process.
static MEMORIES: Mutex<Vec<Arc<ModelMemory>>> = Mutex::new(Vec::new());

fn violations() -> Vec<Violation> {
    let memories = MEMORIES.lock().unwrap();
    memories
        .iter()
        .flat_map(|memory| memory.violations())
        .collect()
}

fn model() -> Result<Box<dyn Engine>, String> {
    let model = ModelEngine::new(ModelOptions {
        stalls: true,
        ..ModelOptions::default()
    });
    MEMORIES.lock().unwrap().push(Arc::clone(model.memory()));
    Ok(Box::new(model))
}

/// An adapter of two engines, on models.
fn on_models() -> Adapter {
    let crowd = Arc::new(Crowd::new(2));
    let nodes = (0..2).map(|ordinal| {
        let (engine, crowd) = (model().unwrap(), Arc::clone(&crowd));
        Node::new(ordinal, engine, NodePolicy::default(), crowd).unwrap()
    });
    let spares = SpareEngines::new(SparePolicy::OnSuspicion, model);
    let driver = Driver::with_spares(nodes.collect(), DriverOptions::default(), Some(spares));
    Adapter::with_driver_watched(driver, Features::default(), policy()).unwrap()
}

/// The same on the device; none where the driver ends every loop itself, so that nothing hangs.
fn on_device() -> Option<Adapter> {
    let options = AdapterOptions {
        nodes: NonZeroU32::new(2).unwrap(),
        validation: validation::asked_for_by_environment(),
        tuning: ShaderTuning {
            stalls: true,
            ..ShaderTuning::default()
        },
        tdr: policy(),
        ..AdapterOptions::default()
    };
    Some(Adapter::open(&options).unwrap())
}

fn on_every_adapter(body: impl Fn(&Adapter)) {
    println!("on models");
    body(&on_models());
    if let Some(adapter) = on_device() {
        println!("on the device");
        body(&adapter);
    }
    assert_eq!(validation::messages(), Vec::<String>::new());
}

#[test]
fn td_06_an_engine_that_hangs_is_reset_and_the_innocent_go_on() {
    on_every_adapter(|adapter| {
        let (guilty, innocent) = (adapter.create_device(), adapter.create_device());
        let mut hangs = guilty.create_hw_queue().unwrap();
        let mut goes_on = innocent.create_hw_queue().unwrap();
        let done = innocent.create_fence(0).unwrap();
        goes_on.submit(CommandList::new().signal(&done, 1)).unwrap();
        done.wait(1, LONG).unwrap();

        hangs
            .submit(CommandList::new().stall(StallKind::HeedsNothing, FOR_EVER))
            .unwrap();
        goes_on.submit(CommandList::new().signal(&done, 2)).unwrap();
        assert_eq!(
            hangs.progress_fence().wait(1, LONG),
            Err(WaitError::DeviceLost)
        );
        let r = done.wait(2, LONG);
        println!("{:#?} {:#?}", adapter.os().records(), violations());
        r.unwrap();
        goes_on.submit(CommandList::new().signal(&done, 3)).unwrap();
        done.wait(3, LONG).unwrap();
        until("the reset is noted", || !adapter.os().records().is_empty());
        let records = adapter.os().records();
        assert_eq!(records.len(), 1, "{records:?}");
        assert_eq!(records[0].code, Record::VIDEO_ENGINE_TIMEOUT_DETECTED);
        for report in adapter.os().tdr_reports() {
            println!("{report}");
        }
    });
}
