//! Round: what a soak plays at a time, all of it from a seed and a number.
//!
//! Several processes (devices) have contexts on the engines of an adapter or of two, queues in them, and fences that others
//! open, on the other adapter too.
//! Their queues execute a program whose outcome depends on no order ([`super::program`]); the CPU waits for what comes
//! and for what does not, in each way that there is, while somebody disturbs the engines in each way that changes
//! nothing. Beside them queues execute bursts: long runs of signals, which are what most signals of a soak are; and others
//! come and go ([`super::visit`]).

use super::heir::Heir;
use super::program::{Command, KernelSignals, Mode, Named, Program, QueueProgram};
use super::visit::Visit;
use crate::CrossAdapter;
use std::collections::BTreeSet;
use std::num::NonZeroU32;

/// Rounds that one adapter is opened for.
pub const ROUNDS_OF_A_GROUND: u64 = 16;

/// What the adapters of some rounds are like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ground {
    /// How many there are, which have fences in common: one or two.
    pub adapters: usize,
    /// Engines of each.
    pub nodes: u32,
    /// CPU waiters watch, and nobody is interrupted; else they sleep.
    pub is_polled: bool,
    /// Microseconds after which a slice ends.
    pub slice_us: u64,
    /// Microseconds without work after which it does.
    pub idle_us: u64,
    /// How the model is made: lanes, steps between two adoptions, iterations that a queue keeps its lane.
    pub model: [u32; 3],
    /// Every slice of the model's is cut within so many loop passes, where none is to hang.
    pub model_cuts_within: Option<u64>,
    /// Doorbells that an engine has, of which its driver takes away what another queue needs; enough where `None`, and where
    /// engines hang and are lost.
    pub doorbells: Option<NonZeroU32>,
    /// Interrupts name the queue, and the operating system finds in its log whom it wakes.
    pub names_queues: bool,
    /// Values and logs are mapped a second time, where engines adopt and log.
    pub is_mapped_twice: bool,
}

/// A process: on which adapter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DevicePlan {
    /// By number; what is hung or lost is an engine of the first.
    pub adapter: usize,
}

/// A context: of which device, on which node of its adapter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContextPlan {
    /// The process.
    pub device: usize,
    /// The engine.
    pub node: u32,
}

/// A fence: who makes it, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FencePlan {
    /// The device that creates it; others that name it open it.
    pub home: usize,
    /// In local memory, where that is offered.
    pub is_local: bool,
    /// It is monitored, and not native: it is of one device, and for the CPU and queues of kernel mode alone.
    pub is_monitored: bool,
    /// How adapters hear of each other's signals, where several have it open and offer that.
    pub crosses: CrossAdapter,
}

/// By what the CPU waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// The thread blocks.
    Blocked,
    /// An event handle is signalled.
    Event,
    /// A future is awaited.
    Future,
}

/// For how many of its fences a CPU wait waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Joint {
    /// The first.
    One,
    /// Any.
    Any,
    /// All.
    All,
}

/// How a wait of the CPU is cancelled, at a moment of chance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cancel {
    /// It is dropped, which a thread that blocks cannot do.
    Dropped,
    /// The handle of its first fence, which is one of its own, is closed. The value that it waits for by that never comes.
    Closed,
}

/// A fence that the CPU waits for, by the handle of a device, and the value. A progress fence is waited for by its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Awaited {
    /// Which.
    pub named: Named,
    /// Whose handle.
    pub device: usize,
    /// How far it must have come.
    pub value: u64,
}

/// A wait of the CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuWait {
    /// The thread that does it, after those of it that stand before.
    pub thread: usize,
    /// By what.
    pub how: How,
    /// For how many.
    pub joint: Joint,
    /// For what.
    pub of: Vec<Awaited>,
    /// How it is cancelled, if it is.
    pub cancel: Option<Cancel>,
}

/// What changes nothing, and is done all the time while the program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disturbance {
    /// Contexts are suspended and resumed.
    Suspend,
    /// Contexts get other priorities.
    Priority,
    /// Tracing is switched, and logs move.
    Tracing,
    /// Doorbells are taken, and rung again.
    Doorbell,
}

impl Disturbance {
    /// All.
    pub const ALL: [Self; 4] = [Self::Suspend, Self::Priority, Self::Tracing, Self::Doorbell];
}

/// A queue that signals a fence of its own with each value above the one that it starts at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Burst {
    /// Where its queue is.
    pub context: usize,
    /// Packets of its ring.
    pub capacity: u64,
    /// Signals of a submission.
    pub signals: u64,
    /// Submissions.
    pub lists: u64,
    /// The fence lies in local memory, where that is offered.
    pub is_local: bool,
    /// What the fence starts at.
    pub initial: u64,
}

