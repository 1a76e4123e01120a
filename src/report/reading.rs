//! Reading: a report that was written as JSON, as far as it can be believed.
//!
//! What is read may be something else, of another time, or broken by hand. Whoever goes on with a report relies on
//! this: every row has batches, and every figure is one that something can have taken.

use super::{Report, Row, SCHEMA};
use crate::workload::Mechanism;
use serde_json::Value;
use serde_json::error::Category;

/// No operation takes longer, in nanoseconds: some eleven days.
const LONGEST: f64 = 1e15;
/// And none is told to be shorter: figures have three decimals.
const SHORTEST: f64 = 1e-3;
/// No count for 1,000 operations is greater, and no rate.
const MOST: f64 = 1e15;
/// No report has more rows.
const MOST_ROWS: usize = 2_000;

/// Why a report cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadReportError {
    /// It is not JSON.
    #[error("it is not JSON ({0}); name a file that `nfence compare --json FILE` wrote")]
    NotJson(serde_json::Error),
    /// It is JSON of something else.
    #[error("it is JSON, but not what `nfence compare --json FILE` writes ({0})")]
    SomethingElse(String),
    /// It is of another schema.
    #[error(
        "its schema is {0}, and this nfence reads {SCHEMA}; use the nfence that wrote it, or measure again"
    )]
    OtherSchema(Value),
    /// Moments of hand-offs cannot be.
    #[error("the turns of {mechanism}: {what}; the file was changed or is broken, measure again")]
    Turns {
        /// Whose.
        mechanism: Mechanism,
        /// What cannot be.
        what: String,
    },
    /// A figure cannot be.
    #[error("row {number} ({name}): {what}; the file was changed or is broken, measure again")]
    Impossible {
        /// Which row, from 1.
        number: usize,
        /// What the row is called.
        name: String,
        /// What cannot be.
        what: String,
    },
}

impl Report {
    /// Reads what a comparison wrote.
    ///
    /// # Errors
    /// It is not JSON, not a report, of another schema, or has figures that cannot be.
    pub fn read(json: &[u8]) -> Result<Self, ReadReportError> {
        let refused = |error: serde_json::Error| match error.classify() {
            Category::Data => {
                // It may say what stands there.
                let mut what = error.to_string();
                what.retain(|c| !c.is_control());
                ReadReportError::SomethingElse(what)
            }
            Category::Io | Category::Syntax | Category::Eof => ReadReportError::NotJson(error),
        };
        let mut something: Value = serde_json::from_slice(json).map_err(refused)?;
        match something.get("schema") {
            Some(schema) if *schema == SCHEMA => {}
            Some(schema) => {
                let mut schema = schema.clone();
                without_controls(&mut schema);
                return Err(ReadReportError::OtherSchema(schema));
            }
            None => return Err(ReadReportError::SomethingElse("it has no schema".into())),
        }
        // Once more from the text, so that an error says where.
        let mut report: Self = serde_json::from_slice(json).map_err(refused)?;
        // What names say goes to terminals.
        if without_controls(&mut something) {
            report = serde_json::from_value(something).map_err(refused)?;
        }
        if report.rows.len() > MOST_ROWS {
            let rows = format!("it has {} rows", report.rows.len());
            return Err(ReadReportError::SomethingElse(rows));
        }
        for (at, row) in report.rows.iter().enumerate() {
            row.check().map_err(|what| ReadReportError::Impossible {
                number: at + 1,
                name: format!("{}, {}", row.scenario, row.mechanism),
                what,
            })?;
        }
        for turns in &report.turns {
            turns.check().map_err(|what| ReadReportError::Turns {
                mechanism: turns.mechanism,
                what,
            })?;
        }
        Ok(report)
    }
}

/// Takes characters that control terminals out of all texts. Whether there were any.
fn without_controls(value: &mut Value) -> bool {
    match value {
        Value::String(text) => {
            let had = text.contains(char::is_control);
            text.retain(|c| !c.is_control());
            had
        }
        // All of them, whatever the first says.
        Value::Array(values) => {
            let values = values.iter_mut();
            values.fold(false, |had, value| without_controls(value) | had)
        }
        Value::Object(values) => {
            let had_names = values.keys().any(|name| name.contains(char::is_control));
            if had_names {
                let named = std::mem::take(values).into_iter();
                values.extend(named.map(|(mut name, value)| {
                    name.retain(|c| !c.is_control());
                    (name, value)
                }));
            }
            let values = values.values_mut();
            values.fold(had_names, |had, value| without_controls(value) | had)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

impl Row {
    /// What cannot be, if anything.
    fn check(&self) -> Result<(), String> {
        if self.batches.is_empty() {
            return Err("it has no batches".into());
        }
        if self.ops == 0 {
            return Err("it has batches of no operations".into());
        }
        let batches = self.batches.iter().enumerate();
        let batches = batches.map(|(at, time)| (format!("batch {}", at + 1), *time));
        let percentiles = [
            ("p50_ns", self.p50_ns),
            ("p90_ns", self.p90_ns),
            ("p99_ns", self.p99_ns),
            ("max_ns", self.max_ns),
        ];
        let percentiles = percentiles.map(|(name, time)| (name.to_owned(), time));
        for (name, time) in batches.chain(percentiles) {
            if !(SHORTEST..=LONGEST).contains(&time) {
                return Err(format!(
                    "{name} took {time} ns for an operation, which cannot be"
                ));
            }
        }
        let counts = [
            ("ops_per_s", Some(self.ops_per_s)),
            ("cpu_s_per_kop", Some(self.cpu_s_per_kop)),
            ("submits_per_kop", Some(self.submits_per_kop)),
            ("wakeups_per_kop", self.wakeups_per_kop),
            ("notifications_per_kop", self.notifications_per_kop),
        ];
        for (name, count) in counts {
            if count.is_some_and(|count| !(0.0..=MOST).contains(&count)) {
                return Err(format!(
                    "{name} is {}, which cannot be",
                    count.unwrap_or_default()
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// What a file says is shown on terminals, where it is refused as well.
    ///
    /// Kills `a-parts-name-controls-the-terminal`, `an-errors-words-control-the-terminal`.
    #[test]
    fn neither_names_nor_errors_control_a_terminal() {
        let mut value = json!({"params": {"\u{1b}[31mengines": "two\u{9b}"}});
        assert!(without_controls(&mut value));
        assert_eq!(value, json!({"params": {"[31mengines": "two"}}));
        for json in [
            json!({"schema": SCHEMA, "not_run": [{"scenario": "\u{1b}[31m"}]}),
            json!({"schema": "\u{9b}31m"}),
        ] {
            let refused = Report::read(json.to_string().as_bytes()).unwrap_err();
            let said = refused.to_string();
            assert!(said.contains("31m"), "{said:?}");
            assert!(!said.contains(char::is_control), "{said:?}");
        }
    }
}
