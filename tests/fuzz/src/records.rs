//! Records: whatever an engine writes to its report, its queues' states and progress words, its logs
//! and fence entries, driver and operating system neither panic nor hang; and no waiter is released
//! but by CurrentValue or by a record that names its fence with its value or more (NF-06,
//! `decisions.md` 4), while one whose value is there always is (NF-26).

use crate::forwarding::{Forwarding, never_waited, while_it_waits};
use crate::liar::Liar;
use arbitrary::{Arbitrary, Result, Unstructured};
use native_fence::abi::{
    EngineControl, EngineReport, InterruptRecord, LocalHandle, LogType, QueueState,
    RECORD_RING_CAPACITY, SliceReason, SliceResult,
};
use native_fence::gpu::{Crowd, Node, NodePolicy, SaveArea};
use native_fence::kmd::Driver;
use native_fence::shared::Block;
use native_fence::{Adapter, CommandList, Device, Fence, HwQueue, WaitError};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// A course of events.
#[derive(Debug)]
pub struct Program(Vec<Step>);

const FENCES: usize = 3;
const QUEUES: usize = 2;

/// A value near what stands there, or any.
#[derive(Clone, Copy, Debug, Arbitrary)]
enum Value {
    Small(u8),
    /// Off what stands there.
    By(i8),
    /// The id of a fence, the handle of one above an opcode.
    Id(u8),
    Handle(u8),
    Any(u64),
}

/// What an engine does.
#[derive(Clone, Copy, Debug, Arbitrary)]
enum Lie {
    /// A record as it should be, with the write index after it.
    Record {
        fence: u8,
        value: u8,
        queue: u32,
    },
    Fault {
        queue: u8,
        code: u8,
        value: u8,
    },
    /// Any word of the report's head, of a record, of a result.
    Report {
        word: u8,
        value: Value,
    },
    RecordWord {
        word: u16,
        value: Value,
    },
    /// How a slice ended.
    Reason(u8),
    /// A queue's saved state, made to hold.
    State {
        queue: u8,
        word: u8,
        value: Value,
    },
    /// It stands at a wait, or says so.
    Blocked {
        queue: u8,
        fence: u8,
        value: u8,
    },
    Progress {
        word: u8,
        value: Value,
    },
    Log {
        word: u16,
        value: Value,
    },
    Entry {
        word: u8,
        value: Value,
    },
    CurrentValue {
        fence: u8,
        value: u8,
    },
    /// The slice ends, and its report is taken.
    End,
}

#[derive(Debug)]
enum Step {
    Engine(Lie),
    /// A CPU wait, and what the engine does while it stands in the list.
    Wait {
        fence: u8,
        value: u8,
        during: Vec<Lie>,
    },
    Signal {
        fence: u8,
        value: u8,
        rewind: bool,
    },
    Submit {
        queue: u8,
        fence: u8,
        waits: bool,
        value: u8,
    },
    Ring(u8),
    Disconnect(u8),
    ReadLog {
        queue: u8,
        waits: bool,
    },
    /// The queue is destroyed and made anew.
    Renew(u8),
    RenewFence(u8),
}

impl<'a> Arbitrary<'a> for Step {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        Ok(match u.int_in_range(0..=15)? {
            0..=5 => Self::Engine(u.arbitrary()?),
            6..=9 => {
                let lies = u.int_in_range(0..=6)?;
                Self::Wait {
                    fence: u.arbitrary()?,
                    value: u.arbitrary()?,
                    during: (0..lies).map(|_| u.arbitrary()).collect::<Result<_>>()?,
                }
            }
            10 => Self::Signal {
                fence: u.arbitrary()?,
                value: u.arbitrary()?,
                rewind: u.arbitrary()?,
            },
            11 => Self::Submit {
                queue: u.arbitrary()?,
                fence: u.arbitrary()?,
                waits: u.arbitrary()?,
                value: u.arbitrary()?,
            },
            12 => Self::Ring(u.arbitrary()?),
            13 => Self::Disconnect(u.arbitrary()?),
            14 => Self::ReadLog {
                queue: u.arbitrary()?,
                waits: u.arbitrary()?,
            },
            _ if u.arbitrary()? => Self::Renew(u.arbitrary()?),
            _ => Self::RenewFence(u.arbitrary()?),
        })
    }
}

