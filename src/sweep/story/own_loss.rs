//! Own loss: what an adapter says of an engine that the story itself has lost.
//!
//! It says the same of one that a fault has lost. So who looks for the words that a fault was told in has to pass over those
//! of the story's own: they are there in every run. What is beside them is not.

use crate::os::Record;

/// The node whose engine it is.
const NODE: u32 = 0;

/// An adapter's records, where the story has lost an engine all but the first reset of that node: another one, or that of
/// another node, is none of the story's.
pub(super) fn records_beside(
    records: &[Record],
    has_lost_one: bool,
) -> impl Iterator<Item = &Record> {
    let is_of_node = |record: &Record| {
        record.code == Record::VIDEO_ENGINE_TIMEOUT_DETECTED
            && record.parameters[3] == u64::from(NODE)
    };
    let own = has_lost_one.then(|| records.iter().position(is_of_node));
    let own = own.flatten();
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

    /// What an adapter says of the engine that the story has lost names no fault; of any other, and of that one once more,
    /// it may.
    ///
    /// Kills `the-storys-own-loss-names-a-fault`, `no-loss-names-a-fault`, `a-call-that-failed-is-the-storys-loss`.
    #[test]
    fn the_loss_that_every_run_has_is_passed_over_and_no_other() {
        let records = [reset_of(1), reset_of(0), reset_of(0)];
        let beside = |has_lost_one| -> Vec<_> {
            let beside = records_beside(&records, has_lost_one);
            beside.map(|record| record.parameters[3]).collect()
        };
        assert_eq!(beside(false), [1, 0, 0]);
        assert_eq!(beside(true), [1, 0]);
        let lost = "the Vulkan device is lost (vkQueueSubmit)";
        assert!(is_own_failure(0, lost));
        assert!(!is_own_failure(1, lost));
        assert!(!is_own_failure(0, "vkQueueSubmit answered ERROR_UNKNOWN"));
    }
}
