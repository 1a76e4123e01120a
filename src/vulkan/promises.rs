//! Promises: values that a list of submissions will signal.
//!
//! A timeline only goes up, so each signal of a list is promised to its timeline before the list is
//! submitted, and refused if it is not forward. A list that is not submitted after all takes its
//! promises back.

use super::{Submission, SubmitError, Timeline};

/// Values promised for a list that is not submitted yet. Taken back, newest first, when dropped.
#[must_use]
pub(super) struct Promises<'a>(Vec<Promise<'a>>);

struct Promise<'a> {
    timeline: &'a Timeline,
    before: u64,
    promised: u64,
}

impl<'a> Promises<'a> {
    pub(super) fn make(submissions: &[Submission<'a>]) -> Result<Self, SubmitError> {
        let mut made = Self(Vec::new());
        for &(timeline, value) in submissions.iter().flat_map(|submission| submission.signals) {
            let mut promised = timeline.promised();
            must_be_forward(value, timeline.doubtful().max(*promised))?;
            let before = std::mem::replace(&mut *promised, value);
            made.0.push(Promise {
                timeline,
                before,
                promised: value,
            });
        }
        Ok(made)
    }

    pub(super) fn keep(mut self) {
        self.0.clear();
    }
}

impl Drop for Promises<'_> {
    fn drop(&mut self) {
        for Promise {
            timeline,
            before,
            promised,
        } in self.0.drain(..).rev()
        {
            let mut now = timeline.promised();
            // Another thread may have promised more meanwhile; its promise stands.
            if *now == promised {
                *now = before;
            }
        }
    }
}

pub(super) fn must_be_forward(asked: u64, promised: u64) -> Result<(), SubmitError> {
    if asked > promised {
        Ok(())
    } else {
        Err(SubmitError::NotForward { asked, promised })
    }
}
