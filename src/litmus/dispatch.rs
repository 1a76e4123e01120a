//! Dispatch: a party that is a shader, ready to be submitted again and again.

use super::Order;
use super::areas::Areas;
use crate::sync::Arc;
use crate::vulkan::shaders::Shader;
use crate::vulkan::{
    Accesses, AdapterKind, Barrier, CommandBuffer, CommandRecorder, ComputePipeline, Device, Queue,
    RegionImport, Reuse, SLICE_BEGIN, SLICE_END, Stages, Timeline, WaitOutcome,
};
use anyhow::bail;
use std::time::Duration;

/// Longer than any run: its loops are bounded.
const PATIENCE: Duration = Duration::from_secs(20);

/// An end that the next dispatch sees, and nothing promises that the host does.
const NO_HOST_BARRIER: Barrier = Barrier {
    dst_stage: Stages::COMPUTE,
    dst_access: Accesses::SHADER_READ,
    ..SLICE_END
};

/// The barrier at the end of dispatches in this order.
pub(super) fn end_of(order: Order) -> Barrier {
    if order == Order::NoHostBarrier {
        NO_HOST_BARRIER
    } else {
        SLICE_END
    }
}

/// Which party a dispatch is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// The party of this role.
    One(usize),
    /// Both, by turns of workgroups.
    Both,
}

impl Part {
    fn word(self) -> u32 {
        match self {
            Self::One(role) => role as u32,
            Self::Both => 2,
        }
    }
}

/// See the file's head.
#[derive(Debug)]
pub(super) struct Dispatch {
    commands: CommandBuffer,
    timeline: Timeline,
    value: u64,
}

impl Dispatch {
    /// Of a shader that has these push constants and specialisation constants, in so many workgroups, and reaches these
    /// imports, and this barrier behind them.
    ///
    /// # Errors
    /// The driver takes no shader.
    pub(super) fn new(
        device: &Arc<Device>,
        shader: &Shader,
        (push, spec, groups): (&[u8], &[(u32, u32)], u32),
        imports: &[Arc<RegionImport>],
        end: Barrier,
    ) -> anyhow::Result<Self> {
        let pipeline = ComputePipeline::new(device, shader.words, push.len() as u32, spec)?;
        let recorder = CommandRecorder::begin(device, Reuse::OneAtATime)?;
        let keep =
            |recorder: CommandRecorder, import: &Arc<_>| recorder.keep(Arc::clone(import) as _);
        let commands = imports
            .iter()
            .fold(recorder, keep)
            .barrier(SLICE_BEGIN)
            .bind(&pipeline)
            .push(push)
            .dispatch(groups, 1, 1)
            .barrier(end)
            .end()?;
        Ok(Self {
            commands,
            timeline: Timeline::new(device, 0)?,
            value: 0,
        })
    }

    /// Of a question's shader on the device of this number; `is_alone` where no partner is waited for.
    ///
    /// # Errors
    /// As [`Dispatch::new`].
    pub(super) fn of_party(
        (number, device): (usize, &Arc<Device>),
        shader: &Shader,
        areas: &Areas,
        (part, is_alone): (Part, bool),
        end: Barrier,
    ) -> anyhow::Result<Self> {
        let size = areas.size();
        let spec = [
            (0, size.workgroup),
            (1, most_passes(device)),
            (2, part.word()),
            (3, size.players),
            (4, u32::from(is_alone)),
            (5, device.adapter().features.subgroup_size.max(1)),
        ];
        let groups = match part {
            Part::One(_) if is_alone => 1,
            Part::One(_) => size.groups,
            Part::Both => 2 * size.groups,
        };
        let launch = (&areas.push(number)[..], &spec[..], groups);
        Self::new(device, shader, launch, &areas.imports(number), end)
    }

    pub(super) fn submit(&mut self, queue: &mut Queue) -> anyhow::Result<()> {
        self.value += 1;
        queue.submit_one(Some(&self.commands), None, (&self.timeline, self.value))?;
        Ok(())
    }

    /// Whether what was submitted has ended; also where the device is lost.
    pub(super) fn has_ended(&self) -> bool {
        self.timeline
            .value()
            .map_or(true, |value| value >= self.value)
    }

    pub(super) fn wait(&self) -> anyhow::Result<()> {
        match self.timeline.wait(self.value, Some(PATIENCE))? {
            WaitOutcome::Reached => Ok(()),
            WaitOutcome::TimedOut => bail!("a litmus test did not end on the device"),
        }
    }
}

/// Passes of a shader's loop: below what a driver that ends loops gives an invocation, which would end them unsaid.
pub(super) fn most_passes(device: &Device) -> u32 {
    let adapter = device.adapter();
    match adapter.kind {
        _ if adapter.ends_loops() => 60_000,
        // Some nanoseconds each: a scheduler that has put both parties on one core must come to see it.
        AdapterKind::Cpu => 1_000_000,
        _ => 120_000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Kills `litmus-the-host-is-told-anyway`.
    #[test]
    fn what_ends_without_the_host_tells_only_the_next_dispatch() {
        let without = end_of(Order::NoHostBarrier);
        assert_eq!(without.dst_stage, Stages::COMPUTE);
        assert_eq!(without.dst_access, Accesses::SHADER_READ);
        let sources = |barrier: Barrier| (barrier.src_stage, barrier.src_access);
        assert_eq!(sources(without), sources(SLICE_END));
        assert_eq!(end_of(Order::AsShipped), SLICE_END);
    }
}
