//! Fault: what one run has fail, and its name on a command line.

use super::Chapter;
use crate::vulkan::LossyCall;
use crate::vulkan::faults::{Fault, Strikes, VulkanCall};
use std::fmt;
use std::str::FromStr;

/// The row of file descriptors.
pub(super) const DESCRIPTORS: &str = "descriptors";
/// The row of mappings of shared memory, with the files behind them.
pub(super) const MAPPINGS: &str = "mappings";
/// The row of threads.
pub(super) const THREADS: &str = "threads";

/// Calls that are made again where the driver is short of memory, and that may not be for ever.
pub(super) const CALLED_AGAIN: [VulkanCall; 6] = [
    VulkanCall::QueueSubmit,
    VulkanCall::WaitSemaphores,
    VulkanCall::SignalSemaphore,
    VulkanCall::GetSemaphoreCounterValue,
    VulkanCall::QueueWaitIdle,
    VulkanCall::DeviceWaitIdle,
];

/// What a driver answers that has no other word for what went wrong.
const UNKNOWN: &str = "VK_ERROR_UNKNOWN";

/// Whether a call that is made again where that helps fails in a way in which it does not: what it was for is given up.
pub(super) fn is_as_a_loss(fault: Fault) -> bool {
    let helps = fault.strikes == Strikes::Once && fault.answer.to_string() != UNKNOWN;
    CALLED_AGAIN.contains(&fault.call) && !helps
}

/// See the file's head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planned {
    /// None: the run counts.
    Nothing,
    /// A Vulkan call answers with an error: once, or from then on, or when the driver has done what it was called for.
    Call(Fault),
    /// The first engine's device is lost at a call, for good.
    Loss(LossyCall, u64),
    /// So many descriptors more are to be had, and then none.
    Descriptor(u64),
    /// The same from where a chapter of the story begins, until it ends.
    DescriptorIn(Chapter, u64),
    /// The mapping of this number is refused, or the file for one, once.
    Mapping(u64),
    /// The thread of this number is refused, once.
    Thread(u64),
}

/// It is the name of no fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no fault: name one as the sweep does, such as vkCreateBuffer#3=VK_ERROR_OUT_OF_HOST_MEMORY or descriptors#5"
)]
pub struct Unknown(String);

impl Planned {
    /// What fails: the row that it is of.
    #[must_use]
    pub fn call(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Call(fault) => fault.call.name(),
            Self::Loss(call, _) => call.name(),
            Self::Descriptor(_) => DESCRIPTORS,
            Self::DescriptorIn(chapter, _) => chapter.descriptors(),
            Self::Mapping(_) => MAPPINGS,
            Self::Thread(_) => THREADS,
        }
    }

    /// At which use, or which descriptor, mapping or thread.
    pub(super) fn at(self) -> u64 {
        match self {
            Self::Nothing => 0,
            Self::Call(fault) => fault.at,
            Self::Loss(_, at)
            | Self::Descriptor(at)
            | Self::DescriptorIn(_, at)
            | Self::Mapping(at)
            | Self::Thread(at) => at,
        }
    }

    /// Whether it is over when it has struck, and nothing was done of what was refused. A queue of which nobody knows what it
    /// has taken is given nothing more, by the rule, and nor is a device of which nobody knows what it does.
    pub(super) fn strikes_once(self) -> bool {
        match self {
            Self::Call(fault) => fault.strikes == Strikes::Once && !is_as_a_loss(fault),
            Self::Mapping(_) | Self::Thread(_) => true,
            Self::Nothing | Self::Loss(..) | Self::Descriptor(_) | Self::DescriptorIn(..) => false,
        }
    }
}

impl fmt::Display for Planned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("nothing"),
            Self::Call(fault) => fault.fmt(f),
            Self::Loss(call, at) => write!(f, "{}#{at}=lost", call.name()),
            Self::Descriptor(at)
            | Self::DescriptorIn(_, at)
            | Self::Mapping(at)
            | Self::Thread(at) => write!(f, "{}#{at}", self.call()),
        }
    }
}

impl FromStr for Planned {
    type Err = Unknown;

    fn from_str(name: &str) -> Result<Self, Unknown> {
        let parsed = || {
            if name == "nothing" {
                return Some(Self::Nothing);
            }
            if let Ok(fault) = name.parse() {
                return Some(Self::Call(fault));
            }
            let (call, rest) = name.split_once('#')?;
            let (at, answer) = rest.split_once('=').unwrap_or((rest, ""));
            let at = at.parse().ok().filter(|at| *at > 0)?;
            match (call, answer) {
                (DESCRIPTORS, "") => Some(Self::Descriptor(at)),
                (MAPPINGS, "") => Some(Self::Mapping(at)),
                (THREADS, "") => Some(Self::Thread(at)),
                (call, "lost") => {
                    let mut all = LossyCall::ALL.into_iter();
                    Some(Self::Loss(all.find(|known| known.name() == call)?, at))
                }
                (row, "") => {
                    let mut all = Chapter::ALL.into_iter();
                    let of = all.find(|chapter| chapter.descriptors() == row)?;
                    Some(Self::DescriptorIn(of, at))
                }
                _ => None,
            }
        };
        parsed().ok_or_else(|| Unknown(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_read_by_the_name_that_it_has() {
        for name in [
            "nothing",
            "vkCreateBuffer#3=VK_ERROR_OUT_OF_HOST_MEMORY",
            "vkWaitSemaphores#1+=VK_ERROR_OUT_OF_HOST_MEMORY",
            "vkQueueSubmit#2:done=VK_ERROR_UNKNOWN",
            "vkQueueSubmit#1=lost",
            "descriptors#5",
            "descriptors:bridge#2",
            "mappings#7",
            "threads#2",
        ] {
            assert_eq!(name.parse::<Planned>().unwrap().to_string(), name);
        }
        for name in [
            "",
            "vkCreateBuffer",
            "vkCreateBuffer#0=VK_ERROR_OUT_OF_HOST_MEMORY",
            "vkCreateBuffer#1=VK_ERROR_DEVICE_LOST",
            "vkCreateBuffer#1=lost",
            "descriptors#x",
            "descriptors:dance#1",
            "mappings#0",
            "threads#1=lost",
            "vkDance#1=lost",
        ] {
            assert!(name.parse::<Planned>().is_err(), "{name}");
        }
    }

    /// What is refused once is tried again, but where nobody knows what was done of it: then the queue or the device goes on
    /// refusing, and is right.
    ///
    /// Kills `who-refuses-rightly-is-asked-again`.
    #[test]
    fn what_is_refused_from_then_on_is_not_tried_again() {
        let strikes_once = |name: &str| name.parse().is_ok_and(Planned::strikes_once);
        for name in [
            "vkCreateBuffer#1=VK_ERROR_UNKNOWN",
            "vkQueueSubmit#1=VK_ERROR_OUT_OF_HOST_MEMORY",
            "mappings#1",
            "threads#1",
        ] {
            assert!(strikes_once(name), "{name}");
        }
        for name in [
            "vkQueueSubmit#1=VK_ERROR_UNKNOWN",
            "vkQueueSubmit#1+=VK_ERROR_OUT_OF_HOST_MEMORY",
            "vkQueueSubmit#1:done=VK_ERROR_UNKNOWN",
            "vkQueueSubmit#1=lost",
            "descriptors#1",
            "nothing",
        ] {
            assert!(!strikes_once(name), "{name}");
        }
    }
}
