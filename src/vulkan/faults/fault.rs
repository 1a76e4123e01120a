//! Fault: which uses of which call fail, with which error, and its name on a command line.

use super::{Answer, VulkanCall};
use std::fmt;
use std::str::FromStr;

/// A call that is to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Which.
    pub call: VulkanCall,
    /// At which use of it, counted from 1.
    pub at: u64,
    /// What it answers then.
    pub answer: Answer,
    /// Whether later uses fail too, and whether the driver sees what fails.
    pub strikes: Strikes,
}

/// See [`Fault::strikes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strikes {
    /// That use alone, and the driver does not see it: `call#k=ERROR`.
    Once,
    /// That use and every one after it, until the fault is lifted; the driver sees none: `call#k+=ERROR`.
    FromThenOn,
    /// That use alone: the driver has done it, and its caller is told the error: `call#k:done=ERROR`.
    Afterwards,
}

impl Strikes {
    /// Every one.
    pub const ALL: [Self; 3] = [Self::Once, Self::FromThenOn, Self::Afterwards];

    /// What stands behind the number of the use.
    fn mark(self) -> &'static str {
        match self {
            Self::Once => "",
            Self::FromThenOn => "+",
            Self::Afterwards => ":done",
        }
    }
}

/// It is the name of no fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} names no call of Vulkan, one of its uses and an error that it answers with")]
pub struct NoFault(String);

impl Fault {
    /// That use of the call fails, and no other.
    #[must_use]
    pub fn once(call: VulkanCall, at: u64, answer: Answer) -> Self {
        Self {
            call,
            at,
            answer,
            strikes: Strikes::Once,
        }
    }

    /// That use of the call fails, and every one after it.
    #[must_use]
    pub fn from_then_on(call: VulkanCall, at: u64, answer: Answer) -> Self {
        Self {
            strikes: Strikes::FromThenOn,
            ..Self::once(call, at, answer)
        }
    }

    /// That use of the call is told to have failed when the driver has done it.
    #[must_use]
    pub fn afterwards(call: VulkanCall, at: u64, answer: Answer) -> Self {
        Self {
            strikes: Strikes::Afterwards,
            ..Self::once(call, at, answer)
        }
    }

    /// Whether a driver may answer so.
    pub(super) fn is_possible(&self) -> bool {
        let errors = match self.strikes {
            Strikes::Once | Strikes::FromThenOn => self.call.errors(),
            Strikes::Afterwards => self.call.errors_afterwards(),
        };
        errors.contains(&self.answer)
    }

    /// Whether it strikes the use of this number.
    pub(super) fn is_of(&self, call: VulkanCall, at: u64) -> bool {
        let is_its_use = match self.strikes {
            Strikes::Once | Strikes::Afterwards => at == self.at,
            Strikes::FromThenOn => at >= self.at,
        };
        call == self.call && is_its_use
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (call, at, answer) = (self.call.name(), self.at, self.answer);
        write!(f, "{call}#{at}{}={answer}", self.strikes.mark())
    }
}

impl FromStr for Fault {
    type Err = NoFault;

    fn from_str(name: &str) -> Result<Self, NoFault> {
        let parsed = || {
            let (call, rest) = name.split_once('#')?;
            let (use_, error) = rest.split_once('=')?;
            let end = use_.find(|c: char| !c.is_ascii_digit());
            let (at, mark) = use_.split_at(end.unwrap_or(use_.len()));
            let mut all = Strikes::ALL.into_iter();
            let strikes = all.find(|strikes| strikes.mark() == mark)?;
            let fault = Self {
                call: VulkanCall::of_name(call)?,
                at: at.parse().ok().filter(|at| *at > 0)?,
                answer: Answer::of_name(error)?,
                strikes,
            };
            fault.is_possible().then_some(fault)
        };
        parsed().ok_or_else(|| NoFault(name.to_owned()))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
mod tests {
    use super::*;

    /// A fault is read by the name that it is written by; one that no driver may have has none.
    ///
    /// Kills `unknown-is-never-answered`, `what-was-done-is-answered-by-a-want`.
    #[test]
    fn a_fault_of_a_call_is_read_by_the_name_that_it_has() {
        for name in [
            "vkCreateBuffer#3=VK_ERROR_OUT_OF_HOST_MEMORY",
            "vkCreateBuffer#3=VK_ERROR_UNKNOWN",
            "vkWaitSemaphores#1+=VK_ERROR_OUT_OF_DEVICE_MEMORY",
            "vkQueueSubmit#2:done=VK_ERROR_DEVICE_LOST",
            "vkSignalSemaphore#2:done=VK_ERROR_UNKNOWN",
        ] {
            assert_eq!(name.parse::<Fault>().unwrap().to_string(), name);
        }
        for name in [
            "",
            "vkCreateBuffer#3",
            "vkCreateBuffer#0=VK_ERROR_UNKNOWN",
            "vkCreateBuffer#=VK_ERROR_UNKNOWN",
            "vkCreateBuffer#1++=VK_ERROR_UNKNOWN",
            "vkCreateBuffer#1=VK_ERROR_DEVICE_LOST",
            // It would be nobody's.
            "vkCreateBuffer#1:done=VK_ERROR_UNKNOWN",
            // It says that nothing was done.
            "vkQueueSubmit#1:done=VK_ERROR_OUT_OF_HOST_MEMORY",
            "vkSignalSemaphore#1:done=VK_ERROR_OUT_OF_HOST_MEMORY",
        ] {
            assert!(name.parse::<Fault>().is_err(), "{name}");
        }
    }

    /// Kills `a-lasting-fault-strikes-once`.
    #[test]
    fn a_fault_strikes_its_use_and_where_it_lasts_those_after_it() {
        let call = VulkanCall::WaitSemaphores;
        let answer = call.errors()[0];
        let struck = |fault: Fault| [1, 2, 3].map(|at| fault.is_of(call, at));
        assert_eq!(struck(Fault::once(call, 2, answer)), [false, true, false]);
        assert_eq!(
            struck(Fault::from_then_on(call, 2, answer)),
            [false, true, true]
        );
        assert_eq!(
            struck(Fault::afterwards(call, 2, answer)),
            [false, true, false]
        );
        assert!(!Fault::from_then_on(call, 2, answer).is_of(VulkanCall::QueueSubmit, 2));
    }
}
