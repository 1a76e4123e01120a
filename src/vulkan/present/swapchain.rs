//! Swapchain: the images of a window, and pictures that are copied to them.
//!
//! A picture is shown in four steps: an image is got, which a semaphore says that the window has let go of; a submission
//! waits for that and for a timeline which says that the picture is drawn, copies it, and raises another semaphore and another
//! timeline ([`Swapchain::copy`]); whoever shows it sees to it that the first timeline is raised; the image is given to the
//! window, which waits for the semaphore ([`Swapchain::present`]). Not before: of a binary semaphore Vulkan wants that what
//! raises it depends on nothing any more that is still to be submitted, and drivers wait for that.
//!
//! Of those binary semaphores Vulkan wants that none is used again before what waited for it has. One that an image is got
//! with is free when the submission that waits for it is complete, which its timeline says. One that the window waits for is
//! free when its image is got again.

use super::super::in_flight::{Entry, InFlight};
use super::super::refusal::{DeviceFailure, OutOfMemory, is_want};
use super::super::{
    BringUpError, CommandBuffer, CommandRecorder, Device, Queue, Refusal, RegionImport, Reuse,
    SubmitError, Timeline, WaitOutcome,
};
use super::Surface;
use ash::{khr, vk};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// In which order the bytes of a pixel lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PixelOrder {
    /// Red first.
    Rgba,
    /// Blue first.
    Bgra,
}

/// Whether a picture is copied.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub enum Copied {
    /// It is, when it is drawn, to this image.
    To(CopiedTo),
    /// The window has another size than the picture, or other images by now: [`Swapchain::resize`] makes new ones. Nothing
    /// was submitted.
    Stale,
    /// The window has no image free. Nothing was submitted.
    Busy,
}

/// An image that a picture is copied to, and that is to be shown.
#[derive(Debug, PartialEq, Eq)]
pub struct CopiedTo {
    index: u32,
    of: vk::SwapchainKHR,
}

/// Whether the window took a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Presented {
    /// It did.
    Well,
    /// It did, and would rather have images of another size.
    Poorly,
    /// It did not: [`Swapchain::resize`] makes images that it takes.
    Stale,
}

/// A picture that cannot be shown.
#[derive(Debug, thiserror::Error)]
pub enum PresentError {
    /// The device is lost, or its driver gives up.
    #[error(transparent)]
    Device(#[from] DeviceFailure),
    /// Memory ran out.
    #[error(transparent)]
    OutOfMemory(#[from] OutOfMemory),
    /// The window is gone, or the driver refuses.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The adapter is gone.
    #[error(transparent)]
    BringUp(#[from] BringUpError),
    /// The window takes no pixels of four bytes.
    #[error(
        "the window takes no pixels of 8 bits for red, green and blue: use a screen of 24 bits or more"
    )]
    NoFormat,
}

const GET_TIMEOUT: Duration = Duration::from_millis(500);
/// An image of the window.
struct Image {
    raw: vk::Image,
    /// The window waits for it.
    is_copied: vk::Semaphore,
}

/// What an image is got with, and the value of the last submission that waits for it.
struct Got {
    semaphore: vk::Semaphore,
    used_by: Option<(Timeline, u64)>,
}

/// See the file's head.
pub struct Swapchain {
    raw: vk::SwapchainKHR,
    images: Vec<Image>,
    got: Vec<Got>,
    next: usize,
    size: (u32, u32),
    order: PixelOrder,
    /// No image is got from it any more: it was given up for another, or an image that was got is lost.
    is_over: bool,
    functions: khr::swapchain::Device,
    queue: Queue,
    surface: Arc<Surface>,
}

impl Swapchain {
    /// Of a surface, by the queue of a device that was opened for it. Where the window does not say how large it is, it is as
    /// large as is said here.
    ///
    /// # Errors
    /// [`PresentError`].
    ///
    /// # Panics
    /// The device is not of the surface's instance.
    pub fn new(
        surface: &Arc<Surface>,
        queue: Queue,
        size: (u32, u32),
    ) -> Result<Self, PresentError> {
        let device = Arc::clone(queue.device());
        assert!(
            Arc::ptr_eq(device.instance(), surface.instance_of()),
            "a swapchain's device is opened for its surface"
        );
        let functions = khr::swapchain::Device::new(device.instance().raw(), device.raw());
        let mut swapchain = Self {
            raw: vk::SwapchainKHR::null(),
            images: Vec::new(),
            got: Vec::new(),
            next: 0,
            size: (0, 0),
            order: PixelOrder::Rgba,
            is_over: true,
            functions,
            queue,
            surface: Arc::clone(surface),
        };
        swapchain.resize(size)?;
        Ok(swapchain)
    }

