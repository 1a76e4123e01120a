//! Ground: where a check runs: adapters over the subject, made as the check wants them.

use super::spy::DdiSpy;
use super::{Bench, Form, Subject, Unfit, Wanted};
use crate::kmd::TdrDdi;
use crate::os::{Features, Record};
use crate::sync::Arc;
use crate::sync::plain::{Mutex, lock};
use crate::{Adapter, Device, TdrPolicy};
use anyhow::ensure;
use std::time::Duration;

/// See the file's head.
#[derive(Debug)]
pub struct Ground {
    subject: Arc<dyn Subject>,
    made: Mutex<Vec<Made>>,
    /// Why parts of the check were left out, each reason once.
    left_out: Mutex<Vec<String>>,
}

/// An adapter that was made, whose records are looked at in the end.
#[derive(Debug)]
struct Made {
    spy: Arc<DdiSpy>,
    adapter: Adapter,
    expected: Arc<Mutex<Vec<Record>>>,
    /// Its engines are made to hang.
    hangs: bool,
}

/// Why a check could ask no more: the driver itself failed to reset its adapter, which it may where an engine hangs.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct ResetFailed(pub(super) String);

impl Made {
    /// Whether its driver has a reason to fail a reset of the adapter: an engine that hangs in truth, or one that runs on
    /// where it was only said to be lost, of a driver which resets none that runs.
    fn may_fail_reset(&self) -> bool {
        let tdr = self.spy.driver().tdr();
        self.hangs || !tdr.is_some_and(TdrDdi::resets_running_engines)
    }
}

/// What watches engines that are well: one may have no core for seconds on a busy machine.
fn patient() -> TdrPolicy {
    TdrPolicy {
        delay: Duration::from_secs(600),
        ..TdrPolicy::default()
    }
}

/// What engines that hang are recovered by: soon, and as often as it comes.
fn soon() -> TdrPolicy {
    TdrPolicy {
        delay: Duration::from_secs(1),
        limit_count: 1_000_000,
        ..TdrPolicy::default()
    }
}

/// What was made, or what it could not be made for; any other error is one.
fn or_unfit<T>(made: anyhow::Result<T>) -> anyhow::Result<Result<T, Unfit>> {
    match made.map_err(anyhow::Error::downcast::<Unfit>) {
        Ok(made) => Ok(Ok(made)),
        Err(Ok(unfit)) => Ok(Err(unfit)),
        Err(Err(error)) => Err(error),
    }
}

/// So many nodes, or as many as there are, of which the check asks the same; and how many they are.
///
/// # Errors
/// As `make`.
pub(super) fn most_nodes(
    nodes: u32,
    make: impl Fn(u32) -> anyhow::Result<Bench>,
) -> anyhow::Result<(u32, Bench)> {
    for nodes in (2..=nodes).rev() {
        if let Ok(bench) = or_unfit(make(nodes))? {
            return Ok((nodes, bench));
        }
    }
    Ok((1, make(1)?))
}

impl Ground {
    /// Over a subject.
    #[must_use]
    pub fn new(subject: &Arc<dyn Subject>) -> Self {
        Self {
            subject: Arc::clone(subject),
            made: Mutex::default(),
            left_out: Mutex::default(),
        }
    }

    /// What a part of a check needs; `None` where the subject has it not: then the check goes on without the part, and it
    /// is told why that was left out.
    ///
    /// # Errors
    /// Any other than [`Unfit`].
    pub(super) fn if_fit<T>(&self, made: anyhow::Result<T>) -> anyhow::Result<Option<T>> {
        let made = or_unfit(made)?;
        Ok(made.map_err(|Unfit(why)| self.leave_out(why)).ok())
    }

    fn leave_out(&self, why: String) {
        let mut left_out = lock(&self.left_out);
        if !left_out.contains(&why) {
            left_out.push(why);
        }
    }

    /// Why parts of the check were left out.
    pub(super) fn take_left_out(&self) -> Vec<String> {
        std::mem::take(&mut *lock(&self.left_out))
    }

    /// The subject.
    #[must_use]
    pub fn subject(&self) -> &dyn Subject {
        self.subject.as_ref()
    }

    /// An adapter of one node with native fences.
    ///
    /// # Errors
    /// As [`Ground::bench_with`].
    pub fn bench(&self) -> anyhow::Result<Bench> {
        self.bench_with(&Wanted::default())
    }

    /// An adapter as it is wanted, watched patiently, or soon where engines shall hang.
    ///
    /// # Errors
    /// [`Unfit`]; or the adapter does not come up.
    pub fn bench_with(&self, wanted: &Wanted) -> anyhow::Result<Bench> {
        let tdr = if wanted.hangs { soon() } else { patient() };
        self.bench_watched(wanted, Features::default(), tdr)
    }

    /// The same for a part of a check that the rest does without; `None` where it cannot be had, which is told.
    ///
    /// # Errors
    /// The adapter does not come up.
    pub fn bench_if(&self, wanted: &Wanted) -> anyhow::Result<Option<Bench>> {
        self.if_fit(self.bench_with(wanted))
    }

