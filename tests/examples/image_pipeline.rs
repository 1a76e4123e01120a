//! A producer, a filter and a consumer of images: three queues on two engines, with fences between them.
//!
//! The camera uploads frames, the filter blurs each and finds its edges, the finish tones them and downloads the
//! result. All is submitted at once; from then on fences alone say who may go on, and the CPU looks only at
//! finished frames, each of which it compares with its own.
//!
//!     cargo run --example image_pipeline

#[path = "../support/camera.rs"]
mod camera;

use camera::{HEIGHT, WIDTH, expected, pictures};
use native_fence::{
    Adapter, AdapterOptions, Buffer, CommandList, HwQueueOptions, KernelCode, Parameters,
};
use std::error::Error;
use std::time::{Duration, Instant};

const FRAMES: u64 = 12;
/// Frames that are under way between two queues.
const SLOTS: u64 = 2;
const LONG: Duration = Duration::from_secs(60);

fn main() -> Result<(), Box<dyn Error>> {
    let options = AdapterOptions {
        nodes: 2.try_into()?,
        ..AdapterOptions::default()
    };
    let adapter = Adapter::open(&options)?;
    let device = adapter.create_device();
    let kernel = |spirv| {
        device
            .create_kernel(KernelCode::from_bytes(spirv, 32)?)
            .map_err(Box::<dyn Error>::from)
    };
    let blur = kernel(include_bytes!("../../shaders/spv/examples/blur.spv"))?;
    let edges = kernel(include_bytes!("../../shaders/spv/examples/edges.spv"))?;
    let tone = kernel(include_bytes!("../../shaders/spv/examples/tone.spv"))?;

    // The camera and the finish are of the first engine, the filter between them of the second.
    let queue_on = |node_ordinal| {
        device.create_hw_queue_with(HwQueueOptions {
            node_ordinal,
            ..HwQueueOptions::default()
        })
    };
    let (mut source, mut filter, mut finish) = (queue_on(0)?, queue_on(1)?, queue_on(0)?);
    // Each counts the frames that have come past it.
    let (uploaded, filtered, done) = (
        device.create_fence(0)?,
        device.create_fence(0)?,
        device.create_fence(0)?,
    );

    let image = || device.create_buffer::<u32>(WIDTH * HEIGHT);
    let taken = [image()?, image()?];
    let blurred = image()?;
    let edged = [image()?, image()?];
    let groups = [WIDTH.div_ceil(16) as u32, HEIGHT.div_ceil(4) as u32, 1];
    let parameters = |from: &Buffer<u32>, to: &Buffer<u32>| {
        Parameters::new()
            .address(from, 0)
            .address(to, 0)
            .word(WIDTH as u64)
            .word(HEIGHT as u64)
    };

    let pictures = pictures(FRAMES)?;
    let mut downloads = Vec::new();
    let begin = Instant::now();
    for (frame, picture) in (1..).zip(&pictures) {
        let slot = (frame % SLOTS) as usize;
        // The frame that had this slot before; there is none before the first ones.
        let before = frame.saturating_sub(SLOTS);

        let mut list = CommandList::new();
        list.wait(&filtered, before);
        list.upload(&taken[slot], 0, picture, &uploaded, frame)?;
        source.submit(&list)?;

        list.clear();
        list.wait(&uploaded, frame).wait(&done, before);
        list.dispatch(&blur, groups, &parameters(&taken[slot], &blurred))?;
        list.dispatch(&edges, groups, &parameters(&blurred, &edged[slot]))?;
        list.signal(&filtered, frame);
        filter.submit(&list)?;

        list.clear();
        list.wait(&filtered, frame);
        list.dispatch(&tone, groups, &parameters(&edged[slot], &edged[slot]))?;
        downloads.push(list.download(&edged[slot], .., &done, frame)?);
        finish.submit(&list)?;
    }
    let finished: Result<Vec<_>, _> = downloads.iter().map(|one| one.wait(LONG)).collect();
    let (finished, took) = (finished?, begin.elapsed());
    for (frame, (picture, finished)) in (1..).zip(pictures.iter().zip(finished)) {
        if finished != expected(picture) {
            return Err(format!("frame {frame} is not what the CPU makes of it").into());
        }
    }
    println!("{FRAMES} frames of {WIDTH} x {HEIGHT} pixels: each is what the CPU makes of it");
    println!(
        "3 queues on 2 engines took {:.1} ms",
        took.as_secs_f64() * 1e3
    );
    Ok(())
}