    /// The device.
    #[must_use]
    pub fn device(&self) -> &Arc<Device> {
        self.queue.device()
    }

    /// Pixels across and down.
    #[must_use]
    pub fn size(&self) -> (u32, u32) {
        self.size
    }

    /// How pictures are to have their bytes.
    #[must_use]
    pub fn order(&self) -> PixelOrder {
        self.order
    }

    /// Makes images anew, as large as the window is now. A window without any size keeps those that it has.
    ///
    /// # Errors
    /// [`PresentError`].
    pub fn resize(&mut self, wanted: (u32, u32)) -> Result<(), PresentError> {
        let physical = self.surface.of(self.queue.device())?;
        let (functions, surface) = (&self.surface.functions, self.surface.raw);
        // SAFETY: the adapter and the surface are of one instance, and alive.
        let can = unsafe { functions.get_physical_device_surface_capabilities(physical, surface) }
            .map_err(|e| error("vkGetPhysicalDeviceSurfaceCapabilitiesKHR", e))?;
        // SAFETY: the same.
        let formats = unsafe { functions.get_physical_device_surface_formats(physical, surface) }
            .map_err(|e| error("vkGetPhysicalDeviceSurfaceFormatsKHR", e))?;
        let (format, order) = choose_format(&formats).ok_or(PresentError::NoFormat)?;
        let extent = match can.current_extent {
            // The window is as large as what it is shown.
            vk::Extent2D {
                width: u32::MAX, ..
            } => vk::Extent2D {
                width: wanted
                    .0
                    .clamp(can.min_image_extent.width, can.max_image_extent.width),
                height: wanted
                    .1
                    .clamp(can.min_image_extent.height, can.max_image_extent.height),
            },
            given => given,
        };
        if extent.width == 0 || extent.height == 0 {
            return Ok(());
        }
        let most = if can.max_image_count == 0 {
            u32::MAX
        } else {
            can.max_image_count
        };
        let info = vk::SwapchainCreateInfoKHR::default()
            .surface(surface)
            .min_image_count((can.min_image_count + 1).min(most))
            .image_format(format.format)
            .image_color_space(format.color_space)
            .image_extent(extent)
            .image_array_layers(1)
            .image_usage(vk::ImageUsageFlags::TRANSFER_DST)
            .image_sharing_mode(vk::SharingMode::EXCLUSIVE)
            .pre_transform(can.current_transform)
            .composite_alpha(choose_alpha(can.supported_composite_alpha))
            // What every driver has, and what shows no half pictures.
            .present_mode(vk::PresentModeKHR::FIFO)
            .clipped(true)
            .old_swapchain(self.raw);
        // Whether or not there is a new one, no image is got from the old one.
        self.is_over = true;
        // SAFETY: all that `info` names is alive; the old one is not used by anybody else, by `&mut self`.
        let made = unsafe { self.functions.create_swapchain(&info, None) };
        let made = made.map_err(|e| error("vkCreateSwapchainKHR", e))?;
        let idle = self.let_go();
        // Owned before anything can fail.
        self.raw = made;
        idle?;
        self.size = (extent.width, extent.height);
        self.order = order;
        // SAFETY: it is alive.
        let images = unsafe { self.functions.get_swapchain_images(made) }
            .map_err(|e| error("vkGetSwapchainImagesKHR", e))?;
        for raw in images {
            let is_copied = self.semaphore()?;
            self.images.push(Image { raw, is_copied });
        }
        for _ in 0..=self.images.len() {
            let semaphore = self.semaphore()?;
            self.got.push(Got {
                semaphore,
                used_by: None,
            });
        }
        self.is_over = false;
        Ok(())
    }

    fn semaphore(&self) -> Result<vk::Semaphore, OutOfMemory> {
        let info = vk::SemaphoreCreateInfo::default();
        // SAFETY: the device is alive.
        unsafe { self.device().raw().create_semaphore(&info, None) }
            .map_err(OutOfMemory::of("vkCreateSemaphore"))
    }

