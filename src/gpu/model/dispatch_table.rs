//! The table of the jobs that a round releases.
//!
//! As the words of `shaders/engine/table.glsl` and `shared.glsl`. The shader's lanes change it by atomics, those
//! of the model take a lock.

use crate::abi::{Dispatch, KernelSignal, MAX_HW_QUEUES, MAX_JOBS};
use std::collections::BTreeMap;

/// What one packet runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::gpu) struct Job {
    pub(in crate::gpu) kernel: u32,
    /// Its kernel does the engine's step, and has workgroups for that.
    pub(super) schedules_itself: bool,
    pub(in crate::gpu) groups: [u32; 3],
    pub(in crate::gpu) parameters: Vec<u64>,
    pub(super) state_va: u64,
    pub(super) descriptor_va: u64,
    pub(super) packet: u64,
    /// The engine's clock when it was written.
    pub(super) ticks: u64,
    /// What the kernel has signalled.
    pub(in crate::gpu) signals: Vec<KernelSignal>,
}

impl Job {
    /// Its workgroups.
    pub(in crate::gpu) fn workgroups(&self) -> u64 {
        self.groups
            .iter()
            .map(|groups| u64::from(*groups))
            .product()
    }
}

/// A queue that brings a job: its ordinal in the run list, its descriptor, and its process, as the address of the handle
/// table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bringer {
    pub(super) ordinal: u32,
    pub(super) descriptor_va: u64,
    pub(super) process: u64,
}

/// See the file's head.
#[derive(Clone, Debug, Default)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "the shader's words, one a name"
)]
pub(super) struct DispatchTable {
    founder: Option<Bringer>,
    /// The process that an epilogue makes it for.
    epilogue_of: Option<u64>,
    /// One job is alone in it.
    is_full: bool,
    pub(super) jobs: Vec<Job>,
    /// Workgroups of a kernel's jobs that run together.
    together: BTreeMap<u32, u64>,
    /// A queue stands at a dispatch that this round does not release.
    pub(super) waits: bool,
    /// A lane can do more, in this iteration.
    pub(super) more: bool,
    /// The queue that was kept out at the least distance, in the run list, from the one whose turn it was, or else
    /// from the founder.
    refused: Option<(u32, u64)>,
    /// The queue whose turn it is, and where it is in the run list.
    favours: Option<(u64, u32)>,
    /// A slice ended before it had released what was ready.
    pub(super) kept_back: bool,
    /// The slice ends for an interrupt, after what the round before released.
    pub(super) raised: bool,
}

impl DispatchTable {
    /// The descriptor of the queue that comes first in the next round. Where this one releases nothing, who was to come
    /// first in it; where it does, who was kept out.
    pub(super) fn turn(&self, goes: bool) -> Option<u64> {
        if goes {
            return Some(self.refused?.1);
        }
        let founder = self.founder.map(|founder| founder.descriptor_va);
        self.favours
            .map_or(founder, |(descriptor, _)| Some(descriptor))
    }

    /// An empty one for the next round, in which a queue comes first that is there in the run list.
    pub(super) fn favouring(&self, favours: Option<(u64, u32)>) -> Self {
        Self {
            favours,
            kept_back: self.kept_back,
            raised: self.raised,
            ..Self::default()
        }
    }

    /// The ordinal of the queue whose turn it is.
    pub(super) fn favours(&self) -> Option<u32> {
        Some(self.favours?.1)
    }

    /// Whether a queue is here.
    pub(super) fn has_dispatches(&self) -> bool {
        self.waits || !self.jobs.is_empty()
    }

    /// Of an epilogue: jobs of this process alone, and of one kernel that schedules itself.
    pub(super) fn of_epilogue(process: u64) -> Self {
        Self {
            epilogue_of: Some(process),
            ..Self::default()
        }
    }

    /// Whether the kernel of the jobs does the engine's step when it has ended: they are of one that does, and nothing was
    /// kept out, which only the engine can give its turn.
    pub(super) fn can_schedule_itself(&self) -> bool {
        let mut kernels = self.jobs.iter().map(|job| job.kernel);
        let first = kernels.next();
        let is_one = first.is_some() && kernels.all(|kernel| Some(kernel) == first);
        let do_so = self.jobs.iter().all(|job| job.schedules_itself);
        is_one && do_so && !self.waits && self.refused.is_none()
    }

    /// Whether the table is the queue's process's, or becomes so. `only`: the kernel, where it schedules itself.
    pub(super) fn admits(&mut self, queue: Bringer, alone: bool, only: Option<u32>) -> bool {
        if let Some(process) = self.epilogue_of {
            let is_one = self.jobs.iter().all(|job| Some(job.kernel) == only);
            return process == queue.process && only.is_some() && is_one;
        }
        let Some(founder) = self.founder else {
            (self.founder, self.is_full) = (Some(queue), alone);
            return true;
        };
        if !alone && !self.is_full && founder.process == queue.process {
            return true;
        }
        self.note_refused(queue);
        false
    }

    /// Its turn comes, though there is no place for it in this table, or not yet.
    pub(super) fn note_refused(&mut self, queue: Bringer) {
        let founder = self.founder.map(|founder| founder.ordinal);
        let Some(first) = self.favours().or(founder) else {
            return;
        };
        let queues = MAX_HW_QUEUES as u32;
        let distance = (queue.ordinal + queues - first) % queues;
        let refused = (distance, queue.descriptor_va);
        self.refused = Some(self.refused.map_or(refused, |least| least.min(refused)));
    }

    /// Where a second execution follows: who let another come first has not been refused by that.
    pub(super) fn forget_who_let_come_first(&mut self) {
        if self.favours.is_some() {
            self.refused = None;
        }
    }

    /// Adds a job of a queue that it admits; false if there are too many, or too many workgroups.
    pub(super) fn add(&mut self, queue: Bringer, job: Job, alone: bool) -> bool {
        let groups = job.workgroups();
        let together = self.together.entry(job.kernel).or_default();
        let has_room = alone || *together + groups <= u64::from(Dispatch::MOST_GROUPS);
        if self.jobs.len() as u64 == MAX_JOBS || !has_room {
            self.note_refused(queue);
            return false;
        }
        *together += groups;
        self.jobs.push(job);
        true
    }
}
