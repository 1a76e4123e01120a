//! Judge: whether what came of a fault is what should. Pure.

use super::fault::is_as_a_loss;
use super::{Planned, Played, is_certain};
use crate::gpu::{KERNEL_FILE, REAPER_THREAD, SPARE_THREAD};
use crate::supply::{CUT_OFF, RECOVERY_THREAD};
use crate::vulkan::faults::{Strikes, VulkanCall};
use serde::Serialize;

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "outcome", content = "why", rename_all = "snake_case")]
pub enum Outcome {
    /// An error named the call.
    Told(String),
    /// All was done, and why that is right.
    Survived(String),
    /// The run had fewer uses of it than the one that counted, of which that use was a late one.
    NotReached,
    /// What is wrong.
    Failed(String),
}

/// Calls whose error nobody needs to hear of, and why.
const UNTOLD: &[(&str, &str)] = &[
    ("vkQueueSubmit", AGAIN),
    ("vkWaitSemaphores", AGAIN),
    ("vkSignalSemaphore", AGAIN),
    ("vkGetSemaphoreCounterValue", AGAIN),
    ("vkQueueWaitIdle", AGAIN),
    ("vkDeviceWaitIdle", AGAIN),
    (
        "vkGetCalibratedTimestampsEXT",
        "a recording goes on with the other readings of the two clocks, and its trace says how exactly they are known",
    ),
];
/// A driver that is short of memory for a moment has not lost the device.
const AGAIN: &str = "it is called again, and all was done";
/// All that was asked of the device was there.
const DONE: &str =
    "all that was asked of the lost device was done before, or was done again by another";
/// Calls that wait for all that a queue or a device was given. No device is given up for them.
const IDLE: [VulkanCall; 2] = [VulkanCall::QueueWaitIdle, VulkanCall::DeviceWaitIdle];
/// Why nobody hears of these.
const WAITED_OTHERWISE: &str =
    "what was in flight had come to its end, or was waited for in another way";

/// Calls without which no engine works.
const NEEDED: [VulkanCall; 2] = [VulkanCall::QueueSubmit, VulkanCall::WaitSemaphores];
/// They failed from early on, with many uses to come.
const NOT_TOLD: &str = "no engine can have worked since, and nobody was told";

/// An engine that was late is suspected, and a spare made for it; and of one that was needed another was made.
const MADE_AGAIN: &str = "a spare engine could not be made, and none was needed, or another was made; one that is needed and cannot be made is told";

/// An engine was given up. The story ends well only where nothing is left of it in the end.
const ENDED_LATER: &str =
    "no thread was there to end an engine that was given up: one ends it later";

/// An engine was lost, or is at its end, and was not cut off.
const CUT_AGAIN: &str = "an engine was not cut off at once; it is when another takes its place, and told if it cannot be";

/// Of an engine that was reset; one that is not has a record that says why. The story looks whether all went on.
const ANOTHER_TOOK_IT: &str =
    "a spare engine could not take the place of one that was lost, and another did";

/// A kernel was destroyed, of which an engine in a process of its own was not told: a registration would have been.
const KEPT: &str = "an engine keeps a kernel that no packet names any more";

/// The run that counts has not come to all that there is.
const NO_RESET: &str = "no adapter was reset as a whole, though its engine was lost while it paged, three times: each time the \
                        loss fell between two packets. Sweep again";

/// Calls that map shared memory, or make the file for it.
const OF_MAPPINGS: [&str; 3] = ["mmap", "memfd_create", "ftruncate"];

/// The call that makes a thread.
const OF_THREADS: &str = "pthread_create";

/// Vulkan calls within which a loader or a driver opens files, or makes descriptors of memory and semaphores: one that gets
/// none has no error that says so.
const WANT_DESCRIPTORS: [&str; 8] = [
    "vkEnumerateInstanceVersion",
    "vkEnumerateInstanceLayerProperties",
    "vkCreateInstance",
    "vkEnumeratePhysicalDevices",
    "vkCreateDevice",
    "vkAllocateMemory",
    "vkGetMemoryFdKHR",
    "vkCreateSemaphore",
];

/// Words for a want of descriptors.
const OF_DESCRIPTORS: [&str; 3] = ["descriptor", "ulimit", "Too many open files"];

/// Judges a run by one without a fault as well: what that came to at its begin, every run comes to.
#[must_use]
pub fn judge_by(planned: Planned, played: &Played, counted: &Played) -> Outcome {
    match judged(planned, played, Some(counted)) {
        Outcome::NotReached if is_certain(planned, counted) => Outcome::Failed(
            "it was not struck, though the run that counts had many more uses of it".into(),
        ),
        outcome => outcome,
    }
}

/// Judges a run that ended by itself.
#[must_use]
pub fn judge(planned: Planned, played: &Played) -> Outcome {
    judged(planned, played, None)
}

