//! Program: what a Vulkan program's own command buffers do beside native queues. They store to memory that a queue has too,
//! look at a fence and signal it; who waits for that on the CPU is told by who watches the submission.

use super::{Chapter, Teller};
use crate::beside::{EnrolledFence, ImportedAllocation, RecordError};
use crate::sweep::play::Told;
use crate::sweep::step::{holds, step};
use crate::sweep::waiters::woken;
use crate::sync::Arc;
use crate::vulkan::{
    self, AdapterInfo, CommandBuffer, CommandRecorder, DeviceOptions, Instance, ProgramCommands,
    Reuse,
};
use crate::{Adapter, Allocation, CommandList, Device, Fence};

/// Counts of a dispatch, three words of 32 bits.
const COUNTS: [u64; 2] = [1 | 1 << 32, 1];
/// Where those lie whose condition holds, and those whose does not.
const KEPT: u64 = 0;
const TAKEN: u64 = 16;
/// What the program fills, and where a queue copies it to.
const FILLED: u64 = 64;
const COPIED: u64 = 128;
const BYTES: u64 = 64;
/// By this word of 32 bits.
const WORD: u32 = 41;

/// What a command buffer names.
struct Named {
    fence: EnrolledFence,
    memory: ImportedAllocation,
}

impl Named {
    /// Counts of which a look at the fence takes the second, and leaves the first.
    fn record(&self, commands: &mut ProgramCommands) -> Result<(), RecordError> {
        let at = self.memory.gpu_va();
        self.fence.record_signal(commands, 1)?;
        self.fence.record_condition(commands, 1, at + KEPT)?;
        self.fence.record_condition(commands, 2, at + TAKEN)?;
        self.fence.record_signal(commands, 2)
    }
}

/// Tells it.
pub(super) fn tell(
    teller: &mut Teller<'_>,
    adapter: &Adapter,
    instance: &Arc<Instance>,
    info: &AdapterInfo,
) -> Result<(), Told> {
    teller.begin(Chapter::Program)?;
    let own = teller.again("a device of the program's", || {
        vulkan::Device::open(instance, info, DeviceOptions::default())
    })?;
    let handed = teller.again("a device that is handed over", || own.hand_over())?;
    drop(own);
    let device = adapter.create_device();
    let fence = teller.make("a fence", &device, || device.create_fence(0))?;
    let memory = teller.make("an allocation", &device, || {
        device.create_allocation(COPIED + BYTES)
    })?;
    let named = named(teller, &device, &handed, &fence, &memory)?;
    teller.beat();
    let told = pass(teller, &device, &handed, &named, (&fence, &memory));
    teller.beat();
    told
}

fn named(
    teller: &mut Teller<'_>,
    device: &Device,
    handed: &Arc<vulkan::Device>,
    fence: &Fence,
    memory: &Allocation,
) -> Result<Arc<Named>, Told> {
    let memory = teller.make("memory that a program reaches", device, || {
        ImportedAllocation::new(memory, handed)
    })?;
    let fence = teller.make("a fence that a program signals", device, || {
        EnrolledFence::new(fence, handed)
    })?;
    Ok(Arc::new(Named { fence, memory }))
}

fn commands(
    teller: &mut Teller<'_>,
    handed: &Arc<vulkan::Device>,
    named: &Arc<Named>,
) -> Result<CommandBuffer, Told> {
    let (region, offset) = named.memory.region();
    let begun = teller.again("a command buffer of the program's", || {
        CommandRecorder::begin(handed, Reuse::OneAtATime)
    })?;
    let filled = begun.fill_range(region, offset + FILLED, BYTES, WORD);
    let recorded = filled.record_as_program(named, Named::record);
    let recorded = step("what a program records of a fence", recorded)?;
    step("a command buffer of the program's", recorded.end())
}

fn pass(
    teller: &mut Teller<'_>,
    device: &Device,
    handed: &Arc<vulkan::Device>,
    named: &Arc<Named>,
    (fence, memory): (&Fence, &Allocation),
) -> Result<(), Told> {
    let done = teller.make("a fence", device, || device.create_fence(0))?;
    let mut queue = teller.make("a queue", device, || device.create_hw_queue())?;
    let theirs = handed.queue(0).ok_or("somebody has it");
    let mut theirs = step("the program's queue", theirs)?;
    let commands = commands(teller, handed, named)?;
    teller.beat();
    for counts in [KEPT, TAKEN] {
        memory.write(counts, &COUNTS);
    }
    let mut list = CommandList::new();
    // Of another fence: nobody but who watches the submission tells of this one.
    list.wait(fence, 2)
        .copy(memory, FILLED..FILLED + BYTES, memory, COPIED)
        .signal(&done, 1);
    let end = step("a submission", queue.submit(&list))?;
    // It stands before anybody signals.
    let armed = fence.arm(2);
    let enrolled = named
        .fence
        .enrol(|timeline, value| theirs.submit_one(Some(&commands), None, (timeline, value)));
    step("a submission of the program's", enrolled)?;
    let told = woken(|most| armed.wait(most));
    step("a wait for what a program signals", told)?;
    let progress = queue.progress_fence();
    step("a queue's progress", woken(|most| progress.wait(end, most)))?;
    step("a wait of the CPU", woken(|most| done.wait(1, most)))?;
    is_stored(memory)
}

/// Whether memory has what the program's commands are to store, and what a queue copies of it.
fn is_stored(memory: &Allocation) -> Result<(), Told> {
    let read = |from| {
        let mut words = [0; 2];
        memory.read(from, &mut words);
        words
    };
    let word = u64::from(WORD) << 32 | u64::from(WORD);
    let ends = [read(COPIED), read(COPIED + BYTES - 16)];
    let what = "what a program stored";
    let is_copied = ends == [[word; 2]; 2];
    holds(what, is_copied, "a queue found something else")?;
    let counts = [read(KEPT), read(TAKEN)];
    let is_right = counts == [COUNTS, [0; 2]];
    let otherwise = format!("the counts are {counts:x?}");
    holds("a condition of the program's", is_right, otherwise)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
mod tests {
    use super::*;
    use crate::sweep::model_adapter::model_adapter;

    /// What a program has stored, and what it has taken away, is looked for where it is to be.
    ///
    /// Kills `what-a-program-stores-is-not-looked-at`, `a-condition-may-hold-or-not`.
    #[test]
    fn what_a_program_has_not_stored_is_missed() {
        let adapter = model_adapter();
        let memory = adapter.create_device().create_allocation(COPIED + BYTES);
        let memory = memory.unwrap();
        let missed = || is_stored(&memory).unwrap_err().step;
        let word = u64::from(WORD) << 32 | u64::from(WORD);
        memory.write(COPIED, &[word; 7]);
        assert_eq!(missed(), "what a program stored");
        memory.write(COPIED, &[word; 8]);
        memory.write(KEPT, &COUNTS);
        assert_eq!(is_stored(&memory), Ok(()));
        for (counts, others) in [(TAKEN, COUNTS), (KEPT, [0; 2])] {
            memory.write(counts, &others);
            assert_eq!(missed(), "a condition of the program's");
            memory.write(KEPT, &COUNTS);
            memory.write(TAKEN, &[0; 2]);
        }
    }
}
