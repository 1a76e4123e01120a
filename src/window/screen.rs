//! Screen: pictures, drawn by a hardware queue and shown in a window.
//!
//! What orders a frame is said in the room's head. The hardware queue draws into two buffers in turns; it waits for the fence
//! that says that the buffer's last frame has been copied. A frame that the window did not take is copied by nobody, and
//! nobody waits for it.

use super::WindowError;
use crate::beside::{FenceToTimeline, ImportedAllocation, TimelineToFence};
use crate::viewer::{Canvas, Picture};
use crate::vulkan::{
    self, Copied, Device, PixelOrder, Presented, Surface, Swapchain, Timeline, Window,
};
use crate::{Adapter, AdapterOptions, Fence};
use std::sync::Arc;
use std::time::Duration;

/// After this a frame is given up: the engine does not draw.
const LONG: Duration = Duration::from_secs(30);

/// A buffer of pixels, as the window's device has it.
#[derive(Debug, Default)]
struct Slot {
    pixels: Option<ImportedAllocation>,
    /// The last frame in it that the window took.
    shown: Option<u64>,
}

/// See the file's head.
#[derive(Debug)]
pub(super) struct Screen {
    // First: it waits for what was submitted, which waits for what the others are for.
    swapchain: Swapchain,
    slots: [Slot; 2],
    /// Has the number of the last frame that was drawn, on the window's device.
    drawn: Timeline,
    carries_drawn: Option<FenceToTimeline>,
    /// Has the number of the last frame that was copied, on the window's device and on the queue's.
    copied: Timeline,
    is_copied: Fence,
    carries_copied: TimelineToFence,
    last: u64,
    canvas: Canvas,
    _adapter: Adapter,
    device: Arc<Device>,
}

impl Screen {
    /// Of a window, by the adapter with this in its name or driver.
    pub(super) fn new(
        window: Arc<dyn Window>,
        size: (u32, u32),
        device: Option<&str>,
    ) -> Result<Self, WindowError> {
        let instance = Surface::instance(&*window)?;
        let surface = Surface::new(&instance, window)?;
        let info = vulkan::choose(&instance.adapters(), device)?.clone();
        let device = surface.open(&info)?;
        let queue = device.queue(0).ok_or(WindowError::NoQueue)?;
        // An instance of its own: drivers on the CPU have a pool of threads for each, and a frame is drawn while another is
        // copied.
        let options = AdapterOptions {
            device: Some(info.name.clone()),
            ..AdapterOptions::default()
        };
        let adapter = Adapter::open(&options)?;
        let native = adapter.create_device();
        let canvas = Canvas::new(&native)?;
        let (drawn, copied) = (Timeline::new(&device, 0)?, Timeline::new(&device, 0)?);
        let is_copied = native.create_fence(0)?;
        Ok(Self {
            swapchain: Swapchain::new(&surface, queue, size)?,
            slots: Default::default(),
            carries_drawn: Some(FenceToTimeline::new(canvas.frames(), &drawn)),
            drawn,
            carries_copied: TimelineToFence::new(&copied, &is_copied)?,
            copied,
            is_copied,
            last: 0,
            canvas,
            _adapter: adapter,
            device,
        })
    }

    /// Pixels across and down.
    pub(super) fn size(&self) -> (u32, u32) {
        self.swapchain.size()
    }

    /// The window has another size.
    pub(super) fn resize(&mut self, size: (u32, u32)) -> Result<(), WindowError> {
        Ok(self.swapchain.resize(size)?)
    }

    /// Draws a picture and shows it.
    pub(super) fn show(&mut self, picture: Picture) -> Result<Outcome, WindowError> {
        let size = picture.size;
        let picture = match self.swapchain.order() {
            PixelOrder::Rgba => picture,
            PixelOrder::Bgra => picture.blue_first(),
        };
        let next = self.last + 1;
        let slot = &self.slots[(next % 2) as usize];
        let after = slot.shown.map(|frame| (&self.is_copied, frame));
        let frame = self.canvas.draw(&picture, after)?;
        self.last = frame;
        let slot = &mut self.slots[(frame % 2) as usize];
        let allocation = self.canvas.pixels(frame).allocation();
        let pixels = match slot.pixels.take() {
            Some(pixels) if pixels.is_of(allocation) => pixels,
            // The picture has grown, or it is the first.
            _ => ImportedAllocation::new(allocation, &self.device)?,
        };
        let pixels = slot.pixels.insert(pixels);
        let copied = self.swapchain.copy(
            pixels.region(),
            size,
            (&self.drawn, frame),
            (&self.copied, frame),
        )?;
        let image = match copied {
            Copied::To(image) => image,
            Copied::Stale => return Ok(Outcome::Stale),
            Copied::Busy => return Ok(Outcome::Busy),
        };
        slot.shown = Some(frame);
        self.carries_copied.signal_after(frame, frame)?;
        // The copy waits for the picture on the device; the window's own wait begins when the bridge has carried it, since a
        // driver waits for that wherever it is told to show an image.
        self.carry_drawn(frame)?;
        Ok(match self.swapchain.present(image)? {
            Presented::Well => Outcome::Well,
            Presented::Poorly => Outcome::Poorly,
            Presented::Stale => Outcome::Stale,
        })
    }

    /// Until the window's device knows that a frame was drawn.
    fn carry_drawn(&mut self, frame: u64) -> Result<(), WindowError> {
        let carried = match &self.carries_drawn {
            Some(bridge) => bridge.signal_after(frame, frame)?.wait(LONG),
            None => None,
        };
        let failed = match carried {
            Some(Ok(())) => return Ok(()),
            Some(Err(error)) => error.into(),
            None => WindowError::NotDrawn,
        };
        self.end_waits();
        Err(failed)
    }

    /// Nobody carries anything any more, and what was submitted ends.
    fn end_waits(&mut self) {
        self.carries_drawn = None;
        self.drawn.end_waits(self.last + 1);
    }
}

/// What became of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It is shown.
    Well,
    /// It is shown, and the window would rather have another size.
    Poorly,
    /// It is not: the window has another size.
    Stale,
    /// It is not: the window has no image free.
    Busy,
}

impl Drop for Screen {
    fn drop(&mut self) {
        // Where the engine is lost nobody raises the timeline that a submission waits for, and the swapchain waits for that.
        if self.carries_drawn.is_some() && self.canvas.frames().wait(self.last, LONG).is_err() {
            self.end_waits();
        }
    }
}
