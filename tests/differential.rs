//! Random programs, played on the model and on the shader: the same packets are taken, logged and
//! refused, and the same values stand at the end, wherever the slices of either end.
//!
//! The model's slices are cut by plan, as lavapipe 22 cuts them; those of both engines get budgets
//! from a seed, and are asked to end by doorbells that are taken away and rung again. That the
//! outcome depends on none of it, and on no order, is said in `native_fence::soak::program`; what it
//! must be is foretold there by the rules alone.
//!
//! `NFENCE_RANDOM_CASES` sets how many programs there are, `NFENCE_RANDOM_SEED` the first. One that
//! fails is shrunk and printed with its seed.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
    pub(crate) mod program;
}

#[path = "support/engines.rs"]
mod engines;

use engines::{Random, random_cases};
use native_fence::gpu::{CutPlan, ModelClock, ModelMemory, ModelOptions};
use native_fence::soak::program::{Kinds, Program, draw, foretell, shrink};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use support::bench::Bench;
use support::program::{Outcome, Stage, difference};

/// Programs that are played on one stage before another is made: the spies write everything down.
const CASES_OF_A_STAGE: u64 = 10;

/// Goes on by a few microseconds a look: a slice that finds nothing ends soon, however short it is
/// cut.
#[derive(Debug, Default)]
struct CountingClock(AtomicU64);

impl ModelClock for CountingClock {
    fn ticks(&self) -> u64 {
        5000 * self.0.fetch_add(1, Ordering::Relaxed)
    }
}

/// Where the programs begin.
fn first_seed() -> u64 {
    let seed = std::env::var("NFENCE_RANDOM_SEED").ok();
    seed.map_or(0, |seed| {
        seed.parse().expect("NFENCE_RANDOM_SEED is a number")
    })
}

/// A model, of any form, cut as the number says; and whether its slices are long enough for a part
/// of a transfer, which is 64 loop passes. Drivers that cut let a slice make a thousand times as many.
fn model(number: u64) -> (Stage, Arc<ModelMemory>, bool) {
    let random = &mut Random(number);
    let most = match number % 3 {
        0 => u64::MAX,
        _ => *random.pick(&[3, 10, 60, 200, 400, 3000]),
    };
    let cut = match most {
        u64::MAX => CutPlan::Never,
        _ => CutPlan::Random { seed: number, most },
    };
    let options = ModelOptions {
        lanes: *random.pick(&[1, 2, 8]),
        rounds: *random.pick(&[1, 3, 32]),
        quantum: *random.pick(&[1, 8]),
        clock: Arc::new(CountingClock::default()),
        clock_bits: *random.pick(&[32, 64]),
        cut,
        ..ModelOptions::default()
    };
    let (bench, memory) = Bench::of_programs_on_model(options);
    (Stage::new(bench), memory, most >= 200)
}

/// What is wrong with a play; the outcome if nothing is.
fn judged(stage: &Stage, program: &Program, seed: u64) -> Result<Outcome, String> {
    let outcome = stage.play(program, seed)?;
    match outcome.differs_from(&foretell(program)) {
        None => Ok(outcome),
        Some(how) => Err(how),
    }
}

/// Plays a program on both; what is wrong, if anything is.
fn compare(model: &Stage, device: Option<&Stage>, program: &Program, seed: u64) -> Option<String> {
    let on_model = match judged(model, program, seed) {
        Ok(outcome) => outcome,
        Err(how) => return Some(format!("on the model: {how}")),
    };
    match device.map(|device| judged(device, program, !seed)) {
        None => None,
        Some(Err(how)) => Some(format!("on the shader: {how}")),
        Some(Ok(on_shader)) => difference(&on_model, &on_shader)
            .map(|how| format!("the model differs from the shader in {how}")),
    }
}

/// Fails, with the least program that shows it.
fn fail(model: &Stage, device: Option<&Stage>, program: &Program, seed: u64, how: &str) -> ! {
    let fails = |program: &Program| (0..2).any(|_| compare(model, device, program, seed).is_some());
    let least = shrink(program, fails);
    let shown = compare(model, device, &least, seed);
    panic!(
        "case {seed} of {} packets: {how}\nshrunk to {} packets, which show {shown:?}: {least:?}",
        program.packets(),
        least.packets()
    );
}

fn random_programs(engines: u32, first: u64, cases: u64) {
    let (mut packets, mut slices, mut cut, began) = (0, 0, 0, Instant::now());
    let (mut taken, mut transfers_taken) = (0, 0);
    for stage in 0..cases.div_ceil(CASES_OF_A_STAGE) {
        let number = first + stage * CASES_OF_A_STAGE;
        let (model, memory, transfers) = model(number / CASES_OF_A_STAGE);
        let device = Bench::of_programs_on_device(engines).map(Stage::new);
        for seed in number..(first + cases).min(number + CASES_OF_A_STAGE) {
            let mut program = draw(&mut Random(seed), Kinds::of_packets(transfers));
            if transfers {
                program.add_takes(&mut Random(!seed), |_, _| true);
            }
            packets += program.packets();
            let foretold = foretell(&program);
            taken += foretold.packets();
            transfers_taken += foretold.transfers(&program);
            if let Some(how) = compare(&model, device.as_ref(), &program, seed) {
                fail(&model, device.as_ref(), &program, seed, &how);
            }
            assert_eq!(memory.violations(), [], "case {seed}");
        }
        let counters = device
            .map(|device| device.bench.counters())
            .unwrap_or_default();
        slices += counters.slices;
        cut += counters.cut + model.bench.counters().cut;
    }
    println!(
        "{cases} programs of {packets} packets in {:?}: {slices} slices on the device, {cut} cut in all\n\
         each engine executed {taken} packets, {transfers_taken} of them transfers",
        began.elapsed()
    );
}

/// HQ-06, LG-04, HQ-04: the same on model and shader, wherever slices end.
///
/// Kills `differential-model-log-index-is-not-saved`, `differential-model-redoes-a-packet`,
/// `differential-model-waits-beyond-its-value`, `differential-model-closed-is-never-opened`,
/// `differential-shader-log-index-is-not-saved`, `differential-shader-redoes-a-packet`,
/// `differential-shader-waits-beyond-its-value`, `differential-shader-closed-is-never-opened`,
/// `differential-model-observes-less-after-a-cut`, `differential-model-part-goes-on-elsewhere`,
/// `differential-model-passes-an-overlap`, `differential-model-transferred-is-kept`,
/// `differential-shader-transferred-is-kept`, `differential-shader-passes-an-overlap`,
/// `differential-shader-part-goes-on-elsewhere`.
#[test]
fn hq_06_load_random_programs_end_the_same_on_model_and_shader() {
    random_programs(1, first_seed(), random_cases(40));
}

/// NF-09: the same where the device's queues are those of two engines.
///
/// Kills `differential-rings-of-the-first-node`.
#[test]
fn nf_09_load_random_programs_of_two_engines_end_the_same() {
    random_programs(2, first_seed() + 3_000_000, random_cases(20));
}