impl<'a> Arbitrary<'a> for Program {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let mut steps = Vec::new();
        while !u.is_empty() {
            steps.push(u.arbitrary()?);
        }
        Ok(Self(steps))
    }
}

/// What may release a waiter of a fence, seen since it came.
#[derive(Clone, Copy, Debug, Default)]
struct Grounds {
    current_value: u64,
    recorded: u64,
}

/// All that the engine's acts touch: shared with what happens while a waiter stands.
struct World {
    liar: Liar,
    control: Block,
    report: Block,
    fences: Vec<(Fence, Block)>,
    queues: Vec<HwQueue>,
    grounds: Vec<Grounds>,
}

impl Program {
    /// Plays the program; how many waits were made.
    ///
    /// # Panics
    /// If driver or operating system did something that the contract forbids.
    #[must_use]
    pub fn play(self) -> u64 {
        let liar = Liar::new();
        let engine = Box::new(liar.clone());
        let node = Node::new(0, engine, NodePolicy::default(), Arc::new(Crowd::new(1)));
        let driver = Driver::new(vec![node.expect("a node over the liar")]);
        let adapter = Adapter::with_driver(Arc::new(Forwarding(driver)));
        let adapter = adapter.expect("the driver is right");
        let device = adapter.create_device();
        let queue = || device.create_hw_queue().expect("a queue");
        let fences: Vec<_> = (0..FENCES).map(|_| fence(&device)).collect();
        let queues = (0..QUEUES).map(|_| queue()).collect();
        let world = Rc::new(RefCell::new(World {
            control: liar.named("engine-control").remove(0),
            report: liar.named("engine-report").remove(0),
            liar,
            fences,
            queues,
            grounds: vec![Grounds::default(); FENCES],
        }));
        let mut waits = 0;
        for step in self.0 {
            waits += u64::from(matches!(step, Step::Wait { .. }));
            play_step(&world, &device, step);
            // A record named a fence that never was: the adapter is stopped, rightly (IN-05).
            if adapter.os().stopped().is_some() {
                break;
            }
        }
        waits
    }
}

/// A fence, and the engine's view of its CurrentValue.
fn fence(device: &Device) -> (Fence, Block) {
    let fence = device.create_fence(0).expect("a fence");
    let (region, offset) = fence.object().fence().current_value_place();
    let block = Block::whole(&region.map().expect("memory")).part(offset, 8);
    (fence, block)
}

fn play_step(world: &Rc<RefCell<World>>, device: &Device, step: Step) {
    match step {
        Step::Engine(lie) => World::act(world, lie),
        Step::Wait {
            fence,
            value,
            during,
        } => wait(world, fence as usize % FENCES, value.into(), during),
        Step::Signal {
            fence,
            value,
            rewind,
        } => {
            let fence = world.borrow().fences[fence as usize % FENCES].0.clone();
            // Refused where it goes backwards without leave.
            let _ = if rewind {
                fence.rewind(value.into())
            } else {
                fence.signal(value.into())
            };
        }
        Step::Submit {
            queue,
            fence,
            waits,
            value,
        } => {
            let world = &mut *world.borrow_mut();
            let fence = &world.fences[fence as usize % FENCES].0;
            let mut list = CommandList::new();
            if waits {
                list.wait(fence, value.into());
            } else {
                list.signal(fence, value.into());
            }
            // A queue that the engine says has faulted, or whose ring it says is full, refuses.
            let _ = world.queues[queue as usize % QUEUES].submit(&list);
        }
        Step::Ring(queue) => {
            let _ = world.borrow().queues[queue as usize % QUEUES].ring_doorbell();
        }
        Step::Disconnect(queue) => {
            world.borrow().queues[queue as usize % QUEUES]
                .os()
                .disconnect_doorbell();
        }
        Step::ReadLog { queue, waits } => {
            let kind = if waits {
                LogType::Waits
            } else {
                LogType::Signals
            };
            let world = world.borrow();
            let read = world.queues[queue as usize % QUEUES].os().read_log(kind);
            assert!(read.expect("the driver commits").entries.len() < 84);
        }
        Step::Renew(queue) => {
            // Refused where the engine has said that it is stopped already.
            if let Ok(renewed) = device.create_hw_queue() {
                world.borrow_mut().queues[queue as usize % QUEUES] = renewed;
            }
        }
        Step::RenewFence(at) => {
            let renewed = fence(device);
            let world = &mut *world.borrow_mut();
            world.fences[at as usize % FENCES] = renewed;
            world.grounds[at as usize % FENCES] = Grounds::default();
        }
    }
}

