//! Time text: times as they are shown, to the nanosecond.

const UNITS: [(&str, u64); 4] = [
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("µs", 1_000),
    ("ns", 1),
];

/// A time in the greatest unit of which it has one, with all that it has.
#[must_use]
pub fn exact(ns: u64) -> String {
    let (unit, size) = unit_of(ns);
    let decimals = size.ilog10() as usize;
    let mut text = format!("{}", ns / size);
    if decimals > 0 {
        let rest = format!("{:0decimals$}", ns % size);
        let rest = rest.trim_end_matches('0');
        if !rest.is_empty() {
            text = format!("{text}.{rest}");
        }
    }
    format!("{text} {unit}")
}

fn unit_of(ns: u64) -> (&'static str, u64) {
    let fitting = UNITS.into_iter().find(|(_, size)| ns >= *size);
    fitting.unwrap_or(("ns", 1))
}

/// Marks of a time axis: a whole number of nanoseconds apart, 1, 2 or 5 of a power of ten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ticks {
    pub(super) step: u64,
    unit: (&'static str, u64),
}

impl Ticks {
    /// At least so many nanoseconds apart, in the unit that suits times until `last`.
    pub(super) fn new(at_least: f64, last: u64) -> Self {
        let mut step = 1_u64;
        let mut factors = [2, 5, 10].into_iter().cycle();
        let mut power = 1_u64;
        while super::view::ns(step) < at_least && power < 1 << 60 {
            let factor = factors.next().unwrap_or(10);
            step = power * factor;
            if factor == 10 {
                power = step;
            }
        }
        Self {
            step,
            unit: unit_of(last.max(step)),
        }
    }

    /// What stands at one.
    pub(super) fn label(&self, at: u64) -> String {
        let (unit, size) = self.unit;
        let (mut decimals, mut least) = (0, size);
        while !self.step.is_multiple_of(least) {
            least /= 10;
            decimals += 1;
        }
        if decimals == 0 {
            return format!("{} {unit}", at / size);
        }
        let rest = at % size / least;
        format!("{}.{rest:0decimals$} {unit}", at / size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_exact_and_short() {
        assert_eq!(exact(0), "0 ns");
        assert_eq!(exact(999), "999 ns");
        assert_eq!(exact(12_345), "12.345 µs");
        assert_eq!(exact(12_000), "12 µs");
        assert_eq!(exact(1_000_050), "1.00005 ms");
        assert_eq!(exact(2_000_000_000), "2 s");
    }

    #[test]
    fn ticks_are_ones_twos_and_fives() {
        let steps: Vec<u64> = [0.1, 1.0, 1.5, 2.5, 6.0, 11.0, 21.0, 51.0, 1e6, 1.1e6]
            .map(|least| Ticks::new(least, 10_000_000).step)
            .to_vec();
        assert_eq!(steps, [1, 1, 2, 5, 10, 20, 50, 100, 1_000_000, 2_000_000]);
        assert_eq!(Ticks::new(200.0, 1_234_600).label(1_234_600), "1.2346 ms");
        assert_eq!(Ticks::new(1e6, 20_000_000).label(3_000_000), "3 ms");
        assert_eq!(Ticks::new(5e5, 20_000_000).label(3_500_000), "3.5 ms");
        assert_eq!(Ticks::new(5.0, 400).label(395), "395 ns");
        assert_eq!(Ticks::new(500.0, 400).label(0), "0 ns");
    }
}
