//! Record: what the OS notes of a failure that is not the user's (`layouts.md` 4.3).
//!
//! A bug check is the end of an adapter: the driver, or the engine behind it, broke what the OS relies
//! on. The documents stop the machine; here the adapter is stopped and the process goes on. A live
//! record is noted and ends nothing. Both are data with the documents' codes and parameters, to be
//! read while the adapter's object lives.

use super::tdr::InvalidAbortedFence;
use crate::abi::FenceId;
use crate::abi::wddm::NtStatus;
use crate::kmd::{ContextHandle, DdiError, WrongLevel};
use std::collections::BTreeSet;
use std::fmt;

/// What happened, by the documents' numbers and in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The bug check's code.
    pub code: u32,
    /// P1 to P4. Addresses, of a recovery's context or a driver's code, have no counterpart and are 0; where
    /// the documents name an internal word stands the node, if there is one (choice).
    pub parameters: [u64; 4],
    /// What it says of the driver, and of what.
    pub reason: String,
}

impl Record {
    /// `VIDEO_SCHEDULER_INTERNAL_ERROR`, a bug check; P1 says of what kind.
    pub const VIDEO_SCHEDULER_INTERNAL_ERROR: u32 = 0x119;
    /// `DRIVER_VERIFIER_DETECTED_VIOLATION`, here a live record of a call at a wrong level (choice):
    /// P1 is the level that the thread was at, P2 the one that the call is documented at.
    pub const DRIVER_VERIFIER_DETECTED_VIOLATION: u32 = 0xC4;
    /// `VIDEO_TDR_FAILURE`, a bug check: no recovery, or too many.
    pub const VIDEO_TDR_FAILURE: u32 = 0x116;
    /// `VIDEO_TDR_TIMEOUT_DETECTED`, a live record: the adapter was reset.
    pub const VIDEO_TDR_TIMEOUT_DETECTED: u32 = 0x117;
    /// `VIDEO_ENGINE_TIMEOUT_DETECTED`, a live record: an engine was reset.
    pub const VIDEO_ENGINE_TIMEOUT_DETECTED: u32 = 0x141;
    /// A live record: a program that caused too many resets is kept from the adapter. P4 is its process id.
    pub const VIDEO_PROGRAM_BLOCKED: u32 = 0x142;
    /// `TdrEngineTimeoutPromotedToAdapterReset`, the reason of an adapter's reset that one of an engine led to.
    /// A reason stands in P3, where drivers have their bucketing keys (choice).
    pub const ENGINE_TIMEOUT_PROMOTED: u64 = 9;
    /// The reason of an adapter's reset that no engine's came before (choice: the number is that of
    /// `DXGK_TDR_TYPE`, in which the published reason is the same).
    pub const PREEMPT_TIMEOUT: u64 = 2;
    /// The reason of an engine's reset (choice, as [`Record::PREEMPT_TIMEOUT`]).
    pub const ENGINE_TIMEOUT: u64 = 6;
    /// Why an adapter was reset whose engine was at a packet that pages, as the reason has it.
    pub(crate) const PAGING_PACKET: &str = "the packet that was aborted was a paging packet";
    /// P1 of 0x119: the node that is reset is none of its own dependent group.
    pub const NODE_WITHOUT_ITSELF: u64 = 0x8;
    /// P1 of 0x119: LastAbortedFenceId is none that can be.
    pub const INVALID_ABORTED_FENCE: u64 = 0xA;
    /// P1 of 0x119: an id that no fence has or had.
    pub const INVALID_FENCE_ID: u64 = 0x1;
    /// P1 of 0x119: a submission failed, or `DxgkDdiPreemptCommand`.
    pub const SUBMISSION_OR_PREEMPTION_FAILED: u64 = 0x2;
    /// P1 of 0x119: a suspend fence that was not issued yet (PR-18).
    pub const SUSPEND_FENCE_NOT_ISSUED: u64 = 0x11;
    /// P1 of 0x119: `DxgkDdiUpdateMonitoredValues` failed.
    pub const UPDATE_OF_MONITORED_VALUE_FAILED: u64 = 0x12;
    /// P1 of 0x119: `DxgkDdiUpdateCurrentValuesFromCpu` failed.
    pub const UPDATE_OF_CURRENT_VALUE_FAILED: u64 = 0x13;