    /// Copies a picture to an image of the window, whose pixels lie row by row at an offset of memory that was imported into
    /// this device: when `drawn` has its value. `copied` is raised when the memory is not read any more. The image is shown by
    /// [`Swapchain::present`], once `drawn` has its value or sure to come to it.
    ///
    /// # Errors
    /// [`PresentError`].
    ///
    /// # Panics
    /// The memory or a timeline is of another device; the memory does not hold so many pixels; `copied` would not go forward.
    pub fn copy(
        &mut self,
        (pixels, offset): (&Arc<RegionImport>, u64),
        size: (u32, u32),
        drawn: (&Timeline, u64),
        copied: (&Timeline, u64),
    ) -> Result<Copied, PresentError> {
        for timeline in [drawn.0, copied.0] {
            assert!(
                Arc::ptr_eq(timeline.device(), self.device()),
                "a timeline is of another device"
            );
        }
        if self.is_over || size != self.size {
            return Ok(Copied::Stale);
        }
        // What it would submit may be the same as what may have been submitted.
        let takes_work = self.queue.must_take_work();
        takes_work.map_err(SubmitError::of_device)?;
        let commands = CommandRecorder::begin(self.device(), Reuse::Simultaneous)?;
        let got = &mut self.got[self.next];
        if let Some((timeline, value)) = &got.used_by {
            // A wait that fails, which a want of memory may do, leaves it in use: the next copy waits again.
            match timeline.wait(*value, None)? {
                WaitOutcome::Reached => got.used_by = None,
                WaitOutcome::TimedOut => return Ok(Copied::Busy),
            }
        }
        let semaphore = got.semaphore;
        let timeout = GET_TIMEOUT.as_nanos() as u64;
        // SAFETY: nobody waits for the semaphore, nor is it signalled: what waited for it is complete, see the file's head.
        let image = unsafe {
            self.functions
                .acquire_next_image(self.raw, timeout, semaphore, vk::Fence::null())
        };
        let index = match image {
            Ok((index, _suboptimal)) => index,
            Err(vk::Result::ERROR_OUT_OF_DATE_KHR) => return Ok(Copied::Stale),
            Err(vk::Result::TIMEOUT | vk::Result::NOT_READY) => return Ok(Copied::Busy),
            Err(code) => return Err(error("vkAcquireNextImageKHR", code)),
        };
        // Until the submission the image and its semaphore are nobody's: where that fails they go with the swapchain.
        self.is_over = true;
        let image = &self.images[index as usize];
        let is_copied = image.is_copied;
        let commands = commands
            .copy_to_image((pixels, offset), image.raw, size)
            .end()?;
        self.submit(commands, semaphore, is_copied, drawn, copied)?;
        self.is_over = false;
        self.got[self.next].used_by = Some((copied.0.clone(), copied.1));
        self.next = (self.next + 1) % self.got.len();
        let of = self.raw;
        Ok(Copied::To(CopiedTo { index, of }))
    }

