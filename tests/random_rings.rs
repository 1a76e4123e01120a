//! Rings that no library would write, fed to the model and to the shader.
//!
//! On the model every load and store is checked, so "memory outside what the queue may touch is
//! never read or written" is asserted there; on the shader a wrong access is a crash, a foreign
//! value that moved, or a neighbour that stands still.
#![allow(clippy::unwrap_used, reason = "a test")]

#[path = "support/engines.rs"]
mod engines;

use engines::{Random, model, model_cut, model_with, on_every_engine, random_cases, shader};
use native_fence::abi::{FaultCode, FenceHandle, PACKET_BYTES, PAGE_BYTES, Packet, RingControl};
use native_fence::gpu::{MemoryAccess, MemoryObserver, ModelOptions};
use native_fence::shared::Block;
use native_fence::umd::HwQueueOptions;
use native_fence::{Adapter, CommandList, Device, Fence, HwQueue, WaitError};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const LONG: Duration = Duration::from_secs(20);
const CAPACITY: u64 = 16;

/// A queue with a small ring, written by hand.
struct Ring {
    queue: HwQueue,
    written: u64,
}

impl Ring {
    fn new(device: &Device) -> Self {
        let options = HwQueueOptions {
            ring_capacity: CAPACITY,
            ..HwQueueOptions::default()
        };
        Self {
            queue: device.create_hw_queue_with(options).unwrap(),
            written: 0,
        }
    }

    fn put(&mut self, words: &[u64; 8]) {
        let (_, packets) = self.queue.raw_memory();
        packets.put_words(self.written % CAPACITY * PACKET_BYTES, words);
        self.written += 1;
    }

    fn publish(&self, write_index: u64) {
        let (control, _) = self.queue.raw_memory();
        control.word(RingControl::WRITE_INDEX).publish(write_index);
    }

    fn ring(&self) {
        // A queue that faulted meanwhile refuses the ring; that is no failure of a test of faults.
        let _ = self.queue.ring_doorbell();
    }

    /// Writes packets and rings.
    fn submit(&mut self, packets: &[Packet]) {
        for packet in packets {
            self.put(&packet.words());
        }
        self.publish(self.written);
        self.ring();
    }

    /// Waits for the queue to be stopped; code and index of the packet that it names.
    fn fault(&self) -> (FaultCode, u64) {
        match self.queue.progress_fence().wait(u64::MAX, LONG) {
            Err(WaitError::QueueFaulted(fault)) => (fault.code, fault.packet),
            other => panic!("the queue was not stopped: {other:?}"),
        }
    }

    /// Waits until the queue has executed `packets` packets or was stopped.
    fn settle(&self, packets: u64) {
        let deadline = Instant::now() + LONG;
        while self.queue.read_index() != packets && self.queue.error().is_none() {
            assert!(
                Instant::now() < deadline,
                "stands at {} of {packets}",
                self.queue.read_index()
            );
            std::thread::yield_now();
        }
    }
}

/// A queue beside the malformed one, and fences that the other may not move.
struct Neighbour {
    queue: HwQueue,
    fence: Fence,
    next: u64,
}

impl Neighbour {
    fn new(device: &Device) -> Self {
        Self {
            // Small, so that its ring wraps again and again.
            queue: device
                .create_hw_queue_with(HwQueueOptions {
                    ring_capacity: 4,
                    ..HwQueueOptions::default()
                })
                .unwrap(),
            fence: device.create_fence(1000).unwrap(),
            next: 1001,
        }
    }

    /// Does a piece of work and is woken when it is done; all that it has is as it left it.
    fn goes_on(&mut self) {
        assert_eq!(self.fence.current_value(), self.next - 1);
        let mut list = CommandList::new();
        list.wait(&self.fence, self.next - 1)
            .signal(&self.fence, self.next);
        // The read index follows the progress value: there may be no room for a moment.
        let end = self.queue.submit_blocking(&list, LONG).unwrap();
        self.queue.progress_fence().wait(end, LONG).unwrap();
        assert_eq!(self.fence.current_value(), self.next);
        self.next += 1;
    }
}

