//! Dispatches of a shader engine: slices that hold the program's kernels beside the engine's own steps.
//!
//! What is released when, and why a round that follows finds it done, is said in `shaders/engine/dispatch.glsl`.
//! The barriers are here: each round begins with the one that a slice begins with, so what the engine wrote is
//! seen by the kernels, and read as counts by the device, and what a kernel wrote is seen by the engine and by
//! the next kernel (HQ-08).
//!
//! Slices come in two lengths. In the long one kernels run several times between two rounds of the engine, for those that
//! schedule themselves (`shaders/engine/epilogue.glsl`).

use super::kernel_push::KERNEL_PUSH_BYTES;
use super::kernel_spirv::{EPILOGUE, ORDERS};
use super::kernels_in_use::{KernelsInUse, LastUse};
use super::slice_layout::SliceLayout;
use super::{EngineCaps, GpuVa, KernelCode, KernelError, Kernels, SharedQueue, SliceWork};
use crate::abi::{DispatchBlock, KernelUse, SLICE_SLOTS};
use crate::sync::{Arc, lock};
use crate::vulkan::{
    AdapterKind, Buffer, CommandBuffer, CommandRecorder, ComputePipeline, Device, DeviceFailure,
    Home, OutOfMemory, Reuse, SLICE_BEGIN, SLICE_END, SubmitError, Timeline, WaitOutcome,
};
use std::time::Duration;

/// How long a shader that was never run is waited for, behind what runs.
const WARM_TIME: Duration = Duration::from_secs(5);

/// Kinds of slices that dispatch, each an engine of its own.
pub(super) const DISPATCH_KINDS: usize = 2;

/// What the engine's shader gets of a slice.
pub(super) const ENGINE_PUSH_BYTES: u32 = 72;

/// Of one engine. Made anew when the engine's kernels change; slices in flight keep what they run.
#[derive(Clone, Debug)]
pub(super) struct Dispatches {
    /// By kind, layout and slice slot.
    commands: Vec<CommandBuffer>,
    kernels: Vec<(u32, Arc<KernelCode>, ComputePipeline)>,
    version: u64,
    /// Up to the last that a kernel is in.
    slots: u64,
    in_use: KernelsInUse,
    /// By kind.
    engines: Vec<ComputePipeline>,
    block: Arc<Buffer>,
}

/// The push constants of the engine's shader: those of a slice that dispatches are its block, the round, the last one, the
/// times that kernels run between two, the version of the kernels, the slots that they are in, and those that the
/// slice has.
pub(super) fn engine_push(control: GpuVa, slot: u64, dispatches: [u64; 7]) -> Vec<u8> {
    let words = [control.0, slot].into_iter().chain(dispatches);
    words.flat_map(u64::to_le_bytes).collect()
}

/// Whether the epilogue of a kernel that schedules itself has barriers, release and acquire, which it needs but where the
/// lanes are those of an x86 CPU's vectors (`shaders/engine/epilogue.glsl`).
#[must_use]
pub fn epilogues_order(kind: AdapterKind) -> bool {
    kind != AdapterKind::Cpu || !cfg!(target_arch = "x86_64")
}

/// Constants of a kernel's epilogue on a device: whether it has one there, and whether that orders.
fn epilogue_of(device: &Device, code: &KernelCode) -> [(u32, u32); 2] {
    let adapter = device.adapter();
    let has = code.has_epilogue(EngineCaps::of(adapter));
    let orders = epilogues_order(adapter.kind);
    [(EPILOGUE, u32::from(has)), (ORDERS, u32::from(orders))]
}

fn refused(error: impl std::fmt::Display) -> KernelError {
    KernelError::Refused(error.to_string())
}

/// A device that is lost says nothing of the kernel (TD-12). Nor does a driver that does not say what has become of the
/// submission: the queue takes no other from then on, so its engine is at its end, and another takes the kernel.
fn not_submitted(error: SubmitError) -> KernelError {
    match error {
        SubmitError::DeviceLost | SubmitError::Unknown { .. } => KernelError::Lost,
        SubmitError::OutOfMemory | SubmitError::NotForward { .. } | SubmitError::StillInFlight => {
            refused(error)
        }
    }
}

/// The same of who waits. An error that the driver does not explain leaves the queue as it was: it is told as a refusal, with
/// what was answered.
fn not_ended(failure: DeviceFailure) -> KernelError {
    if failure.is_loss() {
        KernelError::Lost
    } else {
        refused(failure)
    }
}

