//! Reset with native fences: another engine takes the place of the one that is lost or hung, and the queues of
//! innocent programs go on where they were.
//!
//! A guilty program has the packet that is under way. An innocent one submits and waits all the time, on that
//! engine and on another one: what it sees is what is measured.

use super::counts;
use crate::gpu::{EngineUnit, Injection, LongKernel, SparePolicy};
use crate::sync::{Arc, AtomicBool, Ordering};
use crate::workload::busy_threads::{Pinned, RunTimes};
use crate::workload::bystander::{Bystander, queue_on};
use crate::workload::reset::{DELAY, KernelTime, ResetForm};
use crate::workload::sleeper::Sleeper;
use crate::workload::trial::{Trial, time_behind};
use crate::workload::{Bench, Counts, Mechanism, PATIENCE, Params, Runner, Sample, TooBusy};
use crate::{
    Adapter, AdapterOptions, Allocation, CommandList, Device, DeviceExecutionState, HwQueue,
    TdrPolicy, WaitError,
};
use anyhow::{Context, bail, ensure};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// The node whose engine is reset, and the one that goes on.
const GUILTY_NODE: u32 = 0;
const OTHER_NODE: u32 = 1;
const NODES: u32 = 2;

/// What is under way when the device is lost: fills, which take longer than a busy machine takes to lose it.
/// Slices end meanwhile, and none is begun after that.
const JOB_BYTES: u64 = 16 << 20;
const JOB_FILLS: u64 = 200;

/// Between two looks at what has no event. The verdict is known as exactly.
const LOOK: Duration = Duration::from_micros(300);
/// Of a kernel, before it is asked who runs it: then its thread has run longest by far.
const RUNNING: Duration = Duration::from_millis(20);

/// What the watcher has seen.
#[derive(Default)]
struct Watched {
    verdict: OnceLock<Instant>,
    /// There is nothing to be seen any more.
    is_over: AtomicBool,
}

/// The programs of a batch.
struct Scene {
    guilty: HwQueue,
    guilty_device: Device,
    /// What its job fills; there for as long as the job.
    memory: Option<Allocation>,
    same: Bystander,
    other: Bystander,
    innocent: Device,
}

/// See the file's head.
pub struct Reset {
    /// What the row is of, and what is done.
    asked: ResetForm,
    form: ResetForm,
    work: String,
    scene: Option<Scene>,
    kernel: Option<LongKernel>,
    kernel_time: KernelTime,
    /// Workgroups of all kernels that were begun.
    workgroups: u64,
    watcher: Sleeper,
    /// The longest that a submission took on the other engine while one was hung or lost.
    other_longest: Duration,
    /// Batches in which the hung engine had a core for itself.
    pinned: u64,
    injection: Arc<Injection>,
    adapter: Adapter,
}

impl Scene {
    /// The guilty queue is its node's first: of an engine that does not say whose packet it is in, the first
    /// queue that could go on is taken for the guilty one.
    fn guilty(adapter: &Adapter) -> anyhow::Result<(Device, HwQueue)> {
        let device = adapter.create_device();
        let queue = queue_on(&device, GUILTY_NODE)?;
        Ok((device, queue))
    }

    fn new(adapter: &Adapter, (guilty_device, guilty): (Device, HwQueue)) -> anyhow::Result<Self> {
        let innocent = adapter.create_device();
        let same = Bystander::start(&innocent, GUILTY_NODE, PATIENCE)?;
        let other = Bystander::start(&innocent, OTHER_NODE, PATIENCE)?;
        let ready = Instant::now();
        for bystander in [&same, &other] {
            bystander
                .wait_for_one_after(ready)
                .context("nothing works on an engine before anything was done to it")?;
        }
        Ok(Self {
            guilty,
            guilty_device,
            memory: None,
            same,
            other,
            innocent,
        })
    }
}

/// Submits, and waits for the end.
fn run(queue: &mut HwQueue) -> anyhow::Result<()> {
    let value = queue.submit(CommandList::new().nop())?;
    Ok(queue.progress_fence().wait(value, PATIENCE)?)
}

fn until(what: &'static str, condition: impl Fn() -> bool) -> anyhow::Result<()> {
    let begin = Instant::now();
    while !condition() {
        if begin.elapsed() > PATIENCE {
            bail!("it never came to this: {what}");
        }
        std::thread::sleep(LOOK);
    }
    Ok(())
}

/// What the OS has last reported of an engine that did not answer.
fn last_report(adapter: &Adapter) -> Option<String> {
    let reports = adapter.os().tdr_reports();
    reports.last().map(ToString::to_string)
}

