//! Verdict: the one line that a group of rows comes to.

use super::Row;
use super::quantity::figures;
use crate::workload::{Mechanism, Scenario};

/// What the native rows of a group are against its others, in a sentence; `None` where there is
/// nothing to compare.
#[must_use]
pub fn verdict(group: &[&Row]) -> Option<String> {
    let of = |mechanism| {
        group
            .iter()
            .copied()
            .find(|row| row.mechanism == mechanism && row.stands())
    };
    let native = of(Mechanism::NativeSystemEvent)?;
    let against = [
        (of(Mechanism::TimelineSemaphore), "timeline semaphores"),
        (of(Mechanism::BareControl), "the bare control"),
    ];
    let parts: Vec<_> = against
        .into_iter()
        .filter_map(|(row, name)| Some((row?, name)))
        .map(|(row, name)| compared(row.p50_ns / native.p50_ns, name))
        .collect();
    if parts.is_empty() {
        return None;
    }
    let variant = native
        .variant()
        .map(|variant| format!(", which {variant},"));
    let mut verdict = format!(
        "{}: native{} {}",
        title(native),
        variant.unwrap_or_default(),
        parts.join(", ")
    );
    // The other ways to use native fences, so that the fastest does not speak for all.
    let others = group
        .iter()
        .filter(|row| row.mechanism == native.mechanism && !row.stands());
    for other in others {
        if let (Some(timeline), Some(variant)) = (of(Mechanism::TimelineSemaphore), other.variant())
        {
            let against = compared(timeline.p50_ns / other.p50_ns, "timeline semaphores");
            verdict.extend(["; one that ", variant, " ", &against]);
        }
    }
    Some(verdict)
}

/// What a row is of.
pub(super) fn title(row: &Row) -> String {
    let name = match row.scenario {
        Scenario::Handoff => "hand-off",
        Scenario::HandoffCross => "hand-off between engines",
        Scenario::Storm => "storm",
        Scenario::CpuWait => "CPU wait",
        Scenario::CpuSignal => "CPU signal",
        Scenario::FanOut => "fan-out",
        Scenario::FanIn => "fan-in",
        Scenario::Idle => "idle",
    };
    match row.form() {
        Some(form) => format!("{name}, {form}"),
        None => name.to_owned(),
    }
}

/// `faster` is how many times the other takes longer.
fn compared(faster: f64, name: &str) -> String {
    if (0.98..1.02).contains(&faster) {
        format!("as fast as {name}")
    } else if faster >= 1.0 {
        format!("{} times faster than {name}", figures(faster))
    } else {
        format!("takes {} times as long as {name}", figures(1.0 / faster))
    }
}

#[cfg(test)]
mod tests {
    use super::super::row::tests_support::row;
    use super::*;

    #[test]
    fn a_verdict_says_who_is_faster_and_by_how_much() {
        let native = row(Scenario::Handoff, Mechanism::NativeSystemEvent, 1000.0);
        let timeline = row(Scenario::Handoff, Mechanism::TimelineSemaphore, 2600.0);
        let bare = row(Scenario::Handoff, Mechanism::BareControl, 320.0);
        assert_eq!(
            verdict(&[&native, &timeline, &bare]).unwrap(),
            "hand-off: native 2.60 times faster than timeline semaphores, takes 3.12 times as long \
             as the bare control"
        );
        assert_eq!(verdict(&[&timeline, &bare]), None);
        assert_eq!(verdict(&[&native]), None);
    }

    #[test]
    fn of_several_timeline_rows_the_baseline_counts() {
        let native = row(Scenario::Handoff, Mechanism::NativeSystemEvent, 1000.0);
        let mut slow = row(Scenario::Handoff, Mechanism::TimelineSemaphore, 9000.0);
        slow.params.insert("baseline".into(), false.into());
        let mut fast = row(Scenario::Handoff, Mechanism::TimelineSemaphore, 2000.0);
        fast.params.insert("baseline".into(), true.into());
        assert_eq!(
            verdict(&[&native, &slow, &fast]).unwrap(),
            "hand-off: native 2.00 times faster than timeline semaphores"
        );
    }
}