impl Burst {
    /// All of its signals.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.signals * self.lists
    }

    /// What the fence comes to.
    #[must_use]
    pub fn last(&self) -> u64 {
        self.initial + self.total()
    }

    /// As much of it as the model executes.
    #[must_use]
    pub fn sample(self) -> Self {
        Self {
            signals: self.signals.min(100),
            lists: self.lists.min(5),
            ..self
        }
    }
}

/// A program of another process that hangs an engine, or has work on it when its device is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The engine.
    pub node: u32,
    /// Submissions that it completes before.
    pub after: u64,
    /// It hangs; else its device is lost. The model has no device, and where the driver ends loops nothing hangs: there it
    /// is the other of the two.
    pub hangs: bool,
    /// Who has a fence of its open, if somebody does.
    pub heir: Option<Heir>,
}

/// See the file's head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Round {
    /// Processes.
    pub devices: Vec<DevicePlan>,
    /// Where queues are.
    pub contexts: Vec<ContextPlan>,
    /// The context of each queue of the program.
    pub places: Vec<usize>,
    /// Of the program.
    pub fences: Vec<FencePlan>,
    /// What queues execute and the CPU signals.
    pub program: Program,
    /// What the CPU waits for.
    pub waits: Vec<CpuWait>,
    /// What is done meanwhile.
    pub disturbances: Vec<Disturbance>,
    /// Long runs of signals.
    pub bursts: Vec<Burst>,
    /// What comes and goes meanwhile.
    pub visits: Vec<Visit>,
    /// What happens to an engine, where faults are asked for.
    pub fault: Option<Fault>,
}

impl Round {
    /// The device of a queue of the program.
    #[must_use]
    pub fn device_of(&self, queue: usize) -> usize {
        self.contexts[self.places[queue]].device
    }

    /// Devices that name a fence of the program, its creator among them.
    #[must_use]
    pub fn openers(&self, fence: usize) -> BTreeSet<usize> {
        let mut openers = BTreeSet::from([self.fences[fence].home]);
        for (queue, program) in self.program.queues.iter().enumerate() {
            let names = |command: &Command| command.fence() == Some(fence);
            if program.commands.iter().any(names) {
                openers.insert(self.device_of(queue));
            }
        }
        let awaited = self.waits.iter().flat_map(|wait| &wait.of);
        let awaited = awaited.filter(|awaited| awaited.named == Named::Fence(fence));
        openers.extend(awaited.map(|awaited| awaited.device));
        openers
    }

    /// Whether a fence of the program is made so that it can be opened once more: by others, or by one that closes its
    /// handle.
    #[must_use]
    pub fn is_shared(&self, fence: usize) -> bool {
        let closes = |wait: &CpuWait| {
            let first = wait.of.first().map(|awaited| awaited.named);
            wait.cancel == Some(Cancel::Closed) && first == Some(Named::Fence(fence))
        };
        self.openers(fence).len() > 1 || self.waits.iter().any(closes)
    }

    /// How the adapters that have a fence of the program open hear of each other's signals; `None` where it is one alone.
    #[must_use]
    pub fn crosses(&self, fence: usize) -> Option<CrossAdapter> {
        let plan = self.fences[fence];
        let own = self.devices[plan.home].adapter;
        let openers = self.openers(fence);
        let mut adapters = openers
            .into_iter()
            .map(|device| self.devices[device].adapter);
        adapters
            .any(|adapter| adapter != own)
            .then_some(plan.crosses)
    }

    /// The submissions of a queue: commands up to a progress value, which ends each.
    pub fn submissions(&self, queue: usize) -> impl Iterator<Item = &[Command]> {
        let commands = &self.program.queues[queue].commands;
        commands.split_inclusive(|command| matches!(command, Command::Progress(_)))
    }

    /// Whether the operating system executes the command of a queue, and no engine.
    #[must_use]
    pub fn is_of_the_os(&self, queue: usize, command: &Command) -> bool {
        is_of_the_os(self.program.queues[queue].mode, &self.fences, command)
    }

    /// Whether the fence is a native one, for which alone the CPU waits with others.
    #[must_use]
    pub fn is_native(&self, named: Named) -> bool {
        match named {
            Named::Fence(fence) => !self.fences[fence].is_monitored,
            Named::ProgressOf(queue) => !self.program.queues[queue].mode.is_kernel(),
        }
    }

