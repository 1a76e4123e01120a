//! Random rings, fed to the model and to the shader.
//!
//! On the model every load and store is checked, so "memory outside what the queue may touch is
//! never read or written" is asserted there; on the shader a wrong access is a crash, a foreign
//! value that moved, or a neighbour that stands still.
#![allow(clippy::unwrap_used, reason = "a test")]

mod support {
    pub(crate) mod engines;
    pub(crate) mod hand_ring;
    pub(crate) mod until;
}

use native_fence::abi::{FaultCode, LocalHandle, Opcode, PACKET_BYTES, Packet};
use native_fence::{Adapter, Fence};
use support::engines::{Random, model, model_cut, random_cases, shader};
use support::hand_ring::{CAPACITY, Neighbour, Ring};
use support::until::until;

/// What the packets of a ring name, and how many of them are wrong.
struct Drawn {
    fences: Vec<LocalHandle>,
    progress_fence: LocalHandle,
    memory: [LocalHandle; 2],
    /// What a wrong packet may name besides: closed, foreign, of another kind.
    wrong: Vec<LocalHandle>,
    /// One packet of so many is wrong.
    rarity: u64,
    wait_number: u64,
    signal_number: u64,
    /// Only goes up.
    progress: u64,
}

impl Drawn {
    /// A packet that the engine executes: its numbers go on where those of the one before ended.
    fn good(&mut self, random: &mut Random) -> Packet {
        let fence = *random.pick(&self.fences);
        let [first, second] = self.memory;
        let (to, from) = *random.pick(&[(first, second), (second, first)]);
        let value = *random.pick(&[1, 2, u64::MAX, u64::MAX - 1, 1 << 63]);
        let at = *random.pick(&[0, 8, 2048]);
        let bytes = *random.pick(&[0, 8, 1024, 2048]);
        match random.below(8) {
            0 => Packet::nop(),
            1 => {
                self.wait_number += 1;
                Packet::wait(fence, random.below(2), self.wait_number - 1)
            }
            2 => {
                self.signal_number += 1;
                self.progress += 1 + random.below(3);
                Packet::progress(self.progress_fence, self.progress, self.signal_number - 1)
            }
            3 => Packet::timestamp(to, at),
            4 => Packet::fill(to, at, bytes, value),
            5 => Packet::copy((to, at), (from, at), bytes),
            _ => {
                self.signal_number += 1;
                Packet::signal(fence, value, self.signal_number - 1)
            }
        }
    }

    /// A good packet, one that is wrong in a word or a field, or any words at all.
    fn draw(&mut self, random: &mut Random) -> [u64; 8] {
        let mut words = self.good(random).words();
        if random.below(self.rarity) == 0 {
            let any = &[4, 4088, 4096, 70_000, u64::MAX - 7, u64::MAX];
            match random.below(6) {
                0 => words = std::array::from_fn(|_| random.bits()),
                1 => words[0] ^= 1 << random.below(64),
                2 => words[0] = words[0] & 0xffff_ffff | random.bits() << 32,
                3 => words[random.below(8) as usize] = random.bits(),
                4 => words[random.below(8) as usize] = *random.pick(any),
                _ => {
                    let handle = u64::from(random.pick(&self.wrong).raw());
                    words[0] = words[0] & 0xffff_ffff | handle << 32;
                }
            }
        }
        words
    }
}

/// Publishes an index that cannot be: what it stands for is not executed, and the queue is stopped,
/// once it has come to the end of what is there or to a bad packet; beyond that only if an earlier
/// index was `ahead`. One that waits for its own progress stands there for good, and so does one whose
/// packet was such a wait before it was overwritten.
fn stopped_by_its_index(ring: &Ring, own: &[Fence], index: u64, ahead: bool) {
    ring.publish(index);
    ring.ring();
    let (_, packets) = ring.queue.raw_memory();
    let waits_for_itself = || {
        let read = ring.queue.read_index();
        let head = read % CAPACITY * PACKET_BYTES;
        let control = packets.word(head + Packet::CONTROL).peek();
        let handle = (control >> 32) as u32;
        let is_foreign = own.iter().all(|fence| fence.handle().raw() != handle);
        read + CAPACITY < ring.written
            || Opcode::from_bits(control & 0xff) == Some(Opcode::Wait) && is_foreign
    };
    until("the queue is stopped", || {
        // Whatever value it may stand at.
        for fence in own {
            fence.signal(u64::MAX).unwrap();
        }
        ring.queue.error().is_some() || waits_for_itself()
    });
    if ring.queue.error().is_some() {
        let (code, packet) = ring.fault();
        let at_the_end = (code, packet) == (FaultCode::WriteIndex, ring.written);
        assert!(
            ahead || packet < ring.written || at_the_end,
            "{code:?} at packet {packet} of {}",
            ring.written
        );
    }
}