fn control(opcode: u64, length: u64, reserved: u64, handle: u32) -> u64 {
    opcode | length << 8 | reserved << 16 | u64::from(handle) << 32
}

fn with_control(packet: Packet, control: u64) -> Packet {
    Packet { control, ..packet }
}

/// Every way in which one packet can be malformed stops its queue at that packet, behind a good one
/// that is executed, and the neighbour goes on.
///
/// Kills `model-no-length-check`, `model-no-opcode-check`, `model-no-log-number-check`,
/// `model-handle-zero-is-known`, `model-progress-may-fall`, `shader-no-length-check`,
/// `shader-no-log-number-check`.
#[test]
fn hq_04_a_malformed_packet_stops_its_queue_and_is_named() {
    on_every_engine(|adapter| {
        let device = adapter.create_device();
        let mut neighbour = Neighbour::new(&adapter.create_device());
        let fence = device.create_fence(0).unwrap();
        let handle = fence.handle();
        let good = |value| Packet::signal(handle, value, 0);
        let second = Packet::signal(handle, u64::MAX, 1);
        let wait = Packet::wait(handle, 0, 0);
        let nop = Packet::nop();
        let cases: Vec<(Packet, FaultCode)> = vec![
            (with_control(nop, control(0, 1, 0, 0)), FaultCode::Opcode),
            (with_control(nop, control(5, 1, 0, 0)), FaultCode::Opcode),
            (with_control(nop, control(255, 1, 0, 0)), FaultCode::Opcode),
            (with_control(second, 0), FaultCode::Opcode),
            (with_control(nop, control(1, 0, 0, 0)), FaultCode::Length),
            (with_control(nop, control(1, 2, 0, 0)), FaultCode::Length),
            (
                with_control(second, control(3, 1, 1, handle.raw())),
                FaultCode::Length,
            ),
            (
                with_control(second, control(3, 0, 0, handle.raw())),
                FaultCode::Length,
            ),
            (with_control(second, control(3, 1, 0, 0)), FaultCode::Handle),
            (with_control(wait, control(2, 1, 0, 0)), FaultCode::Handle),
            (
                with_control(second, control(3, 1, 0, u32::MAX)),
                FaultCode::Handle,
            ),
            (
                with_control(wait, control(2, 1, 0, (1 << 20) + 900)),
                FaultCode::Handle,
            ),
            (
                with_control(second, control(3, 1, 0, handle.raw() + (1 << 20))),
                FaultCode::StaleHandle,
            ),
            (
                with_control(second, control(3, 1, 0, handle.slot())),
                FaultCode::Handle,
            ),
            (
                Packet {
                    log_number: 0,
                    ..second
                },
                FaultCode::LogNumber,
            ),
            (
                Packet {
                    log_number: 2,
                    ..second
                },
                FaultCode::LogNumber,
            ),
            (
                Packet {
                    log_number: u64::MAX,
                    ..wait
                },
                FaultCode::LogNumber,
            ),
            (
                with_control(second, control(4, 1, 0, handle.raw())),
                FaultCode::Progress,
            ),
        ];
        for (at, (malformed, code)) in cases.into_iter().enumerate() {
            let value = at as u64 + 1;
            let mut ring = Ring::new(&device);
            ring.submit(&[good(value), malformed, Packet::nop()]);
            assert_eq!(ring.fault(), (code, 1), "{malformed:?}");
            assert_eq!(fence.current_value(), value, "{malformed:?}");
            assert_eq!(ring.queue.read_index(), 1, "{malformed:?}");
            assert_eq!(ring.queue.read_signal_log().unwrap().entries.len(), 1);
            neighbour.goes_on();
        }
        // A progress value that does not rise, on the queue's own progress fence.
        let mut ring = Ring::new(&device);
        let progress = ring.queue.progress_fence().handle();
        ring.submit(&[
            Packet::progress(progress, 5, 0),
            Packet::progress(progress, 5, 1),
        ]);
        assert_eq!(ring.fault(), (FaultCode::Progress, 1));
        neighbour.goes_on();
    });
}

