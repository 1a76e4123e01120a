//! Without: what user mode and the OS learn of native fences, and what there is on an adapter that has none.

use super::bring_up::{is_of_native_fences, off};
use crate::abi::wddm::Wddm31Caps;
use crate::conform::listener::Listener;
use crate::conform::seen::same;
use crate::conform::{Bench, Check, Form, Ground, Wanted};
use crate::kmd::{Ddi, VidSchCaps};
use crate::os::OsError;
use crate::sync::Arc;
use crate::{Adapter, CommandList};
use anyhow::ensure;

pub(super) const CHECKS: &[Check] = &[
    Check::by(
        "FQ-04",
        "an adapter that lacks what native fences need has monitored ones alone, and says so",
        says_what_it_lacks,
    ),
    Check::by(
        "FQ-06",
        "user mode learns whether there are native fences, and the OS the driver's caps of them",
        learns,
    ),
];

fn has_none(bench: &Bench) -> anyhow::Result<()> {
    let os = bench.adapter.os();
    same(
        "what user mode learns",
        &os.query_wddm_3_1_caps(),
        &Wddm31Caps::default(),
    )?;
    ensure!(
        matches!(os.native_fence_caps(), Err(OsError::NoNativeFences(_))),
        "the OS has caps of native fences, and there are none"
    );
    Ok(())
}

/// The subject in its form with monitored fences alone: which gap it has it says wherever a native fence is wanted, and
/// monitored fences and kernel-mode queues work. Which features of a device are needed is `tests/caps.rs`.
fn says_what_it_lacks(ground: &Ground) -> anyhow::Result<()> {
    let bench = ground.bench_with(&Wanted {
        form: Form::Monitored,
        ..Wanted::default()
    })?;
    has_none(&bench)?;
    let caps = bench.adapter.os().vidsch_caps();
    same(
        "NativeGpuFence",
        &caps.has(VidSchCaps::NATIVE_GPU_FENCE),
        &false,
    )?;
    let fence = bench
        .device
        .create_fence(0)
        .err()
        .map(|why| why.to_string());
    let queue = bench
        .device
        .create_hw_queue()
        .err()
        .map(|why| why.to_string());
    let (Some(fence), Some(queue)) = (fence, queue) else {
        anyhow::bail!("a native fence is made, or a queue that needs one");
    };
    if let Some(gap) = bench.spy.native_fence_gap() {
        ensure!(
            fence.contains(&gap) && queue.contains(&gap),
            "what is refused does not say what the driver says, {gap:?}: {fence:?}, {queue:?}"
        );
    }
    let fence = bench.device.create_monitored_fence(0)?;
    let waits = [1, 2].map(|value| Listener::of_monitored(&fence, value));
    let [first, second] = waits;
    fence.signal(1)?;
    same("a wait for a CPU signal", &first?.ended()?, &Ok(()))?;
    let mut queue = bench.device.create_kernel_queue()?;
    queue.record(CommandList::new().nop())?;
    queue.signal(&fence, 2)?;
    queue.flush()?;
    same("a wait for a GPU signal", &second?.ended()?, &Ok(()))?;
    let calls = bench.spy.calls();
    ensure!(
        !calls.iter().any(is_of_native_fences),
        "calls of native fences are made: {calls:?}"
    );
    Ok(())
}

/// With the feature on, and with it off.
fn learns(ground: &Ground) -> anyhow::Result<()> {
    let bench = ground.bench()?;
    let os = bench.adapter.os();
    let supported = Wddm31Caps::NATIVE_GPU_FENCE_SUPPORTED;
    same(
        "what user mode learns",
        &os.query_wddm_3_1_caps(),
        &supported,
    )?;
    let caps = bench.spy.driver().native_fence_caps();
    same(
        "DXGKQAITYPE_NATIVE_FENCE_CAPS",
        &os.native_fence_caps()?,
        &caps,
    )?;
    drop(bench.fence(0)?);
    let spy = ground.spy(&Wanted::default())?;
    let adapter = Adapter::with_driver_and(Arc::clone(&spy) as _, off())?;
    has_none(&ground.over(spy, adapter))
}
