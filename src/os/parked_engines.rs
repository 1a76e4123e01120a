//! Parked engines: the waiters that stand in fences' lists in their stead.
//!
//! An engine that parks while its queues stand at waits counts as a CPU waiter of what they wait for
//! (NF-04), so that whoever signals raises the ordinary conditional interrupt, and the engine is
//! brought back. Its waiters stand until the value is reached, until it parks at other waits, or
//! until it says that it runs on.

use super::adapter_state::AdapterState;
use super::listener::Listeners;
use super::native_fence::NativeFence;
use super::waiter_list::WaiterKey;
use crate::abi::FenceId;
use crate::kmd::{EngineWait, Parking};
use crate::sync::{Arc, Mutex, lock};
use std::collections::HashMap;
use std::sync::Weak;

/// A waiter of an engine.
#[derive(Debug)]
struct Standing {
    wait: EngineWait,
    fence: Weak<NativeFence>,
    key: WaiterKey,
}

/// What is known of one engine.
#[derive(Debug, Default)]
struct ParkedEngine {
    /// Of which attempt to park.
    attempt: u64,
    waiters: Vec<Standing>,
}

/// By node.
#[derive(Debug, Default)]
pub(super) struct ParkedEngines(Mutex<HashMap<u32, ParkedEngine>>);

impl Standing {
    /// Whether it still stands in its fence's list.
    fn stands(&self) -> bool {
        self.fence.upgrade().is_some_and(|f| f.has_waiter(self.key))
    }

    fn withdraw(self) {
        if let Some(fence) = self.fence.upgrade() {
            fence.withdraw(self.key);
        }
    }
}

impl AdapterState {
    /// An engine asks to park, or runs on.
    ///
    /// Reports come on several threads, so what is older than what was heard of an engine already
    /// is not listened to: a waiter that was withdrawn too late would be one that is needed.
    pub(super) fn engine_parking(&self, node_ordinal: u32, parking: Parking) {
        match parking {
            Parking::Asked { attempt, waits } => {
                self.wait_for_engine(node_ordinal, attempt, &waits);
                self.ddi().park_engine(node_ordinal, attempt);
                // Of every other fence somebody may signal it: nothing is certain by that.
                let is_left = |wait: &EngineWait| {
                    let fence = self.fence(wait.fence);
                    fence.is_some_and(|fence| fence.is_left_to_queues())
                };
                if waits.iter().any(is_left) {
                    self.judge();
                }
            }
            Parking::Over { attempt } => {
                let mut engines = lock(&self.parked_engines.0);
                let engine = engines.entry(node_ordinal).or_default();
                if attempt >= engine.attempt {
                    engine.attempt = attempt;
                    engine.waiters.drain(..).for_each(Standing::withdraw);
                }
            }
        }
        // A bug check may have been found with the lock held.
        self.life.settle();
    }

    /// Whether a waiter stands in the list of a fence in the stead of an engine.
    pub(super) fn waits_for_engine(&self, node_ordinal: u32, fence: FenceId, value: u64) -> bool {
        let engines = lock(&self.parked_engines.0);
        let wait = EngineWait { fence, value };
        let is_it = |standing: &Standing| standing.wait == wait && standing.stands();
        let engine = engines.get(&node_ordinal);
        engine.is_some_and(|engine| engine.waiters.iter().any(is_it))
    }

    fn wait_for_engine(&self, node_ordinal: u32, attempt: u64, waits: &[EngineWait]) {
        let mut engines = lock(&self.parked_engines.0);
        let engine = engines.entry(node_ordinal).or_default();
        if attempt <= engine.attempt {
            return;
        }
        engine.attempt = attempt;
        let mut told = Listeners::default();
        let (mut kept, others): (Vec<_>, Vec<_>) = engine
            .waiters
            .drain(..)
            .partition(|standing| waits.contains(&standing.wait) && standing.stands());
        for wait in waits {
            if kept.iter().any(|standing| standing.wait == *wait) {
                continue;
            }
            // One that was destroyed meanwhile: its handle is closed, which the queue finds out.
            if let Some(fence) = self.fence(wait.fence) {
                kept.push(Standing {
                    wait: *wait,
                    key: fence.add_engine(wait.value, node_ordinal, &mut told),
                    fence: Arc::downgrade(&fence),
                });
            } else {
                self.ddi().resume_engine(node_ordinal);
            }
        }
        others.into_iter().for_each(Standing::withdraw);
        engine.waiters = kept;
        drop(engines);
        told.tell();
    }
}
