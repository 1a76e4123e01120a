//! Mapping: what a program can reach of a fence's values through its page tables.

use super::scene::{SHARED, opened};
use crate::conform::bench::{complete, monitored_value};
use crate::conform::listener::Listener;
use crate::conform::raw_fence::RawFence;
use crate::conform::seen::same;
use crate::conform::{Bench, Check, Ground, Unfit};
use crate::{CommandList, Fence, HwQueue};
use anyhow::{Context, ensure};

pub(super) const CHECKS: &[Check] = &[
    Check::by(
        "NF-02",
        "the user's CPU mapping of CurrentValue is read-only at page level",
        read_only,
    ),
    Check::by(
        "NF-03",
        "MonitoredValue has no user mapping, and a foreign store to it loses no wake-up",
        no_mapping,
    ),
];

/// A line of `/proc/self/maps`: rights and inode.
fn mapping_of(fence: &Fence) -> anyhow::Result<(String, u64)> {
    let address = fence.current_value_address();
    let address = address.ok_or_else(|| {
        Unfit("its fences lie in memory of which there is no mapping that cannot be written".into())
    })?;
    let maps = std::fs::read_to_string("/proc/self/maps")?;
    for line in maps.lines() {
        let mut words = line.split_whitespace();
        let (range, rights, inode) = (words.next(), words.next(), words.nth(2));
        let (start, end) = range
            .and_then(|range| range.split_once('-'))
            .unwrap_or_default();
        let range = u64::from_str_radix(start, 16)?..u64::from_str_radix(end, 16)?;
        if range.contains(&(address as u64)) {
            let inode = inode.context("a mapping without an inode")?.parse()?;
            return Ok((rights.unwrap_or_default().to_owned(), inode));
        }
    }
    anyhow::bail!("the address of CurrentValue is not mapped")
}

/// The rights in the page tables, and that what CPU and GPU signal is seen there. That a store through it faults is
/// `tests/fence_storage.rs`: who stores ends by it.
fn read_only(ground: &Ground) -> anyhow::Result<()> {
    let bench = ground.bench()?;
    let (fence, mut queue) = (bench.fence(3)?, bench.queue()?);
    let (rights, _) = mapping_of(&fence)?;
    same(
        "the rights of the user's mapping of CurrentValue",
        &rights,
        &"r--s".to_owned(),
    )?;
    fence.signal(4)?;
    same("what the CPU signalled, there", &fence.current_value(), &4)?;
    complete(&mut queue, CommandList::new().signal(&fence, 5))?;
    same("what the GPU signalled, there", &fence.current_value(), &5)
}

/// The memory of MonitoredValue is not that which the user has mapped; packets leave it alone; and nobody sleeps on for what
/// somebody stores there.
fn no_mapping(ground: &Ground) -> anyhow::Result<()> {
    let bench = ground.bench()?;
    let (fence, mut queue) = (bench.fence(0)?, bench.queue()?);
    let native = fence.object().fence();
    let (current, monitored) = (native.current_value_place(), native.monitored_value_place());
    ensure!(
        !std::ptr::eq(current.0.as_ref(), monitored.0.as_ref()),
        "CurrentValue and MonitoredValue lie in one region of memory"
    );
    if let (Ok((_, inode)), Some(file)) = (mapping_of(&fence), monitored.0.descriptor()) {
        let of_monitored = rustix::fs::fstat(file)?.st_ino;
        ensure!(
            inode != of_monitored,
            "the user has mapped the memory of MonitoredValue"
        );
    }
    complete(
        &mut queue,
        CommandList::new().signal(&fence, 2).wait(&fence, 2),
    )?;
    same(
        "MonitoredValue after a signal and a wait by packets",
        &monitored_value(&fence),
        &u64::MAX,
    )?;
    overwritten(&bench, &mut queue)
}

/// Another process waits. An engine has taken over what was posted when somebody stores what nobody waits for, before each of
/// several slices; or 0, which every value is above. And somebody stores what the OS is about to post, which is posted all the
/// same.
fn overwritten(bench: &Bench, queue: &mut HwQueue) -> anyhow::Result<()> {
    let (fence, _other, of_other) = opened(bench, SHARED)?;
    let raw = RawFence::of(&fence)?;
    let mut value = 0;
    for scribble in [u64::MAX, 0] {
        for slices in 0..4 {
            value += 5;
            raw.store_monitored(value - 1);
            let wait = Listener::of(&of_other, value)?;
            bench.until_told(queue)?;
            for _ in 0..slices {
                raw.store_monitored(scribble);
                // Each has a slice of its own, which ends by the interrupt that it waits for.
                bench.until_told(queue)?;
            }
            raw.store_monitored(scribble);
            complete(queue, CommandList::new().signal(&fence, value))?;
            same(
                &format!(
                    "another process's wait whose MonitoredValue somebody has overwritten with {scribble:#x}"
                ),
                &wait.ended()?,
                &Ok(()),
            )?;
        }
    }
    Ok(())
}
