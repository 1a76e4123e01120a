//! Text: what a soak did, for people.

use super::super::paint::{BOLD, GREEN, RED, painted};
use super::found::{Ended, Found};
use crate::report::{DeviceDescription, rate};
use crate::soak::Tally;
use std::fmt::Write;
use std::time::Duration;

/// A line while it runs.
pub(super) fn progress(tally: &Tally, time: Duration) -> String {
    format!(
        "{} rounds, {} signals, {} CPU waits, {} faults in {} s",
        tally.rounds,
        grouped(tally.signals),
        grouped(tally.cpu_waits),
        tally.faults,
        time.as_secs()
    )
}

/// All of it.
pub(super) fn text(found: &Found, colour: bool) -> String {
    let mut text = String::new();
    let device = found.device.as_ref();
    let device = device.map_or_else(|| "the model engine".into(), DeviceDescription::line);
    let _ = writeln!(text, "{}", painted(&device, BOLD, colour));
    let _ = writeln!(text, "{}; seed {}", found.machine.line(), found.seed);
    let tally = &found.tally;
    let lines: [(&str, Vec<(u64, &str)>); 8] = [
        (
            "played",
            vec![
                (tally.rounds, "rounds"),
                (tally.adapters, "adapters"),
                (tally.optimized_adapters, "with interrupts that name queues"),
                (tally.twice_mapped_adapters, "with all mapped twice"),
                (tally.devices, "devices"),
                (tally.contexts, "contexts"),
                (tally.queues, "queues"),
                (tally.fences, "fences"),
                (tally.cross_adapter_fences, "of two adapters"),
                (tally.monitored_fences, "monitored fences"),
            ],
        ),
        (
            "by engines",
            vec![
                (tally.signals, "signals"),
                (tally.progress_signals, "of progress"),
                (tally.gpu_waits, "waits"),
                (tally.transfers, "transfers"),
                (tally.dispatches, "dispatches of kernels"),
                (tally.packets, "packets"),
            ],
        ),
        (
            "by the OS",
            vec![
                (tally.kernel_queues, "kernel-mode queues"),
                (tally.kernel_waits, "waits of theirs"),
                (tally.kernel_signals, "signals for them"),
            ],
        ),
        (
            "by the CPU",
            vec![
                (tally.cpu_waits, "waits"),
                (tally.timed_out, "of them timed out as they should"),
                (tally.cancelled_waits, "cancelled"),
                (tally.cpu_signals, "signals"),
                (tally.disturbances, "disturbances"),
            ],
        ),
        (
            "gone again",
            vec![
                (tally.visits, "fences with two queues each"),
                (tally.visits_with_work, "of them with work behind a wait"),
                (tally.rewinds, "rewinds"),
            ],
        ),
        (
            "told",
            vec![
                (tally.interrupts, "interrupts"),
                (tally.notifications, "notifications"),
                (tally.doorbells_taken, "doorbells taken"),
                (tally.slices, "slices"),
                (tally.log_entries, "log entries read"),
            ],
        ),
        (
            "struck",
            vec![
                (tally.faults, "faults"),
                (tally.recoveries, "recoveries"),
                (tally.replaced, "engines replaced"),
                (tally.heirs, "heirs of the guilty's fences"),
                (tally.unforetold, "rounds of which nothing was foretold"),
            ],
        ),
        (
            "oracle",
            vec![(tally.model_signals, "signals of the model")],
        ),
    ];
    for (name, counts) in lines {
        let counts = counts.iter();
        let counts = counts.map(|(count, what)| format!("{} {what}", grouped(*count)));
        let counts: Vec<_> = counts.collect();
        let _ = writeln!(text, "{name:<11} {}", counts.join(", "));
    }
    let _ = writeln!(
        text,
        "{:<11} {:.1} s, {} signals",
        "time",
        found.seconds,
        rate(found.signals_per_second)
    );
    match &found.ended {
        Ended::Failed { failure, again } => {
            let _ = writeln!(text, "\n{} {failure}", painted("Differs:", RED, colour));
            let _ = writeln!(text, "again: {again}");
        }
        Ended::Interrupted => {
            let _ = writeln!(text, "interrupted: until then all was as foretold");
        }
        Ended::Reached => {
            let all = "All was as foretold.";
            let _ = writeln!(text, "{}", painted(all, GREEN, colour));
        }
    }
    text
}

/// With a comma before every three digits.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_numbers_are_grouped() {
        for (number, expected) in [
            (0, "0"),
            (999, "999"),
            (1000, "1,000"),
            (1_234_567, "1,234,567"),
        ] {
            assert_eq!(grouped(number), expected);
        }
    }
}
