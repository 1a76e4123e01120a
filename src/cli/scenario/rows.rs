//! Rows: what was done on which adapter, and when.

use crate::os::{CrossStep, WaitList, Witness};
use crate::sync::Arc;
use crate::sync::plain::{Mutex, lock};
use serde::Serialize;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

/// By the article's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) enum Gpu {
    #[serde(rename = "iGPU")]
    Integrated,
    #[serde(rename = "dGPU")]
    Discrete,
}

/// One row of a table.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Row {
    /// Since the first row.
    pub(super) at_us: f64,
    pub(super) adapter: Gpu,
    /// The call, the list, or what happens.
    pub(super) what: String,
    /// The DDI or the API that was called, if that is it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) call: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) value: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) flags: Option<&'static str>,
    /// In which the waiter stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) list: Option<&'static str>,
}

impl Row {
    /// So long after the first.
    pub(super) fn of(adapter: Gpu, saying: Saying, after: Duration) -> Self {
        Self {
            at_us: after.as_secs_f64() * 1e6,
            adapter,
            what: saying.what,
            call: saying.call,
            value: saying.value,
            flags: saying.flags,
            list: saying.list,
        }
    }
}

/// What a row says.
#[derive(Clone, Debug)]
pub(super) struct Saying {
    what: String,
    call: Option<&'static str>,
    value: Option<u64>,
    flags: Option<&'static str>,
    list: Option<&'static str>,
}

impl Saying {
    pub(super) fn plain(what: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            call: None,
            value: None,
            flags: None,
            list: None,
        }
    }

    /// A call of the program.
    pub(super) fn call(call: &'static str, value: u64) -> Self {
        Self {
            call: Some(call),
            value: Some(value),
            ..Self::plain(format!("{call}(hFence, {value})"))
        }
    }

    pub(super) fn list(list: WaitList) -> Self {
        let name = match list {
            WaitList::NativeCpuWaiters => "native fence CPU waiter list",
            WaitList::MonitoredCpuWaiters => "monitored fence CPU waiter list head",
            WaitList::SoftwareContexts => "monitored fence waiting list",
        };
        Self {
            list: Some(name),
            ..Self::plain(format!("the waiter stands in the {name}"))
        }
    }

    fn of(step: CrossStep) -> Self {
        let update = |value, flags, said: &str| Self {
            call: Some("DxgkDdiUpdateCurrentValuesFromCpu"),
            value: Some(value),
            flags,
            ..Self::plain(format!("UpdateCurrentValuesFromCpu(hFence, {said})"))
        };
        match step {
            CrossStep::Interrupted(value) => Self {
                value: Some(value),
                ..Self::plain(format!(
                    "NativeFenceSignaled interrupt names hFence with {value}"
                ))
            },
            CrossStep::Stored(value) => update(value, None, &value.to_string()),
            CrossStep::Notified(value) => {
                update(value, Some("NotificationOnly"), "NotificationOnly")
            }
            CrossStep::StoredByOs(value) => Self {
                value: Some(value),
                ..Self::plain(format!("the OS stores {value} from the CPU"))
            },
            CrossStep::Propagated(value) => Self {
                value: Some(value),
                ..Self::plain(format!("the OS propagates the signal (hFence, {value})"))
            },
            CrossStep::Heard(value) => Self {
                value: Some(value),
                ..Self::plain(format!("the OS receives the signal (hFence, {value})"))
            },
            CrossStep::Released(_) => Self::plain("the waiter is released"),
        }
    }
}

#[derive(Debug, Default)]
struct Seen {
    /// When the first row came.
    began: Option<Instant>,
    rows: Vec<Row>,
    follower: Option<Sender<Row>>,
}

/// What was seen so far. Side 0 is the dGPU's, which makes the fence.
///
/// Who adds a row may hold locks of the fence: so who follows is sent it, and prints on a thread of his own.
#[derive(Debug, Default)]
pub(super) struct Rows(Mutex<Seen>);

impl Rows {
    /// Somebody gets each row as it comes.
    pub(super) fn followed_by(follower: Option<Sender<Row>>) -> Self {
        Self(Mutex::new(Seen {
            follower,
            ..Seen::default()
        }))
    }

    /// Of several threads rows have the order in which they come here, and times of that order.
    pub(super) fn add(&self, adapter: Gpu, saying: Saying) {
        let mut seen = lock(&self.0);
        let now = Instant::now();
        let began = *seen.began.get_or_insert(now);
        let row = Row::of(adapter, saying, now.duration_since(began));
        if let Some(follower) = &seen.follower {
            // Who has gone follows no more.
            let _ = follower.send(row.clone());
        }
        seen.rows.push(row);
    }

    /// All of them. Nobody follows from then on: what the end of the fence has adapters tell each other is none of the
    /// table's.
    pub(super) fn take(&self) -> Vec<Row> {
        let mut seen = lock(&self.0);
        seen.follower = None;
        std::mem::take(&mut seen.rows)
    }
}

/// Until it is dropped somebody follows; a fence that lives on may have the rows for longer.
pub(super) struct Followed(pub(super) Arc<Rows>);

impl Drop for Followed {
    fn drop(&mut self) {
        lock(&self.0.0).follower = None;
    }
}

impl Witness for Rows {
    fn sees(&self, side: u64, step: CrossStep) {
        let adapter = if side == 0 {
            Gpu::Discrete
        } else {
            Gpu::Integrated
        };
        self.add(adapter, Saying::of(step));
    }
}
