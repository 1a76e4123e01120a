//! Delay: a time on the command line.

use std::time::Duration;

/// Engines that end their slices in time are never taken for hung ones, and a show has an end.
const LEAST: Duration = Duration::from_millis(50);
const MOST: Duration = Duration::from_secs(10);

/// A number and a unit, as `100ms` or `1.5s`.
pub(super) fn parse(text: &str) -> Result<Duration, String> {
    let unit = |suffix: &str, seconds: f64| Some((text.strip_suffix(suffix)?, seconds));
    let split = unit("ms", 1e-3).or_else(|| unit("s", 1.0));
    let seconds = split.and_then(|(number, unit)| Some(number.parse::<f64>().ok()? * unit));
    let time = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let time = time.ok_or("write a number and a unit, as 100ms or 1.5s")?;
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
