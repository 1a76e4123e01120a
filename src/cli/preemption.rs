//! Preemption: how finely engines are preempted, by the driver's word and as measured.
//!
//! A context is asked off the engine while its queue is in the middle of a packet, or of a run of them where
//! each is short; what is measured is the time until the engine has acknowledged that it refers to it no more.

use super::progress::Bar;
use crate::sync::Arc;
use crate::vulkan::shaders::ADD_WORDS;
use crate::vulkan::{AdapterInfo, Instance};
use crate::{
    Adapter, AdapterOptions, Allocation, CommandList, Device, Fence, HwContext, HwQueue, Kernel,
    KernelCode, Parameters,
};
use anyhow::{Context, ensure};
use serde::Serialize;
use std::time::{Duration, Instant};

/// Requests for each kind that count, unless they take longer than this together.
const REQUESTS: usize = 20;
const TIME: Duration = Duration::from_millis(300);
/// An engine that does not answer within this is not preempted.
const PATIENCE: Duration = Duration::from_secs(5);
/// Packets of a run, and bytes of a transfer: longer than a request takes.
const RUN: u64 = 40_000;
const BYTES: u64 = 16 << 20;
const RING: u64 = 1 << 16;
/// Packets of a run of dispatches, of one workgroup each.
const DISPATCHES: u64 = 1000;

/// What was found on a device.
#[derive(Debug, Serialize)]
pub(super) struct Preemption {
    /// `D3DKMDT_PREEMPTION_CAPS`.
    graphics: String,
    compute: String,
    /// `compute` once a program has registered a kernel, which no engine divides.
    compute_with_kernels: String,
    requests: Vec<Measured>,
    /// Kinds of which every packet ended before it was asked for.
    missed: Vec<Kind>,
    /// Why there are no figures, or no more.
    problem: Option<String>,
}

/// Requests in the middle of one kind of packet.
#[derive(Debug, Serialize)]
struct Measured {
    packet: Kind,
    /// Those in whose time the packet did not end.
    in_the_middle: usize,
    acknowledged_p50_us: f64,
    acknowledged_max_us: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    NopRun,
    Wait,
    SignalRun,
    Fill,
    Copy,
    DispatchRun,
}

impl Kind {
    /// The last one needs a kernel, and an engine that once had one does all more coarsely.
    const ALL: [Self; 6] = [
        Self::NopRun,
        Self::Wait,
        Self::SignalRun,
        Self::Fill,
        Self::Copy,
        Self::DispatchRun,
    ];

    fn phrase(self) -> &'static str {
        match self {
            Self::NopRun => "run of NOPs",
            Self::Wait => "WAIT",
            Self::SignalRun => "run of SIGNALs",
            Self::Fill => "FILL",
            Self::Copy => "COPY",
            Self::DispatchRun => "run of DISPATCHes",
        }
    }
}

/// A context with a queue, and what its packets name.
struct Scene {
    adapter: Adapter,
    context: HwContext,
    queue: HwQueue,
    gate: Fence,
    passed: Fence,
    from: Allocation,
    to: Allocation,
    /// Registered when its kind's turn comes.
    kernel: Option<Kernel>,
    device: Device,
    /// Of requests so far.
    number: u64,
}

impl Preemption {
    /// Steps of the progress bar.
    pub(super) const STEPS: usize = 1;

    pub(super) fn measure(instance: &Arc<Instance>, info: &AdapterInfo, bar: &Bar) -> Self {
        bar.begin(format!("{}, preemption", info.name));
        let mut found = Self {
            graphics: String::new(),
            compute: String::new(),
            compute_with_kernels: String::new(),
            requests: Vec::new(),
            missed: Vec::new(),
            problem: None,
        };
        if let Err(error) = found.fill_in(instance, info) {
            found.problem = Some(format!("{error:#}"));
        }
        bar.step();
        found
    }

    fn fill_in(&mut self, instance: &Arc<Instance>, info: &AdapterInfo) -> anyhow::Result<()> {
        let mut scene = Scene::open(instance, info)?;
        (self.graphics, self.compute) = scene.adapter.os().preemption_caps().names();
        for kind in Kind::ALL {
            if kind == Kind::DispatchRun {
                let code = KernelCode::new(ADD_WORDS.words, 32)?;
                scene.kernel = Some(scene.device.create_kernel(code)?);
                (_, self.compute_with_kernels) = scene.adapter.os().preemption_caps().names();
            }
            match scene.measure(kind)? {
                Some(measured) => self.requests.push(measured),
                None => self.missed.push(kind),
            }
        }
        Ok(())
    }

    /// All of it, for a person.
    pub(super) fn sentences(&self) -> Vec<String> {
        let mut sentences = Vec::new();
        if !self.compute.is_empty() {
            let with_kernels = match self.compute_with_kernels.as_str() {
                "" => String::new(),
                level => format!(" ({level} once a kernel was registered)"),
            };
            sentences.push(format!(
                "Preemption, by the driver's word: compute {}{with_kernels}, graphics {}.",
                self.compute, self.graphics
            ));
        }
        let each: Vec<_> = self.requests.iter().map(Measured::phrase).collect();
        if !each.is_empty() {
            sentences.push(format!(
                "A request in the middle of a packet was acknowledged before its end (median, longest): {}.",
                each.join("; ")
            ));
        }
        for kind in &self.missed {
            let phrase = kind.phrase();
            sentences.push(format!("Every {phrase} ended before it was asked for."));
        }
        if let Some(problem) = &self.problem {
            sentences.push(format!("Preemption could not be measured: {problem}."));
        }
        sentences
    }
}

