//! Narrow: values that engines keep by stores of 32 bits.

use super::scene::{on_both, starts_at, store_silently};
use crate::conform::bench::finish;
use crate::conform::checks::sleeper::{ended, sleeper, woken};
use crate::conform::listener::Listener;
use crate::conform::seen::same;
use crate::conform::{Bench, Check, Ground, LONG, Unfit, Wanted, until};
use crate::kmd::{DriverOptions, VidSchCaps};
use crate::{KernelQueueError, MonitoredFence, MonitoredFenceOptions, SignalError, WaitError};
use anyhow::ensure;

pub(super) const CHECKS: &[Check] = &[Check::by(
    "MF-06",
    "with No64BitAtomics values are kept by 32-bit stores, and the OS carries the wrap",
    narrow,
)];

/// UINT_MAX/2.
const HALF: u64 = 0x7fff_ffff;

fn narrow(ground: &Ground) -> anyhow::Result<()> {
    let wanted = Wanted::with(DriverOptions {
        no_64_bit_atomics: true,
        ..DriverOptions::default()
    });
    on_both(ground, &wanted, |bench| {
        if !bench
            .adapter
            .os()
            .vidsch_caps()
            .has(VidSchCaps::NO_64_BIT_ATOMICS)
        {
            return Err(Unfit("its fences have 64 bits".into()).into());
        }
        wrap(bench)?;
        distance(bench)
    })
}

fn in_memory(fence: &MonitoredFence) -> anyhow::Result<u64> {
    let (region, offset) = fence.object().fence().current_value_place();
    Ok(region.host()?.word(offset).observe())
}

/// Waits of 64 bits on both sides of a wrap end rightly, by signals of GPU, CPU and OS, and round after round by the
/// largest steps; what stands in the upper half of the word is nobody's.
fn wrap(bench: &Bench) -> anyhow::Result<()> {
    let start = 0x5_ffff_fff0;
    let fence = starts_at(bench, start)?;
    let seen = (fence.is_64_bit(), fence.current_value());
    same(
        "whether it has 64 bits, and its value",
        &seen,
        &(false, start),
    )?;
    let mut queue = bench.device.create_kernel_queue()?;
    let beyond = sleeper(&fence, start + 0x20)?;
    let before = Listener::of_monitored(&fence, start + 5)?;
    store_silently(&fence, 0xdead_beef_ffff_fff0)?;
    queue.signal(&fence, start + 5)?.flush()?;
    same("a wait before the wrap", &before.ended()?, &Ok(()))?;
    ensure!(
        !beyond.is_finished(),
        "a wait beyond the wrap is over before it"
    );
    queue.signal(&fence, start + 0x20)?.flush()?;
    same("a wait beyond the wrap", &ended(beyond), &Ok(()))?;
    same(
        "the value beyond the wrap",
        &fence.current_value(),
        &(start + 0x20),
    )?;
    let word = in_memory(&fence)?;
    same("its low half in memory", &(word & 0xffff_ffff), &0x10)?;
    ensure!(
        word >> 32 != 6,
        "the engine has carried the wrap, which is the OS's: {word:#x}"
    );
    finish(&mut queue)?;
    for step in 1..=6 {
        let value = start + 0x20 + step * HALF;
        // A signal of the GPU is outstanding until its command is told to have completed, after its value.
        until("signals before are not outstanding any more", || {
            match step % 3 {
                0 => queue.signal(&fence, value).is_ok(),
                1 => queue.signal_by_os(&fence, value).is_ok(),
                _ => fence.signal(value).is_ok(),
            }
        })?;
        queue.flush()?;
        same(
            "a wait half of the range further",
            &woken(&fence, value),
            &Ok(()),
        )?;
        let seen = (fence.current_value(), in_memory(&fence)? & 0xffff_ffff);
        same(
            "the value then, and the word's low half",
            &seen,
            &(value, value & 0xffff_ffff),
        )?;
    }
    let whole = bench
        .device
        .create_monitored_fence_with(MonitoredFenceOptions {
            no_gpu_access: true,
            ..MonitoredFenceOptions::default()
        })?;
    whole.signal(u64::MAX - 1)?;
    let seen = (whole.is_64_bit(), whole.current_value());
    same(
        "whether a fence without GPU access has 64 bits, and its value",
        &seen,
        &(true, u64::MAX - 1),
    )
}

/// UINT_MAX/2 from the last signalled value, and no more, whoever waits or signals; signals that are outstanding count.
fn distance(bench: &Bench) -> anyhow::Result<()> {
    let start = 0x2_0000_0000;
    let fence = starts_at(bench, start)?;
    let mut queue = bench.device.create_kernel_queue()?;
    let (near, far) = (start + HALF, start + HALF + 1);
    same(
        "a wait that is too far",
        &fence.wait(far, LONG),
        &Err(WaitError::TooFar),
    )?;
    let near_enough = Listener::of_monitored(&fence, near)?;
    same(
        "how often one is told of that is just near enough",
        &near_enough.heard(),
        &0,
    )?;
    let too_far = SignalError::TooFar;
    let by_cpu = [fence.signal(far), fence.rewind(start - HALF - 1)];
    same(
        "a CPU signal that is too far, and one back",
        &by_cpu,
        &[Err(too_far), Err(too_far)],
    )?;
    let by_queue = [
        queue.signal(&fence, far).err(),
        queue.signal_by_os(&fence, far).err(),
    ];
    same(
        "signals of a queue that are",
        &by_queue,
        &[(); 2].map(|()| Some(KernelQueueError::Signal(too_far))),
    )?;
    let wait = queue.wait(&fence, far).err();
    same(
        "a wait of a queue that is",
        &wait,
        &Some(KernelQueueError::Wait(WaitError::TooFar)),
    )?;
    let gate = starts_at(bench, 0)?;
    queue.wait(&gate, 1)?.signal(&fence, near)?.flush()?;
    same(
        "a signal back while the furthest one is outstanding",
        &fence.rewind(start - 1),
        &Err(too_far),
    )?;
    same("the value by then", &fence.current_value(), &start)?;
    gate.signal(1)?;
    same(
        "the wait that was near enough",
        &near_enough.ended()?,
        &Ok(()),
    )?;
    finish(&mut queue)?;
    fence.rewind(start)?;
    until("the furthest one is outstanding no more", || {
        fence.rewind(start - 1).is_ok()
    })
}