    /// Whether it is the end of the adapter that it is about.
    #[must_use]
    pub fn is_bug_check(&self) -> bool {
        matches!(
            self.code,
            Self::VIDEO_SCHEDULER_INTERNAL_ERROR | Self::VIDEO_TDR_FAILURE
        )
    }

    /// TD-10, TD-20: no recovery. P3 is the status of the operation that failed last, if one did.
    pub(super) fn video_tdr_failure(
        node_ordinal: u32,
        failed: Option<&DdiError>,
        reason: &str,
    ) -> Self {
        Self {
            code: Self::VIDEO_TDR_FAILURE,
            parameters: [0, 0, failed.map_or(0, status_of), u64::from(node_ordinal)],
            reason: format!("no recovery of the engine of node {node_ordinal}: {reason}"),
        }
    }

    /// TD-21: the engine of a node was reset; or left as it is, where TdrDebugMode says so.
    pub(super) fn engine_timeout(node_ordinal: u32, is_reset: bool) -> Self {
        let what = if is_reset {
            "was reset"
        } else {
            "is left as it is"
        };
        Self {
            code: Self::VIDEO_ENGINE_TIMEOUT_DETECTED,
            parameters: [0, 0, Self::ENGINE_TIMEOUT, u64::from(node_ordinal)],
            reason: format!(
                "the engine of node {node_ordinal} did not answer or was lost, and {what}"
            ),
        }
    }

    /// TD-08, TD-20: the adapter was reset; `why` the reset of an engine did not do, if there was one.
    pub(crate) fn adapter_timeout(nodes: &BTreeSet<u32>, why: Option<&dyn fmt::Display>) -> Self {
        let tdr_reason = match why {
            Some(_) => Self::ENGINE_TIMEOUT_PROMOTED,
            None => Self::PREEMPT_TIMEOUT,
        };
        let why = why.map_or_else(
            || String::from("the driver resets no engine by itself"),
            ToString::to_string,
        );
        let node = nodes.first().copied().unwrap_or_default();
        Self {
            code: Self::VIDEO_TDR_TIMEOUT_DETECTED,
            parameters: [0, 0, tdr_reason, u64::from(node)],
            reason: format!("the adapter was reset for the engine of node {node}: {why}"),
        }
    }

    /// TD-10: the program is kept from the adapter.
    pub(super) fn program_blocked(node_ordinal: u32) -> Self {
        let process = u64::from(std::process::id());
        Self {
            code: Self::VIDEO_PROGRAM_BLOCKED,
            parameters: [0, 0, Self::ENGINE_TIMEOUT, process],
            reason: format!(
                "process {process} has caused more resets of engines than it may, the last on node \
                 {node_ordinal}"
            ),
        }
    }

    /// TD-09.
    pub(super) fn node_without_itself(node_ordinal: u32) -> Self {
        Self {
            code: Self::VIDEO_SCHEDULER_INTERNAL_ERROR,
            parameters: [Self::NODE_WITHOUT_ITSELF, u64::from(node_ordinal), 0, 0],
            reason: format!("node {node_ordinal} is not in the group of engines that depend on it"),
        }
    }

    /// TD-03.
    pub(super) fn invalid_aborted_fence(node_ordinal: u32, invalid: InvalidAbortedFence) -> Self {
        let InvalidAbortedFence {
            last_aborted,
            last_completed,
        } = invalid;
        Self {
            code: Self::VIDEO_SCHEDULER_INTERNAL_ERROR,
            parameters: [
                Self::INVALID_ABORTED_FENCE,
                last_aborted,
                last_completed,
                u64::from(node_ordinal),
            ],
            reason: format!(
                "the reset of node {node_ordinal} says that {last_aborted} was aborted, which was \
                 not in the hardware queue: {last_completed} was completed last"
            ),
        }
    }

    /// The driver tells of a command that it was never given (PR-18 of the other submission model).
    pub(super) fn invalid_submission_id(submission_id: u64, node_ordinal: u32) -> Self {
        Self {
            code: Self::VIDEO_SCHEDULER_INTERNAL_ERROR,
            parameters: [
                Self::INVALID_FENCE_ID,
                submission_id,
                u64::from(node_ordinal),
                0,
            ],
            reason: format!(
                "node {node_ordinal} told that submission {submission_id} has completed, which it \
                 was never handed"
            ),
        }
    }