impl Reset {
    /// Of a form, or of the one that the device can do: an engine that runs on where it cannot be cut off from
    /// memory is not reset.
    ///
    /// # Errors
    /// The adapter could not be opened.
    pub fn new(bench: &Bench, mechanism: Mechanism, form: ResetForm) -> anyhow::Result<Self> {
        let injection = Injection::new(NODES)?;
        let options = AdapterOptions {
            // So that one is lost, or hangs, alone.
            unit: Some(EngineUnit::Instance),
            tdr: TdrPolicy {
                delay: DELAY,
                limit_count: u32::MAX,
                ..TdrPolicy::default()
            },
            spares: SparePolicy::Kept,
            injection: Some(Arc::clone(&injection)),
            ..AdapterOptions::default()
        };
        let adapter = bench.native(mechanism, NODES, options)?;
        let tdr = adapter.os().ddi().tdr();
        #[allow(
            clippy::redundant_closure_for_method_calls,
            reason = "the trait is the driver's, which this room does not name"
        )]
        let resets_running = tdr.is_some_and(|tdr| tdr.resets_running_engines());
        Ok(Self {
            asked: form,
            form: if resets_running {
                form
            } else {
                ResetForm::Lost
            },
            work: work(form, resets_running),
            scene: None,
            kernel: None,
            kernel_time: KernelTime::default(),
            workgroups: 0,
            watcher: Sleeper::new()?,
            other_longest: Duration::ZERO,
            pinned: 0,
            injection,
            adapter,
        })
    }

    /// A kernel long enough, by short ones of the guilty program.
    fn kernel(&mut self, guilty: &mut HwQueue) -> anyhow::Result<LongKernel> {
        if let Some(kernel) = self.kernel {
            return Ok(kernel);
        }
        let mut workgroups = 0;
        let kernel = Trial::kernel(self.kernel_time.get(), |kernel| {
            workgroups += u64::from(kernel.workgroups);
            time_behind(&self.injection, GUILTY_NODE, kernel, || run(guilty))
        })?;
        self.workgroups += workgroups;
        self.kernel = Some(kernel);
        Ok(kernel)
    }

    /// Brings the engine to a standstill; gives the value that the guilty program waits for then, and the
    /// thread that runs the kernel, pinned.
    fn inject(&mut self, scene: &mut Scene) -> anyhow::Result<(u64, Option<Pinned>)> {
        if self.form == ResetForm::Lost {
            let memory = scene.guilty_device.create_allocation(JOB_BYTES)?;
            let memory = scene.memory.insert(memory);
            let mut job = CommandList::new();
            for value in 1..=JOB_FILLS {
                job.fill(memory, 0..JOB_BYTES, value);
            }
            let value = scene.guilty.submit(&job)?;
            until("the job is under way", || {
                let mut word = [0];
                memory.read(0, &mut word);
                word[0] != 0
            })?;
            self.injection.device_loss(GUILTY_NODE).lose();
            return Ok((value, None));
        }
        let kernel = self.kernel.context("no kernel was found long enough")?;
        let injection = Arc::clone(&self.injection);
        let done = injection.workgroups_done(GUILTY_NODE);
        let runs = || injection.workgroups_done(GUILTY_NODE) > done;
        injection.before_next_slice(GUILTY_NODE, kernel);
        self.workgroups += u64::from(kernel.workgroups);
        // A slice in flight takes what is submitted: the kernel is before the next one.
        let mut value = 0;
        while !runs() {
            value = scene.guilty.submit(CommandList::new().nop())?;
            let progress = scene.guilty.progress_fence();
            until("the kernel runs, or there was no next slice", || {
                runs() || progress.current_value() >= value
            })?;
        }
        if scene.guilty.progress_fence().current_value() >= value {
            value = scene.guilty.submit(CommandList::new().nop())?;
        }
        let before = RunTimes::now();
        std::thread::sleep(RUNNING);
        // Who has run for half of that, and longest, runs the kernel.
        let busiest = RunTimes::now().busiest_since(&before);
        let found = busiest.filter(|(_, time)| u128::from(2 * time) >= RUNNING.as_nanos());
        Ok((value, found.and_then(|(thread, _)| Pinned::alone(thread))))
    }

    /// Looks for when the OS reports that an engine is lost or does not answer.
    fn watch(&self) -> anyhow::Result<Arc<Watched>> {
        let watched = Arc::new(Watched::default());
        let (theirs, adapter) = (Arc::clone(&watched), self.adapter.clone());
        let before = last_report(&adapter);
        self.watcher.begin(move || {
            until("the OS reports the engine", || {
                last_report(&adapter) != before || theirs.is_over.load(Ordering::Relaxed)
            })?;
            theirs.verdict.get_or_init(Instant::now);
            Ok(())
        })?;
        Ok(watched)
    }

    /// Does a batch; none where the kernel ended by itself.
    fn attempt(&mut self) -> anyhow::Result<Option<Sample>> {
        let mut scene = self.scene.take().context("nothing was made ready")?;
        let watched = self.watch()?;
        let records = self.adapter.os().records().len();
        let injected = Instant::now();
        let (value, pinned) = self.inject(&mut scene)?;
        let ended = scene.guilty.progress_fence().wait(value, PATIENCE);
        let is_kernel = self.form == ResetForm::Hung;
        if is_kernel && ended.is_ok() && self.adapter.os().records().len() == records {
            watched.is_over.store(true, Ordering::Relaxed);
            self.watcher.end()?;
            return Ok(None);
        }
        self.watcher.end()?;
        let verdict = *watched.verdict.get().context("there was no verdict")?;
        let first = scene.same.wait_for_one_after(verdict);
        let goes_on = scene.other.wait_for_one_after(verdict);
        self.pinned += u64::from(pinned.is_some());
        drop(pinned);
        for (bystander, engine) in [(&scene.same, GUILTY_NODE), (&scene.other, OTHER_NODE)] {
            if let Some(error) = bystander.error() {
                if self.adapter.os().records().len() > records + 1 {
                    // An engine that nothing kept did not answer either: it had no core for 500 ms.
                    return Err(TooBusy.into());
                }
                let form = self.form.name();
                bail!("the innocent queue on engine {engine} ended, {form}: {error}");
            }
        }
        ensure!(
            ended == Err(WaitError::DeviceLost),
            "the guilty program's wait ended otherwise: {ended:?}"
        );
        ensure!(
            scene.innocent.execution_state() == DeviceExecutionState::ACTIVE,
            "the innocent device is in error"
        );
        let (first, _) = first.zip(goes_on).context("an engine stood still")?;
        let stretch = scene.other.between(injected, first);
        self.other_longest = self.other_longest.max(stretch.longest);
        let wall = first - verdict;
        Ok(Some(Sample {
            wall,
            latencies: vec![wall],
            pauses: 0,
        }))
    }
}

