//! Drawing a program: by executing it in one order, so that an order exists in which all goes on.

use super::super::Random;
use super::add::{Adder, add};
use super::mode::modes;
use super::transfer::{malformed_transfer, transfer};
use super::{Command, Malformed, Mode, Named, Program, QueueProgram};

/// What a party can still do.
struct Drawn {
    program: QueueProgram,
    progress: u64,
    /// It stands or was stopped: what is put behind that is never reached.
    ended: bool,
}

/// What a program may have.
#[allow(clippy::struct_excessive_bools, reason = "each is asked for by itself")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kinds {
    /// Transfers.
    pub transfers: bool,
    /// Dispatches of kernels, which the program's process registers; with transfers alone.
    pub kernels: bool,
    /// Queues of kernel mode.
    pub kernel_queues: bool,
    /// Packets that no queue gets past, write indices that cannot be, and progress values with gaps: what no library
    /// writes.
    pub packets: bool,
}

impl Kinds {
    /// Whatever can stand in a ring, with or without transfers.
    #[must_use]
    pub const fn of_packets(transfers: bool) -> Self {
        Self {
            transfers,
            kernels: false,
            kernel_queues: false,
            packets: true,
        }
    }

    /// What command lists can say; all of it is executed to its end.
    pub const OF_LISTS: Self = Self {
        transfers: true,
        kernels: true,
        kernel_queues: true,
        packets: false,
    };
}

/// A random program of 2 to 12 queues and up to some hundred packets.
pub fn draw(random: &mut Random, kinds: Kinds) -> Program {
    let transfers = kinds.transfers;
    let queues = 2 + random.below(11) as usize;
    // Each party's own fences: the queues', then the CPU's.
    let each = 1 + random.below(2) as usize;
    let fences = (queues + 1) * each;
    let mut values = vec![0u64; fences];
    let mut cpu = Vec::new();
    let modes = modes(random, queues, kinds.kernel_queues);
    let begin = |mode: &Mode| begin(random, kinds, *mode);
    let mut drawn: Vec<Drawn> = modes.iter().map(begin).collect();
    let steps = *random.pick(&[20, 120, 400, 900]);
    let ends_rarely = random.below(3) > 0;
    let mut has_parts = random.below(4) == 0;
    // One of three has a kernel, of which each process of it makes pipelines.
    let adder = (kinds.kernels && random.below(3) == 0).then(|| *random.pick(&Adder::ALL));
    let of_commands = match (transfers, adder) {
        (false, _) => 24,
        (true, None) => 32,
        (true, Some(_)) => 40,
    };
    for _ in 0..random.below(steps) {
        let party = random.below(queues as u64 + 1) as usize;
        let own = party * each + random.below(each as u64) as usize;
        if party == queues {
            values[own] += 1 + random.below(3);
            cpu.push((own, values[own]));
            continue;
        }
        let command = match (random.below(of_commands), adder) {
            (32.., Some(adder)) if !modes[party].is_kernel() => add(random, adder),
            (24.., _) => transfer(random, &mut has_parts),
            (0..=1, _) => Command::Nop,
            (2..=9, _) => wait(random, &values, &drawn),
            (10..=18, _) => {
                values[own] += 1 + random.below(3);
                Command::Signal(own, values[own])
            }
            (19..=22, _) => {
                let step = *random.pick(&[1, 1, 2, 1000]);
                let step = if kinds.packets { step } else { 1 };
                Command::Progress(drawn[party].progress + step)
            }
            _ if !kinds.packets => Command::Nop,
            _ if ends_rarely && random.below(4) > 0 => Command::Nop,
            _ => {
                drawn[party].ended = true;
                if transfers && random.below(3) == 0 {
                    Command::Malformed(Malformed::Transfer(malformed_transfer(random)))
                } else {
                    end(random, fences, queues, party, &values)
                }
            }
        };
        if let Command::Progress(value) = command {
            drawn[party].progress = value;
        }
        drawn[party].program.commands.push(command);
        if drawn[party].ended {
            // Never reached, and never signalled for others to wait for.
            let behind = (0..random.below(4)).map(|_| Command::Nop);
            drawn[party].program.commands.extend(behind);
            if drawn.iter().all(|drawn| drawn.ended) {
                break;
            }
        }
    }
    let queues = drawn.into_iter().map(|drawn| drawn.program).collect();
    Program {
        initial: vec![0; fences],
        queues,
        cpu,
    }
}

fn begin(random: &mut Random, kinds: Kinds, mode: Mode) -> Drawn {
    let capacity = *random.pick(&[2, 4, 8, 16, 64, 512]);
    let bad_index = match random.below(12) {
        0 => Some(capacity + 1 + random.below(3)),
        1 => Some(u64::MAX - random.below(3)),
        2 => Some(1 << random.below(64)).filter(|by| *by > capacity),
        _ => None,
    };
    Drawn {
        program: QueueProgram {
            mode,
            capacity,
            commands: Vec::new(),
            bad_index: bad_index.filter(|_| kinds.packets),
        },
        progress: 0,
        ended: false,
    }
}

/// A wait that has a solution: for what is there in the order of drawing, or less.
fn wait(random: &mut Random, values: &[u64], drawn: &[Drawn]) -> Command {
    if random.below(5) == 0 {
        let queue = random.below(drawn.len() as u64) as usize;
        let value = random.below(drawn[queue].progress + 1);
        return Command::Wait(Named::ProgressOf(queue), value);
    }
    let fence = random.below(values.len() as u64) as usize;
    // Mostly for the newest, which is what makes queues wait for each other.
    let least = if random.below(4) == 0 {
        0
    } else {
        values[fence]
    };
    let value = least + random.below(values[fence] - least + 1);
    Command::Wait(Named::Fence(fence), value)
}

/// What a queue does not get past.
fn end(random: &mut Random, fences: usize, queues: usize, party: usize, values: &[u64]) -> Command {
    let waits = random.below(2) == 0;
    let queue = random.below(queues as u64) as usize;
    Command::Malformed(match random.below(16) {
        0..=1 => {
            // One more than anybody signals may still be signalled: far more is not.
            let fence = random.below(fences as u64) as usize;
            let far = *random.pick(&[1 << 40, u64::MAX, values[fence] + (1 << 32)]);
            return Command::Wait(Named::Fence(fence), far);
        }
        2 => Malformed::Opcode(*random.pick(&[0, 9, 0x7f, 0x80, 0xff])),
        3 => Malformed::Length(*random.pick(&[0, 2, 0xff, 0x101, 0x80_0001, 0xff_ffff])),
        4 => Malformed::LogNumber {
            waits,
            by: *random.pick(&[1, -1, 1 << 32, 84, -84]),
        },
        5 => Malformed::NeverOpened { waits },
        6 => Malformed::NoGeneration { waits },
        7 => Malformed::OfAnother { waits },
        8 => Malformed::Closed { waits },
        9 => Malformed::SignalsProgress(queue),
        10..=13 => Malformed::ProgressStandsStill,
        14 => Malformed::WaitsForMemory { waits },
        _ if queue != party => Malformed::ProgressOfAnother(queue),
        _ => Malformed::SignalsProgress(queue),
    })
}
