//! Loss at: the call of Vulkan at which an engine's device is lost.

use crate::sync::Arc;
use crate::vulkan::{DeviceLoss, LossyCall};
use anyhow::ensure;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde::Serialize;

/// See the file's head.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct LossAt {
    #[serde(serialize_with = "name")]
    pub(super) call: LossyCall,
    /// Counted from the one after the job was submitted, which is 1.
    pub(super) at: u64,
}

/// A loss that is planned.
#[derive(Debug)]
pub(super) struct Planned {
    loss_at: LossAt,
    loss: Arc<DeviceLoss>,
    calls_before: u64,
}

/// By its name in Vulkan.
pub(super) fn call_parser() -> impl TypedValueParser<Value = LossyCall> {
    let names = PossibleValuesParser::new(LossyCall::ALL.map(LossyCall::name));
    names.try_map(|name| {
        let named = |call: &LossyCall| call.name() == name;
        LossyCall::ALL
            .into_iter()
            .find(named)
            .ok_or("no such call is known")
    })
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands out references"
)]
fn name<S: serde::Serializer>(call: &LossyCall, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(call.name())
}

impl LossAt {
    /// From now on.
    pub(super) fn plan(self, loss: Arc<DeviceLoss>) -> Planned {
        Planned {
            loss_at: self,
            calls_before: loss.plan_from_now(self.call, self.at),
            loss,
        }
    }
}

impl Planned {
    /// The job is over: by the loss.
    ///
    /// # Errors
    /// The device was called less often.
    pub(super) fn has_come(&self) -> anyhow::Result<()> {
        let LossAt { call, at } = self.loss_at;
        let (calls, name) = (self.loss.calls(call) - self.calls_before, call.name());
        ensure!(
            calls >= at,
            "{name} was called {calls} times while the job ran, and the device was to be lost at call {at}: \
             give --at a number up to that, or name another call"
        );
        Ok(())
    }
}
