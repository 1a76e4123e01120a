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

use native_fence::abi::{FenceHandle, Packet};
use native_fence::{Adapter, Fence};
use support::engines::{Random, model, model_cut, random_cases, shader};
use support::hand_ring::{CAPACITY, Neighbour, Ring};

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