    /// The driver tells that a context was suspended with a fence that the OS never gave (PR-18).
    pub(super) fn suspend_fence_not_issued(fence: u64, context: ContextHandle) -> Self {
        let ContextHandle {
            node_ordinal,
            number,
        } = context;
        Self {
            code: Self::VIDEO_SCHEDULER_INTERNAL_ERROR,
            parameters: [
                Self::SUSPEND_FENCE_NOT_ISSUED,
                fence,
                u64::from(node_ordinal),
                u64::from(number),
            ],
            reason: format!(
                "node {node_ordinal} told that context {number} is suspended with fence {fence}, \
                 which it was never suspended with"
            ),
        }
    }

    /// `DxgkDdiPreemptCommand` failed (PR-18). P2 is the status; P3, the address of the arguments, has no
    /// counterpart: it is the node.
    pub(super) fn preempt_command_failed(node_ordinal: u32, error: &DdiError) -> Self {
        Self {
            code: Self::VIDEO_SCHEDULER_INTERNAL_ERROR,
            parameters: [
                Self::SUBMISSION_OR_PREEMPTION_FAILED,
                status_of(error),
                u64::from(node_ordinal),
                0,
            ],
            reason: format!("PreemptCommand failed on node {node_ordinal}: {error}"),
        }
    }

    /// The driver answers a preemption that nobody asked for, or with a last completed id that was never
    /// submitted or goes back (PR-18).
    pub(super) fn invalid_preemption(preemption_id: u64, last: u64, node_ordinal: u32) -> Self {
        Self {
            code: Self::VIDEO_SCHEDULER_INTERNAL_ERROR,
            parameters: [
                Self::INVALID_FENCE_ID,
                last,
                u64::from(node_ordinal),
                preemption_id,
            ],
            reason: format!(
                "node {node_ordinal} answered preemption {preemption_id} with {last} as its last completed \
                 submission, which cannot be"
            ),
        }
    }

    fn scheduler(violation: u64, id: FenceId, reason: String) -> Self {
        Self {
            code: Self::VIDEO_SCHEDULER_INTERNAL_ERROR,
            // Which fence is our own choice of P2.
            parameters: [violation, id.word(), 0, 0],
            reason,
        }
    }

    /// An interrupt named a fence that was destroyed, or that never was (IN-05).
    pub(super) fn invalid_fence_id(id: FenceId, node_ordinal: u32) -> Self {
        let reason = format!(
            "node {node_ordinal} raised an interrupt that names {id:?}, which is no fence's: the \
             driver names a fence after it was told that nothing refers to it any more"
        );
        Self::scheduler(Self::INVALID_FENCE_ID, id, reason)
    }

    /// FQ-09.
    pub(super) fn update_of_monitored_value_failed(id: FenceId, error: &DdiError) -> Self {
        let reason = format!("UpdateMonitoredValues failed for {id:?}: {error}");
        Self::scheduler(Self::UPDATE_OF_MONITORED_VALUE_FAILED, id, reason)
    }

    /// FQ-09; the first fence of the batch stands for it.
    pub(super) fn update_of_current_value_failed(id: FenceId, error: &DdiError) -> Self {
        let reason = format!("UpdateCurrentValuesFromCpu failed for {id:?}: {error}");
        Self::scheduler(Self::UPDATE_OF_CURRENT_VALUE_FAILED, id, reason)
    }

    /// FQ-09.
    pub(super) fn wrong_level(wrong: WrongLevel) -> Self {
        Self {
            code: Self::DRIVER_VERIFIER_DETECTED_VIOLATION,
            parameters: [wrong.thread as u64, wrong.documented as u64, 0, 0],
            reason: wrong.to_string(),
        }
    }
}

/// `NTSTATUS` of a call that failed, as a parameter.
fn status_of(error: &DdiError) -> u64 {
    let status = match error {
        DdiError::InvalidParameter(_) => NtStatus::INVALID_PARAMETER,
        DdiError::NoThread(_) => NtStatus::INSUFFICIENT_RESOURCES,
        DdiError::Node(_) | DdiError::Reset(_) | DdiError::NoSpare(_) => {
            NtStatus::DRIVER_INTERNAL_ERROR
        }
    };
    u64::from(status.0.cast_unsigned())
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.is_bug_check() {
            "bug check"
        } else {
            "live record"
        };
        let [p1, p2, p3, p4] = self.parameters;
        let (code, reason) = (self.code, &self.reason);
        write!(
            f,
            "{kind} {code:#x} ({p1:#x}, {p2:#x}, {p3:#x}, {p4:#x}): {reason}"
        )
    }
}
