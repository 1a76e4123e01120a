//! Verdict: the one line that a group of rows comes to.

use super::Row;
use super::quantity::{count, figures};
use crate::workload::{Mechanism, Scenario};

/// What the native rows of a group are against its others, in a sentence; `None` where there is
/// nothing to compare.
#[must_use]
pub fn verdict(group: &[&Row]) -> Option<String> {
    if group.first()?.scenario == Scenario::Idle {
        return Some(of_idle(group));
    }
    let of = |mechanism| {
        group
            .iter()
            .copied()
            .find(|row| row.mechanism == mechanism && row.stands())
    };
    let native = of(Mechanism::NativeSystemEvent)?;
    let against = [
        Mechanism::TimelineSemaphore,
        Mechanism::MonitoredFence,
        Mechanism::BareControl,
    ];
    let compare = |native: &Row, against: &[Mechanism]| -> Vec<String> {
        let rows = against.iter().flat_map(|mechanism| {
            let of_it = group.iter().filter(|row| row.mechanism == *mechanism);
            // Of `work` each way is asked for, whichever is the fastest.
            of_it.filter(|row| row.stands() || row.scenario == Scenario::Work)
        });
        rows.map(|row| compared(row.p50_ns / native.p50_ns, &called(row)))
            .collect()
    };
    let parts = compare(native, &against);
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
        if other.scenario == Scenario::CrossAdapter {
            let name = format!("one that {}", other.variant().unwrap_or_default());
            verdict.extend(["; ", &compared(other.p50_ns / native.p50_ns, &name)]);
        } else if other.scenario == Scenario::Work {
            let variant = other.variant().unwrap_or_default();
            let parts = compare(other, &against).join(", ");
            verdict.extend(["; one that ", variant, " ", &parts]);
        } else if let (Some(timeline), Some(variant)) =
            (of(Mechanism::TimelineSemaphore), other.variant())
        {
            let against = compared(timeline.p50_ns / other.p50_ns, "timeline semaphores");
            verdict.extend(["; one that ", variant, " ", &against]);
        }
    }
    if let Some(polled) = of(Mechanism::NativeSystemPolled) {
        let against = [Mechanism::TimelineSemaphore, Mechanism::BareControl];
        verdict.extend(["; polled ", &compare(polled, &against).join(", ")]);
    }
    // Where there is but one memory the row claims nothing.
    if let Some(local) = of(Mechanism::NativeLocalEvent).filter(|row| !row.same_memory) {
        let against = [Mechanism::NativeSystemEvent, Mechanism::TimelineSemaphore];
        verdict.extend(["; in local memory ", &compare(local, &against).join(", ")]);
    }
    if let Some(share) = of(Mechanism::BareControl).and_then(Row::not_co_scheduled) {
        let said = format!("; {} of the bare control's batches", percent(share));
        verdict.extend([&said, " were not co-scheduled, and done again"]);
    }
    Some(verdict)
}

/// What each does in a second in which nothing goes on; times say nothing.
fn of_idle(group: &[&Row]) -> String {
    let each: Vec<_> = group
        .iter()
        .map(|row| {
            format!(
                "{} {} vkQueueSubmit, {} wake-ups, {} of a core",
                row.mechanism,
                count(Some(row.submits_per_kop / 1e3)),
                count(row.wakeups_per_kop.map(|wakeups| wakeups / 1e3)),
                percent(row.cpu_s_per_kop / 1e3),
            )
        })
        .collect();
    format!("idle, in a second: {}", each.join("; "))
}

/// How a sentence calls what a native row is compared with.
fn called(row: &Row) -> String {
    let name = match row.mechanism {
        Mechanism::TimelineSemaphore => "timeline semaphores",
        Mechanism::MonitoredFence => "monitored fences",
        Mechanism::BareControl => "the bare control",
        Mechanism::NativeSystemEvent => "in system memory",
        other => other.name(),
    };
    // Of timeline semaphores the fastest way counts, whichever it is, but where each is compared; the bare control's are
    // different work.
    let is_each = row.scenario == Scenario::Work || row.mechanism == Mechanism::BareControl;
    match row.variant().filter(|_| is_each) {
        Some(variant) => format!("{name} ({variant})"),
        None => name.to_owned(),
    }
}

fn percent(share: f64) -> String {
    format!("{} %", count(Some(share * 100.0)))
}

/// What a scenario is called in sentences.
pub(super) fn scenario_title(scenario: Scenario) -> &'static str {
    match scenario {
        Scenario::Handoff => "hand-off",
        Scenario::HandoffCross => "hand-off between engines",
        Scenario::CrossAdapter => "hand-off between adapters",
        Scenario::Storm => "storm",
        Scenario::CpuWait => "CPU wait",
        Scenario::CpuSignal => "CPU signal",
        Scenario::FanOut => "fan-out",
        Scenario::FanIn => "fan-in",
        Scenario::Copy => "copy",
        Scenario::Work => "work",
        Scenario::Scale => "scale",
        Scenario::Reset => "reset",
        Scenario::Idle => "idle",
    }
}

