//! Copy: the commands that bring pixels to an image of a window.

use super::super::command_buffer::Recorded;
use super::super::{CommandRecorder, RegionImport};
use ash::vk;
use std::sync::Arc;

const SUBRESOURCE: vk::ImageSubresourceRange = vk::ImageSubresourceRange {
    aspect_mask: vk::ImageAspectFlags::COLOR,
    base_mip_level: 0,
    level_count: 1,
    base_array_layer: 0,
    layer_count: 1,
};

impl CommandRecorder {
    /// Copies pixels to an image that was got for it, and makes the image ready to be shown. Keeps the memory.
    pub(super) fn copy_to_image(
        self,
        (pixels, offset): (&Arc<RegionImport>, u64),
        image: vk::Image,
        size: (u32, u32),
    ) -> Self {
        let (width, height) = size;
        self.inner.must_share_device(pixels.device(), "a region");
        let bytes = u64::from(width) * u64::from(height) * 4;
        assert!(
            offset.is_multiple_of(4)
                && offset
                    .checked_add(bytes)
                    .is_some_and(|end| end <= pixels.bytes()),
            "{bytes} bytes at {offset} of a region of {} bytes",
            pixels.bytes()
        );
        let (device, raw) = (Arc::clone(&self.inner.device), self.inner.raw);
        let barrier = vk::ImageMemoryBarrier::default()
            .src_queue_family_index(vk::QUEUE_FAMILY_IGNORED)
            .dst_queue_family_index(vk::QUEUE_FAMILY_IGNORED)
            .image(image)
            .subresource_range(SUBRESOURCE);
        let to_be_written = barrier
            .old_layout(vk::ImageLayout::UNDEFINED)
            .new_layout(vk::ImageLayout::TRANSFER_DST_OPTIMAL)
            .dst_access_mask(vk::AccessFlags::TRANSFER_WRITE);
        let to_be_shown = barrier
            .old_layout(vk::ImageLayout::TRANSFER_DST_OPTIMAL)
            .new_layout(vk::ImageLayout::PRESENT_SRC_KHR)
            .src_access_mask(vk::AccessFlags::TRANSFER_WRITE);
        // The pixels were written by another device, whose end the host has seen before it raised the timeline that this
        // submission waits for: what is visible to the host is made so to this device. (Practice: Vulkan knows memory of one
        // device, and external memory by handles; this is pages of the host, or a descriptor, that both have imported.)
        let pixels_are_seen = vk::MemoryBarrier::default()
            .src_access_mask(vk::AccessFlags::HOST_WRITE | vk::AccessFlags::MEMORY_WRITE)
            .dst_access_mask(vk::AccessFlags::TRANSFER_READ);
        let region = vk::BufferImageCopy::default()
            .buffer_offset(offset)
            .image_subresource(vk::ImageSubresourceLayers {
                aspect_mask: vk::ImageAspectFlags::COLOR,
                mip_level: 0,
                base_array_layer: 0,
                layer_count: 1,
            })
            .image_extent(vk::Extent3D {
                width,
                height,
                depth: 1,
            });
        let none = vk::DependencyFlags::empty();
        // SAFETY: the command buffer is being recorded, and `self` is its only handle; the image is of this device's swapchain.
        unsafe {
            device.raw().cmd_pipeline_barrier(
                raw,
                vk::PipelineStageFlags::HOST | vk::PipelineStageFlags::TRANSFER,
                vk::PipelineStageFlags::TRANSFER,
                none,
                &[pixels_are_seen],
                &[],
                &[to_be_written],
            );
        };
        // SAFETY: the same; the image has the layout, the region holds the pixels, was made for transfers, and is kept.
        unsafe {
            device.raw().cmd_copy_buffer_to_image(
                raw,
                pixels.raw(),
                image,
                vk::ImageLayout::TRANSFER_DST_OPTIMAL,
                &[region],
            );
        };
        // SAFETY: as above.
        unsafe {
            device.raw().cmd_pipeline_barrier(
                raw,
                vk::PipelineStageFlags::TRANSFER,
                vk::PipelineStageFlags::BOTTOM_OF_PIPE,
                none,
                &[],
                &[],
                &[to_be_shown],
            );
        };
        self.keep(Arc::clone(pixels) as _)
            .recorded(Recorded::CopyToImage { offset, size })
    }
}
