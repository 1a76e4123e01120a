//! Reset, the control: a dispatch on a device that stands ready, which is all that a recovery could come to.

use crate::workload::program::Program;
use crate::workload::reset::ResetForm;
use crate::workload::{Bench, Counts, PATIENCE, Params, Runner, Sample};
use anyhow::ensure;
use std::time::Instant;

/// See the file's head.
pub struct Reset {
    form: ResetForm,
    ready: Program,
}

impl Reset {
    /// Beside a form.
    ///
    /// # Errors
    /// The driver gives no device.
    pub fn new(bench: &Bench, form: ResetForm) -> anyhow::Result<Self> {
        let ready = Program::new(&bench.adapter)?;
        Ok(Self { form, ready })
    }
}

impl Runner for Reset {
    fn work(&self) -> &'static str {
        "Nothing is lost: a dispatch is submitted and waited for on another device that stands ready, which \
         is the least that going on there could take."
    }

    fn params(&self) -> Params {
        [("form".into(), self.form.name().into())].into()
    }

    fn ops_per_batch(&self) -> u64 {
        1
    }

    fn batch(&mut self) -> anyhow::Result<Sample> {
        let begin = Instant::now();
        ensure!(self.ready.run(PATIENCE)?, "a dispatch did not end");
        let wall = begin.elapsed();
        Ok(Sample {
            wall,
            latencies: vec![wall],
            pauses: 0,
        })
    }

    fn counts(&self) -> Counts {
        Counts {
            submits: self.ready.submits(),
            notifications: None,
        }
    }
}
