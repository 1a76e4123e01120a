//! Growth: what an operation costs more where more fences, or more waiters, stand.

use super::Row;
use super::quantity::figures;
use crate::workload::{ScaleForm, Scenario};

/// Of the scenario `scale`, its largest forms against its smallest, in a sentence; `None` where
/// there is nothing to compare.
#[must_use]
pub fn growth(rows: &[&Row]) -> Option<String> {
    let of_form = |form: ScaleForm| {
        let is_of =
            move |row: &&&Row| row.scenario == Scenario::Scale && row.form() == Some(form.name());
        rows.iter().filter(is_of)
    };
    let against_one = |form| -> Vec<String> {
        let pairs = of_form(form).filter_map(|many| {
            let one = of_form(ScaleForm::One).find(|one| one.mechanism == many.mechanism)?;
            Some((one, many))
        });
        pairs.map(|(one, many)| grown(one, many)).collect()
    };
    let parts: Vec<_> = [
        (ScaleForm::Thousands, "from 1 fence to 4,096"),
        (ScaleForm::Waiters, "from 1 waiter on a fence to 100,000"),
    ]
    .into_iter()
    .filter_map(|(form, range)| {
        let grown = against_one(form);
        (!grown.is_empty()).then(|| format!("{range} {}", grown.join(", ")))
    })
    .collect();
    (!parts.is_empty()).then(|| {
        format!(
            "scale, how often as long an operation takes (and its CPU time): {}",
            parts.join("; ")
        )
    })
}

fn grown(one: &Row, many: &Row) -> String {
    format!(
        "{} {} ({})",
        many.mechanism,
        figures(many.p50_ns / one.p50_ns),
        figures(many.cpu_s_per_kop / one.cpu_s_per_kop)
    )
}

#[cfg(test)]
mod tests {
    use super::super::row::tests_support::row;
    use super::*;
    use crate::workload::Mechanism;

    fn of(form: ScaleForm, mechanism: Mechanism, p50_ns: f64) -> Row {
        let mut row = row(Scenario::Scale, mechanism, p50_ns);
        row.params.insert("form".into(), form.name().into());
        row
    }

    #[test]
    fn the_largest_forms_are_held_against_the_smallest_of_their_mechanism() {
        use Mechanism::{NativeSystemEvent as Native, TimelineSemaphore as Timeline};
        let mut rows = [
            of(ScaleForm::One, Native, 1000.0),
            of(ScaleForm::Thousands, Native, 1250.0),
            of(ScaleForm::ThousandsAtOnce, Native, 1.0),
            of(ScaleForm::Waiters, Native, 1500.0),
            of(ScaleForm::One, Timeline, 200.0),
            of(ScaleForm::Thousands, Timeline, 100.0),
            // The same form of nothing that is asked about.
            row(Scenario::Storm, Native, 7.0),
        ];
        rows[1].cpu_s_per_kop *= 3.0;
        let all: Vec<_> = rows.iter().collect();
        assert_eq!(
            growth(&all).unwrap(),
            "scale, how often as long an operation takes (and its CPU time): from 1 fence to 4,096 \
             native-system-event 1.25 (3.00), timeline-semaphore 0.50 (1.00); from 1 waiter on a \
             fence to 100,000 native-system-event 1.50 (1.00)"
        );
        assert_eq!(growth(&all[1..4]), None, "nothing to hold it against");
    }
}
