//! Quantities, as a person reads them: three figures and a unit.

/// A time of so many nanoseconds.
#[must_use]
pub fn time(nanoseconds: f64) -> String {
    for (unit, size) in [("s", 1e9), ("ms", 1e6), ("µs", 1e3)] {
        if nanoseconds >= size {
            return format!("{} {unit}", figures(nanoseconds / size));
        }
    }
    format!("{} ns", figures(nanoseconds))
}

/// A count in a second.
#[must_use]
pub fn rate(per_second: f64) -> String {
    for (unit, size) in [("G", 1e9), ("M", 1e6), ("k", 1e3)] {
        if per_second >= size {
            return format!("{} {unit}/s", figures(per_second / size));
        }
    }
    format!("{} /s", figures(per_second))
}

/// A count for 1,000 operations.
pub(super) fn count(count: Option<f64>) -> String {
    match count {
        None => "–".into(),
        Some(0.0) => "0".into(),
        Some(count) if count < 0.01 => "< 0.01".into(),
        Some(count) => figures(count),
    }
}

/// What a thing is that takes a `faster`-th of the time of another.
pub(super) fn speed(faster: f64) -> String {
    if faster >= 1.0 {
        format!("{}× faster", figures(faster))
    } else {
        format!("{}× slower", figures(1.0 / faster))
    }
}

/// Three significant figures.
pub(super) fn figures(value: f64) -> String {
    match value {
        value if value >= 99.95 => format!("{value:.0}"),
        value if value >= 9.995 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_figures_and_a_unit() {
        assert_eq!(time(812.4), "812 ns");
        assert_eq!(time(26.04), "26.0 ns");
        assert_eq!(time(2_500.0), "2.50 µs");
        assert_eq!(time(31_250_000.0), "31.2 ms");
        assert_eq!(rate(12_345_678.0), "12.3 M/s");
        assert_eq!(count(None), "–");
        assert_eq!(count(Some(0.001)), "< 0.01");
        assert_eq!(count(Some(0.0)), "0");
        assert_eq!(speed(2.6), "2.60× faster");
        assert_eq!(speed(0.25), "4.00× slower");
    }
}