    /// Shows the image that a picture was copied to.
    ///
    /// # Errors
    /// [`PresentError`].
    #[allow(
        clippy::needless_pass_by_value,
        reason = "it is spent: an image is shown once"
    )]
    pub fn present(&mut self, image: CopiedTo) -> Result<Presented, PresentError> {
        let CopiedTo { index, of } = image;
        if of != self.raw {
            return Ok(Presented::Stale);
        }
        let is_copied = self.images[index as usize].is_copied;
        let (semaphores, swapchains, indices) = ([is_copied], [self.raw], [index]);
        let info = vk::PresentInfoKHR::default()
            .wait_semaphores(&semaphores)
            .swapchains(&swapchains)
            .image_indices(&indices);
        // SAFETY: the image was got from this swapchain and is shown once, as the value is spent; the submission raises the
        // semaphore.
        match unsafe { self.queue.present_raw(&self.functions, &info) } {
            Ok(false) => Ok(Presented::Well),
            Ok(true) => Ok(Presented::Poorly),
            Err(vk::Result::ERROR_OUT_OF_DATE_KHR) => Ok(Presented::Stale),
            Err(code) => Err(error("vkQueuePresentKHR", code)),
        }
    }

    fn submit(
        &mut self,
        commands: CommandBuffer,
        got: vk::Semaphore,
        is_copied: vk::Semaphore,
        drawn: (&Timeline, u64),
        copied: (&Timeline, u64),
    ) -> Result<(), PresentError> {
        let waits = [got, drawn.0.raw()];
        let stages = [vk::PipelineStageFlags::TRANSFER; 2];
        let signals = [is_copied, copied.0.raw()];
        // Of a binary semaphore the value is nothing.
        let (wait_values, signal_values) = ([0, drawn.1], [0, copied.1]);
        let mut values = vk::TimelineSemaphoreSubmitInfo::default()
            .wait_semaphore_values(&wait_values)
            .signal_semaphore_values(&signal_values);
        let raw = [commands.raw()];
        let info = vk::SubmitInfo::default()
            .command_buffers(&raw)
            .wait_semaphores(&waits)
            .wait_dst_stage_mask(&stages)
            .signal_semaphores(&signals)
            .push_next(&mut values);
        let mut promised = copied.0.promised();
        assert!(copied.1 > *promised, "a timeline only goes up");
        // SAFETY: all of it is of this device, as was looked at; timelines and commands are kept below, semaphores by `self`, which waits for the
        // queue before it destroys them.
        let submitted = unsafe { self.queue.submit_raw(&[info]) };
        let entry = Entry {
            commands: Some(commands),
            wait: Some(drawn.0.clone()),
            signal: Some((copied.0.clone(), copied.1)),
        };
        match submitted {
            Ok(()) => {
                *promised = copied.1;
                drop(promised);
                self.queue.in_flight.remember(entry);
                Ok(())
            }
            Err(code) => {
                // It may have been taken all the same.
                let doubtful = |in_flight: &mut InFlight| {
                    copied.0.note_doubtful(copied.1);
                    in_flight.remember_doubtful(entry);
                };
                let _told = self.queue.note_failed(code, doubtful);
                Err(error("vkQueueSubmit", code))
            }
        }
    }

    /// Destroys what was made, when the device is done with it. Where nobody knows whether it is, nothing is destroyed, nor
    /// will be.
    fn let_go(&mut self) -> Result<(), DeviceFailure> {
        // What is shown waits with what is destroyed here, and with the swapchain.
        let idle = if self.raw == vk::SwapchainKHR::null() {
            self.queue.wait_idle()
        } else {
            self.queue.wait_for_shown()
        };
        if let Err(failure) = idle
            && !failure.ends_work()
        {
            self.queue.device().keep_for_good(failure);
            self.images.clear();
            self.got.clear();
            self.next = 0;
            self.raw = vk::SwapchainKHR::null();
            // The window has it for as long.
            std::mem::forget(Arc::clone(&self.surface));
            return idle;
        }
        let device = Arc::clone(self.queue.device());
        let of_images = self.images.drain(..).map(|image| image.is_copied);
        let of_got = self.got.drain(..).map(|got| got.semaphore);
        for semaphore in of_images.chain(of_got) {
            // SAFETY: the queue is idle, or the device is lost; the swapchain that was waited with is destroyed next.
            unsafe { device.raw().destroy_semaphore(semaphore, None) };
        }
        self.next = 0;
        if self.raw != vk::SwapchainKHR::null() {
            // SAFETY: the same.
            unsafe { self.functions.destroy_swapchain(self.raw, None) };
            self.raw = vk::SwapchainKHR::null();
        }
        idle
    }
}

impl Drop for Swapchain {
    fn drop(&mut self) {
        // What is not over is kept by this, and of a lost device all is over.
        let _lost = self.let_go();
    }
}

impl fmt::Debug for Swapchain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { size, order, .. } = self;
        f.debug_struct("Swapchain")
            .field("size", size)
            .field("order", order)
            .finish_non_exhaustive()
    }
}

/// One whose bytes are stored as they are: pictures are made in the screen's own values.
fn choose_format(formats: &[vk::SurfaceFormatKHR]) -> Option<(vk::SurfaceFormatKHR, PixelOrder)> {
    let wanted = [
        (vk::Format::B8G8R8A8_UNORM, PixelOrder::Bgra),
        (vk::Format::R8G8B8A8_UNORM, PixelOrder::Rgba),
    ];
    wanted.into_iter().find_map(|(format, order)| {
        let found = formats.iter().find(|one| one.format == format)?;
        Some((*found, order))
    })
}

fn choose_alpha(offered: vk::CompositeAlphaFlagsKHR) -> vk::CompositeAlphaFlagsKHR {
    let all = [
        vk::CompositeAlphaFlagsKHR::OPAQUE,
        vk::CompositeAlphaFlagsKHR::INHERIT,
        vk::CompositeAlphaFlagsKHR::PRE_MULTIPLIED,
    ];
    let found = all.into_iter().find(|alpha| offered.contains(*alpha));
    found.unwrap_or(vk::CompositeAlphaFlagsKHR::POST_MULTIPLIED)
}

fn error(call: &'static str, code: vk::Result) -> PresentError {
    match code {
        vk::Result::ERROR_DEVICE_LOST => DeviceFailure::of(call, code).into(),
        code if is_want(code) => OutOfMemory::of(call)(code).into(),
        code => Refusal::of(call, code).into(),
    }
}
