//! TDR spy: the DDIs of hang detection and recovery, as they pass the DDI spy.

use super::DdiSpy;
use super::book::{failure, lock};
use crate::kmd::{Activity, CollectDbgInfo, DdiError, Interrupt, ResetEngine, TdrDdi};
use crate::sync::{AtomicU64, Ordering};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

/// A call down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TdrCall {
    /// Of a node.
    RequestPreemption(u32),
    /// Of a node.
    QueryEngineStatus(u32),
    /// Of a node.
    QueryDependentEngineGroup(u32),
    /// Of a node.
    ResetEngine(u32),
    /// Of a node.
    ResumeHwEngine(u32),
    /// Of the adapter.
    ResetFromTimeout,
    /// Of the adapter.
    RestartFromTimeout,
    /// With the reason.
    CollectDbgInfo(u32),
}

type OnDetection = Arc<dyn Fn() + Send + Sync>;
type Before = Arc<dyn Fn(TdrCall) + Send + Sync>;
type Reset = Box<dyn FnMut(ResetEngine) -> Result<ResetEngine, DdiError> + Send>;
type Group = Box<dyn Fn(u32) -> u64 + Send>;

/// What was called, and what a test has answered.
#[derive(Default)]
pub(super) struct TdrBook {
    calls: Mutex<Vec<TdrCall>>,
    on_detection: Mutex<Option<OnDetection>>,
    before: Mutex<Option<Before>>,
    reset: Mutex<Option<Reset>>,
    group: Mutex<Option<Group>>,
    dbg_info: Mutex<Option<String>>,
    /// Calls that fail.
    fails: Mutex<Vec<TdrCall>>,
    /// Nodes whose engines are said to be lost.
    lost: Mutex<BTreeSet<u32>>,
    /// Nodes whose engines are said to answer nothing.
    silent: Mutex<BTreeSet<u32>>,
    /// Why a reset of the adapter failed first, by itself.
    failure: Mutex<Option<String>>,
    level_one: LevelOneSpy,
}

/// Calls of level one: how many are inside, how many there were, and how often one met another.
#[derive(Default)]
pub(super) struct LevelOneSpy {
    inside: AtomicU64,
    calls: AtomicU64,
    met: AtomicU64,
}

impl LevelOneSpy {
    pub(super) fn during<T>(&self, call: impl FnOnce() -> T) -> T {
        let before = self.inside.fetch_add(1, Ordering::AcqRel);
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.met.fetch_add(u64::from(before > 0), Ordering::Relaxed);
        // So that one that comes meanwhile is seen.
        std::thread::yield_now();
        let result = call();
        self.inside.fetch_sub(1, Ordering::AcqRel);
        result
    }
}

impl DdiSpy {
    /// Calls of recovery so far, oldest first; what only watches is not among them.
    pub fn tdr_calls(&self) -> Vec<TdrCall> {
        lock(&self.tdr.calls).clone()
    }

    /// Calls of level one so far, and how many of them came while another was inside.
    pub fn level_one(&self) -> (u64, u64) {
        let LevelOneSpy { calls, met, .. } = &self.tdr.level_one;
        (calls.load(Ordering::Relaxed), met.load(Ordering::Relaxed))
    }

    pub(super) fn in_level_one<T>(&self, call: impl FnOnce() -> T) -> T {
        self.tdr.level_one.during(call)
    }

    /// Does something when the OS has found that an engine does not answer, before anything follows from it.
    pub fn on_detection(&self, hook: impl Fn() + Send + Sync + 'static) {
        *lock(&self.tdr.on_detection) = Some(Arc::new(hook));
    }

    /// Does something before each call of recovery reaches the driver.
    pub fn before_tdr(&self, before: impl Fn(TdrCall) + Send + Sync + 'static) {
        *lock(&self.tdr.before) = Some(Arc::new(before));
    }

    /// ResetEngine gives what `answer` makes of the driver's answer.
    pub fn answer_reset(
        &self,
        answer: impl FnMut(ResetEngine) -> Result<ResetEngine, DdiError> + Send + 'static,
    ) {
        *lock(&self.tdr.reset) = Some(Box::new(answer));
    }

    /// QueryDependentEngineGroup gives this.
    pub fn answer_group(&self, group: impl Fn(u32) -> u64 + Send + 'static) {
        *lock(&self.tdr.group) = Some(Box::new(group));
    }

    /// CollectDbgInfo gives this.
    pub fn answer_dbg_info(&self, text: String) {
        *lock(&self.tdr.dbg_info) = Some(text);
    }

    /// From now on such calls fail, and the driver does not get them.
    pub fn fail_tdr(&self, call: TdrCall) {
        lock(&self.tdr.fails).push(call);
    }

    /// From now on the driver is made to say that an engine's device is lost, until it is reset; and the OS is told.
    pub fn lose_engine(&self, node_ordinal: u32) {
        lock(&self.tdr.lost).insert(node_ordinal);
        self.interrupt(Interrupt::EngineLost { node_ordinal });
    }

    /// From now on an engine shows nothing to the OS and answers nothing, until it is reset: the driver is made to
    /// say so. Who watches engines looks at it when it has work.
    pub fn silence_engine(&self, node_ordinal: u32) {
        lock(&self.tdr.silent).insert(node_ordinal);
    }