/// A write index that cannot be stops the queue before a packet of it is read.
///
/// Kills `model-no-ring-bound`, `model-no-ring-bound-at-load`, `shader-no-ring-bound`.
#[test]
fn hq_04_a_write_index_that_cannot_be_stops_the_queue() {
    on_every_engine(|adapter| {
        let device = adapter.create_device();
        let mut neighbour = Neighbour::new(&adapter.create_device());
        let fence = device.create_fence(0).unwrap();
        for jump in [CAPACITY + 3, CAPACITY + 4, 1 << 32, u64::MAX, 0, 1] {
            let mut ring = Ring::new(&device);
            ring.submit(&[Packet::nop(), Packet::nop()]);
            ring.settle(2);
            // What a queue that goes on would execute.
            for slot in 0..CAPACITY {
                let packet = Packet::signal(fence.handle(), 77, slot);
                ring.put(&packet.words());
            }
            ring.publish(jump);
            ring.ring();
            assert_eq!(ring.fault(), (FaultCode::WriteIndex, 2), "to {jump}");
            assert_eq!(fence.current_value(), 0, "to {jump}");
            neighbour.goes_on();
        }
    });
}

/// A handle that was closed, and one whose slot another fence has now, stop the queue.
///
/// Kills `model-no-generation-check`, `model-closed-handle-passes`, `shader-no-generation-check`.
#[test]
fn hq_04_a_closed_handle_stops_the_queue() {
    on_every_engine(|adapter| {
        let device = adapter.create_device();
        let mut neighbour = Neighbour::new(&adapter.create_device());
        for reused in [false, true] {
            for waits in [false, true] {
                // The ring first: its progress fence would take the slot.
                let mut ring = Ring::new(&device);
                let mut closed = Some(device.create_fence(9).unwrap());
                let handle = closed.as_ref().unwrap().handle();
                closed.as_ref().unwrap().close();
                let next = reused.then(|| {
                    closed = None;
                    device.create_fence(9).unwrap()
                });
                if let Some(next) = &next {
                    assert_eq!(next.handle().slot(), handle.slot(), "not used again");
                }
                ring.submit(&[if waits {
                    Packet::wait(handle, 9, 0)
                } else {
                    Packet::signal(handle, 10, 0)
                }]);
                assert_eq!(ring.fault(), (FaultCode::StaleHandle, 0));
                if let Some(next) = next {
                    assert_eq!(next.current_value(), 9, "an old packet moved a new fence");
                }
                neighbour.goes_on();
            }
        }
    });
}

/// A user who overwrites every word of a packet right after the engine has read it.
#[derive(Debug, Default)]
struct Scribbler(Mutex<Option<Block>>);

impl MemoryObserver for Scribbler {
    fn touched(&self, access: MemoryAccess, region: &'static str, offset: u64) {
        let packets = self.0.lock().unwrap();
        if let (Some(packets), MemoryAccess::Load, "hw-queue-ring", Some(at)) =
            (&*packets, access, region, offset.checked_sub(PAGE_BYTES))
        {
            packets.word(at).put(u64::MAX);
        }
    }
}