/// By the run that counts, where there is one.
fn judged(planned: Planned, played: &Played, counted: Option<&Played>) -> Outcome {
    let wrong = wrong(played);
    if !wrong.is_empty() {
        return Outcome::Failed(wrong.join("; "));
    }
    if !played.struck {
        return match (planned, played.told.first()) {
            (Planned::Nothing, None) if !played.resets_adapter => Outcome::Failed(NO_RESET.into()),
            (Planned::Nothing, None) => Outcome::Survived("there is no fault".into()),
            (_, None) => Outcome::NotReached,
            (_, Some(told)) => Outcome::Failed(format!(
                "an error without a fault: {}: {}",
                told.step, told.error
            )),
        };
    }
    let names = |text: &str| match planned {
        Planned::Nothing => false,
        Planned::Call(fault) => {
            text.contains(planned.call()) || is_as_a_loss(fault) && text.contains("lost")
        }
        // Any call may find it.
        Planned::Loss(..) => text.contains(planned.call()) || text.contains("lost"),
        Planned::Mapping(_) => OF_MAPPINGS.iter().any(|call| text.contains(call)),
        Planned::Thread(_) => text.contains(OF_THREADS),
        Planned::Descriptor(_) | Planned::DescriptorIn(..) => {
            let is_loss = text.contains("lost");
            OF_DESCRIPTORS.iter().any(|word| text.contains(word)) || wants_one(text) && !is_loss
        }
    };
    let errors = played.told.iter().map(|told| &told.error);
    // What another adapter has said of the fault says nothing of an error on this one.
    let announced = if played.told.is_empty() {
        &played.announced
    } else {
        &played.announced_with_errors
    };
    let mut all = errors.chain(announced).filter(|text| names(text));
    // One that says the call's own name says most.
    let by_name = all.clone().find(|text| text.contains(planned.call()));
    let named = by_name.or_else(|| all.next()).cloned();
    match (played.told.first(), named) {
        (Some(_), Some(named)) => Outcome::Told(named),
        (Some(told), None) => Outcome::Failed(format!(
            "no error names the call: {}: {}",
            told.step, told.error
        )),
        (None, Some(named)) => Outcome::Survived(named),
        (None, None) if is_told_for_sure(planned, counted) => Outcome::Failed(NOT_TOLD.into()),
        (None, None) => untold(planned, played.struck_on.as_deref()),
    }
}

/// Whether somebody hears of it in each run: the run that counts has many uses after that from which on it lasts.
fn is_told_for_sure(planned: Planned, counted: Option<&Played>) -> bool {
    let Planned::Call(fault) = planned else {
        return false;
    };
    let lasts = fault.strikes == Strikes::FromThenOn && NEEDED.contains(&fault.call);
    lasts && counted.is_some_and(|counted| is_certain(planned, counted))
}

/// A fault of which nobody was told.
fn untold(planned: Planned, thread: Option<&str>) -> Outcome {
    if is_loss(planned) {
        let waits = matches!(planned, Planned::Call(fault) if IDLE.contains(&fault.call));
        let why = if waits { WAITED_OTHERWISE } else { DONE };
        return Outcome::Survived(why.into());
    }
    match UNTOLD.iter().find(|(call, _)| *call == planned.call()) {
        Some((_, why)) => Outcome::Survived((*why).to_owned()),
        None => untold_on(thread),
    }
}

/// Whether a device is lost by it.
fn is_loss(planned: Planned) -> bool {
    match planned {
        Planned::Loss(..) => true,
        Planned::Call(fault) => is_as_a_loss(fault),
        Planned::Nothing
        | Planned::Descriptor(_)
        | Planned::DescriptorIn(..)
        | Planned::Mapping(_)
        | Planned::Thread(_) => false,
    }
}

/// A call that nobody makes again.
fn untold_on(thread: Option<&str>) -> Outcome {
    match thread {
        Some(thread) if names(thread, SPARE_THREAD) => Outcome::Survived(MADE_AGAIN.into()),
        Some(thread) if names(thread, REAPER_THREAD) => Outcome::Survived(ENDED_LATER.into()),
        Some(thread) if is_by(thread, RECOVERY_THREAD) => Outcome::Survived(ANOTHER_TOOK_IT.into()),
        Some(thread) if names(thread, CUT_OFF) => Outcome::Survived(CUT_AGAIN.into()),
        Some(thread) if names(thread, KERNEL_FILE) => Outcome::Survived(KEPT.into()),
        Some(thread) => Outcome::Failed(format!("nobody was told of it, on {thread}")),
        None => Outcome::Failed("nobody was told of it".into()),
    }
}

/// Whether it was on the thread of this name.
fn is_by(thread: &str, name: &str) -> bool {
    thread.split('/').next() == Some(name)
}

/// Whether it was on the thread of this name, or what was refused is called so.
fn names(thread: &str, what: &str) -> bool {
    thread.split('/').any(|name| name == what)
}

/// Whether it names a Vulkan call that may want a descriptor.
fn wants_one(text: &str) -> bool {
    let mut words = text.split(|c: char| !c.is_ascii_alphanumeric());
    words.any(|word| WANT_DESCRIPTORS.contains(&word))
}

/// What must not be, whatever the fault.
fn wrong(played: &Played) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut note = |what: &str, names: &[String]| {
        if !names.is_empty() {
            wrong.push(format!("{what}: {}", names.join(", ")));
        }
    };
    note("waiters hang", &played.hung);
    let timed_out = played
        .told
        .iter()
        .filter(|told| told.error.contains("timed out"));
    let timed_out: Vec<_> = timed_out.map(|told| told.step.clone()).collect();
    note("a wait timed out", &timed_out);
    note("left behind", &played.left);
    let others = played.others.iter();
    let others: Vec<_> = others
        .map(|told| format!("{}: {}", told.step, told.error))
        .collect();
    note("the other adapter does not go on", &others);
    if played.tried_again.is_some() {
        // The first is what was refused.
        let later = played.told.iter().skip(1);
        let later: Vec<_> = later
            .map(|told| format!("{}: {}", told.step, told.error))
            .collect();
        note("refused once, and then it did not go on", &later);
    }
    wrong
}
