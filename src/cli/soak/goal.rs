//! Goal: how long a soak goes on, as it is asked for on the command line.

use crate::cli::time_span::time_span;
use crate::soak::Tally;
use std::time::Duration;

/// See the file's head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Goal {
    /// So many signals of the GPU.
    Signals(u64),
    /// So long.
    Time(Duration),
    /// So many rounds.
    Rounds(u64),
    /// Until somebody ends it.
    Never,
}

/// What `--for` takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LengthOfTime {
    Time(Duration),
    Forever,
}

impl Goal {
    /// Steps of a bar.
    pub(super) fn steps(self) -> u64 {
        match self {
            Self::Signals(count) | Self::Rounds(count) => count,
            Self::Time(time) => time.as_secs().max(1),
            Self::Never => u64::MAX,
        }
    }

    /// Steps that are done.
    pub(super) fn done(self, tally: &Tally, time: Duration) -> u64 {
        match self {
            Self::Signals(_) => tally.signals,
            Self::Rounds(_) => tally.rounds,
            Self::Time(_) => time.as_secs(),
            Self::Never => 0,
        }
    }

    pub(super) fn is_reached(self, tally: &Tally, time: Duration) -> bool {
        match self {
            Self::Signals(count) => tally.signals >= count,
            Self::Rounds(count) => tally.rounds >= count,
            Self::Time(goal) => time >= goal,
            Self::Never => false,
        }
    }
}

/// A whole number, as 1000000, `1_000_000` or 1e6.
pub(super) fn signals(text: &str) -> Result<u64, String> {
    let plain: String = text.chars().filter(|c| *c != '_').collect();
    let number = match plain.split_once(['e', 'E']) {
        None => plain.parse().ok(),
        Some((digits, power)) => {
            let power = power
                .parse()
                .ok()
                .and_then(|power| 10_u64.checked_pow(power));
            let digits = digits.parse::<u64>().ok();
            digits
                .zip(power)
                .and_then(|(digits, power)| digits.checked_mul(power))
        }
    };
    number
        .filter(|number| *number > 0)
        .ok_or_else(|| "a whole number above 0, as 1000000, 1_000_000 or 1e6".into())
}

/// A time, or `forever`.
pub(super) fn length(text: &str) -> Result<LengthOfTime, String> {
    if text == "forever" {
        return Ok(LengthOfTime::Forever);
    }
    match time_span(text) {
        Some(time) if !time.is_zero() => Ok(LengthOfTime::Time(time)),
        _ => Err("a time above 0, as 90s, 10m or 8h, or forever".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_are_counted_in_several_ways() {
        for (text, expected) in [
            ("1", 1),
            ("1000000", 1_000_000),
            ("1_000", 1000),
            ("3e9", 3_000_000_000),
        ] {
            assert_eq!(signals(text), Ok(expected), "{text}");
        }
        for text in ["", "0", "-1", "1.5e9", "e9", "1e", "1e30", "many"] {
            assert!(signals(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_soak_is_for_a_time_or_for_ever() {
        assert_eq!(length("forever"), Ok(LengthOfTime::Forever));
        let ten = Duration::from_secs(600);
        assert_eq!(length("10m"), Ok(LengthOfTime::Time(ten)));
        for text in ["", "0s", "10", "ever"] {
            assert!(length(text).is_err(), "{text}");
        }
    }
}
