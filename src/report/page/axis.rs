//! Axis: values to places, by their logarithms.
//!
//! Times of a row differ by factors, and so do rows: only ratios can be seen side by side.

/// See the file's head. Places are shares of a hundred.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Axis {
    low: f64,
    high: f64,
}

/// What lies at the ends is not cut.
const MARGIN: f64 = 0.03;

impl Axis {
    /// Of all values that are above zero; `None` where there is none.
    pub(super) fn over(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut ends: Option<(f64, f64)> = None;
        for value in values {
            if value.is_finite() && value > 0.0 {
                let (low, high) = ends.unwrap_or((value, value));
                ends = Some((low.min(value), high.max(value)));
            }
        }
        let (low, high) = ends?;
        // Where all is one value it lies in the middle.
        let (low, high) = if high / low < 1.2 {
            (low / 1.2, high * 1.2)
        } else {
            (low, high)
        };
        let margin = (high.ln() - low.ln()) * MARGIN;
        Some(Self {
            low: low.ln() - margin,
            high: high.ln() + margin,
        })
    }

    /// Where a value lies, from 0 to 100; what is beyond an end lies at it.
    pub(super) fn place(&self, value: f64) -> f64 {
        let share = (value.max(f64::MIN_POSITIVE).ln() - self.low) / (self.high - self.low);
        share.clamp(0.0, 1.0) * 100.0
    }

    /// At most so many round values along it, as dense as that allows, evenly: the digits are the same in each power of
    /// ten.
    pub(super) fn ticks(&self, most: usize) -> Vec<f64> {
        const DIGITS: [&[f64]; 4] = [
            &[1.0, 1.5, 2.0, 3.0, 5.0, 7.0],
            &[1.0, 2.0, 5.0],
            &[1.0, 3.0],
            &[1.0],
        ];
        let (low, high) = (self.low.exp(), self.high.exp());
        // Of what is not in a file that was read: beyond these there is no number.
        let power = |end: f64| end.clamp(-330.0, 330.0) as i32;
        let powers = power(low.log10().floor())..=power(high.log10().ceil());
        let with = |digits: &[f64], every: i32| -> Vec<f64> {
            let powers = powers.clone().filter(|power| power % every == 0);
            let all =
                powers.flat_map(|power| digits.iter().map(move |digit| digit * 10f64.powi(power)));
            all.filter(|tick| (low..=high).contains(tick)).collect()
        };
        let fits = |ticks: &Vec<f64>| ticks.len() <= most;
        let dense = DIGITS.iter().map(|digits| with(digits, 1)).find(fits);
        let mut sparse = (2..=i32::from(i16::MAX)).map(|every| with(&[1.0], every));
        dense.or_else(|| sparse.find(fits)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_ratios_are_equal_distances() {
        let axis = Axis::over([1.0, 10.0, 100.0]).unwrap();
        let places = [1.0, 10.0, 100.0].map(|value| axis.place(value));
        assert!((places[1] - 50.0).abs() < 1e-9, "{places:?}");
        assert!(places[0] > 0.0 && places[2] < 100.0, "{places:?}");
        assert!((axis.place(0.0) - 0.0).abs() < 1e-9);
        assert!((axis.place(1e9) - 100.0).abs() < 1e-9);
    }

    #[test]
    fn ticks_are_round_few_and_on_the_axis() {
        for (low, high) in [
            (900.0, 1100.0),
            (1.0, 50.0),
            (3.0, 4e9),
            (7.0, 7.0),
            (0.01, 1000.0),
        ] {
            let axis = Axis::over([low, high]).unwrap();
            let ticks = axis.ticks(6);
            assert!((1..=6).contains(&ticks.len()), "{low} to {high}: {ticks:?}");
            for tick in ticks {
                assert!((0.0..=100.0).contains(&axis.place(tick)));
                let digits = tick / 10f64.powf(tick.log10().floor());
                assert!(
                    [1.0, 1.5, 2.0, 3.0, 5.0, 7.0, 10.0]
                        .iter()
                        .any(|digit| (digits - digit).abs() < 1e-6),
                    "{tick}"
                );
            }
        }
    }

    #[test]
    fn nothing_has_no_axis() {
        assert_eq!(Axis::over([]), None);
        assert_eq!(Axis::over([0.0, -1.0, f64::NAN]), None);
    }
}
