//! Foretelling a program's outcome, by the rules alone: no ring, no slice, no log.

use super::{Command, Held, MEMORY_BYTES, Named, Program, Words};
use crate::abi::FaultCode;

/// What becomes of one queue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueEnd {
    /// Packets that it takes.
    pub read: u64,
    /// Why it is stopped then; it stands at a wait, or has no more, where `None`.
    pub fault: Option<FaultCode>,
    /// Of its progress fence.
    pub progress: u64,
    /// Entries of the logs of waits and of signals.
    pub logged: [u64; 2],
}

/// Words of a queue's allocations: times, of which a word is 1 where there is one, then those that
/// transfers name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memory(
    /// In this order.
    pub [Vec<u64>; 4],
);

impl Default for Memory {
    fn default() -> Self {
        Self(MEMORY_BYTES.map(|bytes| vec![0; (bytes / 8) as usize]))
    }
}

impl Memory {
    fn held(&mut self, held: Held) -> &mut Vec<u64> {
        &mut self.0[held.place()]
    }

    /// Some words of it.
    fn words(&self, held: Held, first: u64, count: u64) -> &[u64] {
        &self.0[held.place()][first as usize..(first + count) as usize]
    }

    fn put(&mut self, to: Words, words: &[u64]) {
        let first = to.first as usize;
        self.held(to.of)[first..first + words.len()].copy_from_slice(words);
    }

    /// The first word that differs.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Option<String> {
        self.0
            .iter()
            .zip(&other.0)
            .enumerate()
            .find_map(|(of, (a, b))| {
                let at = a.iter().zip(b).position(|(a, b)| a != b)?;
                let count = a.iter().zip(b).filter(|(a, b)| a != b).count();
                let (a, b) = (a[at], b[at]);
                Some(format!(
                    "allocation {of}, word {at} (one of {count}): {a:#x} and {b:#x}"
                ))
            })
    }
}

/// What becomes of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Foretold {
    /// Of each fence.
    pub values: Vec<u64>,
    /// Of each queue.
    pub queues: Vec<QueueEnd>,
    /// Of each queue.
    pub memory: Vec<Memory>,
}

impl Foretold {
    /// What a fence comes to.
    #[must_use]
    pub fn value_of(&self, named: Named) -> u64 {
        match named {
            Named::Fence(fence) => self.values[fence],
            Named::ProgressOf(queue) => self.queues[queue].progress,
        }
    }

    /// Whether all queues come to the end of their commands: none stands at a wait for ever.
    #[must_use]
    pub fn ends(&self, program: &Program) -> bool {
        let mut ends = program.queues.iter().zip(&self.queues);
        ends.all(|(queue, end)| queue.commands.len() as u64 == end.read)
    }

    /// Packets that are taken.
    #[must_use]
    pub fn packets(&self) -> u64 {
        self.queues.iter().map(|queue| queue.read).sum()
    }

    /// How many of them are transfers.
    #[must_use]
    pub fn transfers(&self, program: &Program) -> u64 {
        self.taken(program, |command| {
            matches!(
                command,
                Command::Timestamp(_)
                    | Command::Fill(..)
                    | Command::Copy(..)
                    | Command::Take { .. }
            )
        })
    }

    /// How many dispatch a kernel.
    #[must_use]
    pub fn dispatches(&self, program: &Program) -> u64 {
        self.taken(program, |command| matches!(command, Command::Add { .. }))
    }

    fn taken(&self, program: &Program, is_one: impl Fn(&Command) -> bool) -> u64 {
        let ends = self.queues.iter().zip(&program.queues);
        let taken = ends.flat_map(|(end, queue)| &queue.commands[..end.read as usize]);
        taken.filter(|command| is_one(command)).count() as u64
    }
}

/// From words of one queue on, which may be the other.
fn copy(
    memory: &mut [Memory],
    (queue, from, first): (usize, Held, u64),
    (taker, to): (usize, Words),
) {
    let words = memory[queue].words(from, first, to.count).to_vec();
    memory[taker].put(to, &words);
}

/// The least fixed point: every queue goes as far as it can, until none can.
#[must_use]
pub fn foretell(program: &Program) -> Foretold {
    let mut values = program.initial.clone();
    for (fence, value) in &program.cpu {
        values[*fence] = *value;
    }
    let mut queues = vec![QueueEnd::default(); program.queues.len()];
    let mut memory = vec![Memory::default(); program.queues.len()];
    loop {
        let before: u64 = queues.iter().map(|queue| queue.read).sum();
        for (at, program) in program.queues.iter().enumerate() {
            while let Some(command) = program.commands.get(queues[at].read as usize) {
                match *command {
                    Command::Nop => {}
                    Command::Wait(named, value) => {
                        let stands_at = match named {
                            Named::Fence(fence) => values[fence],
                            Named::ProgressOf(queue) => queues[queue].progress,
                        };
                        if stands_at < value {
                            break;
                        }
                        queues[at].logged[0] += 1;
                    }
                    Command::Signal(fence, value) => {
                        values[fence] = value;
                        queues[at].logged[1] += 1;
                    }
                    Command::Progress(value) => {
                        queues[at].progress = value;
                        // The operating system logs what it is told to signal.
                        queues[at].logged[1] += u64::from(!program.mode.is_kernel());
                    }
                    Command::Timestamp(word) => memory[at].0[0][word as usize] = 1,
                    Command::Fill(to, value) => {
                        memory[at].put(to, &vec![value; to.count as usize]);
                    }
                    Command::Copy(from, first, to) => {
                        copy(&mut memory, (at, from, first), (at, to));
                    }
                    Command::Take {
                        queue,
                        from,
                        first,
                        to,
                    } => copy(&mut memory, (queue, from, first), (at, to)),
                    Command::Add {
                        from,
                        first,
                        to,
                        number,
                        ..
                    } => {
                        let words = memory[at].words(from, first, to.count).iter();
                        let sums: Vec<_> = words.map(|word| word.wrapping_add(number)).collect();
                        memory[at].put(to, &sums);
                    }
                    Command::Malformed(malformed) => {
                        queues[at].fault = Some(malformed.code());
                        break;
                    }
                }
                queues[at].read += 1;
            }
        }
        if queues.iter().map(|queue| queue.read).sum::<u64>() == before {
            break;
        }
    }
    for (queue, program) in queues.iter_mut().zip(&program.queues) {
        if queue.read == program.commands.len() as u64 && program.bad_index.is_some() {
            queue.fault = Some(FaultCode::WriteIndex);
        }
    }
    Foretold {
        values,
        queues,
        memory,
    }
}
