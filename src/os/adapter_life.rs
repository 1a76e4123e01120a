//! Adapter life: the records of an adapter, and its end by one of them.
//!
//! A bug check can be found where the locks of fences are held, as in a failed post. So its end has
//! two halves. The first takes no lock of a fence: it notes the record, and from then on nothing is
//! created, no value is posted and none is stored by a CPU signal; what there is is closed and
//! destroyed as ever, since the driver's memory goes with it. The second ends queues and waits, which
//! takes the locks of all fences in turn: whoever held some calls it when it has let them go.
//!
//! No wait outlives the end. One that stands in a list is ended by the second half, or comes after it
//! to a fence that has failed; a fence comes into the table before its creator looks whether the
//! adapter is up, and the second half looks into the table after the record stands. So either the
//! creator sees the record or the second half sees the fence: the table's lock orders the two.

use super::adapter_state::AdapterState;
use super::record::Record;
use crate::kmd::ProcessId;
use crate::sync::{Ordering, plain};
use std::sync::{OnceLock, Weak};

/// Live records that are kept, the first of them: a fault that repeats says nothing new.
const MOST_RECORDS: usize = 1024;

/// See the file's head.
#[derive(Debug, Default)]
pub(super) struct AdapterLife {
    adapter: OnceLock<Weak<AdapterState>>,
    records: plain::Mutex<Vec<Record>>,
    end: OnceLock<Record>,
    /// 1 once somebody has begun the second half.
    swept: plain::AtomicU64,
}

impl AdapterLife {
    /// Whose life it is.
    pub(super) fn of(&self, adapter: Weak<AdapterState>) {
        self.adapter.get_or_init(|| adapter);
    }

    /// All records, oldest first.
    pub(super) fn records(&self) -> Vec<Record> {
        plain::lock(&self.records).clone()
    }

    /// The bug check that ended the adapter. One load where there was none.
    pub(super) fn end(&self) -> Option<&Record> {
        self.end.get()
    }

    /// Whether one of these devices is open and not lost, of an adapter that is up.
    pub(super) fn has_live(&self, devices: &[ProcessId]) -> bool {
        if self.end().is_some() {
            return false;
        }
        let adapter = self.adapter.get().and_then(Weak::upgrade);
        adapter.is_some_and(|adapter| devices.iter().any(|of| adapter.devices.is_live(*of)))
    }

    /// A live record: the adapter goes on.
    pub(super) fn note(&self, record: Record) {
        let mut records = plain::lock(&self.records);
        if records.len() < MOST_RECORDS {
            records.push(record);
        }
    }

    /// The first half of the end, under any lock; of several bug checks the first counts.
    pub(super) fn bug_check(&self, record: Record) {
        self.end.get_or_init(|| {
            plain::lock(&self.records).push(record.clone());
            record
        });
    }

    /// The second half, if there is an end and nobody has begun it. The caller holds no fence's lock.
    pub(super) fn settle(&self) {
        if self.end.get().is_none() || self.swept.swap(1, Ordering::AcqRel) != 0 {
            return;
        }
        if let Some(adapter) = self.adapter.get().and_then(Weak::upgrade) {
            adapter.end_all();
        }
    }
}

/// Does the second half when it is dropped: declared behind the locks that are let go first.
#[derive(Debug)]
pub(super) struct Settles<'a>(pub(super) &'a AdapterLife);

impl Drop for Settles<'_> {
    fn drop(&mut self) {
        self.0.settle();
    }
}
