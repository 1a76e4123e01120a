//! Refusal: what a driver says when it does not do what was asked.
//!
//! Vulkan answers with a code; the operations of this room turn those that a caller can act on into
//! variants of their own error. What is left is a refusal: which call, and the code by its name.
//! It is text for a person, so it carries no type of ash.

use ash::vk;
use thiserror::Error;

use super::want::while_wanting;

/// A call that the driver answered with an error nobody can act on but by reading it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{call} answered {code}")]
pub struct Refusal {
    /// The Vulkan command.
    pub call: &'static str,
    /// The name of its result code.
    pub code: String,
}

impl Refusal {
    pub(super) fn of(call: &'static str, code: vk::Result) -> Self {
        Self {
            call,
            code: format!("{code:?}"),
        }
    }
}

/// Whether the driver is short of memory for the call itself. No object is the worse for it: the standard has "Out of memory
/// errors do not damage any currently existing Vulkan objects". That nothing was done it says of `vkQueueSubmit` alone: what
/// a submission names is as it was, or the answer is another. So a submission may be made again, and so may a call that asks
/// or waits; before another signal of the CPU the value is to be read again.
pub(super) fn is_want(code: vk::Result) -> bool {
    matches!(
        code,
        vk::Result::ERROR_OUT_OF_HOST_MEMORY | vk::Result::ERROR_OUT_OF_DEVICE_MEMORY
    )
}

/// Makes a call again, for a moment, where the driver is short of memory for the call itself.
pub(super) fn again_with_memory<T>(
    call: impl FnMut() -> Result<T, vk::Result>,
) -> Result<T, vk::Result> {
    while_wanting(|code| is_want(*code), call)
}

/// The calls that wait. For whether something is in use, the standard has of what they answer that "`VK_ERROR_DEVICE_LOST` is
/// equivalent to `VK_SUCCESS`".
const WAITS: [&str; 3] = ["vkQueueWaitIdle", "vkDeviceWaitIdle", "vkWaitSemaphores"];

/// Why a device is not relied on any more by who has called it. It names the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum DeviceFailure {
    /// The device is gone: nothing submitted to it will complete, everything made on it is to be dropped and made anew on
    /// another device.
    #[error("the Vulkan device is lost ({call}); open another one and build its objects again")]
    Lost {
        /// The Vulkan command.
        call: &'static str,
    },
    /// The driver had no memory for the call, however often it was made. The device may go on.
    #[error(
        "the Vulkan driver is out of memory ({call}), and stays so; free memory and try again, or open another device"
    )]
    OutOfMemory {
        /// The Vulkan command.
        call: &'static str,
    },
    /// An error that says nothing of the device, `VK_ERROR_UNKNOWN` first of all. It may be well, and it may go on with what
    /// it was given; it is not called lost, since a lost one does nothing more that counts.
    #[error(
        "{call} answered {:?}, and nobody knows what the Vulkan device does; open another one and build its objects again",
        vk::Result::from_raw(*code)
    )]
    Unknown {
        /// The Vulkan command.
        call: &'static str,
        /// Its result code.
        code: i32,
    },
}

impl DeviceFailure {
    pub(super) fn of(call: &'static str, code: vk::Result) -> Self {
        match code {
            vk::Result::ERROR_DEVICE_LOST => Self::Lost { call },
            code if is_want(code) => Self::OutOfMemory { call },
            code => Self::Unknown {
                call,
                code: code.as_raw(),
            },
        }
    }

    /// Whether the driver has called the device lost. That what it was given is over only a wait says.
    #[must_use]
    pub fn is_loss(&self) -> bool {
        matches!(self, Self::Lost { .. })
    }

    /// Whether memory was wanting, and nothing else.
    #[must_use]
    pub fn is_want(&self) -> bool {
        matches!(self, Self::OutOfMemory { .. })
    }

    /// Whether nothing that the call waited for is in use any more, so that it may be freed: the device is lost, and it is a
    /// wait that says so. A submission that is answered so leaves what was submitted before, and maybe itself, pending; and
    /// who reads a counter learns nothing of the work.
    pub(super) fn ends_work(&self) -> bool {
        matches!(self, Self::Lost { call } if WAITS.contains(call))
    }
}

/// Memory of the host or of the device ran out in a call that can fail in no other way, but for an error that the driver does
/// not explain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the Vulkan driver is out of memory ({call}); free buffers or close devices and try again{}", beside(*code))]
pub struct OutOfMemory {
    /// The Vulkan command.
    pub call: &'static str,
    /// What it answered.
    code: i32,
}

/// What is said of an answer that is no want of memory.
fn beside(code: i32) -> String {
    match vk::Result::from_raw(code) {
        code if is_want(code) => String::new(),
        code => format!(" (so it is taken: its answer was {code:?})"),
    }
}

impl OutOfMemory {
    /// In this call.
    pub(crate) fn in_call(call: &'static str) -> Self {
        Self::of(call)(vk::Result::ERROR_OUT_OF_HOST_MEMORY)
    }

    /// What a call's error is told as.
    pub(super) fn of(call: &'static str) -> impl Fn(vk::Result) -> Self {
        move |code| Self {
            call,
            code: code.as_raw(),
        }
    }

    /// What it says of a device that is to be waited for.
    pub(super) fn of_device(self) -> DeviceFailure {
        DeviceFailure::of(self.call, vk::Result::from_raw(self.code))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An answer that is not known is told by its name and not as a loss; each failure names its call. Of a loss a wait alone
    /// tells that what was submitted is over.
    ///
    /// Kills `an-unknown-answer-is-a-loss`, `a-lost-submission-is-an-end`.
    #[test]
    fn a_failure_names_its_call_and_is_a_loss_where_the_driver_says_so() {
        let told = |code| DeviceFailure::of("vkDance", code).to_string();
        let lost = told(vk::Result::ERROR_DEVICE_LOST);
        assert!(lost.contains("lost (vkDance)"), "{lost}");
        let unknown = told(vk::Result::ERROR_UNKNOWN);
        assert!(
            unknown.contains("vkDance answered ERROR_UNKNOWN"),
            "{unknown}"
        );
        assert!(!unknown.contains("lost"), "{unknown}");
        let want = told(vk::Result::ERROR_OUT_OF_DEVICE_MEMORY);
        assert!(want.contains("out of memory (vkDance)"), "{want}");
        let ends = |call| DeviceFailure::of(call, vk::Result::ERROR_DEVICE_LOST).ends_work();
        assert!(WAITS.into_iter().all(ends));
        assert!(!ends("vkQueueSubmit") && !ends("vkGetSemaphoreCounterValue"));
        let in_doubt = DeviceFailure::of(WAITS[0], vk::Result::ERROR_UNKNOWN);
        assert!(!in_doubt.ends_work());
        let taken = OutOfMemory::of("vkDance")(vk::Result::ERROR_UNKNOWN).to_string();
        assert!(taken.contains("ERROR_UNKNOWN"), "{taken}");
        assert!(
            !OutOfMemory::in_call("vkDance")
                .to_string()
                .contains("answer")
        );
    }
}
