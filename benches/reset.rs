//! Reset: from the report that an engine is lost or hung to what goes on there, by each mechanism; and engines
//! that are lost, or hang, one after another, on one adapter, with what the process holds before and after.
//!
//! `NFENCE_RESETS=1000` resets each of those engines so many times in a row before it is measured. Memory is
//! comparable with `MALLOC_ARENA_MAX=1`: else the allocator keeps some for each thread there ever was.

mod support;

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, criterion_group, criterion_main};
use native_fence::gpu::{EngineUnit, Injection, LongKernel, SparePolicy};
use native_fence::kmd::DriverOptions;
use native_fence::os::TdrStep;
use native_fence::workload::Scenario;
use native_fence::{Adapter, AdapterOptions, CommandList, Device, HwQueue, TdrPolicy};
use std::sync::Arc;
use std::time::{Duration, Instant};
use support::holdings::{Holdings, has_thread};
use support::resets::resets_or;

const PATIENCE: Duration = Duration::from_secs(20);
/// Between two looks at what has no event. The verdict is known as exactly.
const LOOK: Duration = Duration::from_micros(300);
/// TdrDelay of what hangs, and the time that its engine has to answer.
const DELAY: Duration = Duration::from_millis(100);
/// Resets after which the program has all that it needs for more of them.
const WARM_UP: u64 = 20;

/// Engines of one adapter that are reset, one after another.
trait Resets {
    fn failing(&self) -> &Failing;

    /// Once more: the time that counts.
    fn once(&mut self) -> Duration;
}

/// An adapter of one engine that is reset as often as one likes.
struct Failing {
    adapter: Adapter,
    injection: Arc<Injection>,
    is_kept: bool,
}

impl Failing {
    fn open(spares: SparePolicy, tdr: TdrPolicy, driver: DriverOptions) -> Option<Self> {
        let bench = support::bench()?;
        let injection = Injection::new(1).expect("a page");
        let options = AdapterOptions {
            unit: Some(EngineUnit::Instance),
            spares,
            injection: Some(Arc::clone(&injection)),
            tdr: TdrPolicy {
                limit_count: u32::MAX,
                ..tdr
            },
            driver,
            ..AdapterOptions::default()
        };
        match Adapter::open_on(&bench.instance, &bench.adapter, &options) {
            Ok(adapter) => Some(Self {
                adapter,
                injection,
                is_kept: spares == SparePolicy::Kept,
            }),
            Err(why) => {
                eprintln!("left out: {why}");
                None
            }
        }
    }

    fn programs(&self) -> [(Device, HwQueue); 2] {
        [(); 2].map(|()| {
            let device = self.adapter.create_device();
            let queue = device.create_hw_queue().expect("a queue");
            (device, queue)
        })
    }

    fn resets(&self) -> u64 {
        self.adapter.node_counters().resets
    }

    /// One more than so many, and it is over; records do not say so, of which the last are not kept.
    fn wait_for_reset_after(&self, resets: u64) {
        until("it has recovered", || {
            let steps = self.adapter.os().tdr_steps(0);
            let last = steps.last().map(|(step, _)| *step);
            let is_over = !matches!(last, Some(TdrStep::ResetEngine | TdrStep::Validate));
            self.resets() > resets && is_over
        });
    }

    /// What was left behind has ended.
    fn wait_for_ends(&self) {
        until("engines that were given up have ended", || {
            self.adapter.engines_given_up() == 0 && !has_thread("nf-reaper")
        });
    }

    /// Another engine stands ready, if one is kept.
    fn wait_for_spare(&self) {
        until("a spare is kept", || {
            !self.is_kept || self.adapter.has_spare()
        });
    }
}

impl Resets for Failing {
    fn failing(&self) -> &Failing {
        self
    }

    /// The engine is lost with a packet under way; from there to the end of another program's packet.
    fn once(&mut self) -> Duration {
        let [(_guilty, mut queue), (_innocent, mut other)] = self.programs();
        if self.is_kept {
            run(&mut other);
            self.wait_for_spare();
        }
        let resets = self.resets();
        let begin = Instant::now();
        self.injection.device_loss(0).lose();
        queue
            .submit(CommandList::new().nop())
            .expect("it is submitted");
        let done = run(&mut other);
        let took = begin.elapsed();
        // Whose packet it was that found the loss is not said.
        if !done {
            eprintln!("the other program's packet was under way");
        }
        self.wait_for_reset_after(resets);
        took
    }
}

/// An engine that a kernel hangs.
struct Hanging {
    failing: Failing,
    kernel: LongKernel,
}