/// Runs these in no workgroups: a driver that compiles a shader when it is first run does so here.
pub(super) fn warm<'a>(
    queue: &SharedQueue,
    cold: impl Iterator<Item = &'a ComputePipeline>,
) -> Result<(), KernelError> {
    let mut cold = cold.peekable();
    if cold.peek().is_none() {
        return Ok(());
    }
    let device = Arc::clone(lock(queue).device());
    let mut recorder = CommandRecorder::begin(&device, Reuse::OneAtATime).map_err(refused)?;
    for pipeline in cold {
        let nothing = vec![0; pipeline.push_constant_bytes() as usize];
        recorder = recorder.bind(pipeline).push(&nothing).dispatch(0, 1, 1);
    }
    let commands = recorder.end().map_err(refused)?;
    let done = Timeline::new(&device, 0).map_err(refused)?;
    let submitted = lock(queue).submit_one(Some(&commands), None, (&done, 1));
    submitted.map_err(not_submitted)?;
    // Behind a kernel that does not end, on a device of one queue, it is not run either. That is another's, and no
    // reason to refuse these: after the time they count as taken, and the first slice that runs one compiles it.
    let ended = done.wait(1, Some(WARM_TIME));
    let _: WaitOutcome = ended.map_err(not_ended)?;
    Ok(())
}

impl Dispatches {
    /// Of an engine whose shaders these are, for these kernels; pipelines of those that `before` has are not made
    /// again.
    pub(super) fn new(
        device: &Arc<Device>,
        engines: Vec<ComputePipeline>,
        control: GpuVa,
        kernels: &Kernels,
        before: Option<&Self>,
    ) -> Result<Self, KernelError> {
        let block = if let Some(before) = before {
            Arc::clone(&before.block)
        } else {
            let home = Home::DeviceLocalHostVisible;
            let block = Buffer::new(device, DispatchBlock::BYTES, home, "dispatch block");
            Arc::new(block.map_err(refused)?)
        };
        let made = |code: &Arc<KernelCode>| {
            let known = before?
                .kernels
                .iter()
                .find(|known| Arc::ptr_eq(&known.1, code))?;
            Some(known.2.clone())
        };
        let pipeline = |(slot, code): (u32, &Arc<KernelCode>)| {
            let pipeline = if let Some(pipeline) = made(code) {
                pipeline
            } else {
                let all = epilogue_of(device, code);
                let constants = if code.schedules_itself() {
                    &all[..]
                } else {
                    &[]
                };
                ComputePipeline::new(device, code.spirv(), KERNEL_PUSH_BYTES, constants)
                    .map_err(refused)?
            };
            Ok((slot, Arc::clone(code), pipeline))
        };
        let (version, slots) = (kernels.version(), kernels.slots());
        let kernels: Vec<_> = kernels.iter().map(pipeline).collect::<Result<_, _>>()?;
        let mut dispatches = Self {
            commands: Vec::new(),
            kernels,
            version,
            slots,
            in_use: KernelsInUse::default(),
            engines,
            block,
        };
        let (all, known) = (dispatches.all(), before.map_or(0, Self::all));
        let in_use = before.map_or(KernelsInUse::default(), |before| before.in_use);
        dispatches.in_use = in_use.with(known, all);
        dispatches.record(device, control).map_err(refused)?;
        Ok(dispatches)
    }

    /// Runs what `before` has not in no workgroups: a driver that compiles a shader when it is first run does so
    /// here, and not while a watchdog looks at a slice.
    pub(super) fn warm(
        &self,
        queue: &SharedQueue,
        before: Option<&Self>,
    ) -> Result<(), KernelError> {
        let has = |pipeline: &ComputePipeline| {
            before.is_some_and(|before| {
                let mut known = before.pipelines();
                known.any(|known| known.id() == pipeline.id())
            })
        };
        warm(queue, self.pipelines().filter(|pipeline| !has(pipeline)))
    }

    /// The same with other shaders of the engine.
    pub(super) fn with_engines(
        &self,
        device: &Arc<Device>,
        engines: Vec<ComputePipeline>,
        control: GpuVa,
    ) -> Result<Self, KernelError> {
        let mut other = Self {
            engines,
            ..self.clone()
        };
        other.record(device, control).map_err(refused)?;
        Ok(other)
    }

    /// Those of these kernels that it has not.
    pub(super) fn unknown(&self, kernels: &Kernels) -> Kernels {
        kernels.without(self.kernels.iter().map(|(_, code, _)| code))
    }

    /// The kernels by slot, as bits.
    fn all(&self) -> u64 {
        let bits = self.kernels.iter().map(|(slot, ..)| 1 << slot);
        bits.fold(0, |all, bit: u64| all | bit)
    }

