//! The table of the jobs that a round releases.
//!
//! As `s_table` and what stands beside it in `shaders/engine/lane.glsl`. The shader's lanes change it by atomics, those
//! of the model take a lock.

use crate::abi::{Dispatch, MAX_HW_QUEUES, MAX_JOBS};
use std::collections::BTreeMap;

/// What one packet runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::gpu) struct Job {
    pub(in crate::gpu) kernel: u32,
    pub(in crate::gpu) groups: [u32; 3],
    pub(in crate::gpu) parameters: Vec<u64>,
    pub(super) state_va: u64,
    pub(super) descriptor_va: u64,
    pub(super) packet: u64,
}

/// A queue that brings a job: its ordinal in the run list, and its process, as the address of the handle table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Founder {
    pub(super) ordinal: u32,
    pub(super) process: u64,
}

/// See the file's head.
#[derive(Clone, Debug, Default)]
pub(super) struct DispatchTable {
    founder: Option<Founder>,
    /// One job is alone in it.
    is_full: bool,
    pub(super) jobs: Vec<Job>,
    /// Workgroups of a kernel's jobs that run together.
    together: BTreeMap<u32, u64>,
    /// A queue stands at a dispatch that this round does not release.
    pub(super) waits: bool,
    /// A lane can do more, in this iteration.
    pub(super) more: bool,
    /// The least distance, in the run list, from the founder to a queue that was kept out.
    refused: Option<u32>,
    /// The queue whose turn it is.
    favours: Option<u32>,
}

impl DispatchTable {
    /// That of the next round of the slice, or of the first.
    pub(super) fn of_round(&self, round: u64) -> Self {
        let next = || {
            let (founder, distance) = (self.founder?, self.refused?);
            Some((founder.ordinal + distance) % MAX_HW_QUEUES as u32)
        };
        Self {
            favours: if round == 0 { None } else { next() },
            ..Self::default()
        }
    }

    /// The queue whose turn it is.
    pub(super) fn favours(&self) -> Option<u32> {
        self.favours
    }

    /// Whether a queue is here.
    pub(super) fn has_dispatches(&self) -> bool {
        self.waits || !self.jobs.is_empty()
    }

    /// Whether the table is the queue's process's, or becomes so.
    pub(super) fn admits(&mut self, queue: Founder, alone: bool) -> bool {
        let Some(founder) = self.founder else {
            (self.founder, self.is_full) = (Some(queue), alone);
            return true;
        };
        if !alone && !self.is_full && founder.process == queue.process {
            return true;
        }
        let queues = MAX_HW_QUEUES as u32;
        let distance = (queue.ordinal + queues - founder.ordinal) % queues;
        self.refused = Some(self.refused.map_or(distance, |least| least.min(distance)));
        false
    }

    /// Adds a job of a queue that it admits; false if there are too many, or too many workgroups.
    pub(super) fn add(&mut self, job: Job, alone: bool) -> bool {
        let groups: u64 = job.groups.iter().map(|groups| u64::from(*groups)).product();
        let together = self.together.entry(job.kernel).or_default();
        let has_room = alone || *together + groups <= u64::from(Dispatch::MOST_GROUPS);
        if self.jobs.len() as u64 == MAX_JOBS || !has_room {
            return false;
        }
        *together += groups;
        self.jobs.push(job);
        true
    }
}