/// What is checked is the copy that is executed: although every word of a packet is overwritten as
/// soon as the engine has read it, all packets take effect as they were written.
///
/// A queue that is moved out of its lane between the copy and the step copies anew, checks anew,
/// and faults on what it finds; a queue alone on its engine meets that only if its slice ends in
/// between, so one of a few tries goes through.
///
/// Kills `model-packet-is-read-again`.
#[test]
fn hq_04_scribbling_on_a_fetched_packet_changes_nothing() {
    let goes_through = (0..8).any(|_| {
        let scribbler = Arc::new(Scribbler::default());
        let (adapter, memory) = model_with(ModelOptions {
            observer: Some(Arc::clone(&scribbler) as Arc<dyn MemoryObserver>),
            ..ModelOptions::default()
        });
        let device = adapter.create_device();
        let fence = device.create_fence(0).unwrap();
        let mut ring = Ring::new(&device);
        let (_, packets) = ring.queue.raw_memory();
        *scribbler.0.lock().unwrap() = Some(packets.clone());
        let written: Vec<_> = (0..6)
            .map(|number| Packet::signal(fence.handle(), number + 1, number))
            .collect();
        ring.submit(&written);
        ring.settle(6);
        assert_eq!(memory.violations(), []);
        let logged = ring.queue.read_signal_log().unwrap().entries;
        let last = logged.last().map_or(0, |entry| entry.fence_value);
        assert_eq!(
            fence.current_value(),
            last,
            "what was logged is what was stored"
        );
        ring.queue.error().is_none() && last == 6
    });
    assert!(goes_through, "a packet was read again after it was checked");
}

/// A fence that another process has open is no fence of this one's: its handle, whatever it names
/// here, moves nothing there.
///
/// Kills `handles-of-all-processes`, `model-unopened-slot-passes`.
#[test]
fn hq_05_a_foreign_handle_names_no_fence_of_its_owner() {
    on_every_engine(|adapter| {
        let (owner, other) = (adapter.create_device(), adapter.create_device());
        let mut neighbour = Neighbour::new(&owner);
        let foreign: Vec<_> = (0..40).map(|_| owner.create_fence(7).unwrap()).collect();
        let last = foreign.last().unwrap().handle();
        for packet in [Packet::signal(last, 99, 0), Packet::wait(last, 7, 0)] {
            let mut ring = Ring::new(&other);
            ring.submit(&[packet]);
            assert_eq!(ring.fault(), (FaultCode::Handle, 0), "{packet:?}");
            neighbour.goes_on();
        }
        // The same number names a fence of the other's own, and moves that one alone.
        let own: Vec<_> = (0..8).map(|_| other.create_fence(0).unwrap()).collect();
        let mut ring = Ring::new(&other);
        for (number, fence) in own.iter().enumerate() {
            ring.submit(&[Packet::signal(fence.handle(), 50, number as u64)]);
        }
        ring.settle(8);
        assert!(ring.queue.error().is_none());
        assert!(own.iter().all(|fence| fence.current_value() == 50));
        assert!(foreign.iter().all(|fence| fence.current_value() == 7));
    });
}

/// A lane that goes over from a queue of one process to a queue of another within a slice knows
/// nothing of the first one's fences, for a packet that carries the same number or none.
///
/// Kills `model-lane-keeps-resolved-fences`.
#[test]
fn hq_05_a_lane_forgets_the_fences_of_the_process_before() {
    on_every_engine(|adapter| {
        let (owner, other) = (adapter.create_device(), adapter.create_device());
        // Its slot is one that the other process never gets to.
        let before: Vec<_> = (0..60).map(|_| owner.create_fence(0).unwrap()).collect();
        let secret = owner.create_fence(0).unwrap();
        let mut rings: Vec<_> = (0..40)
            .map(|at| Ring::new(if at < 20 { &owner } else { &other }))
            .collect();
        for (at, ring) in rings.iter_mut().enumerate() {
            if at < 20 {
                for number in 0..CAPACITY {
                    ring.put(&Packet::signal(secret.handle(), number + 1, number).words());
                }
            } else {
                let signal = Packet::signal(secret.handle(), 1 << 50, 0);
                let nothing = with_control(signal, control(3, 1, 0, 0));
                ring.put(&if at % 2 == 0 { signal } else { nothing }.words());
            }
            // Not rung: one slice shall find them all.
            ring.publish(ring.written);
        }
        rings[0].ring();
        for ring in &rings[20..] {
            ring.ring();
            assert_eq!(ring.fault(), (FaultCode::Handle, 0));
        }
        for ring in &rings[..20] {
            ring.ring();
            ring.settle(CAPACITY);
        }
        assert!(secret.current_value() <= CAPACITY);
        assert!(before.iter().all(|fence| fence.current_value() == 0));
    });
}

