//! Debug information: what the driver knows of an engine that does not answer, for people
//! (`DxgkDdiCollectDbgInfo`, TD-11).
//!
//! Packets and logs are read as they stand: a user may change the first, and an engine that still runs writes
//! to the second. Nothing is decided by them.

use super::driver::Driver;
use super::{CollectDbgInfo, DdiError};
use crate::abi::{LogEntry, LogType, Packet};
use crate::gpu::QueueSlot;
use std::fmt::Write;

/// Entries of each log that are told.
const LAST_ENTRIES: u32 = 4;

/// Of an engine and its queues, at most as many bytes as there is room for.
///
/// # Errors
/// No such node.
pub(super) fn debug_info(driver: &Driver, args: &CollectDbgInfo) -> Result<String, DdiError> {
    let node = driver.node(args.node_ordinal)?;
    let counters = node.counters();
    let mut text = format!(
        "engine of node {}: {:?}, {} slices submitted, {} cut by the driver, {} resets\n",
        args.node_ordinal,
        node.state(),
        counters.slices,
        counters.cut,
        counters.resets
    );
    let mut slots = driver.queues.of_node(args.node_ordinal);
    slots.sort_by_key(|slot| slot.number);
    for slot in slots {
        // Into a string it cannot fail.
        let _ = write_queue(&mut text, &slot);
    }
    Ok(args.cut(text))
}

fn write_queue(text: &mut String, slot: &QueueSlot) -> std::fmt::Result {
    let (number, read, written) = (slot.number, slot.read_index(), slot.write_index());
    let status = slot.status();
    let of_os = if slot.is_system() {
        " of the operating system"
    } else {
        ""
    };
    write!(
        text,
        "queue {number}{of_os}: {status:?}, {read} of {written} packets executed"
    )?;
    match (slot.fault(), slot.stands_at()) {
        (Some(fault), _) => writeln!(text, ", {fault}")?,
        (None, Some((handle, value, _))) => writeln!(
            text,
            ", waits for {value} of the fence with handle {handle:#x}"
        )?,
        (None, None) => writeln!(text)?,
    }
    if let Some((index, packet)) = slot.head() {
        writeln!(text, "  packet {index}: {}", words_of(&packet))?;
    }
    for (name, log) in [("waits", LogType::Waits), ("signals", LogType::Signals)] {
        let entries = slot.last_entries(log, LAST_ENTRIES);
        if !entries.is_empty() {
            let entries: Vec<_> = entries.iter().map(entry_words).collect();
            writeln!(text, "  last {name}: {}", entries.join(", "))?;
        }
    }
    Ok(())
}

fn words_of(packet: &Packet) -> String {
    let (handle, value, bytes) = (packet.handle().raw(), packet.value, packet.bytes);
    match packet.opcode() {
        None => format!("none that there is, control word {:#018x}", packet.control),
        Some(opcode) if opcode.is_transfer() => {
            format!("{opcode:?}, handle {handle:#x}, value {value}, {bytes} bytes")
        }
        Some(opcode) => format!("{opcode:?}, handle {handle:#x}, value {value}"),
    }
}

fn entry_words(entry: &LogEntry) -> String {
    let (handle, value, ticks) = (entry.native_fence, entry.fence_value, entry.end_ticks);
    format!("{handle:#x} = {value} at {ticks}")
}
