//! Player: a queue of the program, and what its commands are by the handles of its process.

use super::kernel_mode::{KernelMode, Step};
use super::kernels::Kernels;
use super::opened::{Opened, OpenedFence};
use crate::abi::LocalHandle;
use crate::soak::program::{Command, Held, Named, Words};
use crate::umd::RingError;
use crate::{Allocation, CommandList, Fence, HwQueue, Parameters, SubmitError};
use std::collections::HashMap;

/// A queue of either mode, with its submissions.
#[derive(Debug)]
pub(super) enum Queue {
    User {
        queue: HwQueue,
        lists: Vec<CommandList>,
    },
    Kernel(KernelMode),
}

/// See the file's head.
#[derive(Debug)]
pub(super) struct Player {
    pub(super) queue: Queue,
    /// Whose handles it names.
    pub(super) device: usize,
    /// Times, words, more words, parts.
    pub(super) memory: [Allocation; 4],
    /// What the entries of its logs name.
    pub(super) names: HashMap<LocalHandle, Named>,
}

/// What its commands name.
struct Hands<'a> {
    device: usize,
    memory: &'a [Allocation; 4],
    fences: &'a [Opened],
    progress: &'a [OpenedFence],
    /// Of all queues, of which it names those of its own process.
    memories: &'a [[Allocation; 4]],
    kernels: &'a Kernels,
}

impl Queue {
    pub(super) fn progress(&self) -> OpenedFence {
        match self {
            Self::User { queue, .. } => OpenedFence::Native(queue.progress_fence().clone()),
            Self::Kernel(kernel) => OpenedFence::Monitored(kernel.queue.progress_fence().clone()),
        }
    }

    /// Packets that were taken.
    pub(super) fn taken(&self) -> u64 {
        match self {
            Self::User { queue, .. } => queue.read_index(),
            Self::Kernel(kernel) => kernel.taken(),
        }
    }

    /// Why it was stopped, if it was.
    pub(super) fn stopped(&self) -> Option<String> {
        match self {
            Self::User { queue, .. } => queue.error().map(|error| error.to_string()),
            Self::Kernel(kernel) => kernel.queue.error().map(|error| error.to_string()),
        }
    }

    /// Puts a submission; whether there was room.
    pub(super) fn put(&mut self, submission: usize) -> Result<bool, String> {
        match self {
            Self::User { queue, lists } => match queue.queue_commands(&lists[submission]) {
                Ok(_) => Ok(true),
                Err(SubmitError::Full { .. }) => Ok(false),
                Err(error) => Err(error.to_string()),
            },
            // The operating system keeps what has no room.
            Self::Kernel(kernel) => kernel.put(submission).map(|()| true),
        }
    }

    /// Tells of what was put.
    pub(super) fn ring(&self) -> Result<(), RingError> {
        match self {
            Self::User { queue, .. } => queue.ring_doorbell(),
            Self::Kernel(_) => Ok(()),
        }
    }
}

impl Player {
    /// Makes ready what it submits.
    pub(super) fn prepare<'a>(
        &mut self,
        submissions: impl Iterator<Item = &'a [Command]>,
        (fences, progress, memories, kernels): (
            &[Opened],
            &[OpenedFence],
            &[[Allocation; 4]],
            &Kernels,
        ),
    ) -> Result<(), String> {
        let hands = Hands {
            device: self.device,
            memory: &self.memory,
            fences,
            progress,
            memories,
            kernels,
        };
        for commands in submissions {
            match &mut self.queue {
                Queue::User { lists, .. } => {
                    let mut list = CommandList::new();
                    for command in commands {
                        hands.record(&mut list, *command)?;
                    }
                    lists.push(list);
                }
                Queue::Kernel(kernel) => {
                    let steps = commands.iter().map(|command| hands.step(*command));
                    kernel.submissions.push(steps.collect::<Result<_, _>>()?);
                }
            }
        }
        Ok(())
    }
}

impl Hands<'_> {
    fn fence(&self, named: Named) -> &OpenedFence {
        match named {
            Named::Fence(fence) => &self.fences[fence][&self.device],
            Named::ProgressOf(queue) => &self.progress[queue],
        }
    }

    fn native(&self, named: Named) -> Result<&Fence, String> {
        let native = self.fence(named).native();
        native.ok_or_else(|| format!("{named:?} is no native fence"))
    }

    fn step(&self, command: Command) -> Result<Step, String> {
        Ok(match command {
            Command::Wait(named, value) => Step::Wait(self.fence(named).clone(), value),
            Command::Signal(fence, value) => {
                Step::Signal(self.fence(Named::Fence(fence)).clone(), value)
            }
            Command::Progress(value) => Step::Flush(value),
            other => {
                let mut list = CommandList::new();
                self.record(&mut list, other)?;
                Step::Record(list)
            }
        })
    }

    /// From own words on, or those of another queue.
    fn copy<'l>(
        &self,
        list: &'l mut CommandList,
        (whose, from, first): (&[Allocation; 4], Held, u64),
        to: Words,
    ) -> &'l mut CommandList {
        let bytes = first * 8..(first + to.count) * 8;
        let own = &self.memory[to.of.place()];
        list.copy(&whose[from.place()], bytes, own, to.first * 8)
    }

    fn record(&self, list: &mut CommandList, command: Command) -> Result<(), String> {
        let of = |held: Held| &self.memory[held.place()];
        match command {
            Command::Wait(named, value) => list.wait(self.native(named)?, value),
            Command::Signal(fence, value) => list.signal(self.native(Named::Fence(fence))?, value),
            Command::Timestamp(word) => list.timestamp(&self.memory[0], word * 8),
            Command::Fill(to, value) => {
                let bytes = to.first * 8..(to.first + to.count) * 8;
                list.fill(of(to.of), bytes, value)
            }
            Command::Copy(from, first, to) => self.copy(list, (self.memory, from, first), to),
            Command::Take {
                queue,
                from,
                first,
                to,
            } => self.copy(list, (&self.memories[queue], from, first), to),
            Command::Add {
                by,
                from,
                first,
                to,
                number,
            } => {
                let sums = Parameters::new()
                    .address(of(from), first * 8)
                    .address(of(to.of), to.first * 8)
                    .word(to.count)
                    .word(number);
                let kernel = &self.kernels[&(self.device, by)];
                let recorded = list.dispatch(kernel, by.groups(to.count), &sums);
                recorded.map_err(|error| format!("a dispatch is not recorded: {error}"))?
            }
            // What a submission ends with is its library's.
            Command::Progress(_) => list,
            Command::Nop | Command::Malformed(_) => list.nop(),
        };
        Ok(())
    }
}
