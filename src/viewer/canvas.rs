//! Canvas: a kernel that draws pictures on a hardware queue.
//!
//! A frame is a submission: uploads of the primitives and of the tiles' lists, dispatches of the kernel, and a signal of the
//! frames' fence with the frame's number. Who shows a frame waits for that number, by a queue, by the bridge to a program's
//! own Vulkan or by the CPU. Two frames have pixels of their own, in turns, so that one is drawn while the other is shown;
//! [`Canvas::draw`] takes what the queue waits for before it draws over what was shown.

use super::font::{self, GLYPHS};
use super::primitive::{Colour, Primitive};
use super::tiles::{MOST_OF_TILE, TILE, Tiles, TilesError};
use super::view::Scale;
use crate::{
    Buffer, CommandList, CreateError, Device, DispatchError, Fence, HwQueue, Kernel, KernelCode,
    KernelError, Parameters, SubmitError, TransferError, WaitError,
};
use bytemuck::Pod;
use std::time::Duration;

/// What is drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct Picture {
    /// Pixels across and down, at least one each.
    pub size: (u32, u32),
    /// Whose glyphs it has.
    pub scale: Scale,
    /// What it is drawn on.
    pub background: Colour,
    /// In this order, one over the other.
    pub primitives: Vec<Primitive>,
}

impl Picture {
    /// The same for who has blue in a pixel's lowest byte, as most screens do.
    #[must_use]
    pub fn blue_first(mut self) -> Self {
        self.background = self.background.blue_first();
        for primitive in &mut self.primitives {
            primitive.colour = primitive.colour.blue_first();
        }
        self
    }
}

