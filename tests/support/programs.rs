//! Programs that live beside each other on two engines, and what becomes of each where the device of the
//! first engine is lost.

use super::logged::logged;
use super::queue_of::queue_of;
use super::until::{LONG, until};
use native_fence::abi::DoorbellStatus;
use native_fence::abi::wddm::DeviceExecutionState;
use native_fence::{Adapter, ArmedWait, CommandList, Device, Fence, HwQueue, WaitError};

/// A program: in each round its queue waits for the CPU, signals, and completes, and the CPU waits for that.
pub(crate) struct Program {
    pub(crate) device: Device,
    queue: HwQueue,
    gate: Fence,
    fence: Fence,
    /// Blocked from the beginning: for what never comes.
    waiter: ArmedWait,
    /// Values of `fence` that its log has, oldest first.
    values: Vec<u64>,
    /// Of what it submitted last.
    progress: u64,
    is_lost: bool,
}

/// What a program may be told when its engine is lost.
fn is_loss(error: WaitError) -> bool {
    matches!(error, WaitError::DeviceLost | WaitError::AdapterStopped)
}

impl Program {
    fn new(adapter: &Adapter, node_ordinal: u32) -> Self {
        let device = adapter.create_device();
        let [gate, fence] = [0, 0].map(|initial| device.create_fence(initial).unwrap());
        Self {
            queue: queue_of(&device, node_ordinal),
            waiter: fence.arm(u64::MAX),
            gate,
            fence,
            device,
            values: Vec::new(),
            progress: 0,
            is_lost: false,
        }
    }

    fn submit(&mut self, round: u64) {
        let mut list = CommandList::new();
        list.wait(&self.gate, round).signal(&self.fence, round);
        match self.queue.submit(&list) {
            Ok(value) => self.progress = value,
            Err(error) => {
                println!("{error}");
                until("it is told", || self.queue.error().is_some_and(is_loss));
                self.is_lost = true;
            }
        }
    }

    /// Lets the queue go on.
    fn let_go(&mut self, round: u64) {
        if let Err(error) = self.gate.signal(round) {
            println!("{error}");
            until("it is told", || self.queue.error().is_some_and(is_loss));
        }
    }

    fn wait(&mut self, round: u64) {
        let progress = self.queue.progress_fence();
        let both = self
            .fence
            .wait(round, LONG)
            .and_then(|()| progress.wait(self.progress, LONG));
        match both {
            // Before its log comes round.
            Ok(()) => self.values.extend(logged(&self.queue, &self.fence)),
            Err(error) if is_loss(error) => self.is_lost = true,
            Err(other) => panic!("round {round}: {other}"),
        }
    }

    /// It has done all of so many rounds: each once, and in their order. Its waiter waits on.
    fn assert_well(&self, rounds: u64) {
        assert_eq!(self.values, (1..=rounds).collect::<Vec<_>>());
        let progress = self.queue.progress_fence().current_value();
        assert_eq!(
            (self.fence.current_value(), progress),
            (rounds, self.progress)
        );
        assert_eq!((self.queue.error(), self.waiter.outcome()), (None, None));
        assert_eq!(self.device.execution_state(), DeviceExecutionState::ACTIVE);
    }

    /// Each of its waiters has been told, and it can do nothing more.
    fn assert_lost(&self, state: DeviceExecutionState) {
        const LOST: WaitError = WaitError::DeviceLost;
        assert_eq!(self.device.execution_state(), state);
        assert_eq!(self.waiter.outcome(), Some(Err(LOST)));
        assert_eq!(self.queue.error(), Some(LOST));
        let doorbell = self.queue.doorbell_status();
        assert_eq!(doorbell, DoorbellStatus::DisconnectedAbort);
        // What it has done before is done.
        let done = self.values.len() as u64;
        assert_eq!(self.values, (1..=done).collect::<Vec<_>>());
    }
}

/// Two on the first engine, and one on the second.
pub(crate) struct Programs {
    all: [Program; 3],
    rounds: u64,
}

impl Programs {
    pub(crate) fn new(adapter: &Adapter) -> Self {
        Self {
            all: [0, 0, 1].map(|node| Program::new(adapter, node)),
            rounds: 0,
        }
    }

    /// A round of each that is well.
    pub(crate) fn round(&mut self) {
        self.round_with(|| {});
    }

    /// The same. `meanwhile` happens when all have submitted, and wait for the CPU.
    pub(crate) fn round_with(&mut self, meanwhile: impl FnOnce()) {
        self.rounds += 1;
        let round = self.rounds;
        let is_well = |one: &&mut Program| !one.is_lost;
        let mut well: Vec<_> = self.all.iter_mut().filter(is_well).collect();
        for one in &mut well {
            one.submit(round);
        }
        meanwhile();
        for one in &mut well {
            one.let_go(round);
        }
        for one in well.into_iter().filter(is_well) {
            one.wait(round);
        }
    }

    /// At most one of the first engine's is lost, whose packet was under way, and to blame; each other has
    /// done all.
    pub(crate) fn assert_recovered(&self) {
        let lost = self.all.each_ref().map(|one| one.is_lost);
        assert!(!lost[2], "the one on the other engine: {lost:?}");
        assert_ne!(lost[..2], [true; 2], "one packet was under way");
        for one in &self.all {
            if one.is_lost {
                one.assert_lost(DeviceExecutionState::HUNG);
            } else {
                one.assert_well(self.rounds);
            }
        }
    }

    /// How many there were.
    pub(crate) fn rounds(&self) -> u64 {
        self.rounds
    }

    /// The adapter was stopped: all are told, whatever they wait for.
    pub(crate) fn assert_stopped(&self) {
        for one in &self.all {
            assert_eq!(one.waiter.outcome(), Some(Err(WaitError::AdapterStopped)));
        }
    }

    /// The adapter was reset: each has lost what it had queued, on either engine.
    pub(crate) fn assert_all_lost(&self, states: &[DeviceExecutionState]) {
        for one in &self.all {
            let state = one.device.execution_state();
            assert!(states.contains(&state), "{state:?}");
            assert!(one.is_lost);
            one.assert_lost(state);
        }
    }
}
