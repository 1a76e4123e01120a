//! Hardware queue of kernel-mode submission (HQ-10): creating one, and the commands that it is given.
//!
//! Commands stand in the private bytes (choice: a program has no allocations of its own here yet, so
//! nothing lies at an address of the GPU). They name fences by the handles of this interface: the OS
//! looks each up, as it looks at every packet of such a queue, and writes the engine's packet itself.

use super::gpu_sync::Of;
use super::handles;
use super::monitored_fence::cpu_address;
use super::object::{AnyHwQueue, HwContext, KernelQueue, Object};
use super::private_data::HwQueueCommand;
use super::refusal::Refusal;
use super::sync_object;
use crate::abi::wddm::{CreateHwQueue, CreateHwQueueFlags, SubmitCommandToHwQueue};
use crate::abi::{Opcode, Packet};
use crate::os::{self, QueuedSignal, SyncObject};
use crate::sync::Arc;

type Flags = CreateHwQueueFlags;

/// Published, and not built for these queues.
const NOT_BUILT: Flags = Flags::DISABLE_GPU_TIMEOUT
    .with(Flags::NO_KMD_ACCESS)
    .with(Flags::NATIVE_PROGRESS_FENCE)
    .with(Flags::TEST_QUEUE);

pub(super) fn create(args: &mut CreateHwQueue) -> Result<(), Refusal> {
    let context = handles::find::<HwContext>(args.hw_context)?;
    check_flags(args.flags)?;
    if args.private_driver_data_size != 0 {
        let why = "such a queue has no private data: PrivateDriverDataSize must be 0";
        return Err(Refusal::parameter(why));
    }
    let device = Arc::clone(&context.device);
    let queue = context.context.os().create_kernel_queue()?;
    let progress = Arc::clone(queue.progress_fence());
    let address = cpu_address(&progress);
    let queue = Object::KernelQueue(Arc::new(KernelQueue {
        device: Arc::clone(&device),
        queue,
    }));
    let hw_queue = handles::insert::<HwContext>(args.hw_context, queue)?;
    let fence = Object::fence(device, SyncObject::Monitored(progress), true);
    let progress_fence = match handles::insert::<KernelQueue>(hw_queue, fence) {
        Ok(handle) => handle,
        Err(refusal) => {
            // No handle was left, or the queue went with its context meanwhile.
            let _gone = handles::destroy::<AnyHwQueue>(hw_queue, |_| Ok(()));
            return Err(refusal);
        }
    };
    *args = CreateHwQueue {
        hw_queue,
        progress_fence,
        progress_fence_cpu_virtual_address: address,
        // As a fence's.
        progress_fence_gpu_virtual_address: 0,
        ..*args
    };
    Ok(())
}

/// NoBroadcastSignal and NoBroadcastWait hold of every queue: no call signals or waits for several.
fn check_flags(flags: Flags) -> Result<(), Refusal> {
    if flags.unknown() != 0 {
        return Err(Refusal::parameter("a reserved flag of the queue is set"));
    }
    if flags.has(Flags::USER_MODE_SUBMISSION) {
        let why = "a queue with UserModeSubmission is made by \
                   D3DKMTCreateHwQueueForUserModeSubmission";
        return Err(Refusal::not_supported(why));
    }
    if flags.has_any(NOT_BUILT) {
        let why = format!("flags {:#x} are not offered", flags.0 & NOT_BUILT.0);
        return Err(Refusal::not_supported(why));
    }
    Ok(())
}

/// How many commands stand in the private bytes.
///
/// # Errors
/// None, too many, or not a whole number of them.
pub(super) fn command_count(args: &SubmitCommandToHwQueue) -> Result<u32, Refusal> {
    let (bytes, size) = (
        args.private_driver_data_size,
        size_of::<HwQueueCommand>() as u32,
    );
    let (count, most) = (bytes / size, os::KernelQueue::MOST_PACKETS as u32);
    if !bytes.is_multiple_of(size) || count == 0 || count > most {
        let why = format!(
            "PrivateDriverDataSize of {bytes}: one command has 1 to {most} of NF_HWQUEUE_COMMAND, \
             {size} bytes each"
        );
        return Err(Refusal::parameter(why));
    }
    Ok(count)
}

pub(super) fn submit(
    args: &SubmitCommandToHwQueue,
    commands: &[HwQueueCommand],
) -> Result<(), Refusal> {
    let queue = handles::find::<KernelQueue>(args.hw_queue)?;
    if args.command_buffer != 0 || args.command_length != 0 {
        let why = "no allocation lies at an address of the GPU here: CommandBuffer and CommandLength \
                   must be 0, and the commands stand at pPrivateDriverData";
        return Err(Refusal::not_supported(why));
    }
    if args.num_primaries != 0 || args.written_primaries != 0 {
        let why = "there are no surfaces here: NumPrimaries and WrittenPrimaries must be 0";
        return Err(Refusal::not_supported(why));
    }
    let (mut packets, mut signals) = (Vec::with_capacity(commands.len()), Vec::new());
    for command in commands {
        packets.push(packet(&queue, command, &mut signals)?);
    }
    let (queue, value) = (&queue.queue, args.progress_fence_id);
    let queued = queue.queue_command_as(&packets, signals, value);
    queued.map_err(|error| Of::Queue(args.hw_queue).refused(error))
}

/// The engine's packet. A signal counts as outstanding from now on, until it is made or dropped.
fn packet(
    queue: &KernelQueue,
    command: &HwQueueCommand,
    signals: &mut Vec<QueuedSignal>,
) -> Result<Packet, Refusal> {
    match Opcode::from_bits(u64::from(command.opcode)) {
        Some(Opcode::Nop) if command.sync_object == 0 && command.fence_value == 0 => {
            Ok(Packet::nop())
        }
        Some(Opcode::Nop) => Err(Refusal::parameter(
            "a command that does nothing names no fence and no value: both must be 0",
        )),
        Some(Opcode::Signal) => {
            let (packet, signal) = signal(queue, command)?;
            signals.push(signal);
            Ok(packet)
        }
        Some(Opcode::Wait | Opcode::Progress) => Err(Refusal::parameter(
            "the OS itself waits for fences and writes the progress of a kernel-mode queue: a wait is \
             D3DKMTSubmitWaitForSyncObjectsToHwQueue",
        )),
        Some(Opcode::Timestamp | Opcode::Fill | Opcode::Copy) => Err(Refusal::not_supported(
            "a program has no allocations here that commands could store to",
        )),
        // A stall is no command of programs, and kernel-mode queues run no kernels.
        Some(Opcode::Stall | Opcode::Dispatch) | None => Err(Refusal::parameter(format!(
            "{} is no opcode: NF_OPCODE_NOP or NF_OPCODE_SIGNAL",
            command.opcode
        ))),
    }
}

/// A signal that the engine makes (MF-02).
fn signal(
    queue: &KernelQueue,
    command: &HwQueueCommand,
) -> Result<(Packet, QueuedSignal), Refusal> {
    let fences = sync_object::all_of(&queue.device, &[command.sync_object])?;
    match fences[0].object.as_ref() {
        SyncObject::Monitored(object) => {
            Ok(queue.queue.begin_signal(object, command.fence_value)?)
        }
        SyncObject::Native(_) => Err(Refusal::parameter(
            "the engine of a kernel-mode queue stores no native fence: \
             D3DKMTSubmitSignalSyncObjectsToHwQueue signals it",
        )),
    }
}