    /// A monitored fence is of the device whose queue signals it, and no queue of user mode does.
    fn settle_fences(&mut self) {
        for (at, queue) in self.program.queues.iter().enumerate() {
            let device = self.device_of(at);
            for command in &queue.commands {
                if let Command::Signal(fence, _) = *command {
                    let fence = &mut self.fences[fence];
                    fence.is_monitored &= queue.mode.is_kernel();
                    if fence.is_monitored {
                        fence.home = device;
                    }
                }
            }
        }
    }

    /// Whether a queue can wait for it: for progress of its own device alone, and what is monitored is for queues of kernel
    /// mode, of its own device as well.
    fn can_wait(&self, queue: usize, named: Named) -> bool {
        let device = self.device_of(queue);
        let is_own = match named {
            Named::Fence(fence) => self.fences[fence].home == device,
            Named::ProgressOf(other) => self.device_of(other) == device,
        };
        match (named, self.is_native(named)) {
            (Named::Fence(_), true) => true,
            (Named::ProgressOf(_), true) => is_own,
            (_, false) => is_own && self.program.queues[queue].mode.is_kernel(),
        }
    }

    /// Whether a queue can name the memory of another: it is of the same process.
    pub(super) fn may_name(&self) -> impl Fn(usize, usize) -> bool + use<> {
        let queues = 0..self.places.len();
        let devices: Vec<_> = queues.map(|queue| self.device_of(queue)).collect();
        move |one, other| devices[one] == devices[other]
    }

    /// Has fences of the program start elsewhere: what is signalled and waited for moves with that.
    pub(super) fn start_at(&mut self, initial: Vec<u64>) {
        for awaited in self.waits.iter_mut().flat_map(|wait| &mut wait.of) {
            if let Named::Fence(fence) = awaited.named {
                let above = awaited.value.wrapping_sub(self.program.initial[fence]);
                awaited.value = initial[fence].wrapping_add(above);
            }
        }
        self.program.start_at(initial);
    }

    /// Makes it one that command lists can say, after something was drawn or left out: submissions fit their ring, are
    /// numbered as the queue numbers them, and all ends with one; a wait that a queue cannot do is left out, and what it
    /// would take behind it. What the operating system executes comes before the packets of its submission. What could go on
    /// before still can: no progress value comes later than before.
    pub(super) fn put_in_order(&mut self) {
        self.settle_fences();
        for at in 0..self.program.queues.len() {
            let commands = std::mem::take(&mut self.program.queues[at].commands);
            let commands = commands.into_iter().map(|command| match command {
                Command::Wait(named, _) if !self.can_wait(at, named) => Command::Nop,
                other => other,
            });
            self.program.queues[at].commands = commands.collect();
        }
        self.program.leave_out_unguarded(self.may_name());
        for queue in &mut self.program.queues {
            let commands = std::mem::take(&mut queue.commands);
            queue.commands = in_order(commands, queue, &self.fences);
        }
    }
}

fn is_of_the_os(mode: Mode, fences: &[FencePlan], command: &Command) -> bool {
    match (mode, command) {
        (Mode::Kernel(_), Command::Wait(..)) => true,
        (Mode::Kernel(signals), Command::Signal(fence, _)) => {
            signals != KernelSignals::ByPacket || !fences[*fence].is_monitored
        }
        _ => false,
    }
}

/// A queue's commands as submissions.
fn in_order(commands: Vec<Command>, queue: &QueueProgram, fences: &[FencePlan]) -> Vec<Command> {
    let most = queue.capacity as usize - 1;
    let (mut ordered, mut progress) = (Vec::new(), 0);
    // Commands of the submission, how many of them are packets, and how many of these signals: through the operating system
    // each of them moves the progress as well.
    let (mut length, mut packets, mut signals) = (0, 0, 0);
    for command in commands {
        let ends = matches!(command, Command::Progress(_));
        let is_of_the_os = is_of_the_os(queue.mode, fences, &command);
        if ends || length == most || (is_of_the_os && packets > 0) {
            progress += 1 + signals;
            ordered.push(Command::Progress(progress));
            (length, packets, signals) = (0, 0, 0);
        }
        if !ends {
            ordered.push(command);
            length += 1;
            packets += usize::from(!is_of_the_os);
            let is_signal = matches!(command, Command::Signal(..)) && !is_of_the_os;
            signals += u64::from(is_signal && queue.mode.is_kernel());
        }
    }
    if length > 0 {
        ordered.push(Command::Progress(progress + 1 + signals));
    }
    ordered
}