impl Runner for Reset {
    fn work(&self) -> &str {
        &self.work
    }

    fn params(&self) -> Params {
        let longest = self.other_longest.as_secs_f64() * 1e6;
        let mut params = Params::from([
            ("form".into(), self.asked.name().into()),
            ("engines".into(), NODES.into()),
            ("other_engine_longest_us".into(), longest.round().into()),
        ]);
        if self.form == ResetForm::Hung {
            params.insert("pinned_batches".into(), self.pinned.into());
        }
        params
    }

    fn ops_per_batch(&self) -> u64 {
        1
    }

    fn prepare(&mut self) -> anyhow::Result<()> {
        self.scene = None;
        let (mut device, mut guilty) = Scene::guilty(&self.adapter)?;
        run(&mut guilty)?;
        until("another engine stands ready", || self.adapter.has_spare())?;
        // What was left behind would run beside it.
        until("the kernel before has ended", || {
            self.injection.workgroups_done(GUILTY_NODE) >= self.workgroups
        })?;
        if self.form == ResetForm::Hung {
            self.kernel(&mut guilty)?;
            drop(guilty);
            (device, guilty) = Scene::guilty(&self.adapter)?;
        }
        self.scene = Some(Scene::new(&self.adapter, (device, guilty))?);
        Ok(())
    }

    fn batch(&mut self) -> anyhow::Result<Sample> {
        loop {
            if let Some(sample) = self.attempt()? {
                return Ok(sample);
            }
            self.kernel_time.lengthen()?;
            self.kernel = None;
            self.prepare()?;
        }
    }

    fn counts(&self) -> Counts {
        counts(&self.adapter)
    }
}

fn work(form: ResetForm, resets_running: bool) -> String {
    let happens = match (form, resets_running) {
        (ResetForm::Lost, _) => "The device of an engine is lost (injected) while a job runs",
        (ResetForm::Hung, true) => {
            "A kernel that nothing stops keeps an engine for 2 s, where it can be on a core of its own, and \
             the engine answers nothing for 500 ms"
        }
        (ResetForm::Hung, false) => {
            "An engine that runs cannot be cut off from memory on this device, and is not reset; so its device \
             is lost (injected) while a job runs"
        }
    };
    format!(
        "{happens}; measured is from the OS's report of that, seen within 0.3 ms, to the next submission that \
         completes of another program's queue on that engine, which submits and waits all the time."
    )
}