    /// An adapter without native fences: one of [`Form::Monitored`], or else one whose driver leaves them out.
    ///
    /// # Errors
    /// As [`Ground::bench_with`]; [`Unfit`] where the driver does not leave them out.
    pub fn bench_without_native_fences(&self, wanted: &Wanted) -> anyhow::Result<Bench> {
        let form = Form::Monitored;
        let plain = self.bench_with(&Wanted {
            form,
            ..wanted.clone()
        });
        if !plain.as_ref().is_err_and(anyhow::Error::is::<Unfit>) {
            return plain;
        }
        let mut wanted = wanted.clone();
        wanted.driver.without_native_fences = Some("They are left out.".into());
        let bench = self.bench_with(&wanted)?;
        if bench.adapter.os().native_fence_caps().is_ok() {
            return Err(Unfit("it has native fences in every form".into()).into());
        }
        Ok(bench)
    }

    /// An adapter with features of the OS, and watched in a way of its own.
    ///
    /// # Errors
    /// As [`Ground::bench_with`].
    pub fn bench_watched(
        &self,
        wanted: &Wanted,
        features: Features,
        tdr: TdrPolicy,
    ) -> anyhow::Result<Bench> {
        let spy = self.spy(wanted)?;
        let adapter = Adapter::with_driver_watched(Arc::clone(&spy) as _, features, tdr)?;
        let bench = self.over_hanging(spy, adapter, wanted.hangs);
        if wanted.hangs {
            bench.needs_reset_of_running_engines()?;
        }
        Ok(bench)
    }

    /// As the subject says ([`Subject::may_be_its_thread`]).
    #[must_use]
    pub fn may_be_its_thread(&self, name: &str) -> bool {
        self.subject.may_be_its_thread(name)
    }

    /// As the subject says ([`Subject::may_be_its_process`]).
    #[must_use]
    pub fn may_be_its_process(&self, name: &str) -> bool {
        self.subject.may_be_its_process(name)
    }

    /// The subject's driver with a spy before it, not started: for a check of how it comes up.
    ///
    /// # Errors
    /// [`Unfit`].
    pub fn spy(&self, wanted: &Wanted) -> anyhow::Result<Arc<DdiSpy>> {
        Ok(DdiSpy::over(self.subject.driver(wanted)?))
    }

    /// A bench of an adapter that came up over such a spy.
    #[must_use]
    pub fn over(&self, spy: Arc<DdiSpy>, adapter: Adapter) -> Bench {
        self.over_hanging(spy, adapter, false)
    }

    fn over_hanging(&self, spy: Arc<DdiSpy>, adapter: Adapter, hangs: bool) -> Bench {
        let expected = Arc::<Mutex<Vec<Record>>>::default();
        lock(&self.made).push(Made {
            spy: Arc::clone(&spy),
            adapter: adapter.clone(),
            expected: Arc::clone(&expected),
            hangs,
        });
        let device = Device::with_fences_in(adapter.os(), self.subject.fence_memory());
        Bench {
            device,
            spy,
            adapter,
            expected,
        }
    }

    /// What is told of a story that ended in this error. Where a driver itself failed to reset its adapter, the OS has
    /// stopped that (TD-20), and no more could be asked: a reason to skip the check if the driver had one to fail
    /// ([`ResetFailed`]), and else what broke the rule.
    pub(super) fn told_of(&self, error: anyhow::Error) -> anyhow::Error {
        let made = lock(&self.made);
        let stopped = made
            .iter()
            .filter(|made| made.adapter.os().stopped().is_some());
        let failed = stopped.filter_map(|made| Some((made, made.spy.reset_failure()?)));
        // Of several one without a reason counts.
        let Some((made, failure)) = failed.min_by_key(|(made, _)| made.may_fail_reset()) else {
            return error;
        };
        if made.may_fail_reset() {
            let why = "the driver itself failed to reset the adapter, which stops it";
            return ResetFailed(format!("{why} ({failure}); what was seen: {error:#}")).into();
        }
        error.context(format!(
            "the driver failed to reset an adapter of which no engine hangs, and says that it resets engines that run \
             ({failure})"
        ))
    }

    /// What is asked of every check at its end: no record that it was not about, and nothing that the subject found
    /// itself.
    pub(super) fn judge(&self) -> anyhow::Result<()> {
        for made in std::mem::take(&mut *lock(&self.made)) {
            let Made {
                adapter, expected, ..
            } = made;
            let (records, expected) = (adapter.os().records(), lock(expected.as_ref()));
            ensure!(
                records == *expected,
                "the OS has noted of the driver: {records:?}, and should have noted: {expected:?}"
            );
        }
        let misdeeds = self.subject.take_misdeeds();
        ensure!(misdeeds.is_empty(), "{}", misdeeds.join("; "));
        Ok(())
    }
}