/// A random packet: good, mutated in one word, or any words at all.
fn draw(random: &mut Random, handles: &[FenceHandle], numbers: &mut (u64, u64)) -> [u64; 8] {
    let handle = *random.pick(handles);
    let value = *random.pick(&[0, 1, 2, u64::MAX, u64::MAX - 1, 1 << 63]);
    let packet = match random.below(5) {
        0 => Packet::nop(),
        1 => {
            numbers.0 += 1;
            Packet::wait(handle, random.below(2), numbers.0 - 1)
        }
        2 => {
            numbers.1 += 1;
            Packet::progress(handle, value, numbers.1 - 1)
        }
        _ => {
            numbers.1 += 1;
            Packet::signal(handle, value, numbers.1 - 1)
        }
    };
    let mut words = packet.words();
    match random.below(12) {
        0 => words = std::array::from_fn(|_| random.bits()),
        1 => words[0] ^= 1 << random.below(64),
        2 => words[0] = words[0] & 0xffff_ffff | random.bits() << 32,
        3 => words[random.below(3) as usize] = random.bits(),
        _ => {}
    }
    words
}

/// One malformed queue beside a healthy one, in an adapter that is used for many cases.
fn random_ring(adapter: &Adapter, case: u64) {
    let random = &mut Random(case);
    let (owner, device) = (adapter.create_device(), adapter.create_device());
    let mut neighbour = Neighbour::new(&owner);
    let foreign: Vec<_> = (0..6).map(|_| owner.create_fence(5).unwrap()).collect();
    let own: Vec<_> = (0..3).map(|_| device.create_fence(1).unwrap()).collect();
    let closed = device.create_fence(1).unwrap();
    closed.close();
    let mut ring = Ring::new(&device);
    let mut handles: Vec<_> = own.iter().map(Fence::handle).collect();
    if random.below(2) == 0 {
        handles.push(closed.handle());
        handles.push(foreign[5].handle());
        handles.push(ring.queue.progress_fence().handle());
    }
    let numbers = &mut (0, 0);
    for _ in 0..=random.below(4) {
        for _ in 0..random.below(CAPACITY) {
            let words = draw(random, &handles, numbers);
            ring.put(&words);
        }
        let index = match random.below(8) {
            0 => random.bits(),
            1 => ring.written.wrapping_add(random.below(2 * CAPACITY)),
            _ => ring.written,
        };
        ring.publish(index);
        ring.ring();
        if random.below(2) == 0 {
            // Scribble on what may be under way.
            let word = random.below(CAPACITY * 8) * 8;
            let (_, packets) = ring.queue.raw_memory();
            packets.word(word).put(random.bits());
        }
        neighbour.goes_on();
    }
    assert!(foreign.iter().all(|fence| fence.current_value() == 5));
    assert_eq!(closed.current_value(), 1);
    let logs = (
        ring.queue.read_wait_log().unwrap(),
        ring.queue.read_signal_log().unwrap(),
    );
    assert_eq!((logs.0.refused, logs.1.refused), (0, 0));
    drop(ring);
    neighbour.goes_on();
}

/// Random rings on the model: no access outside what the queue may touch, at any cut.
///
/// Kills `model-no-ring-mask`.
#[test]
fn hq_04_random_rings_touch_nothing_else_on_the_model() {
    for (adapter, memory) in [model(), model_cut(5, 300)] {
        for case in 0..random_cases(60) {
            random_ring(&adapter, case);
            assert_eq!(memory.violations(), [], "case {case}");
        }
    }
}

/// Random rings on the shader: no crash, no foreign value moved, no neighbour held up.
#[test]
fn hq_04_random_rings_do_not_crash_the_shader() {
    if let Some(adapter) = shader() {
        for case in 0..random_cases(60) {
            random_ring(&adapter, case);
        }
    }
}