    /// Before a slice is started: has the slices from this one on hold the kernels that are in use. Where the host does
    /// not reach the block they hold all.
    pub(super) fn choose_kernels(
        &mut self,
        device: &Arc<Device>,
        control: GpuVa,
        slice: u64,
    ) -> Result<(), OutOfMemory> {
        let block = Arc::clone(&self.block);
        let use_of = |slot: u32| {
            let at = DispatchBlock::kernel(u64::from(slot)) + DispatchBlock::KERNEL_USE;
            let word = |offset| block.observe(at + offset).unwrap_or(slice);
            LastUse {
                wanted: word(KernelUse::WANTED),
                used: word(KernelUse::USED),
            }
        };
        if let Some(next) = self.in_use.next(slice, self.all(), use_of) {
            let before = std::mem::replace(&mut self.in_use, next);
            if next.held() != before.held() {
                let recorded = self.record(device, control);
                // Without memory they hold what they held.
                recorded.inspect_err(|_| self.in_use = before)?;
            }
        }
        Ok(())
    }

    fn pipelines(&self) -> impl Iterator<Item = &ComputePipeline> {
        let kernels = self.kernels.iter().map(|(_, _, pipeline)| pipeline);
        self.engines.iter().chain(kernels)
    }

    /// Records its slices, of an engine whose control block lies there.
    pub(super) fn record(
        &mut self,
        device: &Arc<Device>,
        control: GpuVa,
    ) -> Result<(), OutOfMemory> {
        let slots = |(engine, layout)| (0..SLICE_SLOTS).map(move |slot| (engine, layout, slot));
        let layouts = |engine| {
            SliceLayout::ALL
                .into_iter()
                .map(move |layout| (engine, layout))
        };
        let commands = self.engines.iter().flat_map(layouts).flat_map(slots);
        let commands = commands
            .map(|(engine, layout, slot)| self.record_slice(device, engine, layout, control, slot));
        self.commands = commands.collect::<Result<_, _>>()?;
        Ok(())
    }

    fn record_slice(
        &self,
        device: &Arc<Device>,
        engine: &ComputePipeline,
        layout: SliceLayout,
        control: GpuVa,
        slot: u64,
    ) -> Result<CommandBuffer, OutOfMemory> {
        let block = self.block.gpu_va();
        let held = self.in_use.held();
        let SliceLayout { rounds, depth } = layout;
        let push = |round| {
            let dispatches = [block, round, rounds, depth, self.version, self.slots, held];
            engine_push(control, slot, dispatches)
        };
        let is_held = |slot: u32| held >> slot & 1 == 1;
        let kernels = self.kernels.iter().filter(|(slot, ..)| is_held(*slot));
        let mut recorder = CommandRecorder::begin(device, Reuse::Simultaneous)?
            .barrier(SLICE_BEGIN)
            .bind(engine)
            .push(&push(0))
            .dispatch(1, 1, 1);
        for round in 1..=rounds {
            for turn in 0..depth {
                recorder = recorder.barrier(SLICE_BEGIN);
                for (kernel, code, pipeline) in kernels.clone() {
                    // Another one is followed by the engine.
                    if turn != 0 && !code.schedules_itself() {
                        continue;
                    }
                    let slot = u64::from(*kernel);
                    // One that does not find its job runs alone, as the first.
                    let argument = if code.finds_job() {
                        DispatchBlock::kernel(slot)
                    } else {
                        DispatchBlock::PARAMETERS
                    };
                    recorder = recorder
                        .bind(pipeline)
                        .push(&(block + argument).to_le_bytes())
                        .dispatch_indirect(&self.block, DispatchBlock::record(slot, turn));
                }
            }
            let next = if round < rounds {
                DispatchBlock::NEXT_ROUND
            } else {
                DispatchBlock::LAST_ROUND
            };
            recorder = recorder
                .barrier(SLICE_BEGIN)
                .bind(engine)
                .push(&push(round))
                .dispatch_indirect(&self.block, next);
        }
        recorder.barrier(SLICE_END).end()
    }

    /// The engine's shaders that make them, by kind.
    pub(super) fn engines(&self) -> Vec<ComputePipeline> {
        self.engines.clone()
    }

    /// The commands of slices, by kind, layout and slot.
    pub(super) fn commands(&self) -> &[CommandBuffer] {
        &self.commands
    }

    /// Those of a slice.
    pub(super) fn commands_of(&self, work: SliceWork, slot: usize) -> &CommandBuffer {
        let kind = usize::from(work.transfers || work.verbose);
        let layout = usize::from(work.schedules_itself);
        &self.commands[(kind * SliceLayout::ALL.len() + layout) * SLICE_SLOTS as usize + slot]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// TD-12: after a submission that the driver does not explain the queue takes no other, so the engine is at its end, and the
    /// kernel is none the worse for it; a want of memory is a refusal.
    ///
    /// Kills `a-submission-in-doubt-is-a-bad-kernel`.
    #[test]
    fn a_submission_of_which_nobody_knows_is_the_engines_end() {
        for error in [SubmitError::DeviceLost, SubmitError::Unknown { code: -13 }] {
            assert_eq!(not_submitted(error), KernelError::Lost);
        }
        let refused = not_submitted(SubmitError::OutOfMemory);
        assert!(matches!(refused, KernelError::Refused(_)), "{refused}");
    }
}
