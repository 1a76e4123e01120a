//! Cutting off: an engine that is given up changes nothing from then on that the node or its successor uses
//! (TD-23).
//!
//! Mappings are cut one after another, and an engine that runs meanwhile goes on storing to what is not cut
//! yet. So its packets are taken from it: in the copy of a ring that it has then there is none, and it faults at
//! the next that it fetches, which nobody hears of, since saved states and the report are cut before. A packet is
//! fetched when all before it have left their marks, but for a NOP of the same step; so of each queue one packet
//! is left whose stores fall between the cuts. Their order is that of a step's stores, backwards. Then each mark
//! that is found has all before it: a read index the log entries of its packets, a log entry the value of its
//! signal; and a value that was stored at the very last, and not logged, is the signal that recovery takes for
//! stored. That an engine's loads and stores come in their order is practice where it is a shader. One that
//! still answers is asked to end its slices before, and leaves nothing open. (Where the system refuses a cut, and
//! it is made in the second attempt, later packets may lie between: the logs have them, and a value behind the
//! last of those is lost or stored again.)

use super::Node;
use super::inner::Inner;
use crate::abi::WordGroup;
use crate::gpu::{CutOff, EngineMapping};
use crate::shared::RegionError;
use crate::sync::Arc;

/// What is cut first, in this order, and what the engine reads there then: what tells of a fault; rings; what a step
/// marks, the last first; addresses. Behind them come values and what transfers store.
///
/// Packets of the OS store to save areas too, and these are cut first: what such a packet stores may be lost, and
/// its marks not. It is of no queue that runs: slots are cleared when a queue takes one, and an area that moves is
/// compared with what it was ([`super::save_areas`]).
const CUTS: &[(&[WordGroup], CutOff)] = &[
    (&[WordGroup::SaveArea], CutOff::Following),
    (&[WordGroup::EngineReport], CutOff::Following),
    (&[WordGroup::Ring], CutOff::WithoutPackets),
    (&[WordGroup::Progress], CutOff::Following),
    (&[WordGroup::Log, WordGroup::LargeLog], CutOff::Following),
    (
        &[
            WordGroup::EngineControl,
            WordGroup::FenceTable,
            WordGroup::HandleTable,
            WordGroup::QueueDescriptor,
        ],
        CutOff::Copied,
    ),
];

/// When a mapping is cut, and what the engine reads there then.
fn cut_of(mapping: &EngineMapping) -> (usize, CutOff) {
    let name = mapping.region().name();
    let is_of = |groups: &[WordGroup]| groups.iter().any(|group| group.name() == name);
    let turn = CUTS.iter().position(|(groups, _)| is_of(groups));
    turn.map_or((CUTS.len(), CutOff::Following), |turn| (turn, CUTS[turn].1))
}

impl Node {
    /// Cuts the engine off from what it can be cut off from.
    pub(super) fn cut_off(&self, inner: &Inner) {
        let live = inner.live_mappings();
        for (_, is_cut_off) in cut_off_in_turn(&self.all_mappings(inner, &live)) {
            // It is tried again, and told, when another engine takes its place.
            let _ = is_cut_off;
        }
    }

    pub(super) fn all_mappings<'a>(
        &'a self,
        inner: &'a Inner,
        live: &'a [Arc<EngineMapping>],
    ) -> Vec<&'a EngineMapping> {
        let blocks = [&self.control, &self.report].into_iter();
        let tables = blocks.chain(inner.table_mappings());
        tables.chain(live.iter().map(Arc::as_ref)).collect()
    }

    /// Whether an engine that still runs can be cut off from all that it reaches.
    #[must_use]
    pub fn can_be_cut_off(&self) -> bool {
        self.control.can_be_cut_off() && self.report.can_be_cut_off()
    }
}

/// Cuts an engine off from each of these as it is asked for the next, in their order: whether it is cut off. Where
/// its faults would be heard of it keeps its packets.
pub(super) fn cut_off_in_turn<'a>(
    all: &[&'a EngineMapping],
) -> impl Iterator<Item = (&'a EngineMapping, Result<bool, RegionError>)> {
    let mut all = all.to_vec();
    all.sort_by_key(|mapping| cut_of(mapping).0);
    let mut is_heard = false;
    all.into_iter().map(move |mapping| {
        let cut = match cut_of(mapping).1 {
            CutOff::WithoutPackets if is_heard => CutOff::Following,
            cut => cut,
        };
        let is_cut_off = mapping.cut_off(cut);
        is_heard |= !matches!(is_cut_off, Ok(true));
        (mapping, is_cut_off)
    })
}