    /// It shows again what it does.
    pub fn hear_engine(&self, node_ordinal: u32) {
        lock(&self.tdr.silent).remove(&node_ordinal);
    }

    fn is_silent(&self, node_ordinal: u32) -> bool {
        lock(&self.tdr.silent).contains(&node_ordinal)
    }

    fn forget_troubles(&self, is_reset: impl Fn(u32) -> bool) {
        lock(&self.tdr.lost).retain(|node| !is_reset(*node));
        lock(&self.tdr.silent).retain(|node| !is_reset(*node));
    }

    fn recovery(&self) -> &dyn TdrDdi {
        self.driver.tdr().expect("a driver that resets engines")
    }

    /// Why a reset of the adapter failed by itself: not made to.
    #[must_use]
    pub fn reset_failure(&self) -> Option<String> {
        lock(&self.tdr.failure).clone()
    }

    fn pass_tdr(&self, call: TdrCall) -> Result<(), DdiError> {
        lock(&self.tdr.calls).push(call);
        let before = lock(&self.tdr.before).clone();
        if let Some(before) = before {
            before(call);
        }
        failure(&self.tdr.fails, &call)
    }
}

impl TdrDdi for DdiSpy {
    fn supports_per_engine_tdr(&self) -> bool {
        self.recovery().supports_per_engine_tdr()
    }

    fn resets_running_engines(&self) -> bool {
        // What the OS asks first then, and asks at no other time.
        let hook = lock(&self.tdr.on_detection).clone();
        if let Some(hook) = hook {
            hook();
        }
        self.recovery().resets_running_engines()
    }

    fn engine_is_lost(&self, node_ordinal: u32) -> bool {
        let is_said = lock(&self.tdr.lost).contains(&node_ordinal);
        is_said || self.recovery().engine_is_lost(node_ordinal)
    }

    fn activity(&self) -> Arc<Activity> {
        self.recovery().activity()
    }

    fn engine_marks(&self, node_ordinal: u32) -> Option<u64> {
        let marks = self.recovery().engine_marks(node_ordinal);
        if self.is_silent(node_ordinal) {
            return Some(u64::MAX);
        }
        marks
    }

    fn request_preemption(&self, node_ordinal: u32) {
        let _ = self.pass_tdr(TdrCall::RequestPreemption(node_ordinal));
        self.recovery().request_preemption(node_ordinal);
    }

    fn suspect_engine(&self, node_ordinal: u32) {
        self.recovery().suspect_engine(node_ordinal);
    }

    fn query_engine_status(&self, node_ordinal: u32) -> bool {
        self.in_level_one(|| {
            let _ = self.pass_tdr(TdrCall::QueryEngineStatus(node_ordinal));
            self.recovery().query_engine_status(node_ordinal) && !self.is_silent(node_ordinal)
        })
    }

    fn query_dependent_engine_group(&self, node_ordinal: u32) -> u64 {
        let _ =
            self.in_level_one(|| self.pass_tdr(TdrCall::QueryDependentEngineGroup(node_ordinal)));
        let group = lock(&self.tdr.group);
        let real = || self.recovery().query_dependent_engine_group(node_ordinal);
        group
            .as_ref()
            .map_or_else(real, |group| group(node_ordinal))
    }

    fn reset_engine(&self, node_ordinal: u32) -> Result<ResetEngine, DdiError> {
        let reset = self.in_level_one(|| {
            self.pass_tdr(TdrCall::ResetEngine(node_ordinal))?;
            self.recovery().reset_engine(node_ordinal)
        })?;
        self.forget_troubles(|node| node == node_ordinal);
        match lock(&self.tdr.reset).as_mut() {
            Some(answer) => answer(reset),
            None => Ok(reset),
        }
    }

    fn resume_hw_engine(&self, node_ordinal: u32) -> Result<(), DdiError> {
        self.pass_tdr(TdrCall::ResumeHwEngine(node_ordinal))?;
        self.recovery().resume_hw_engine(node_ordinal)
    }

    fn send_threads_away(&self) {
        self.recovery().send_threads_away();
    }

    fn reset_from_timeout(&self) -> Result<Vec<ResetEngine>, DdiError> {
        self.pass_tdr(TdrCall::ResetFromTimeout)?;
        let reset = self.recovery().reset_from_timeout().inspect_err(|error| {
            lock(&self.tdr.failure).get_or_insert_with(|| error.to_string());
        })?;
        self.forget_troubles(|_| true);
        Ok(reset)
    }

    fn restart_from_timeout(&self) -> Result<(), DdiError> {
        self.pass_tdr(TdrCall::RestartFromTimeout)?;
        self.recovery().restart_from_timeout()
    }

    fn give_up_engine(&self, node_ordinal: u32) {
        self.recovery().give_up_engine(node_ordinal);
    }

    fn collect_dbg_info(&self, args: &CollectDbgInfo) -> Result<String, DdiError> {
        self.pass_tdr(TdrCall::CollectDbgInfo(args.reason))?;
        match lock(&self.tdr.dbg_info).clone() {
            Some(text) => Ok(text),
            None => self.recovery().collect_dbg_info(args),
        }
    }
}