impl Hanging {
    fn open() -> Option<Self> {
        let tdr = TdrPolicy {
            delay: DELAY,
            ..TdrPolicy::default()
        };
        let driver = DriverOptions {
            answer_time: DELAY,
            ..DriverOptions::default()
        };
        let failing = Failing::open(SparePolicy::Kept, tdr, driver)?;
        let tdr = failing.adapter.os().ddi().tdr();
        #[allow(
            clippy::redundant_closure_for_method_calls,
            reason = "the trait is the driver's"
        )]
        if !tdr.is_some_and(|tdr| tdr.resets_running_engines()) {
            eprintln!("left out: an engine that runs cannot be cut off on this device");
            return None;
        }
        Some(Self {
            failing,
            kernel: LongKernel {
                workgroups: 100,
                passes: 60_000,
            },
        })
    }

    /// None where the kernel had ended before the engine was reset, or it was another program's packet that was
    /// taken for the one under way.
    fn attempt(&mut self) -> Option<Duration> {
        let Failing {
            adapter, injection, ..
        } = &self.failing;
        // Who has the packet under way is its node's first queue.
        let [(_guilty, mut queue), (_innocent, mut other)] = self.failing.programs();
        run(&mut other);
        // What was left behind would run beside it.
        self.failing.wait_for_ends();
        self.failing.wait_for_spare();
        let (steps, resets) = (adapter.os().tdr_steps(0), self.failing.resets());

        let done = injection.workgroups_done(0);
        let runs = || injection.workgroups_done(0) > done;
        injection.before_next_slice(0, self.kernel);
        while !runs() {
            // A slice in flight takes what is submitted: the kernel is before the next one.
            let value = queue.submit(CommandList::new().nop()).ok()?;
            let progress = queue.progress_fence();
            until("the kernel runs, or there was no next slice", || {
                runs() || progress.current_value() >= value
            });
        }
        let value = other.submit(CommandList::new().nop()).ok()?;
        let progress = other.progress_fence();
        let has_verdict = || {
            let now = adapter.os().tdr_steps(0);
            now != steps && now.iter().any(|(step, _)| *step == TdrStep::Detect)
        };
        until("there is a verdict, or the kernel has ended", || {
            has_verdict() || progress.current_value() >= value
        });
        let verdict = Instant::now();
        let waited = progress.wait(value, PATIENCE);
        let took = verdict.elapsed();
        if let Err(why) = waited {
            eprintln!("the innocent program's packet: {why}");
            return None;
        }
        if self.failing.resets() == resets {
            self.kernel.workgroups *= 2;
            return None;
        }
        self.failing.wait_for_reset_after(resets);
        Some(took)
    }
}

impl Resets for Hanging {
    fn failing(&self) -> &Failing {
        &self.failing
    }

    /// A kernel that nothing stops keeps the engine; from the verdict, which is when the steps of the recovery
    /// say that the engine has not answered, to the end of the first packet of another program, which was
    /// submitted before.
    fn once(&mut self) -> Duration {
        loop {
            if let Some(took) = self.attempt() {
                return took;
            }
        }
    }
}

fn run(queue: &mut HwQueue) -> bool {
    let submitted = queue.submit(CommandList::new().nop());
    submitted.is_ok_and(|value| queue.progress_fence().wait(value, PATIENCE).is_ok())
}

fn until(what: &str, condition: impl Fn() -> bool) {
    let begin = Instant::now();
    while !condition() {
        assert!(begin.elapsed() < PATIENCE, "it never came to this: {what}");
        std::thread::sleep(LOOK);
    }
}

/// What so many took together; the longest is kept.
fn in_a_row(resets: &mut impl Resets, times: u64, longest: &mut Duration) -> Duration {
    let once = |_| {
        let time = resets.once();
        *longest = time.max(*longest);
        time
    };
    (0..times).map(once).sum()
}

/// Measures resets, after as many in a row as are asked for, and says what the program holds before and after.
fn measure(group: &mut BenchmarkGroup<'_, WallTime>, name: &str, resets: &mut impl Resets) {
    let settled = |resets: &dyn Resets| {
        let failing = resets.failing();
        failing.wait_for_ends();
        failing.wait_for_spare();
        (failing.resets(), Holdings::now())
    };
    let (mut before, mut longest) = (None, Duration::ZERO);
    group.bench_function(name, |bencher| {
        if before.is_none() {
            in_a_row(resets, WARM_UP, &mut longest);
            longest = Duration::ZERO;
            before = Some(settled(resets));
            in_a_row(resets, resets_or(0) as u64, &mut longest);
        }
        bencher.iter_custom(|times| in_a_row(resets, times, &mut longest));
    });
    let Some((first, before)) = before else {
        return;
    };
    let (last, after) = settled(resets);
    let resets_done = last - first;
    eprintln!("{name}: {resets_done} resets, the longest in {longest:.1?}");
    eprintln!("before: {before:?}\n after: {after:?}");
    let steps = resets.failing().adapter.os().tdr_steps(0);
    let steps = steps
        .iter()
        .map(|(step, at)| format!("{} {at:.1?}", step.name()));
    eprintln!("the last one: {}", steps.collect::<Vec<_>>().join(", "));
}

fn losses(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("an engine is lost, until its other queue goes on");
    for (name, spares) in [
        ("another stands ready", SparePolicy::Kept),
        ("another is made", SparePolicy::OnSuspicion),
    ] {
        let losing = Failing::open(spares, TdrPolicy::default(), DriverOptions::default());
        let Some(mut losing) = losing else {
            return;
        };
        measure(&mut group, name, &mut losing);
    }
    group.finish();
}

fn hangs(criterion: &mut Criterion) {
    let mut group = criterion
        .benchmark_group("an engine hangs, from the verdict until its other queue goes on");
    let Some(mut hanging) = Hanging::open() else {
        return;
    };
    measure(
        &mut group,
        "TdrDelay 100 ms, another stands ready",
        &mut hanging,
    );
    group.finish();
}

fn scenario(criterion: &mut Criterion) {
    support::scenarios(criterion, &[Scenario::Reset]);
}

criterion_group! {
    name = benches;
    // Each takes up to two seconds, most of which is to make it ready.
    config = Criterion::default().sample_size(10);
    targets = losses, hangs, scenario
}
criterion_main!(benches);
