//! Own loss: what an adapter says of an engine that the story itself has lost.
//!
//! It says the same of one that a fault has lost. So who looks for the words that a fault was told in has to pass over those
//! of the story's own: they are there in every run. What is beside them is not.

use crate::os::Record;

/// The node whose engine it is.
const NODE: u32 = 0;

/// What it was at, and so what is reset for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::sweep) enum OwnLoss {
    /// A program's packet: the engine.
    OfPrograms,
    /// A packet that pages: the adapter. Between two of them it is the engine.
    OfPaging,
}

impl OwnLoss {
    /// Whether a record is of the reset that comes of it, and of no other cause.
    fn led_to(self, record: &Record) -> bool {
        let is_resets = match record.code {
            Record::VIDEO_ENGINE_TIMEOUT_DETECTED => true,
            Record::VIDEO_TDR_TIMEOUT_DETECTED => {
                self == Self::OfPaging && record.reason.ends_with(Record::PAGING_PACKET)
            }
            _ => false,
        };
        is_resets && record.parameters[3] == u64::from(NODE)
    }
}

/// An adapter's records, where the story has lost an engine all but the first reset that comes of it: another one, or that of
/// another node, is none of the story's.
pub(super) fn records_beside(
    records: &[Record],
    loss: Option<OwnLoss>,
) -> impl Iterator<Item = &Record> {
    let led_to = |loss: OwnLoss| records.iter().position(|record| loss.led_to(record));
    let own = loss.and_then(led_to);
    let beside = records.iter().enumerate();
    beside.filter_map(move |(at, record)| (Some(at) != own).then_some(record))
}

/// Whether this, which an engine's device failed by, is the loss: no other answer of the driver's is.
pub(super) fn is_own_failure(node: u32, why: &str) -> bool {
    node == NODE && why.contains("is lost")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reset_of(node: u64) -> Record {
        Record {
            code: Record::VIDEO_ENGINE_TIMEOUT_DETECTED,
            parameters: [0, 0, Record::ENGINE_TIMEOUT, node],
            reason: format!("the engine of node {node} was lost"),
        }
    }

    fn reset_of_all(why: &str) -> Record {
        Record::adapter_timeout(&[0, 1].into(), Some(&why))
    }

    /// What an adapter says of the engine that the story has lost names no fault; of any other, and of that one once more,
    /// it may.
    ///
    /// Kills `the-storys-own-loss-names-a-fault`, `no-loss-names-a-fault`, `a-call-that-failed-is-the-storys-loss`.
    #[test]
    fn the_loss_that_every_run_has_is_passed_over_and_no_other() {
        let records = [reset_of(1), reset_of(0), reset_of(0)];
        let beside = |loss| -> Vec<_> {
            let beside = records_beside(&records, loss);
            beside.map(|record| record.parameters[3]).collect()
        };
        assert_eq!(beside(None), [1, 0, 0]);
        assert_eq!(beside(Some(OwnLoss::OfPrograms)), [1, 0]);
        assert_eq!(beside(Some(OwnLoss::OfPaging)), [1, 0]);
        let lost = "the Vulkan device is lost (vkQueueSubmit)";
        assert!(is_own_failure(0, lost));
        assert!(!is_own_failure(1, lost));
        assert!(!is_own_failure(0, "vkQueueSubmit answered ERROR_UNKNOWN"));
    }

    /// The reset of the adapter comes of the packet that paged, and where a spare could not be made of that.
    ///
    /// Kills `any-reset-of-the-adapter-is-the-storys`.
    #[test]
    fn a_reset_of_the_adapter_is_the_storys_where_it_paged() {
        let paged = reset_of_all(Record::PAGING_PACKET);
        let by_fault = reset_of_all("no spare engine (vkCreateDevice)");
        let records = [by_fault.clone(), paged.clone(), paged.clone()];
        let beside = |loss| -> Vec<_> { records_beside(&records, loss).cloned().collect() };
        assert_eq!(beside(Some(OwnLoss::OfPaging)), [by_fault, paged]);
        assert_eq!(beside(Some(OwnLoss::OfPrograms)), records);
    }
}
