//! Subject: the foreign driver as the suite asks for it.

use super::{Fault, ForeignDriver};
use native_fence::conform::{ModelSubject, Subject, Unfit, Wanted};
use native_fence::kmd::Ddi;
use std::sync::Arc;

/// See the file's head.
#[derive(Debug, Default)]
pub(crate) struct ForeignSubject {
    engines: ModelSubject,
    fault: Option<Fault>,
}

impl ForeignSubject {
    /// One that does one thing wrong.
    pub(crate) fn with(fault: Fault) -> Self {
        Self {
            fault: Some(fault),
            ..Self::default()
        }
    }
}

impl Subject for ForeignSubject {
    fn name(&self) -> String {
        "a foreign driver".into()
    }

    fn driver(&self, wanted: &Wanted) -> anyhow::Result<Arc<dyn Ddi>> {
        if wanted.driver.map_to_gpu_system_process {
            return Err(Unfit("it has no system process".into()).into());
        }
        let engines = self.engines.driver(wanted)?;
        Ok(Arc::new(ForeignDriver::over(engines, self.fault)))
    }

    fn take_misdeeds(&self) -> Vec<String> {
        self.engines.take_misdeeds()
    }
}
