//! Losing: what the chapters have in common that lose an engine: an adapter on which that can be done, who looks how it ends, the
//! chapter's end, and whether those who waited were told.

use super::{NODES, Teller};
use crate::gpu::{EngineUnit, Injection};
use crate::sweep::play::Told;
use crate::sweep::step::{holds, step};
use crate::sweep::waiters::Waiters;
use crate::sync::Arc;
use crate::vulkan::{AdapterInfo, Instance};
use crate::{Adapter, AdapterOptions, Device, Fence, WaitError};
use std::time::{Duration, Instant};

/// An adapter each of whose engines can lose its device, alone.
pub(super) fn opened(
    what: &str,
    instance: &Arc<Instance>,
    info: &AdapterInfo,
) -> Result<(Adapter, Arc<Injection>), Told> {
    let injection = step("what loses a device", Injection::new(NODES.get()))?;
    let options = AdapterOptions {
        nodes: NODES,
        unit: Some(EngineUnit::Instance),
        injection: Some(Arc::clone(&injection)),
        ..AdapterOptions::default()
    };
    let adapter = step(what, Adapter::open_on(instance, info, &options))?;
    Ok((adapter, injection))
}

/// How a wait for work whose engine was lost ends within this time; meanwhile what the recovery opens is counted.
pub(super) fn ended(
    teller: &mut Teller<'_>,
    most: Duration,
    wait: impl Fn(Duration) -> Result<(), WaitError>,
) -> Result<(), WaitError> {
    /// Between two looks at what is open.
    const LOOK: Duration = Duration::from_millis(2);
    let late = Instant::now() + most;
    loop {
        match wait(LOOK) {
            Err(WaitError::TimedOut) if Instant::now() < late => teller.count(),
            ended => return ended,
        }
    }
}

/// A chapter's end: who waited for what was lost ends, and the adapter goes with what the chapter had of it: how they were told.
pub(super) fn end(
    teller: &mut Teller<'_>,
    adapter: Adapter,
    had: (Fence, Device),
    waiters: Waiters,
) -> Vec<(String, WaitError)> {
    let (ended, hung) = waiters.end();
    teller.played.hung.extend(hung);
    teller.hear(&adapter);
    drop((had, adapter));
    teller.beat();
    ended
}

/// Whether all who waited were told what is due: of the loss, or, where their device was not lost, that their fence was closed.
pub(super) fn told_of_loss(
    what: &str,
    is_lost: bool,
    ended: &[(String, WaitError)],
) -> Result<(), Told> {
    let due = if is_lost {
        WaitError::DeviceLost
    } else {
        WaitError::Closed
    };
    let as_due = ended.iter().filter(|(_, error)| *error == due);
    let all = as_due.count() == Waiters::WAYS;
    holds(what, all, format!("they were told {ended:?}"))
}
