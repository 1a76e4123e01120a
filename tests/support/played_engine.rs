//! Played engine: what the engine's shader and kernels read and store, as far as they depend on each other by memory.
//!
//! Packets are executed as `shaders/engine/dispatch.glsl` and `epilogue.glsl` have it: a round marks what the one before
//! released as done, takes each queue on to its next dispatch, makes the table of these, and writes the counts; kernels read
//! the table, store, and the last workgroup of one that schedules itself takes the queues on and writes the counts of the
//! next turn. Words lie where those have them in the dispatch block; what they have behind the control block lies in one
//! piece here. All of it is memory: nothing is handed from step to step otherwise.

use super::weak_memory::{Turn, words};
use native_fence::abi::{
    Dispatch, DispatchBlock, DispatchJob, DispatchRecord, DispatchRound, KernelJob, MAX_JOBS,
    Scheduling,
};

/// What a queue has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Packet {
    /// A kernel, by its slot, stores `3 * from + add` word by word.
    Dispatch {
        kernel: u64,
        from: u64,
        to: u64,
        add: u64,
    },
    /// Of the first fence, or the other one.
    Wait(u64, u64),
    Signal(u64, u64),
    /// The engine copies an array, between two rounds of dispatches; an epilogue leaves it to it.
    Copy {
        from: u64,
        to: u64,
    },
}

/// Words of an array: two workgroups of four.
pub(crate) const WORDS: u64 = 8;
const GROUPS: u64 = 2;

/// Times that an execution looks at each queue, and takes on a packet: few, so that each execution has work.
const LOOKS: usize = 3;

/// From the control block on.
const INDEX: u64 = 0x100;
const CURRENT_VALUE: u64 = 0x200;
const LOGGED: u64 = 0x300;
const LOG: u64 = 0x1_0000;
const RAN: u64 = 0x10_0000;
/// Bytes of a queue there.
const RAN_BYTES: u64 = 0x1_0000;

/// A wait or signal in the log: whose, which, and when it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Logged {
    pub(crate) queue: u64,
    pub(crate) packet: u64,
    pub(crate) time: u64,
}

/// An engine of these queues.
pub(crate) struct PlayedEngine {
    pub(crate) control: u64,
    pub(crate) block: u64,
    pub(crate) queues: Vec<Vec<Packet>>,
    /// Bits of the kernels that run alone, and of those that schedule themselves, by slot.
    pub(crate) alone: u64,
    pub(crate) self_scheduling: u64,
}

/// Queues whose dispatches run together.
#[derive(Default)]
struct Table {
    jobs: Vec<(u64, u64, [u64; 4])>,
    waits: bool,
}

impl PlayedEngine {
    fn round(&self, member: u64) -> u64 {
        self.block + DispatchBlock::NEXT_ROUND + member
    }

    fn record(&self, kernel: u64, turn: u64) -> u64 {
        self.block + DispatchBlock::record(kernel, turn)
    }

    fn job(&self, place: u64) -> u64 {
        self.block + DispatchBlock::JOBS + place * DispatchBlock::JOB_BYTES
    }

    fn is_in(mask: u64, kernel: u64) -> bool {
        mask >> kernel & 1 == 1
    }

    /// The packet at which a queue stands.
    fn index(&self, queue: u64) -> u64 {
        self.control + INDEX + 8 * queue
    }

    /// How far each queue is.
    pub(crate) fn progress(&self, turn: &Turn) -> Vec<u64> {
        let queues = 0..self.queues.len() as u64;
        queues.map(|queue| turn.read(self.index(queue))).collect()
    }

    /// The log, as its index says.
    pub(crate) fn log(&self, turn: &Turn) -> Vec<Logged> {
        let entries = turn.read(self.control + LOGGED).min(0x1000);
        let entry = |at: u64| {
            let word = |word: u64| turn.read(self.control + LOG + 32 * at + 8 * word);
            Logged {
                queue: word(0),
                packet: word(1),
                time: word(2),
            }
        };
        (0..entries).map(entry).collect()
    }

    /// When a dispatch ran; 0: not at all.
    pub(crate) fn ran(&self, turn: &Turn, queue: u64, packet: u64) -> u64 {
        turn.read(self.ran_at(queue, packet))
    }

    fn ran_at(&self, queue: u64, packet: u64) -> u64 {
        self.control + RAN + queue * RAN_BYTES + 8 * packet
    }

