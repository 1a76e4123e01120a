//! Question: the orderings that a shape is asked with, and the shaders that have them.

use super::{Parties, Shape};
use crate::vulkan::shaders::{self, Shader};
use serde::Serialize;

/// What of the engine's orderings there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// All of them: the outcome must not be seen.
    AsShipped,
    /// The writer stores its last word without release.
    NoRelease,
    /// The reader reads it without acquire.
    NoAcquire,
    /// Both.
    Neither,
    /// Store and look, by release and acquire, and nothing between.
    Bare,
    /// The same with a barrier of both between: what would be simpler than what is shipped, and nobody promises.
    Fenced,
    /// One meeting of all lanes an iteration, where there are two: none between adoption and execution.
    NoFirstMeeting,
    /// The other one: none between execution and the next adoption.
    NoSecondMeeting,
    /// Plain loads and stores of 64 bits.
    Plain,
    /// Loads and stores of 32 bits, two for a word.
    Halves,
    /// The dispatch ends without a barrier to the host.
    NoHostBarrier,
}

impl Order {
    /// Whether the forbidden outcome fails the device, or this program.
    #[must_use]
    pub fn is_required(self) -> bool {
        self == Self::AsShipped
    }

    /// Whether a shader without release and acquire, beside a CPU that has both, is in this order.
    pub(super) fn is_without_shader_orders(self, shape: Shape, parties: Parties) -> bool {
        match (shape, parties.cpu_role(), self) {
            (Shape::MessagePassing, None, order) => !order.is_required(),
            (Shape::MessagePassing | Shape::LogEntry, Some(1), order) => order == Self::NoRelease,
            (Shape::MessagePassing, Some(_), order) => order == Self::NoAcquire,
            _ => false,
        }
    }

    pub(super) fn releases(self) -> bool {
        !matches!(self, Self::NoRelease | Self::Neither)
    }

    pub(super) fn acquires(self) -> bool {
        !matches!(self, Self::NoAcquire | Self::Neither)
    }

    /// In words, of a shape.
    #[must_use]
    pub fn name(self, shape: Shape) -> &'static str {
        match (self, shape) {
            (Self::AsShipped, Shape::StoreBuffering) => "posted and adopted",
            (Self::AsShipped, Shape::Adoption) => "two meetings",
            (Self::AsShipped, Shape::Tearing) => "atomic, 64 bits",
            (Self::AsShipped, Shape::Visibility) => "publish, observe",
            (Self::AsShipped, Shape::SliceToHost) => "barrier to the host",
            (Self::AsShipped, Shape::MessagePassing | Shape::LogEntry) => "release, acquire",
            (Self::NoRelease, _) => "no release",
            (Self::NoAcquire, _) => "no acquire",
            (Self::Neither, _) => "neither",
            (Self::Bare, _) => "store, look",
            (Self::Fenced, _) => "store, barrier, look",
            (Self::NoFirstMeeting, _) => "no first meeting",
            (Self::NoSecondMeeting, _) => "no second meeting",
            (Self::Plain, Shape::Visibility) => "plain load",
            (Self::Plain, _) => "plain, 64 bits",
            (Self::Halves, _) => "halves, 32 bits",
            (Self::NoHostBarrier, _) => "no barrier to the host",
        }
    }

    /// The same between these. The CPU's words are atomic always.
    #[must_use]
    pub fn name_between(self, shape: Shape, parties: Parties) -> &'static str {
        match self {
            Self::Plain if shape == Shape::Tearing && parties.cpu_role().is_some() => {
                "plain on the GPU"
            }
            _ => self.name(shape),
        }
    }

    /// What is left out, as the subject of a sentence.
    #[must_use]
    pub fn left_out(self, parties: Parties) -> &'static str {
        match self {
            Self::AsShipped => "nothing",
            Self::NoRelease => "the writer's release",
            Self::NoAcquire => "the reader's acquire",
            Self::Neither => "release and acquire together",
            Self::Bare => "adoption by the engine, with no barrier in its place",
            Self::Fenced => "adoption by the engine, with a barrier in its place",
            Self::NoFirstMeeting => "the meeting between adoption and execution",
            Self::NoSecondMeeting => "the meeting between execution and the next adoption",
            Self::Plain if parties.cpu_role().is_some() => "the GPU's atomic access",
            Self::Plain => "atomic access",
            Self::Halves => "access in one piece",
            Self::NoHostBarrier => "the barrier to the host",
        }
    }

    /// The shader of both parties.
    pub(super) fn shader(self, shape: Shape) -> &'static Shader {
        match (shape, self) {
            (Shape::MessagePassing, Self::NoRelease) => &shaders::LITMUS_MESSAGE_NO_RELEASE,
            (Shape::MessagePassing, Self::NoAcquire) => &shaders::LITMUS_MESSAGE_NO_ACQUIRE,
            (Shape::MessagePassing, Self::Neither) => &shaders::LITMUS_MESSAGE_NEITHER,
            // What a dispatch leaves the writer of messages stores, with nobody to wait for.
            (Shape::MessagePassing | Shape::SliceToHost, _) => &shaders::LITMUS_MESSAGE,
            (Shape::StoreBuffering, Self::Bare) => &shaders::LITMUS_BUFFERING,
            (Shape::StoreBuffering, Self::Fenced) => &shaders::LITMUS_BUFFERING_FENCED,
            (Shape::StoreBuffering, _) => &shaders::LITMUS_BUFFERING_ADOPTED,
            (Shape::Adoption, Self::NoFirstMeeting) => &shaders::LITMUS_MEETING_ONE_MEETING,
            (Shape::Adoption, Self::NoSecondMeeting) => &shaders::LITMUS_MEETING_NO_SECOND,
            (Shape::Adoption, _) => &shaders::LITMUS_MEETING,
            (Shape::Tearing, Self::Plain) => &shaders::LITMUS_TEARING_PLAIN,
            (Shape::Tearing, Self::Halves) => &shaders::LITMUS_TEARING_HALVES,
            (Shape::Tearing, _) => &shaders::LITMUS_TEARING,
            (Shape::LogEntry, Self::NoRelease | Self::Neither) => &shaders::LITMUS_LOG_NO_RELEASE,
            (Shape::LogEntry, _) => &shaders::LITMUS_LOG,
            (Shape::Visibility, Self::Plain) => &shaders::LITMUS_VISIBILITY_PLAIN,
            (Shape::Visibility, _) => &shaders::LITMUS_VISIBILITY,
        }
    }
}
