//! Cost: what an instance takes in one order, with nobody to wait for.
//!
//! Both parties' parts are done by themselves, many times in one dispatch, and the times added. A dispatch of few
//! instances is taken off, so that what remains is of instances alone. Of several samples, which are taken by turns with
//! those of the other orders, the shortest counts: whatever else the machine does makes them longer and nothing shorter.

/// Instances of the dispatch that is taken off.
pub(super) const FEW: u64 = 64;
/// Instances of the other.
pub(super) const MANY: u64 = 8_192;

/// The shortest times of one party's part, in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Shortest {
    few: f64,
    many: f64,
}

/// Samples of one order.
#[derive(Clone, Debug, Default)]
pub(super) struct Costs(Vec<Shortest>);

impl Costs {
    /// A sample of the part with this number: what `FEW` instances took, and `MANY`.
    pub(super) fn add(&mut self, part: usize, [few, many]: [f64; 2]) {
        let none = Shortest {
            few: f64::INFINITY,
            many: f64::INFINITY,
        };
        if self.0.len() <= part {
            self.0.resize(part + 1, none);
        }
        let shortest = &mut self.0[part];
        shortest.few = shortest.few.min(few);
        shortest.many = shortest.many.min(many);
    }

    /// Nanoseconds of an instance; none where nothing was measured, or the machine was too busy for that.
    pub(super) fn ns_per_instance(&self) -> Option<f64> {
        #[allow(clippy::cast_precision_loss, reason = "thousands")]
        let of_part = |part: &Shortest| (part.many - part.few) / (MANY - FEW) as f64;
        let ns: f64 = self.0.iter().map(of_part).sum();
        (!self.0.is_empty() && ns > 0.0).then_some(ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_of_each_part_counts_and_both_are_added() {
        let mut costs = Costs::default();
        assert_eq!(costs.ns_per_instance(), None);
        for busy in [0.0, 7_000_000.0] {
            costs.add(0, [30_000.0 + busy, 30_000.0 + 8_128_000.0]);
            costs.add(1, [50_000.0, 50_000.0 + 812_800.0 + busy]);
        }
        assert_eq!(costs.ns_per_instance(), Some(1100.0));
    }

    #[test]
    fn what_took_longer_for_fewer_was_not_measured() {
        let mut costs = Costs::default();
        costs.add(0, [90_000.0, 80_000.0]);
        assert_eq!(costs.ns_per_instance(), None);
    }
}
