//! Limits: how many resets there may be within TdrLimitTime (TD-10).

use super::policy::{TdrDebugMode, TdrPolicy};
use std::collections::VecDeque;
use std::time::Instant;

/// Resets so far that still count.
#[derive(Debug, Default)]
pub(super) struct Limits {
    adapter: VecDeque<Instant>,
    engines: VecDeque<Instant>,
}

/// Whether one more at `now` is more than `most` within the policy's time; counts it.
fn is_over(resets: &mut VecDeque<Instant>, most: u32, policy: &TdrPolicy, now: Instant) -> bool {
    resets.retain(|reset| now.saturating_duration_since(*reset) < policy.limit_time);
    resets.push_back(now);
    policy.debug_mode != TdrDebugMode::RecoverUnconditional && resets.len() > most as usize
}

impl Limits {
    /// An adapter-wide reset is due: whether the adapter is to be stopped instead.
    pub(super) fn is_adapter_over(&mut self, policy: &TdrPolicy, now: Instant) -> bool {
        is_over(&mut self.adapter, policy.limit_count, policy, now)
    }

    /// An engine was reset for this program: whether it is to be blocked.
    pub(super) fn is_program_over(&mut self, policy: &TdrPolicy, now: Instant) -> bool {
        let most = policy.limit_count.saturating_sub(1);
        is_over(&mut self.engines, most, policy, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::time::Duration;

    /// TD-10: the sixth adapter-wide reset within a minute is one too many, and the fifth of an engine; those
    /// of before count no more.
    #[test]
    fn td_10_more_than_the_limit_within_its_time_is_too_many() {
        let (policy, begin) = (TdrPolicy::default(), Instant::now());
        let at = |seconds| begin + Duration::from_secs(seconds);
        let mut limits = Limits::default();
        for second in 0..5 {
            assert!(!limits.is_adapter_over(&policy, at(second)));
        }
        assert!(limits.is_adapter_over(&policy, at(59)));
        // Of these the first five are a minute old or more.
        let mut limits = Limits::default();
        for second in 0..5 {
            assert!(!limits.is_adapter_over(&policy, at(second)));
        }
        assert!(!limits.is_adapter_over(&policy, at(64)));

        let mut limits = Limits::default();
        for second in 0..4 {
            assert!(!limits.is_program_over(&policy, at(second)));
        }
        assert!(limits.is_program_over(&policy, at(4)));
        assert!(
            !limits.is_adapter_over(&policy, at(5)),
            "engines do not count"
        );
    }

    /// `TDR_DEBUG_MODE_RECOVER_UNCONDITIONAL`.
    #[test]
    fn td_10_without_conditions_there_is_no_limit() {
        let policy = TdrPolicy {
            debug_mode: TdrDebugMode::RecoverUnconditional,
            ..TdrPolicy::default()
        };
        let (mut limits, now) = (Limits::default(), Instant::now());
        assert!((0..100).all(|_| !limits.is_adapter_over(&policy, now)));
        assert!((0..100).all(|_| !limits.is_program_over(&policy, now)));
    }

    proptest! {
        /// TD-10: whenever resets come, one is too many exactly where more of them than the limit, itself among them,
        /// lie within the limit's time; engines' limit is one less.
        ///
        /// Kills `a-reset-counts-a-moment-longer`, `one-reset-more-is-forgiven`.
        #[test]
        fn td_10_a_reset_counts_for_the_limit_time(
            pauses in prop::collection::vec(0..30_u64, 1..60),
            limit_count in 1..8_u32,
            limit_seconds in 1..90_u64,
        ) {
            let policy = TdrPolicy {
                limit_count,
                limit_time: Duration::from_secs(limit_seconds),
                ..TdrPolicy::default()
            };
            let (mut limits, begin) = (Limits::default(), Instant::now());
            let mut resets = Vec::new();
            let mut seconds = 0;
            for pause in pauses {
                seconds += pause;
                resets.push(seconds);
                let counting = resets.iter().filter(|reset| seconds - *reset < limit_seconds);
                let counting = counting.count();
                let now = begin + Duration::from_secs(seconds);
                let most = limit_count as usize;
                prop_assert_eq!(limits.is_adapter_over(&policy, now), counting > most);
                prop_assert_eq!(limits.is_program_over(&policy, now), counting > most - 1);
            }
        }
    }
}