/// A wait, with what the engine does meanwhile.
fn wait(world: &Rc<RefCell<World>>, at: usize, value: u64, during: Vec<Lie>) {
    let fence = {
        let mut world = world.borrow_mut();
        world.grounds = vec![Grounds::default(); FENCES];
        world.note();
        world.fences[at].0.clone()
    };
    let meanwhile = Rc::clone(world);
    while_it_waits(move || {
        for lie in during {
            World::act(&meanwhile, lie);
        }
    });
    // It is over when all that happens has happened: no time passes.
    let result = fence.wait(value, Duration::from_nanos(1));
    let stood = !never_waited();
    let mut world = world.borrow_mut();
    world.note();
    let grounds = world.grounds[at];
    match result {
        Ok(()) => assert!(
            grounds.current_value >= value || grounds.recorded >= value,
            "a waiter for {value} was released, with {grounds:?}"
        ),
        Err(WaitError::TimedOut) => {
            let current = fence.current_value();
            assert!(
                current < value || !stood,
                "a waiter for {value} at {current} timed out"
            );
        }
        // By a record that names no fence, while it waited.
        Err(WaitError::AdapterStopped) => {}
        Err(error) => panic!("nothing happened to the fence: {error}"),
    }
}

impl World {
    /// Notes what CurrentValues say now, and what the records say that the OS has not taken.
    fn note(&mut self) {
        for ((fence, block), grounds) in self.fences.iter().zip(&mut self.grounds) {
            grounds.current_value = grounds.current_value.max(block.word(0).observe());
            let read = self.control.word(EngineControl::RECORD_READ).observe();
            let written = self.report.word(EngineReport::RECORD_WRITE).observe();
            if written.wrapping_sub(read) > RECORD_RING_CAPACITY {
                continue;
            }
            for index in 0..written.wrapping_sub(read) {
                let at = EngineReport::record(read.wrapping_add(index));
                let word = |offset| self.report.word(at + offset).observe();
                if word(InterruptRecord::FENCE_ID) == fence.object().fence().id().word() {
                    grounds.recorded = grounds.recorded.max(word(InterruptRecord::VALUE));
                }
            }
        }
    }

    fn value(&self, value: Value, there: u64) -> u64 {
        let fence = |at: u8| &self.fences[at as usize % FENCES].0;
        match value {
            Value::Small(value) => value.into(),
            Value::By(by) => there.wrapping_add_signed(by.into()),
            Value::Id(at) => fence(at).object().fence().id().word(),
            Value::Handle(at) => u64::from(fence(at).handle().raw()) << 32 | 0x102,
            Value::Any(value) => value,
        }
    }

    fn set(&self, block: &Block, offset: u64, value: Value) {
        let word = block.word(offset % block.bytes() as u64);
        word.publish(self.value(value, word.peek()));
    }