    /// The engine's shader.
    pub(crate) fn run(&self, turn: &mut Turn) {
        let [_, _, block, round, rounds, depth, _, slots, _] = turn.pushed()[..] else {
            panic!("the engine is given {:?}", turn.pushed())
        };
        if round != 0 && turn.read(self.round(DispatchRound::SCHEDULING)) == Scheduling::None as u64
        {
            self.end_jobs(turn);
        }
        for kernel in 0..slots {
            for at in 0..3 {
                turn.write(self.record(kernel, at) + DispatchRecord::X, 0);
            }
            turn.write(self.record(kernel, 0) + DispatchRecord::JOBS, 0);
        }
        let mut table = Table::default();
        self.serve(turn, &mut table, true, |table, kernel| {
            let of = |job: &(u64, u64, _)| job.1;
            let is_alone = Self::is_in(self.alone, kernel);
            let is_taken = table
                .jobs
                .iter()
                .any(|job| Self::is_in(self.alone, of(job)));
            block != 0 && round < rounds && !is_taken && (!is_alone || table.jobs.is_empty())
        });
        if block == 0 {
            return;
        }
        let goes = !table.jobs.is_empty();
        let only = table.jobs.first().map_or(0, |job| job.1);
        let is_one = table.jobs.iter().all(|job| job.1 == only) && !table.waits;
        let schedules = goes && depth > 1 && is_one && Self::is_in(self.self_scheduling, only);
        self.put_jobs(turn, &table, 0);
        let scheduling = if schedules {
            Scheduling::On
        } else {
            Scheduling::None
        };
        turn.write(self.round(DispatchRound::SCHEDULING), scheduling as u64);
        for (members, goes) in [
            (
                [DispatchRound::X, DispatchRound::Y, DispatchRound::Z],
                goes && !schedules,
            ),
            (
                [
                    DispatchRound::LAST_X,
                    DispatchRound::LAST_Y,
                    DispatchRound::LAST_Z,
                ],
                goes,
            ),
        ] {
            turn.write(self.round(members[0]), u64::from(goes));
            turn.write(self.round(members[1]), 1);
            turn.write(self.round(members[2]), 1);
        }
    }

    /// The dispatches of the table are done.
    fn end_jobs(&self, turn: &mut Turn) {
        for place in 0..turn.read(self.round(DispatchRound::JOBS)).min(MAX_JOBS) {
            let state = self.job(place) + DispatchJob::STATE_VA;
            let index = turn.read(state);
            if index != 0 {
                let packet = turn.read(index);
                turn.write(index, packet + 1);
                turn.write(state, 0);
            }
        }
    }

    /// Takes the queues on, and their dispatches into the table, as far as they fit in.
    fn serve(
        &self,
        turn: &mut Turn,
        table: &mut Table,
        copies: bool,
        fits: impl Fn(&Table, u64) -> bool,
    ) {
        for _ in 0..LOOKS {
            for (queue, packets) in (0..).zip(&self.queues) {
                let index = self.index(queue);
                let packet = turn.read(index);
                let stands = table.jobs.iter().any(|job| job.0 == index);
                let passes = match packets.get(packet as usize).filter(|_| !stands) {
                    None => false,
                    Some(Packet::Wait(fence, value)) => {
                        turn.read(self.control + CURRENT_VALUE + 8 * fence) >= *value
                    }
                    Some(Packet::Signal(fence, value)) => {
                        turn.write(self.control + CURRENT_VALUE + 8 * fence, *value);
                        true
                    }
                    Some(Packet::Copy { from, to }) if copies => {
                        for place in (0..WORDS).map(|word| 8 * word) {
                            let value = turn.read(from + place);
                            turn.write(to + place, value);
                        }
                        turn.write(index, packet + 1);
                        // It is not logged.
                        false
                    }
                    Some(Packet::Copy { .. }) => {
                        table.waits = true;
                        false
                    }
                    Some(Packet::Dispatch { kernel, .. }) if !fits(table, *kernel) => {
                        table.waits = true;
                        false
                    }
                    Some(Packet::Dispatch {
                        kernel,
                        from,
                        to,
                        add,
                    }) => {
                        let parameters = [*from, *to, *add, self.ran_at(queue, packet)];
                        table.jobs.push((index, *kernel, parameters));
                        false
                    }
                };
                if passes {
                    turn.write(index, packet + 1);
                    self.log_packet(turn, queue, packet);
                }
            }
        }
    }

    fn log_packet(&self, turn: &mut Turn, queue: u64, packet: u64) {
        let entry = turn.read(self.control + LOGGED);
        for (word, value) in (0..).zip([queue, packet, turn.now]) {
            turn.write(self.control + LOG + 32 * entry + 8 * word, value);
        }
        turn.write(self.control + LOGGED, entry + 1);
    }

