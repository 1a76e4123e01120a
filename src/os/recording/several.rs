//! Recordings of several adapters, which give one trace.

use super::{RecordError, Recording, RecordingOptions};
use crate::os::adapter::Adapter;
use crate::sync::Arc;
use crate::trace::{Together, Trace};

/// See the file's head. Dropping it ends all of them, and what they have recorded is gone.
#[derive(Debug)]
pub struct Recordings {
    recordings: Vec<Recording>,
    together: Together,
}

impl Recordings {
    /// Begins to record all that happens on adapters, one after the other, each with its name for people. Of each as many
    /// events are kept as the options say.
    ///
    /// # Errors
    /// [`RecordError`]; then none is recorded.
    pub fn start(
        adapters: &[(String, &Arc<Adapter>)],
        options: &RecordingOptions,
    ) -> Result<Self, RecordError> {
        let started = adapters
            .iter()
            .map(|(_, adapter)| Recording::start(adapter, options));
        let names = adapters.iter().map(|(name, _)| name.clone());
        Ok(Self {
            recordings: started.collect::<Result<_, _>>()?,
            together: Together::new(names.collect()),
        })
    }

    /// As [`Recording::cut`]: adapter after adapter, so one may be a moment behind the next.
    ///
    /// # Panics
    /// As [`Recording::cut`].
    #[must_use]
    pub fn cut(&mut self) -> Trace {
        let cuts = self.recordings.iter_mut().map(Recording::cut);
        self.together.join(cuts.collect())
    }

    /// As [`Recording::stop`].
    ///
    /// # Panics
    /// As [`Recording::stop`].
    #[must_use]
    pub fn stop(mut self, about: Vec<(String, String)>) -> Trace {
        let recordings = self.recordings.into_iter();
        let traces = recordings.map(|recording| recording.stop(Vec::new()));
        Trace {
            about,
            ..self.together.join(traces.collect())
        }
    }
}

/// Of one.
impl From<Recording> for Recordings {
    fn from(recording: Recording) -> Self {
        Self {
            recordings: vec![recording],
            together: Together::new(vec![String::new()]),
        }
    }
}