impl Measured {
    fn of(kind: Kind, mut times: Vec<Duration>) -> Option<Self> {
        times.sort_unstable();
        let us = |time: &Duration| time.as_secs_f64() * 1e6;
        Some(Self {
            packet: kind,
            in_the_middle: times.len(),
            acknowledged_p50_us: us(times.get(times.len() / 2)?),
            acknowledged_max_us: us(times.last()?),
        })
    }

    fn phrase(&self) -> String {
        format!(
            "{} {:.0} µs, {:.0} µs of {}",
            self.packet.phrase(),
            self.acknowledged_p50_us,
            self.acknowledged_max_us,
            self.in_the_middle
        )
    }
}

impl Scene {
    fn open(instance: &Arc<Instance>, info: &AdapterInfo) -> anyhow::Result<Self> {
        let adapter = Adapter::open_on(instance, info, &AdapterOptions::default())?;
        let device = adapter.create_device();
        let context = device.create_context(0, 1)?;
        Ok(Self {
            queue: context.create_hw_queue(RING)?,
            context,
            gate: device.create_fence(0)?,
            passed: device.create_fence(0)?,
            from: device.create_allocation(BYTES)?,
            to: device.create_allocation(BYTES)?,
            kernel: None,
            number: 0,
            device,
            adapter,
        })
    }

    /// None where every packet ended before it was asked for.
    fn measure(&mut self, kind: Kind) -> anyhow::Result<Option<Measured>> {
        let (begin, mut times) = (Instant::now(), Vec::new());
        while times.len() < REQUESTS && (times.is_empty() || begin.elapsed() < TIME) {
            times.extend(self.request(kind)?);
            if begin.elapsed() > PATIENCE {
                break;
            }
        }
        Ok(Measured::of(kind, times))
    }

    /// So many in-place additions, one behind the other.
    fn dispatches(&self, list: &mut CommandList) -> anyhow::Result<()> {
        let kernel = self.kernel.as_ref().context("the kernel is registered")?;
        let sums = Parameters::new().address(&self.to, 0).address(&self.to, 0);
        let sums = sums.word(1).word(1);
        for _ in 0..DISPATCHES {
            list.dispatch(kernel, [1, 1, 1], &sums)?;
        }
        Ok(())
    }

    /// Asks once; the time to the answer, if that came before the packet's end.
    fn request(&mut self, kind: Kind) -> anyhow::Result<Option<Duration>> {
        self.number += 1;
        let (base, first) = (self.passed.current_value(), self.queue.read_index());
        let end = self.queue.submit(&self.list(kind, base)?)?;
        let begin = Instant::now();
        while !self.is_in_the_midst(kind, base, first) {
            ensure!(begin.elapsed() < PATIENCE, "a packet is not begun");
            std::thread::yield_now();
        }
        let asked = Instant::now();
        self.context.suspend(PATIENCE)?;
        let answered = asked.elapsed();
        let progress = self.queue.progress_fence();
        let is_before = progress.current_value() < end;
        self.context.resume();
        if kind == Kind::Wait {
            self.gate.signal(self.number)?;
        }
        progress.wait(end, PATIENCE)?;
        Ok(is_before.then_some(answered))
    }

    fn list(&self, kind: Kind, base: u64) -> anyhow::Result<CommandList> {
        let mut list = CommandList::new();
        match kind {
            Kind::NopRun => (0..RUN).for_each(|_| {
                list.nop();
            }),
            Kind::Wait => {
                list.signal(&self.passed, base + 1)
                    .wait(&self.gate, self.number);
            }
            Kind::SignalRun => (1..=RUN).for_each(|value| {
                list.signal(&self.passed, base + value);
            }),
            Kind::Fill => {
                list.fill(&self.from, 0..BYTES, self.number);
            }
            Kind::Copy => {
                // What tells that it has begun.
                self.from.write(0, &[self.number]);
                list.copy(&self.from, 0..BYTES, &self.to, 0);
            }
            Kind::DispatchRun => self.dispatches(&mut list)?,
        }
        Ok(list)
    }

    fn is_in_the_midst(&self, kind: Kind, base: u64, first: u64) -> bool {
        let is_changed = |memory: &Allocation| {
            let mut word = [0];
            memory.read(0, &mut word);
            word[0] == self.number
        };
        match kind {
            Kind::NopRun | Kind::DispatchRun => self.queue.read_index() > first,
            Kind::Wait | Kind::SignalRun => self.passed.current_value() > base,
            Kind::Fill => is_changed(&self.from),
            Kind::Copy => is_changed(&self.to),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_without_a_request_in_its_middle_has_no_figure() {
        assert!(Measured::of(Kind::Wait, Vec::new()).is_none());
        let times = [3, 1, 2].map(Duration::from_micros);
        let measured = Measured::of(Kind::Wait, times.to_vec()).unwrap();
        assert_eq!(measured.phrase(), "WAIT 2 µs, 3 µs of 3");
        let found = Preemption {
            graphics: String::new(),
            compute: String::new(),
            compute_with_kernels: String::new(),
            requests: vec![measured],
            missed: vec![Kind::Fill],
            problem: None,
        };
        let said = found.sentences();
        assert_eq!(said[1], "Every FILL ended before it was asked for.");
    }
}
