//! Cost: what an instance takes in one order, with nobody to wait for.
//!
//! Both parties' parts are done by themselves, many times in one dispatch, and the times added. A dispatch of few
//! instances is taken off, so that what remains is of instances alone.

/// Samples of one order, by turns with those of the others.
#[derive(Clone, Debug)]
pub(super) struct Costs {
    /// Instances of the dispatch that is taken off.
    pub(super) least: u64,
    /// Instances of the other.
    pub(super) most: u64,
    samples: Vec<f64>,
}

impl Default for Costs {
    fn default() -> Self {
        Self {
            least: 64,
            most: 8_192,
            samples: Vec::new(),
        }
    }
}

impl Costs {
    /// Nanoseconds of an instance, by the times of both dispatches.
    #[allow(clippy::cast_precision_loss, reason = "thousands")]
    pub(super) fn of_dispatches(&self, [few, many]: [f64; 2]) -> f64 {
        (many - few) / (self.most - self.least) as f64
    }

    pub(super) fn add(&mut self, ns: f64) {
        self.samples.push(ns);
    }

    /// The median; none where nothing was measured.
    pub(super) fn ns_per_instance(&self) -> Option<f64> {
        let mut sorted = self.samples.clone();
        sorted.sort_by(f64::total_cmp);
        sorted.get(sorted.len() / 2).map(|ns| ns.max(0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_of_instances_alone() {
        let mut costs = Costs::default();
        assert_eq!(costs.ns_per_instance(), None);
        for many in [8_128_000.0, 40_000.0, 90_000_000.0] {
            let ns = costs.of_dispatches([30_000.0, 30_000.0 + many]);
            costs.add(ns);
        }
        assert_eq!(costs.ns_per_instance(), Some(1000.0));
    }
}