/// One malformed queue beside a healthy one, in an adapter that is used for many cases. Gives how many
/// random packets were written, and how many the engine had executed.
fn random_ring(adapter: &Adapter, case: u64) -> (u64, u64) {
    let random = &mut Random(case);
    let (owner, device) = (adapter.create_device(), adapter.create_device());
    let mut neighbour = Neighbour::new(&owner);
    let foreign: Vec<_> = (0..6).map(|_| owner.create_fence(5).unwrap()).collect();
    let own: Vec<_> = (0..3).map(|_| device.create_fence(1).unwrap()).collect();
    let closed = device.create_fence(1).unwrap();
    closed.close();
    let foreign_memory = owner.create_allocation(4096).unwrap();
    foreign_memory.write(0, &[5; 512]);
    let memory = [0, 1, 2].map(|_| device.create_allocation(4096).unwrap());
    memory[2].close();
    memory[2].write(0, &[5; 512]);
    let mut ring = Ring::new(&device);
    let mut drawn = Drawn {
        fences: own.iter().map(Fence::handle).collect(),
        progress_fence: ring.queue.progress_fence().handle(),
        memory: [memory[0].handle(), memory[1].handle()],
        wrong: vec![
            closed.handle(),
            foreign[5].handle(),
            memory[0].handle(),
            memory[2].handle(),
            foreign_memory.handle(),
            ring.queue.progress_fence().handle(),
            own[0].handle(),
        ],
        rarity: *random.pick(&[2, 10, 50]),
        wait_number: 0,
        signal_number: 0,
        progress: 0,
    };
    let mut ahead = false;
    for _ in 0..=random.below(8) {
        for _ in 0..random.below(CAPACITY) {
            let words = drawn.draw(random);
            ring.put(&words);
        }
        let index = match random.below(8 * drawn.rarity) {
            0 => {
                stopped_by_its_index(&ring, &own, random.bits(), ahead);
                break;
            }
            1 => {
                ahead = true;
                ring.written.wrapping_add(random.below(2 * CAPACITY))
            }
            _ => ring.written,
        };
        ring.publish(index);
        ring.ring();
        if random.below(drawn.rarity) == 0 {
            // Scribble on what may be under way.
            let word = random.below(CAPACITY * 8) * 8;
            let (_, packets) = ring.queue.raw_memory();
            packets.word(word).put(random.bits());
        }
        neighbour.goes_on();
    }
    assert!(foreign.iter().all(|fence| fence.current_value() == 5));
    assert_eq!(closed.current_value(), 1);
    for untouched in [&foreign_memory, &memory[2]] {
        let mut words = [0; 512];
        untouched.read(0, &mut words);
        assert_eq!(words, [5; 512]);
    }
    let logs = (
        ring.queue.read_wait_log().unwrap(),
        ring.queue.read_signal_log().unwrap(),
    );
    assert_eq!((logs.0.refused, logs.1.refused), (0, 0));
    let packets = (ring.written, ring.queue.read_index());
    drop(ring);
    neighbour.goes_on();
    packets
}

/// As many cases as are asked for; says what they came to.
fn random_rings(adapter: &Adapter, after_each: impl Fn(u64)) {
    let (mut written, mut executed) = (0, 0);
    for case in 0..random_cases(60) {
        let packets = random_ring(adapter, case);
        after_each(case);
        written += packets.0;
        executed += packets.1;
    }
    println!("{written} random packets were written, {executed} of them executed");
}

/// Random rings on the model: no access outside what the queue may touch, at any cut.
///
/// Kills `model-no-ring-mask`.
#[test]
fn hq_04_random_rings_touch_nothing_else_on_the_model() {
    for (adapter, memory) in [model(), model_cut(5, 300)] {
        random_rings(&adapter, |case| {
            assert_eq!(memory.violations(), [], "case {case}");
        });
    }
}

/// Random rings on the shader: no crash, no foreign value moved, no neighbour held up.
///
/// Kills `write-index-not-bounded-at-load`.
#[test]
fn hq_04_random_rings_do_not_crash_the_shader() {
    if let Some(adapter) = shader() {
        random_rings(&adapter, |_| ());
    }
}