    /// Writes the table, which runs in this turn.
    fn put_jobs(&self, turn: &mut Turn, table: &Table, at: u64) {
        for (place, (index, kernel, parameters)) in (0..).zip(&table.jobs) {
            let kernels = |job: &&(u64, u64, _)| job.1 == *kernel;
            let before = table.jobs[..place as usize].iter().filter(kernels).count() as u64;
            let job = self.job(place);
            turn.write(job + DispatchJob::STATE_VA, *index);
            for (word, value) in (0..).zip(parameters) {
                turn.write(job + DispatchBlock::JOB_PARAMETERS + 8 * word, *value);
            }
            let listed = self.record(*kernel, 0) + DispatchBlock::KERNEL_JOBS + 16 * before;
            turn.write(listed + KernelJob::JOB_VA, job);
            turn.write(listed + KernelJob::FIRST, GROUPS * before);
            turn.write(listed + KernelJob::END, GROUPS * (before + 1));
            let record = self.record(*kernel, at);
            turn.write(record + DispatchRecord::X, GROUPS * (before + 1));
            turn.write(record + DispatchRecord::Y, 1);
            turn.write(record + DispatchRecord::Z, 1);
            turn.write(self.record(*kernel, 0) + DispatchRecord::JOBS, before + 1);
        }
        let jobs = table.jobs.len() as u64;
        let kernel = table.jobs.first().map_or(0, |job| job.1);
        turn.write(self.round(DispatchRound::JOBS), jobs);
        turn.write(self.round(DispatchRound::KERNEL), kernel);
        turn.write(self.round(DispatchRound::LEFT), GROUPS * jobs);
        turn.write(self.round(DispatchRound::TURN), at);
    }

    /// A kernel, by its slot.
    pub(crate) fn run_kernel(&self, turn: &mut Turn, kernel: u64) {
        let [argument] = turn.pushed()[..] else {
            panic!("a kernel is given {:?}", turn.pushed())
        };
        for group in 0..turn.groups {
            let (parameters, own) = if Self::is_in(self.alone, kernel) {
                (argument, group)
            } else {
                let jobs = turn.read(argument + DispatchRecord::JOBS).min(MAX_JOBS);
                let listed = |at| argument + DispatchBlock::KERNEL_JOBS + 16 * at;
                let is_its = |at: &u64| turn.read(listed(*at) + KernelJob::END) > group;
                let Some(at) = (0..jobs).find(is_its) else {
                    continue;
                };
                let job = turn.read(listed(at) + KernelJob::JOB_VA);
                let first = turn.read(listed(at) + KernelJob::FIRST);
                (
                    job + DispatchBlock::JOB_PARAMETERS,
                    group.saturating_sub(first),
                )
            };
            let [from, to, add, ran_at] =
                [0, 8, 16, 24].map(|offset| turn.read(parameters + offset));
            for word in 0..WORDS / GROUPS {
                let place = 8 * (own % GROUPS * (WORDS / GROUPS) + word);
                let value = turn.read(from + place);
                turn.write(to + place, value.wrapping_mul(3).wrapping_add(add));
            }
            turn.write(ran_at, turn.now);
        }
        if Self::is_in(self.self_scheduling, kernel) {
            self.end_table(turn);
        }
    }

    /// The epilogue of the workgroups of a dispatch, of which the last one of the table goes on.
    fn end_table(&self, turn: &mut Turn) {
        let scheduling = turn.read(self.round(DispatchRound::SCHEDULING));
        if scheduling != Scheduling::On as u64 {
            return;
        }
        let left = turn
            .read(self.round(DispatchRound::LEFT))
            .wrapping_sub(turn.groups);
        turn.write(self.round(DispatchRound::LEFT), left);
        if left != 0 {
            return;
        }
        let kernel = turn.read(self.round(DispatchRound::KERNEL)) % 64;
        let at = turn.read(self.round(DispatchRound::TURN)) % Dispatch::DEPTH;
        self.end_jobs(turn);
        let mut table = Table::default();
        self.serve(turn, &mut table, false, |table, kernel| {
            let only = table.jobs.first().map_or(kernel, |job| job.1);
            Self::is_in(self.self_scheduling, kernel) && only == kernel
        });
        turn.write(self.record(kernel, at) + DispatchRecord::X, 0);
        turn.write(self.record(kernel, 0) + DispatchRecord::JOBS, 0);
        self.put_jobs(turn, &table, (at + 1) % Dispatch::DEPTH);
        if table.jobs.is_empty() || table.waits {
            turn.write(self.round(DispatchRound::X), 1);
        }
    }
}

/// The block that the engine's commands name.
pub(crate) fn block_of(push: &[u8]) -> u64 {
    words(push)[2]
}