    /// The engine acts. The driver may call back from the end of a slice, so nothing is held then.
    fn act(world: &Rc<RefCell<Self>>, lie: Lie) {
        if let Lie::End = lie {
            let (queue, liar) = {
                let mut world = world.borrow_mut();
                world.note();
                (Arc::clone(world.queues[0].os()), world.liar.clone())
            };
            let before = liar.submitted();
            liar.end_slice();
            queue.notify_work_submission();
            assert!(
                liar.submitted() <= before + 4,
                "one end, and ever more slices"
            );
        } else {
            let mut world = world.borrow_mut();
            world.lie(lie);
            world.note();
        }
    }

    fn lie(&self, lie: Lie) {
        let report = &self.report;
        let word = |word: u16| u64::from(word) * 8;
        match lie {
            Lie::Record {
                fence,
                value,
                queue,
            } => {
                let (fence, _) = &self.fences[fence as usize % FENCES];
                let id = fence.object().fence().id().word();
                self.record([id, value.into(), queue.into(), 0]);
            }
            Lie::Fault { queue, code, value } => {
                let queue = u64::from(queue) | u64::from(code) << 32;
                self.record([InterruptRecord::FAULT, value.into(), queue, 0]);
            }
            Lie::Report { word: at, value } => {
                let words = EngineReport::RECORDS / 8;
                self.set(report, u64::from(at) % words * 8, value);
            }
            Lie::RecordWord { word: at, value } => {
                self.set(report, EngineReport::RECORDS + word(at) % 2048, value);
            }
            Lie::Reason(reason) => {
                for slice in 0..4 {
                    let at = EngineReport::slice_result(slice) + SliceResult::REASON;
                    let reason = u64::from(reason) % (SliceReason::Request as u64 + 2);
                    report.word(at).publish(reason);
                }
            }
            Lie::State {
                queue,
                word: at,
                value,
            } => {
                let words = QueueState::BYTES / 8;
                self.state(queue, |state| {
                    self.set(state, u64::from(at) % words * 8, value);
                });
            }
            Lie::Blocked {
                queue,
                fence,
                value,
            } => {
                let handle: LocalHandle = self.fences[fence as usize % FENCES].0.handle();
                self.state(queue, |state| {
                    state.word(QueueState::STATUS).publish(2);
                    let control = u64::from(handle.raw()) << 32 | 0x102;
                    state.word(QueueState::HEAD_CONTROL).publish(control);
                    state.word(QueueState::HEAD_VALUE).publish(value.into());
                });
            }
            Lie::Progress { word: at, value } => {
                let progress = &self.liar.named("hw-queue-progress")[0];
                self.set(progress, u64::from(at % 64) * 8, value);
            }
            Lie::Log { word: at, value } => {
                self.set(&self.liar.named("fence-log")[0], word(at % 2048), value);
            }
            Lie::Entry { word: at, value } => {
                self.set(&self.liar.named("fence-table")[0], u64::from(at) * 8, value);
            }
            Lie::CurrentValue { fence, value } => {
                let (_, block) = &self.fences[fence as usize % FENCES];
                block.word(0).publish(value.into());
            }
            Lie::End => unreachable!("an end is no word"),
        }
    }

    fn record(&self, words: [u64; 4]) {
        let write = self.report.word(EngineReport::RECORD_WRITE);
        let index = write.observe();
        self.report.put_words(EngineReport::record(index), &words);
        write.publish(index.wrapping_add(1));
    }

    /// Changes the copy of a queue's state that does not hold, and makes it hold.
    fn state(&self, queue: u8, change: impl FnOnce(&Block)) {
        let areas = &self.liar.named("save-area")[0];
        // Each queue has a context, and an area, of its own.
        let states = u64::from(queue % 8) * SaveArea::BYTES;
        let copy = |copy| areas.part(states + copy * QueueState::BYTES, QueueState::BYTES);
        let copies = [copy(0), copy(1)];
        let sequences = copies
            .each_ref()
            .map(|c| c.word(QueueState::SEQUENCE).observe());
        let older = usize::from(sequences[1] < sequences[0]);
        change(&copies[older]);
        let next = sequences[0].max(sequences[1]).wrapping_add(1);
        copies[older].word(QueueState::SEQUENCE).publish(next);
    }
}
