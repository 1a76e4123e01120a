//! Time span: a time on the command line.

use std::time::Duration;

const UNITS: [(&str, f64); 7] = [
    ("ns", 1e-9),
    ("us", 1e-6),
    ("µs", 1e-6),
    ("ms", 1e-3),
    ("s", 1.0),
    ("m", 60.0),
    ("h", 3600.0),
];

/// A number and a unit, as `12us`, `1.5ms` or `10m`; none where it is something else.
pub(super) fn time_span(text: &str) -> Option<Duration> {
    let mut units = UNITS.into_iter();
    let (number, seconds) =
        units.find_map(|(unit, seconds)| Some((text.strip_suffix(unit)?, seconds)))?;
    Duration::try_from_secs_f64(number.parse::<f64>().ok()? * seconds).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_a_number_and_a_unit() {
        for (text, expected) in [
            ("7ns", 7),
            ("12us", 12_000),
            ("0.5µs", 500),
            ("1.5ms", 1_500_000),
            ("2s", 2_000_000_000),
            ("10m", 600_000_000_000),
            ("2h", 7_200_000_000_000),
            ("0s", 0),
        ] {
            assert_eq!(
                time_span(text),
                Some(Duration::from_nanos(expected)),
                "{text}"
            );
        }
        for text in ["", "2", "s", "-1s", "NaNs", "infs", "1e300s", "2 minutes"] {
            assert_eq!(time_span(text), None, "{text}");
        }
    }
}
