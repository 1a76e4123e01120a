//! Delay: how long engines have to answer, on the command line.

use super::super::time_span::time_span;
use std::time::Duration;

/// Engines that end their slices in time are never taken for hung ones, and a show has an end.
const LEAST: Duration = Duration::from_millis(50);
const MOST: Duration = Duration::from_secs(10);

/// A number and a unit, as `100ms` or `1.5s`.
pub(super) fn parse(text: &str) -> Result<Duration, String> {
    let time = time_span(text).ok_or("write a number and a unit, as 100ms or 1.5s")?;
    if (LEAST..=MOST).contains(&time) {
        Ok(time)
    } else {
        Err(format!("it is {LEAST:?} to {MOST:?}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delay_is_a_number_and_a_unit() {
        let ms = Duration::from_millis;
        for (text, expected) in [
            ("100ms", ms(100)),
            ("50ms", ms(50)),
            ("1.5s", ms(1500)),
            ("10s", ms(10_000)),
        ] {
            assert_eq!(parse(text), Ok(expected), "{text}");
        }
        for text in [
            "",
            "2",
            "s",
            "ms",
            "-1s",
            "NaNs",
            "infs",
            "2 minutes",
            "49ms",
            "11s",
        ] {
            parse(text).unwrap_err();
        }
    }
}