/// A picture that was not drawn.
#[derive(Debug, thiserror::Error)]
pub enum CanvasError {
    /// There is too much in it.
    #[error(transparent)]
    Tiles(#[from] TilesError),
    /// The kernel cannot be.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// A buffer, a fence or a queue cannot be.
    #[error(transparent)]
    Create(#[from] CreateError),
    /// It cannot be brought to the queue, or from it.
    #[error(transparent)]
    Transfer(#[from] TransferError),
    /// The kernel cannot be run.
    #[error(transparent)]
    Dispatch(#[from] DispatchError),
    /// The queue takes nothing.
    #[error(transparent)]
    Submit(#[from] SubmitError),
    /// It was not drawn in time, or the device is lost.
    #[error("the picture was not drawn: {0}")]
    Wait(#[from] WaitError),
}

const KERNEL: &[u8] = include_bytes!("../../shaders/spv/viewer/canvas.spv");
const PARAMETERS: u32 = 16 * 8;
/// Rows of pixels of a workgroup.
const GROUP_ROWS: u32 = 4;
/// Pixels that a dispatch makes, or a little more, so that no kernel keeps its engine for long.
const PIXELS_AT_A_TIME: u32 = 1 << 19;
const LONG: Duration = Duration::from_secs(60);

/// See the file's head.
#[derive(Debug)]
pub struct Canvas {
    device: Device,
    kernel: Kernel,
    queue: HwQueue,
    list: CommandList,
    /// Has the number of the last frame that is drawn.
    frames: Fence,
    frame: u64,
    /// Counts uploads and downloads.
    transfers: Fence,
    transfer: u64,
    atlases: [Option<Buffer<u32>>; 2],
    primitives: Buffer<Primitive>,
    starts: Buffer<u32>,
    lists: Buffer<u32>,
    pixels: [Buffer<u32>; 2],
}

impl Canvas {
    /// With a queue of a device.
    ///
    /// # Errors
    /// [`CanvasError`].
    pub fn new(device: &Device) -> Result<Self, CanvasError> {
        Ok(Self {
            kernel: device.create_kernel(KernelCode::from_bytes(KERNEL, PARAMETERS)?)?,
            queue: device.create_hw_queue()?,
            list: CommandList::new(),
            frames: device.create_fence(0)?,
            frame: 0,
            transfers: device.create_fence(0)?,
            transfer: 0,
            atlases: [None, None],
            primitives: device.create_buffer(1)?,
            starts: device.create_buffer(2)?,
            lists: device.create_buffer(2)?,
            pixels: [device.create_buffer(2)?, device.create_buffer(2)?],
            device: device.clone(),
        })
    }

    /// The fence that has the number of the last frame that is drawn.
    #[must_use]
    pub fn frames(&self) -> &Fence {
        &self.frames
    }

    /// Pixels of a frame, row by row, red in the lowest byte, until the second frame after it is drawn. There may be room for
    /// more than it has.
    #[must_use]
    pub fn pixels(&self, frame: u64) -> &Buffer<u32> {
        &self.pixels[(frame % 2) as usize]
    }

    /// Submits a picture, and gives its frame's number. The queue waits for `after` before it draws.
    ///
    /// # Errors
    /// [`CanvasError`]; then nothing is submitted.
    pub fn draw(
        &mut self,
        picture: &Picture,
        after: Option<(&Fence, u64)>,
    ) -> Result<u64, CanvasError> {
        let (width, height) = picture.size;
        let tiles = Tiles::of(&picture.primitives, picture.size)?;
        let frame = self.frame + 1;
        self.list.clear();
        if let Some((fence, value)) = after {
            self.list.wait(fence, value);
        }
        self.make_room(picture, &tiles, frame)?;
        let atlas = self.atlas(picture.scale)?;
        let (primitives, starts) = (self.primitives.clone(), self.starts.clone());
        let lists = self.lists.clone();
        self.upload(&primitives, &picture.primitives)?;
        self.upload(&starts, &tiles.starts)?;
        self.upload(&lists, &tiles.lists)?;

        let (glyph_width, glyph_height) = font::cell(picture.scale);
        let rows = (PIXELS_AT_A_TIME / width.max(1)).next_multiple_of(TILE);
        for top in (0..height).step_by(rows as usize) {
            let parameters = Parameters::new()
                .address(&self.primitives, 0)
                .address(&self.starts, 0)
                .address(&self.lists, 0)
                .address(&atlas, 0)
                .address(self.pixels(frame), 0)
                .word(picture.primitives.len() as u64)
                .word(tiles.starts.len() as u64)
                .word(tiles.lists.len() as u64)
                .word(u64::from(GLYPHS))
                .word(glyph_width as u64)
                .word(glyph_height as u64)
                .word(u64::from(width))
                .word(u64::from(height))
                .word(u64::from(top))
                .word(u64::from(u32::from_le_bytes(picture.background.0)))
                .word(u64::from(MOST_OF_TILE));
            let groups = [
                width.div_ceil(TILE),
                rows.min(height - top).div_ceil(GROUP_ROWS),
                1,
            ];
            self.list.dispatch(&self.kernel, groups, &parameters)?;
        }
        self.list.signal(&self.frames, frame);
        self.queue.submit(&self.list)?;
        self.frame = frame;
        self.atlases[place_of(picture.scale)] = Some(atlas);
        Ok(frame)
    }

    /// Brings a frame's pixels to the program.
    ///
    /// # Errors
    /// [`CanvasError`].
    pub fn download(
        &mut self,
        frame: u64,
        (width, height): (u32, u32),
    ) -> Result<Vec<u32>, CanvasError> {
        let elements = ..(width as usize * height as usize);
        let mut list = CommandList::new();
        list.wait(&self.frames, frame);
        self.transfer += 1;
        let from = self.pixels(frame);
        let download = list.download(from, elements, &self.transfers, self.transfer)?;
        self.queue.submit(&list)?;
        Ok(download.wait(LONG)?)
    }

    /// Has buffers that are large enough for a picture.
    fn make_room(
        &mut self,
        picture: &Picture,
        tiles: &Tiles,
        frame: u64,
    ) -> Result<(), CanvasError> {
        let (width, height) = picture.size;
        let slot = (frame % 2) as usize;
        let lacks = self.primitives.len() < picture.primitives.len()
            || self.starts.len() < tiles.starts.len()
            || self.lists.len() < tiles.lists.len()
            || self.pixels[slot].len() < width as usize * height as usize;
        if !lacks {
            return Ok(());
        }
        // The queue faults at a buffer that is closed before it comes to it.
        self.frames.wait(self.frame, LONG)?;
        grow(&self.device, &mut self.primitives, picture.primitives.len())?;
        grow(&self.device, &mut self.starts, tiles.starts.len())?;
        grow(&self.device, &mut self.lists, tiles.lists.len())?;
        let pixels = width as usize * height as usize;
        grow(&self.device, &mut self.pixels[slot], pixels)
    }

    /// The atlas of a scale, which is brought once.
    fn atlas(&mut self, scale: Scale) -> Result<Buffer<u32>, CanvasError> {
        if let Some(atlas) = &self.atlases[place_of(scale)] {
            return Ok(atlas.clone());
        }
        let bytes = font::atlas(scale);
        let (fours, _) = bytes.as_chunks();
        let words: Vec<_> = fours.iter().map(|four| u32::from_le_bytes(*four)).collect();
        let atlas = self.device.create_buffer::<u32>(words.len())?;
        self.upload(&atlas, &words)?;
        Ok(atlas)
    }

    fn upload<T: Pod>(&mut self, to: &Buffer<T>, elements: &[T]) -> Result<(), CanvasError> {
        // An upload begins and ends between words of 64 bits.
        let step = 8_usize.div_ceil(size_of::<T>());
        let mut whole;
        let mut elements = elements;
        if !elements.len().is_multiple_of(step) {
            whole = elements.to_vec();
            whole.resize(elements.len().next_multiple_of(step), T::zeroed());
            elements = &whole;
        }
        self.transfer += 1;
        self.list
            .upload(to, 0, elements, &self.transfers, self.transfer)?;
        Ok(())
    }
}

fn place_of(scale: Scale) -> usize {
    match scale {
        Scale::One => 0,
        Scale::Two => 1,
    }
}

/// Makes a buffer larger that is too small; what was in it is gone.
fn grow<T: Pod>(
    device: &Device,
    buffer: &mut Buffer<T>,
    elements: usize,
) -> Result<(), CanvasError> {
    if buffer.len() < elements {
        // Half as much again, so that it does not grow with every frame.
        let elements = (elements + elements / 2).next_multiple_of(2);
        *buffer = device.create_buffer(elements)?;
    }
    Ok(())
}
