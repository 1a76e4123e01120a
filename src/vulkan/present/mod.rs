//! Present: pictures that lie in memory, brought to a window (`VK_KHR_surface`, `VK_KHR_swapchain`).
//!
//! A window's display is known before its device: an [`Instance`](super::Instance) is made for a display
//! ([`Surface::instance`]), a [`Surface`] for a window, a device for a surface ([`Surface::open`]), and a [`Swapchain`] shows
//! pictures on it. A picture is copied when a timeline says that it is drawn, and another timeline is raised when it has
//! been copied.

mod copy;
mod surface;
mod swapchain;

pub use surface::{Surface, Window};
pub use swapchain::{Copied, CopiedTo, PixelOrder, PresentError, Presented, Swapchain};