/// What a row is of.
pub(super) fn title(row: &Row) -> String {
    let name = scenario_title(row.scenario);
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
    fn a_verdict_says_how_often_the_control_had_no_two_cores() {
        let native = row(Scenario::HandoffCross, Mechanism::NativeSystemEvent, 1000.0);
        let monitored = row(Scenario::HandoffCross, Mechanism::MonitoredFence, 20_000.0);
        let mut bare = row(Scenario::HandoffCross, Mechanism::BareControl, 250.0);
        bare.params.insert("not_co_scheduled".into(), 0.125.into());
        let polled = row(Scenario::HandoffCross, Mechanism::NativeSystemPolled, 750.0);
        assert_eq!(
            verdict(&[&native, &polled, &monitored, &bare]).unwrap(),
            "hand-off between engines: native 20.0 times faster than monitored fences, takes 4.00 \
             times as long as the bare control; polled takes 3.00 times as long as the bare \
             control; 12.5 % of the bare control's batches were not \
             co-scheduled, and done again"
        );
    }

    #[test]
    fn the_doorbell_is_compared_with_the_way_by_the_os() {
        let of = |variant: &str, best: bool, time| {
            let mut row = row(Scenario::CrossAdapter, Mechanism::NativeSystemEvent, time);
            row.params.insert("variant".into(), variant.into());
            row.params.insert("baseline".into(), best.into());
            row
        };
        let rings = of("rings a doorbell", true, 1000.0);
        let propagated = of("is propagated by the OS", false, 12_000.0);
        let bare = row(Scenario::CrossAdapter, Mechanism::BareControl, 400.0);
        assert_eq!(
            verdict(&[&rings, &propagated, &bare]).unwrap(),
            "hand-off between adapters: native, which rings a doorbell, takes 2.50 times as long as \
             the bare control; 12.0 times faster than one that is propagated by the OS"
        );
    }

    #[test]
    fn of_work_each_kernel_is_compared_with_each_way_and_the_control() {
        let of = |mechanism, variant: &str, best: bool, time| {
            let mut row = row(Scenario::Work, mechanism, time);
            row.params.insert("variant".into(), variant.into());
            row.params.insert("baseline".into(), best.into());
            row
        };
        let native = |variant, best, time| of(Mechanism::NativeSystemEvent, variant, best, time);
        let timeline = |variant, best, time| of(Mechanism::TimelineSemaphore, variant, best, time);
        let (itself, plain) = (
            native("schedules itself", true, 1000.0),
            native("is plain", false, 5000.0),
        );
        let (each, one) = (
            timeline("submit per link", false, 4000.0),
            timeline("one submit", true, 3000.0),
        );
        let bare = row(Scenario::Work, Mechanism::BareControl, 800.0);
        let said = verdict(&[&itself, &plain, &each, &one, &bare]).unwrap();
        let expected = "native, which schedules itself, 4.00 times faster than timeline semaphores (submit per link), \
                        3.00 times faster than timeline semaphores (one submit), takes 1.25 times as long as the bare \
                        control; one that is plain takes 1.25 times as long as timeline semaphores (submit per link), \
                        takes 1.67 times as long as timeline semaphores (one submit), takes 6.25 times as long as the \
                        bare control";
        assert!(said.ends_with(expected), "{said}");
    }

    #[test]
    fn local_memory_is_compared_where_it_is_another() {
        let native = row(Scenario::Handoff, Mechanism::NativeSystemEvent, 1000.0);
        let timeline = row(Scenario::Handoff, Mechanism::TimelineSemaphore, 2000.0);
        let mut local = row(Scenario::Handoff, Mechanism::NativeLocalEvent, 500.0);
        let begin = "hand-off: native 2.00 times faster than timeline semaphores";
        let in_local = "; in local memory 2.00 times faster than in system memory, 4.00 times \
                        faster than timeline semaphores";
        let said = |local: &Row| verdict(&[&native, local, &timeline]).unwrap();
        assert_eq!(said(&local), format!("{begin}{in_local}"));
        local.same_memory = true;
        assert_eq!(said(&local), begin);
    }

    #[test]
    fn of_idle_counts_are_said_and_no_times() {
        let mut native = row(Scenario::Idle, Mechanism::NativeSystemEvent, 1e9);
        native.submits_per_kop = 0.0;
        native.wakeups_per_kop = Some(0.0);
        native.cpu_s_per_kop = 0.25;
        let mut timeline = row(Scenario::Idle, Mechanism::TimelineSemaphore, 1e9);
        timeline.submits_per_kop = 0.0;
        timeline.wakeups_per_kop = Some(2_000.0);
        timeline.cpu_s_per_kop = 10.0;
        assert_eq!(
            verdict(&[&native, &timeline]).unwrap(),
            "idle, in a second: native-system-event 0 vkQueueSubmit, 0 wake-ups, 0.03 % of a core; \
             timeline-semaphore 0 vkQueueSubmit, 2.00 wake-ups, 1.00 % of a core"
        );
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
