//! Beside: native fences next to a program's ordinary Vulkan.
//!
//! A swapchain, an engine or a library that submits to a `VkQueue` orders its work by timeline semaphores. A bridge
//! carries values from a native fence to such a timeline, or back: [`FenceToTimeline`], [`TimelineToFence`]. A GPU
//! carries nothing across by itself, so a thread of the host does, and only where somebody asked: each value is asked
//! for by a call, and between such calls nothing waits, polls or wakes.
//!
//! A program's own command buffers signal a native fence, and make work conditional on one, by what an
//! [`EnrolledFence`] records into them. (`nf_signal` of the shader library is for kernels of hardware queues alone: it
//! needs their job.)
//!
//! Memory is what both have: an [`ImportedAllocation`] is one of native queues that a program's own Vulkan device reaches.
//!
//! The timelines are of a device that the program handed over ([`crate::vulkan::Device::import`]) or of one of this
//! library's; the fences may be of any adapter. Work that waits for a timeline stands in the way of what was submitted
//! behind it to the same `VkQueue`: engines that are to signal the fence must not be there.

#![forbid(unsafe_code)]

mod crossing;
mod enrolled_fence;
mod fence_to_timeline;
mod forward;
mod imported_allocation;
mod timeline_to_fence;
mod wait_task;
mod watch;

pub use crossing::{Crossing, CrossingError};
pub use enrolled_fence::{EnrolError, EnrolledFence, RecordError};
pub use fence_to_timeline::FenceToTimeline;
pub use forward::AskError;
pub use imported_allocation::{ImportAllocationError, ImportedAllocation};
pub use timeline_to_fence::TimelineToFence;
